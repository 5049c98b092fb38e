"""Our steady round against the same in PyTorch: `python -m benchmarks.against_torch [--full]`.

The peer plays in all its forms (`vmap` and batched by hand, eager; compiled by inductor) on one
thread and on two, and the fastest counts. Before it is timed it must reproduce our round's numbers.
The typical round is measured; in full the crowded one as well.
"""

import sys
from functools import partial
from typing import Any

from benchmarks import workload
from benchmarks.measure import STEADY, Measured, at_least, taking_turns
from benchmarks.workload import Game, Size

__all__ = ["measure"]

GOAL = at_least(1)
AGREEMENT = 1e-4
THREADS = (1, 2)
TURNS, TURNS_IN_FULL = 7, 40


def measure(full: bool = False) -> list[Measured]:
    """How many times faster we are, by size and learner."""
    return [
        of_round(size, kind, when, full)
        for size in workload.SIZES
        for kind in workload.KINDS
        # Live experts all learn in every round: their crowded round is like any other.
        for when in ("typical", "crowded")[: 2 if full else 1]
    ]


def of_round(size: Size, kind: str, when: str, full: bool) -> Measured:
    """One row: ours and the peer's forms take turns at one round."""
    from benchmarks.torch_round import STYLES, TorchRound, largest_difference

    game, round = Game(size, kind), getattr(size, when)
    # Eager forms are slower by far; the quick form takes our word for it.
    peers = {style: TorchRound(game, style) for style in (STYLES if full else STYLES[-1:])}
    for style, peer in peers.items():
        apart = largest_difference(game, peer, round)
        if not apart <= AGREEMENT:
            raise AssertionError(
                f"expected the peer's numbers within {AGREEMENT:g} of ours; "
                f"{style}, {kind}, {size.name} differs by {apart:.2g}"
            )
    contenders: dict[str, Any] = {"ours": partial(game.play, round)}
    for style, peer in peers.items():
        for threads in THREADS:
            contenders[f"{style}, {threads} threads"] = partial(on_threads, threads, peer, round)
    seconds = taking_turns(contenders, turns=TURNS_IN_FULL if full else TURNS, steady=STEADY)
    ours = seconds.pop("ours")
    best = min(seconds, key=seconds.__getitem__)
    return Measured(
        what=f"{size.name}: {when} round of {kind} against PyTorch",
        ratio=seconds[best] / ours,
        goal=GOAL,
        detail=f"{1e3 * ours:.1f} ms against {1e3 * seconds[best]:.1f} ms ({best})",
    )


def on_threads(threads: int, peer: Any, round: int) -> None:
    """The peer's round on so many threads."""
    import torch

    torch.set_num_threads(threads)
    peer.play(round)


if __name__ == "__main__":
    for row in measure("--full" in sys.argv):
        print(f"{row.what}: {row.ratio:.2f} ({row.goal}); {row.detail}", flush=True)
