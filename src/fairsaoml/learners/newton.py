"""Experts that solve their interval, ours: Newton's method on a linear model, fair by multipliers.

Twenty noisy steps a round leave an expert far from the best model of its interval. Where the
model is linear there is no need to. The loss of an interval's past rows is nearly a quadratic, the
gaps between its groups are nearly linear, and a matrix and a few vectors remember both however
long the interval is. So each round an expert solves

    min over theta   past loss (quadratic) + present loss (exact)
    such that        |pooled gap_i| <= tolerance,   past (linear) and present (exact) rows together

by Newton steps on the augmented Lagrangian, no row of the past at hand, nothing random. Who wakes,
who is credited and what is deployed is as with the live experts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from fairsaoml.core import experts, intervals
from fairsaoml.core.config import integer, notions, number, one_of, scored, setting
from fairsaoml.core.experts import Roll
from fairsaoml.core.primal_dual import gaps, project, start
from fairsaoml.core.prior import Deployed
from fairsaoml.core.scores import SCORES, sharpness
from fairsaoml.core.shrinkage import relative_gaps, shrinkage, uncertainty
from fairsaoml.core.types import Batch, Key, Learner, Params, Problem
from fairsaoml.learners.families.mixture import Expertise, MixtureConfig, mixture_of

__all__ = ["NewtonConfig", "newton", "solve"]

STEP_SIZES = (1.0, 0.5, 0.25, 0.0625, 0.0)  # the first that does no harm is taken
HARMLESS = 1e-5  # more than float32 can tell of the objective: near the end steps are whole
JITTER = 1e-6  # keeps the matrix of a Newton step positive in float32

Vector = Float[Array, "parameter"]
Matrix = Float[Array, "parameter parameter"]
PerConstraint = Float[Array, "constraint"]


@dataclass(frozen=True, kw_only=True)
class NewtonConfig(MixtureConfig):
    """Settings of the solving experts; the defaults are the same for every stream."""

    model: str = setting("logistic", one_of("logistic"), "the scoring function: a linear one")
    constraints: str = notions("dp+eo")
    score: str = scored("decision")
    newton_steps: int = setting(4, integer(1), "Newton steps to the best model, then to the fair")
    ridge: float = setting(1.0, number(1e-6), "l2 term on theta, in rows")
    penalty: float = setting(4.0, number(1e-6), "mu: how hard a gap is pressed in one round")
    dual_memory: float = setting(0.9, number(0, 1), "lambda's memory from round to round")
    carry: float = setting(
        0.5, number(0), "how much of the mixture's past a waking expert keeps, in its own lengths"
    )
    gap_scale: float = setting(
        0.1, number(1e-6), "size of gaps to act on; those of small groups are shrunk towards 0"
    )
    credit_rate: float = setting(100.0, number(0), "how sharply the discounted hedge prefers")


class Past(NamedTuple):
    """What is remembered of an interval's rows; every leaf is a sum over rows."""

    rows: Float[Array, ""]
    curvature: Float[Array, "parameter parameter"]  # loss: theta' H theta / 2 - b' theta
    slope: Vector  # b
    weight: PerConstraint  # gap: (a + v' theta) / weight, the inverse of 1/n + 1/n'
    offset: PerConstraint  # a
    lean: Float[Array, "constraint parameter"]  # v


class Expert(NamedTuple):
    """The best fair model of an interval so far."""

    primal: Params
    multiplier: PerConstraint  # signed: negative where the other group is favoured
    past: Past

    @property
    def dual(self) -> Float[Array, "*level constraint"]:
        """The price of unfairness, whichever group is favoured."""
        return jnp.abs(self.multiplier)


class Convex(NamedTuple):
    """A function to be minimised, near enough convex, and its curvature."""

    value: Callable[[Vector], Float[Array, ""]]
    curvature: Callable[[Vector], Matrix]


class Measure(NamedTuple):
    """How the gaps between groups are measured around a model."""

    present: Callable[[Vector], PerConstraint]  # in the present rows
    shrunk: Callable[[Vector], PerConstraint]  # in past and present rows, shrunk where they are few
    seen: PerConstraint  # the weight of the present rows


