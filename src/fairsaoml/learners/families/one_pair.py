"""One primal-dual pair and no memory: it moves on this round's draws and forgets them.

What is open is the move: how theta and lambda go from one draw to the next.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairsaoml.core import buffers, experts, prior
from fairsaoml.core.buffers import Deck, Sizes
from fairsaoml.core.config import DrawingConfig
from fairsaoml.core.primal_dual import evaluate, start
from fairsaoml.core.prior import Deployed, Prior
from fairsaoml.core.types import Batch, Key, Learner, PrimalDual, Problem, RoundInfo
from fairsaoml.learners.families.deployed import alone, decision_by

__all__ = ["Move", "State", "learn", "one_pair"]

# (round, pair, rows, deployed) -> pair. The round is t of the rule's step sizes.
Move = Callable[[Int[Array, ""], PrimalDual, Batch, Deployed], PrimalDual]


class State(NamedTuple):
    """What the next round needs."""

    pair: PrimalDual
    prior: Prior
    round: Int[Array, ""]  # the last one learned from
    pinned: Int[Array, ""]  # rounds in a row with a violation and no price (D14)


def one_pair(problem: Problem, config: DrawingConfig, move: Move) -> Learner:
    """A learner that is one pair, moved by `move` once for every draw."""

    def init(key: Key) -> State:
        never = jnp.zeros((), jnp.int32)
        return State(pair=start(problem, key), prior=prior.no_prior(), round=never, pinned=never)

    def adapt(state: State, support: Batch) -> State:
        deployed = prior.deployed(state.prior, config.decision)

        def once(pair: PrimalDual, _: None) -> tuple[PrimalDual, None]:
            return move(state.round + 1, pair, support, deployed), None

        pair, _ = jax.lax.scan(once, state.pair, None, length=config.meta_iterations)
        return state._replace(pair=pair)

    def step(key: Key, round: Int[Array, ""], old: State, batch: Batch) -> tuple[State, RoundInfo]:
        seen = prior.observe(old.prior, batch, config.prior_discount)
        deployed = prior.deployed(seen, config.decision)
        deck = experts.draw_round(key, batch, config)
        pair = learn(config, move, round, old.pair, deck, deployed)
        pair = experts.choose(batch.weight.sum() > 0, pair, old.pair)  # D20
        _, violation = evaluate(problem, pair.primal, batch, deployed)
        pinned = experts.pinned_rounds(old.pinned, pair.dual, violation)
        state = State(pair=pair, prior=seen, round=round, pinned=pinned)
        state, finite = experts.keep_finite(state, old)
        flags = experts.flags(problem, batch, pinned, finite)
        return state, alone(state.pair.dual, flags)

    scores, threshold = decision_by(problem, config, lambda state: state.pair.primal)
    return Learner(init=init, scores=scores, threshold=threshold, adapt=adapt, step=step)


def learn(
    config: DrawingConfig,
    move: Move,
    round: Int[Array, ""],
    pair: PrimalDual,
    deck: Deck,
    deployed: Deployed,
) -> PrimalDual:
    """`meta_iterations` moves, each on its own draw of this round's rows."""

    def once(pair: PrimalDual, iteration: Int[Array, ""]) -> tuple[PrimalDual, None]:
        rows = buffers.take_support(deck, iteration, Sizes(config.support))
        return move(round, pair, rows, deployed), None

    return jax.lax.scan(once, pair, jnp.arange(config.meta_iterations))[0]
