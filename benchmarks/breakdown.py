"""`python -m benchmarks.breakdown [PICTURE]`: where the time of a round of `fairsaoml-live` goes.

Each piece of the round is compiled and timed alone, all taking turns. Pieces that are not functions
of their own are differences: draws and constraints are what learning costs beyond the bare model,
the rest is what the round costs beyond its pieces.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from paper.drawing.comparisons import Bar, draw_bars

from benchmarks.measure import taking_turns
from benchmarks.workload import LARGE, SMALL, Game, Size, round_key
from fairsaoml.core import buffers, experts
from fairsaoml.core.buffers import Sizes
from fairsaoml.core.prior import deployed
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.files import write_text
from fairsaoml.learners import live
from fairsaoml.learners.families import mixture

KIND = "fairsaoml-live"
TURNS = 40


def breakdown(size: Size) -> dict[str, float]:
    """Milliseconds by piece, the whole round first."""
    game, round = Game(size, KIND), size.typical
    problem, config, batch = game.problem, game.config, game.batches[round - 1]
    state, key = game.state.learned, round_key(round)
    roll = experts.roll_call(config, jnp.int32(round), size.levels)
    given = deployed(game.state.prior, config.decision)
    arrived = buffers.arrivals(key, batch, config.capacity)
    draws = experts.draw(key, state.samples, batch, roll.awake)
    sizes = Sizes(config.support)
    first = jax.vmap(lambda *own: buffers.take_support(buffers.deal(*own, sizes), 0, sizes))(*draws)
    first = first._replace(x=jnp.swapaxes(first.x, 1, 2))
    iterations = jnp.arange(config.meta_iterations)

    def each(piece: Callable) -> Callable:
        """Level after level, as the round does it."""
        return lambda *given: jax.lax.map(lambda own: piece(*own), given)

    def descend(primal: Any, rows: Any) -> Any:
        """The bare model: its loss, the gradient, a step. Rows come as they lie in a deck, last."""

        def loss(primal: Any) -> Any:
            return problem.loss(problem.model.scores(primal, rows.x.T), rows)

        def step(primal: Any, _: Any) -> Any:
            slopes = jax.grad(loss)(primal)
            return jax.tree.map(lambda old, slope: old - 0.1 * slope, primal, slopes), None

        return jax.lax.scan(step, primal, iterations)[0]

    def call(piece: Callable, *given: Any) -> Callable[[], Any]:
        compiled = jax.jit(piece)
        return lambda: jax.block_until_ready(compiled(*given))

    primal = state.bank.pair.primal
    seconds = taking_turns(
        {
            "round": call(lambda s: game.learner.step(key, jnp.int32(round), s, batch), game.state),
            "keep": call(
                lambda s: jax.vmap(buffers.merge, in_axes=(0, None))(s, arrived), state.samples
            ),
            "order": call(
                lambda s: jax.vmap(buffers.shuffle)(jax.random.split(key, size.levels), s),
                state.samples,
            ),
            "learn": call(
                lambda pairs, d: live.learn(problem, config, pairs, d, given, roll.present_count),
                state.bank.pair,
                draws,
            ),
            "model": call(each(descend), primal, first),
            "credit": call(
                lambda s: mixture.credit(problem, config, s, batch, given, roll.present), state
            ),
        },
        turns=TURNS,
    )
    ms = {name: 1e3 * taken for name, taken in seconds.items()}
    parts = {
        "the model: scores and gradients": ms["model"],
        "draws, constraints, prices": max(ms["learn"] - ms["model"], 0.0),
        "keeping samples": ms["keep"],
        "a fresh order": ms["order"],
        "credit": ms["credit"],
    }
    return {
        "the whole round": ms["round"],
        **parts,
        "everything else": max(ms["round"] - sum(parts.values()), 0.0),
    }


def main() -> None:
    """Print the pieces; draw them where a picture is asked for."""
    use_cache()
    one_thread()
    found = {size.name: breakdown(size) for size in (SMALL, LARGE)}
    columns = {}
    for name, pieces in found.items():
        whole = pieces["the whole round"]
        columns[name] = [
            Bar(piece, ms, ms, ms, f"{ms:.1f}" if ms == whole else f"{ms:.1f}, {ms / whole:.0%}")
            for piece, ms in pieces.items()
        ]
        for bar in columns[name]:
            print(f"{name:6} {bar.name:34} {bar.words}")
    if sys.argv[1:]:
        drawn = draw_bars(
            "Where the time of a round of fairsaoml-live goes",
            "Milliseconds of the round's pieces, small and large.",
            columns,
            "ms",
        )
        write_text(Path(sys.argv[1]), drawn + "\n")


if __name__ == "__main__":
    main()