def newton(problem: Problem, config: NewtonConfig) -> Learner:
    """The learner `fairsaoml-newton`."""

    def first(key: Key) -> Expert:
        pair = start(problem, key)
        size, count = len(ravel_pytree(pair.primal)[0]), len(problem.constraints)
        nothing = Past(
            rows=jnp.zeros(()),
            curvature=jnp.zeros((size, size)),
            slope=jnp.zeros(size),
            weight=jnp.zeros(count),
            offset=jnp.zeros(count),
            lean=jnp.zeros((count, size)),
        )
        return Expert(primal=pair.primal, multiplier=pair.dual, past=nothing)

    def learn(
        key: Key, pairs: Expert, samples: tuple, batch: Batch, deployed: Deployed, roll: Roll
    ) -> tuple[Expert, tuple]:
        pairs = pairs._replace(past=carried(config, pairs.past, batch.weight.sum(), roll))

        def solve_one(expert: Expert) -> Expert:
            return solve(problem, config, expert, batch, deployed)

        return experts.of_those_present(roll.present_count, solve_one, pairs), samples

    def adapt(pairs: Expert, samples: tuple, support: Batch, deployed: Deployed) -> Expert:
        solved = jax.vmap(lambda expert: solve(problem, config, expert, support, deployed))(pairs)
        return pairs._replace(primal=solved.primal)

    return mixture_of(
        problem, config, Expertise(first=first, samples=lambda levels: (), learn=learn, adapt=adapt)
    )


def carried(config: NewtonConfig, past: Past, rows: Float[Array, ""], roll: Roll) -> Past:
    """A waking expert keeps what the mixture remembers, as if of `carry` of its own lengths."""
    levels = roll.awake.shape[0]
    length = jnp.asarray(intervals.lengths(levels, config.base), jnp.float32)
    kept = jnp.minimum(config.carry * length * rows / jnp.maximum(past.rows, 1.0), 1.0)
    kept = jnp.where(roll.awake, kept, 1.0)
    return jax.tree.map(lambda leaf: leaf * kept.reshape(levels, *[1] * (leaf.ndim - 1)), past)


