"""One primal-dual pair and no memory: it moves on this round's draws and forgets them.

What is open is the move: how theta and lambda go from one draw to the next.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Int

from fairsaoml.core import buffers, experts
from fairsaoml.core.config import DrawingConfig
from fairsaoml.core.learner import Method, Update, wrap
from fairsaoml.core.primal_dual import evaluate, start
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Key, Learner, PrimalDual, Problem

# (round, pair, rows, deployed) -> pair. The round is t of the rule's step sizes.
Move = Callable[[Int[Array, ""], PrimalDual, Batch, Deployed], PrimalDual]


def one_pair(problem: Problem, config: DrawingConfig, move: Move) -> Learner:
    """A learner that is one pair, moved by `move` once for every draw."""

    def moved(
        round: Int[Array, ""], pair: PrimalDual, rows: Callable[[Any], Batch], deployed: Deployed
    ) -> PrimalDual:
        def once(iteration: Int[Array, ""] | int, pair: PrimalDual) -> PrimalDual:
            return move(round, pair, rows(iteration), deployed)

        return jax.lax.fori_loop(0, config.meta_iterations, once, pair)

    def step(
        key: Key, round: Int[Array, ""], pair: PrimalDual, batch: Batch, deployed: Deployed
    ) -> Update:
        pool = experts.draw_round(key, batch, config)
        pair = moved(round, pair, partial(buffers.take, pool), deployed)
        return Update(learned=pair, violation=evaluate(problem, pair.primal, batch, deployed)[1])

    method = Method(
        init=lambda key: start(problem, key),
        logits=lambda pair, x: problem.model.scores(pair.primal, x),
        adapt=lambda round, pair, support, deployed: moved(
            round, pair, lambda iteration: support, deployed
        ),
        step=step,
        dual=lambda pair: pair.dual,
    )
    return wrap(problem, config, method)
