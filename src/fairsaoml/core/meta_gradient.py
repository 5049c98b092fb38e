"""Three ways to take the gradient of Eq. 14 with respect to the meta theta, expert by expert (D3).

An expert that is awake has just adapted from the meta pair; one that is asleep holds the pair it
adapted when its interval began.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import buffers
from fairsaoml.core.buffers import Buffer, Hand, Pool
from fairsaoml.core.primal_dual import Steps, lagrangian, run_base_learner, violations
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Params, PrimalDual, Problem


class Turn(NamedTuple):
    """One expert's part in an iteration: adapt on its support draw, be measured on its query."""

    problem: Problem
    deployed: Deployed
    iteration: Int[Array, ""]
    inner_steps: int
    support: Pool  # of its own interval's sample
    query: Pool
    weight: Float[Array, ""]
    steps: Steps

    def adapt(self, meta: PrimalDual) -> PrimalDual:
        """The expert's pair: the base learner from the meta pair (Eq. 10 to 12)."""
        support = buffers.take(self.support, self.iteration)
        return run_base_learner(
            self.problem, meta, support, self.deployed, self.steps, self.inner_steps
        )

    def on_query(self, pair: PrimalDual) -> tuple[Float[Array, ""], Array]:
        """The weighted Lagrangian of a pair, and its violations."""
        query = buffers.take(self.query, self.iteration)
        value, violation = lagrangian(self.problem, pair, query, self.deployed)
        return self.weight * value, violation

    def slope(self, pair: PrimalDual) -> tuple[Params, Array]:
        """The gradient of `on_query` at a pair, and the violations there."""
        return jax.grad(lambda primal: self.on_query(pair._replace(primal=primal)), has_aux=True)(
            pair.primal
        )


class MetaGradient(NamedTuple):
    """Where the gradient of Eq. 14 is taken (D3)."""

    awake: Callable[[Turn, PrimalDual], tuple]  # to gradient, violations, adapted pair
    asleep: Callable[[Turn, PrimalDual, PrimalDual], Params] | None  # None: there is no slope


def through_adapting(turn: Turn, meta: PrimalDual) -> tuple:
    """The gradient through the base learner.

    The expert's dual is the other player's variable: held fixed in the outer Lagrangian, followed
    inside the base learner.
    """

    def objective(primal: Params) -> tuple[Float[Array, ""], tuple]:
        adapted = turn.adapt(meta._replace(primal=primal))
        value, violation = turn.on_query(adapted._replace(dual=jax.lax.stop_gradient(adapted.dual)))
        return value, (violation, adapted)

    gradient, (violation, adapted) = jax.grad(objective, has_aux=True)(meta.primal)
    return gradient, violation, adapted


def after_adapting(turn: Turn, meta: PrimalDual) -> tuple:
    """The gradient at the adapted point, the base learner being a constant."""
    adapted = turn.adapt(meta)
    return *turn.slope(adapted), adapted


def at_meta(turn: Turn, meta: PrimalDual, pair: PrimalDual) -> Params:
    """A sleeper's rows and price, at the meta theta."""
    return turn.slope(pair._replace(primal=meta.primal))[0]


def at_own(turn: Turn, meta: PrimalDual, pair: PrimalDual) -> Params:
    """At a sleeper's own theta: unstable, its push never changes (D3)."""
    return turn.slope(pair)[0]


META_GRADIENTS = {
    "exact": MetaGradient(awake=through_adapting, asleep=None),  # a sleeper reaches only the dual
    "first-order": MetaGradient(awake=after_adapting, asleep=at_meta),
    "stale": MetaGradient(awake=after_adapting, asleep=at_own),
}


def violations_asleep(
    problem: Problem,
    deployed: Deployed,
    sample: Buffer,
    query: Hand,
    pair: PrimalDual,
    iterations: int,
) -> Float[Array, "iteration constraint"]:
    """A sleeper's violations on the query draws of a round, at its own theta (Eq. 15).

    Its theta stays as it is, so that its rows are scored once for all draws.
    """
    logits = problem.model.scores(pair.primal, buffers.rows_of(sample))

    def of_draw(iteration: Int[Array, ""]) -> Float[Array, "constraint"]:
        drawn = logits[buffers.places_of(sample, query, iteration)]
        return violations(problem, drawn, buffers.pick(sample, query, iteration), deployed)

    return jax.vmap(of_draw)(jnp.arange(iterations))


def added(one: Params, other: Params) -> Params:
    """The sum of two gradients."""
    return jax.tree.map(jnp.add, one, other)
