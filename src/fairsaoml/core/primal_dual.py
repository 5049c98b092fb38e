"""Lagrangian, base-learner step, meta step, projection: how a pair (theta, lambda) moves.

One primal-dual step serves everyone: the base learner of `fairsaoml` (Eq. 10 to 12), the live
experts, and the baselines. A batch is a class-balanced draw; `Deployed` says what the decisions
made from its scores look like (D25).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairsaoml.core.prior import Deployed, restore
from fairsaoml.core.problem import in_classes
from fairsaoml.core.types import Batch, Key, Params, PrimalDual, Problem

__all__ = [
    "Steps",
    "descent",
    "evaluate",
    "lagrangian",
    "move",
    "primal_dual_step",
    "project",
    "run_base_learner",
    "start",
    "violations",
]

Scalar = Float[Array, ""]


class Steps(NamedTuple):
    """Sizes of one primal-dual step."""

    primal: Scalar | float
    dual: Scalar | float
    damping: Scalar | float  # pulls the dual towards zero, so that it cannot grow without end
    bound: Scalar | float | None = None  # a longer gradient of theta is shortened to this
    floor: Scalar | float = 0.0  # of the dual


def start(problem: Problem, key: Key, dual: float = 0.0) -> PrimalDual:
    """The pair before any row: the model's own start, and lambda_0, by default no price."""
    return PrimalDual(
        primal=problem.model.init(key), dual=jnp.full(len(problem.constraints), dual, jnp.float32)
    )


class Seen(NamedTuple):
    """A batch as a loss and as gaps look at it: made once for all that is asked of it."""

    rows: Batch  # its classes known
    decided: Batch  # rows weighed as decisions are made of them
    shift: Scalar


def see(batch: Batch | Seen, deployed: Deployed) -> Seen:
    """What losses and gaps take of a batch; of one that was seen, it is there."""
    if isinstance(batch, Seen):
        return batch
    rows = batch._replace(classes=in_classes(batch))
    decided = rows if deployed.rate is None else restore(rows, deployed.rate)
    return Seen(rows=rows, decided=decided, shift=deployed.shift)


def evaluate(
    problem: Problem, primal: Params, batch: Batch | Seen, deployed: Deployed
) -> tuple[Scalar, Float[Array, "constraint"]]:
    """Loss f and violations g of a model on a draw."""
    seen = see(batch, deployed)
    logits = problem.model.scores(primal, seen.rows.x)
    return problem.loss(logits, seen.rows), violations(problem, logits, seen, deployed)


def violations(
    problem: Problem, logits: Float[Array, "row"], batch: Batch | Seen, deployed: Deployed
) -> Float[Array, "constraint"]:
    """g of a model's logits on a draw."""
    seen = see(batch, deployed)
    violation = [c.violation(logits + seen.shift, seen.decided) for c in problem.constraints]
    return jnp.stack(violation) if violation else jnp.zeros(0)


def lagrangian(
    problem: Problem, pair: PrimalDual, batch: Batch | Seen, deployed: Deployed
) -> tuple[Scalar, Float[Array, "constraint"]]:
    """F = f + sum_i lambda_i g_i (Eq. 10), and the violations beside it."""
    loss, violation = evaluate(problem, pair.primal, batch, deployed)
    return loss + jnp.dot(pair.dual, violation), violation


def descent(problem: Problem, pair: PrimalDual, batch: Batch | Seen, deployed: Deployed) -> Params:
    """Gradient of F with respect to theta."""

    def objective(primal: Params) -> Scalar:
        return lagrangian(problem, pair._replace(primal=primal), batch, deployed)[0]

    return jax.grad(objective)(pair.primal)


def primal_dual_step(
    problem: Problem,
    pair: PrimalDual,
    batch: Batch,
    deployed: Deployed,
    steps: Steps,
    radius: float | None = None,
) -> PrimalDual:
    """theta down the Lagrangian, then lambda up it at the new theta (Eq. 11, 12)."""
    seen = see(batch, deployed)
    gradient = project(descent(problem, pair, seen, deployed), steps.bound)
    primal = project(move(pair.primal, gradient, steps.primal), radius)
    violation = evaluate(problem, primal, seen, deployed)[1]
    dual = pair.dual + steps.dual * (violation - steps.damping * pair.dual)
    return PrimalDual(primal=primal, dual=jnp.maximum(dual, steps.floor))


def run_base_learner(
    problem: Problem,
    pair: PrimalDual,
    support: Batch,
    deployed: Deployed,
    steps: Steps,
    times: int,
) -> PrimalDual:
    """The base learner G: some primal-dual steps on a support (Alg. 1 line 18); 0 is the identity.

    Inner steps are not projected: the ball is the meta learner's domain (Eq. 14).
    """

    def once(pair: PrimalDual, _: None) -> tuple[PrimalDual, None]:
        return primal_dual_step(problem, pair, support, deployed, steps), None

    if times == 1:  # a loop takes half a second to be differentiated, even one of a single step
        return once(pair, None)[0]
    return jax.lax.scan(once, pair, None, length=times)[0]


def move(primal: Params, gradient: Params, step: Scalar | float) -> Params:
    """theta - step * gradient."""
    return jax.tree.map(lambda value, slope: value - step * slope, primal, gradient)


def project(primal: Params, radius: Scalar | float | None) -> Params:
    """The nearest point of the l2 ball, for the parameter vector as a whole (D9); None: the same.

    >>> project({"weight": jnp.array([3.0, 4.0])}, 1.0)["weight"].tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    if radius is None:
        return primal
    squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(primal))
    inside = squares <= radius**2
    shrink = jnp.where(inside, 1.0, radius * jax.lax.rsqrt(jnp.where(inside, 1.0, squares)))
    return jax.tree.map(lambda leaf: leaf * shrink, primal)
