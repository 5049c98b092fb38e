"""One primal-dual pair and no memory: it moves on this round's draws and forgets them.

What is open is the move: how theta and lambda go from one draw to the next.
"""

from collections.abc import Callable

import jax
from jaxtyping import Array, Int

from fairsaoml.core import buffers, experts
from fairsaoml.core.buffers import Pool
from fairsaoml.core.config import DrawingConfig
from fairsaoml.core.learner import Method, Update, wrap
from fairsaoml.core.primal_dual import evaluate, start
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Key, Learner, PrimalDual, Problem

# (round, pair, rows, deployed) -> pair. The round is t of the rule's step sizes.
Move = Callable[[Int[Array, ""], PrimalDual, Batch, Deployed], PrimalDual]


def one_pair(problem: Problem, config: DrawingConfig, move: Move) -> Learner:
    """A learner that is one pair, moved by `move` once for every draw."""

    def adapt(
        round: Int[Array, ""], pair: PrimalDual, support: Batch, deployed: Deployed
    ) -> PrimalDual:
        def once(_: int, pair: PrimalDual) -> PrimalDual:
            return move(round, pair, support, deployed)

        return jax.lax.fori_loop(0, config.meta_iterations, once, pair)

    def step(
        key: Key, round: Int[Array, ""], pair: PrimalDual, batch: Batch, deployed: Deployed
    ) -> Update:
        pool = experts.draw_round(key, batch, config)
        pair = learn(config, move, round, pair, pool, deployed)
        return Update(learned=pair, violation=evaluate(problem, pair.primal, batch, deployed)[1])

    method = Method(
        init=lambda key: start(problem, key),
        logits=lambda pair, x: problem.model.scores(pair.primal, x),
        adapt=adapt,
        step=step,
        dual=lambda pair: pair.dual,
    )
    return wrap(problem, config, method)


def learn(
    config: DrawingConfig,
    move: Move,
    round: Int[Array, ""],
    pair: PrimalDual,
    pool: Pool,
    deployed: Deployed,
) -> PrimalDual:
    """`meta_iterations` moves, each on its own draw of this round's rows."""

    def once(iteration: Int[Array, ""] | int, pair: PrimalDual) -> PrimalDual:
        rows = buffers.take(pool, iteration)
        return move(round, pair, rows, deployed)

    return jax.lax.fori_loop(0, config.meta_iterations, once, pair)
