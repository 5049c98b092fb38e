"""The peer that our speed is measured against plays the same round."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks/ is no part of the package

pytest.importorskip("torch", reason="the peer is written in PyTorch (the extra `bench`)")

from benchmarks.arithmetic import Product, products
from benchmarks.torch_round import EMPTY, TorchRound, largest_difference
from benchmarks.workload import KINDS, Game, Size

TINY = Size("tiny", features=5, per_class=10, rows=64, levels=3)
AGREEMENT = 1e-4


@pytest.mark.parametrize("style", ["vmap", "batched"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_peer_reproduces_our_round_whoever_wakes(kind: str, style: str) -> None:
    game = Game(TINY, kind)
    peer = TorchRound(game, style)
    for round in (TINY.crowded, TINY.typical):
        assert largest_difference(game, peer, round) <= AGREEMENT


def test_the_peer_s_own_draws_hold_the_rows_of_the_waking_levels_task_alone() -> None:
    game = Game(TINY, "fairsaoml, exact")
    peer = TorchRound(game)
    peer.play(TINY.typical)
    batch = game.batches[TINY.typical - 1]
    samples = peer.state.samples
    for level in range(peer.awake(TINY.typical)):
        for label in (0, 1):
            held = samples.priority[level, label] < EMPTY
            found = {tuple(row) for row in samples.x[level, label][held].tolist()}
            wanted = {tuple(row) for row in batch.x[batch.y == label].tolist()}
            assert found == wanted


def test_a_round_s_products_are_those_of_its_draws() -> None:
    found = products(TINY, "fairsaoml, first-order", iterations=7)
    assert found[Product(3, 20, 5, 40)] == 2  # credit, of pair and experts
    assert found[Product(1, 2000, 5, 40)] == 1  # the sleeper on all of its rows
    # The base learner's gradient, the violation after it, and the gradient there.
    assert found[Product(2, 20, 5, 40)] == 3 * 7
    assert found[Product(2, 5, 20, 40, "left")] == 2 * 7
    assert found[Product(2, 20, 40, 40, "right")] == 2 * 7