def solve(
    problem: Problem, config: NewtonConfig, expert: Expert, batch: Batch, deployed: Deployed
) -> Expert:
    """The best fair model of past and present rows, and the past it leaves to the next round.

    First without the constraints, then with them from there: the scale on which gaps are measured
    (sharpness, rates) is that of a model's own decisions, and a start at zero decides nothing.
    """
    begun, unravel = ravel_pytree(expert.primal)
    past, count = expert.past, batch.weight.sum()
    rows = jnp.maximum(past.rows + count, 1.0)
    tolerance = jnp.asarray([c.tolerance for c in problem.constraints], jnp.float32)
    # The model is linear: its slope in theta is the row as the flattened parameters meet it.
    slope_of = jax.grad(lambda theta, row: problem.model.scores(unravel(theta), row[None])[0])
    features = jax.vmap(slope_of, in_axes=(None, 0))(begun, batch.x)
    identity = jnp.eye(len(begun))

    def present_loss(theta: Vector) -> Float[Array, ""]:
        return problem.loss(features @ theta, batch)

    def loss(theta: Vector) -> Float[Array, ""]:
        remembered = theta @ (0.5 * past.curvature @ theta - past.slope)
        ridge = 0.5 * config.ridge * theta @ theta
        return (count * present_loss(theta) + remembered + ridge) / rows

    def present_curvature(theta: Vector) -> Matrix:
        slope = jax.grad(lambda z: problem.loss(z, batch))
        bend = jax.jvp(slope, (features @ theta,), (jnp.ones_like(batch.y),))[1]
        return count * (features * bend[:, None]).T @ features

    def curvature(theta: Vector) -> Matrix:
        return (present_curvature(theta) + past.curvature + config.ridge * identity) / rows

    sharpened = in_solving(problem, config)
    unshifted = deployed._replace(shift=jnp.zeros(()))

    def measured_at(theta: Vector) -> Measure:
        """Gaps on the scale of the decisions that a model makes."""
        distance = features @ theta + deployed.shift
        sharp = sharpness(distance, batch.weight) if config.score == "decision" else jnp.ones(())
        gap = relative_gaps(sharpened, sharp * distance, batch, unshifted)
        seen = jnp.where(gap.known, 1 / uncertainty(problem, batch), 0.0)
        weight = jnp.maximum(past.weight + seen, 1.0)
        kept = shrinkage(config.gap_scale, 1 / weight, gap.rate)

        def present(theta: Vector) -> PerConstraint:
            distance = sharp * (features @ theta + deployed.shift)
            return gaps(sharpened, distance, batch, unshifted).value / (2 * gap.rate)

        def shrunk(theta: Vector) -> PerConstraint:
            return kept * (past.offset + past.lean @ theta + seen * present(theta)) / weight

        return Measure(present=present, shrunk=shrunk, seen=seen)

    def pressed(gap: PerConstraint) -> PerConstraint:
        """The multiplier after a gap: what of it exceeds the tolerance, times mu, is added."""
        raw = expert.multiplier + config.penalty * gap
        return jnp.sign(raw) * jnp.maximum(jnp.abs(raw) - config.penalty * tolerance, 0.0)

    def fair(theta: Vector) -> Convex:
        shrunk = measured_at(theta).shrunk

        def objective(theta: Vector) -> Float[Array, ""]:
            return loss(theta) + 0.5 * jnp.sum(pressed(shrunk(theta)) ** 2) / config.penalty

        def bend(theta: Vector) -> Matrix:
            """Gauss and Newton's: the curvature of the gaps themselves is left out."""
            lean = jax.jacrev(shrunk)(theta)
            pressing = (pressed(shrunk(theta)) != 0).astype(jnp.float32)
            return curvature(theta) + config.penalty * (lean * pressing[:, None]).T @ lean

        return Convex(objective, bend)

    theta = minimised(lambda theta: Convex(loss, curvature), begun, config.newton_steps)
    theta = minimised(fair, theta, config.newton_steps) if problem.constraints else theta
    primal = project(unravel(theta), config.radius)
    theta = ravel_pytree(primal)[0]
    bend, measure = present_curvature(theta), measured_at(theta)
    lean = jax.jacrev(measure.present)(theta)
    return Expert(
        primal=primal,
        multiplier=config.dual_memory * pressed(measure.shrunk(theta)),
        past=Past(
            rows=past.rows + count,
            curvature=past.curvature + bend,
            slope=past.slope + bend @ theta - count * jax.grad(present_loss)(theta),
            weight=past.weight + measure.seen,
            offset=past.offset + measure.seen * (measure.present(theta) - lean @ theta),
            lean=past.lean + measure.seen[:, None] * lean,
        ),
    )


def in_solving(problem: Problem, config: NewtonConfig) -> Problem:
    """The same constraints for margins that are sharpened already."""
    if config.score != "decision":
        return problem
    plain = SCORES["probability"]
    return problem._replace(constraints=tuple(c._replace(score=plain) for c in problem.constraints))


def minimised(around: Callable[[Vector], Convex], begun: Vector, steps: int) -> Vector:
    """Newton steps on the function as seen from each point, none of which does harm."""

    def newton_step(theta: Vector, _: None) -> tuple[Vector, None]:
        value, curvature = around(theta)
        matrix = curvature(theta) + JITTER * jnp.eye(len(theta))
        direction = jax.scipy.linalg.solve(matrix, jax.grad(value)(theta), assume_a="pos")
        candidates = theta - jnp.asarray(STEP_SIZES)[:, None] * direction
        values = jax.vmap(value)(candidates)
        return candidates[jnp.argmax(values <= values[-1] + HARMLESS)], None

    return jax.lax.scan(newton_step, begun, None, length=steps)[0]
