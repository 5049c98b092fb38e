"""Experts on intervals that descend the loss; what decides is the average of their parameters.

Strongly adaptive learning without fairness. The state after a round is ready for the next one:
experts whose interval is over have been replaced, and the weights are those of the intervals that
contain the next round. What is open is the cover, the credit and how it becomes weights.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core import buffers, experts
from fairsaoml.core.arrays import choose
from fairsaoml.core.buffers import Pool
from fairsaoml.core.config import DrawingConfig
from fairsaoml.core.experts import Roll
from fairsaoml.core.learner import Method, Update, wrap
from fairsaoml.core.primal_dual import move, project
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Key, Learner, Params, Problem

GAIN_CLIP = 1.0  # both combiners want gains in [-1, 1]
ROUNDING = 1e-6  # a gain below this is the float32 rounding of two equal losses

Credit = Any  # a pytree of (level,) arrays; all zeros for an expert that has none
PerLevel = Float[Array, "level"]
Presence = Bool[Array, "level"]
Round = Int[Array, ""]


class Averaging(NamedTuple):
    """What such a learner decides for itself: the cover, the steps and the weights."""

    storage: int  # levels to begin with
    room: Callable[[int, int], int]  # levels of storage for a round, given those there are
    roll: Callable[[Round, int], Roll]  # who takes part in the round, of so many
    steps: Callable[[Round, int], PerLevel]  # of each expert's descent in the round
    no_credit: Callable[[int], Credit]
    credit: Callable[[Credit, Float[Array, "draw level"]], Credit]  # after a round's gains
    weigh: Callable[[Round, Credit, Presence], PerLevel]
    warm: bool  # whether a new expert starts at the average, or where the first one started


class State(NamedTuple):
    """What the next round needs."""

    primal: Params  # (level, ...)
    credit: Credit
    weights: PerLevel  # of the intervals that contain the next round
    origin: Params  # where the first expert started


def averaged(problem: Problem, config: DrawingConfig, averaging: Averaging) -> Learner:
    """A learner that deploys the weighted average of its experts' parameters."""

    def loss(primal: Params, rows: Batch) -> Float[Array, ""]:
        return problem.loss(problem.model.scores(primal, rows.x), rows)

    def descended(primal: Params, rows: Batch, step: Float[Array, ""]) -> Params:
        return project(move(primal, jax.grad(loss)(primal, rows), step), config.radius)

    def learned_from(rows: Callable[[Any], Batch], round: Round, state: State) -> State:
        """Every expert descends the loss of every draw, with its own step size."""
        steps = averaging.steps(round, state.weights.shape[0])

        def once(iteration: Int[Array, ""] | int, primal: Params) -> Params:
            return jax.vmap(descended, in_axes=(0, None, 0))(primal, rows(iteration), steps)

        primal = jax.lax.fori_loop(0, config.meta_iterations, once, state.primal)
        return state._replace(primal=primal)

    def gains(state: State, pool: Pool) -> Float[Array, "draw level"]:
        """Loss of the average minus loss of each expert, on every draw, before anyone learns.

        Positive means the expert won. Rounding is no win: where every expert is at one point, a bet
        placed on 1e-8 would decide alone.
        """
        average = experts.mixture(state.weights, state.primal)

        def on_draw(iteration: Int[Array, ""]) -> PerLevel:
            rows = buffers.take(pool, iteration)
            gain = loss(average, rows) - jax.vmap(loss, in_axes=(0, None))(state.primal, rows)
            return jnp.where(jnp.abs(gain) < ROUNDING, 0.0, jnp.clip(gain, -GAIN_CLIP, GAIN_CLIP))

        return jax.lax.map(on_draw, jnp.arange(config.meta_iterations))

    def init(key: Key) -> State:
        levels, origin = averaging.storage, problem.model.init(key)
        first, credit = jnp.ones((), jnp.int32), averaging.no_credit(averaging.storage)
        share = averaging.weigh(first, credit, averaging.roll(first, levels).present)
        primal = experts.spread(origin, levels)
        return State(primal=primal, credit=credit, weights=share, origin=origin)

    def adapt(round: Round, state: State, support: Batch, deployed: Deployed) -> State:
        return learned_from(lambda iteration: support, round, state)

    def ready_for_next(round: Round, state: State) -> State:
        """New experts where an interval starts after the round, and the weights from then on."""
        primal, credit, levels = state.primal, state.credit, state.weights.shape[0]
        # Weighed while the experts of this round are still there: a new one has learned nothing.
        share = averaging.weigh(round, credit, averaging.roll(round, levels).present)
        begin = experts.mixture(share, primal) if averaging.warm else state.origin
        coming = averaging.roll(round + 1, levels)
        new, old = (begin, experts.at(averaging.no_credit(1), 0)), (primal, credit)
        primal, credit = jax.vmap(choose, in_axes=(0, None, 0))(coming.awake, new, old)
        share = averaging.weigh(round + 1, credit, coming.present)
        return state._replace(primal=primal, credit=credit, weights=share)

    def step(key: Key, round: Round, old: State, batch: Batch, deployed: Deployed) -> Update:
        roll = averaging.roll(round, old.weights.shape[0])
        pool = experts.draw_round(key, batch, config)
        credited = old._replace(credit=averaging.credit(old.credit, gains(old, pool)))
        learned = learned_from(partial(buffers.take, pool), round, credited)
        return Update(
            learned=ready_for_next(round, learned),
            idle=ready_for_next(round, old),
            violation=jnp.zeros(len(problem.constraints)),
            weights=old.weights,
            present=roll.present,
            awake=roll.awake,
        )

    def grow(state: State, round: int) -> State:
        levels = state.weights.shape[0]
        room = averaging.room(round + 1, levels)  # whose experts this round's step makes
        if room == levels:
            return state
        return experts.widen(state._replace(origin=None), room)._replace(origin=state.origin)

    def logits(state: State, x: Float[Array, "row feature"]) -> Float[Array, "row"]:
        return problem.model.scores(experts.mixture(state.weights, state.primal), x)

    method = Method(
        init=init,
        logits=logits,
        adapt=adapt,
        step=step,
        dual=lambda state: jnp.zeros(len(problem.constraints)),
        grow=grow,
    )
    return wrap(problem, config, method)
