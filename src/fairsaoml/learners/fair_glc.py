"""FairGLC: generalised long-term constraints, clipped (Yuan and Lamperski 2018).

One primal-dual pair, no memory. The Lagrangian holds the *clipped* constraint, so that being fairer
than asked in one round buys nothing in another,

    L_t(theta, lambda) = f_t(theta) + lambda . [g_t(theta)]_+ - damping_t |lambda|^2 / 2,

and the dual is its maximiser in closed form; then theta descends:

    lambda_t = [g_t(theta_t)]_+ / damping_t,   theta_{t+1} = P(theta_t - eta_t grad L_t).

The price is zero exactly where the constraint holds. Steps for losses that are strongly convex
with modulus H: eta_t = 1 / (H (t + 1)), damping_t = eta_t (m + 1) G^2, m constraints. Then the
original's regret is O(log T) and its sum of [g]_+ O(sqrt(T log T)).

Adapted: the original has one loss a round. Here a round brings `meta_iterations` draws of its loss;
t stays the round's number, for all of them are samples of the same f_t, and because steps that
shrank with every draw would be spent before the first change. H and G are scales to be set: 1 / H
is twice the first step, and since eta_t lambda_t = [g]_+ / ((m + 1) G^2) does not shrink, 1 / G^2
is how hard a violation pushes back at any time.

Reference: Yuan, Lamperski: Online convex optimization for cumulative constraints, NeurIPS 2018.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Int

from fairsaoml.core.config import DrawingConfig, number, setting
from fairsaoml.core.primal_dual import Steps, descent, evaluate, move, project
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Learner, PrimalDual, Problem
from fairsaoml.learners.families.one_pair import one_pair


@dataclass(frozen=True, kw_only=True)
class FairGLCConfig(DrawingConfig):
    """Settings of FairGLC; the defaults are the same for every stream."""

    convexity: float = setting(0.3, number(1e-6), "H: modulus of strong convexity")
    gradient_bound: float = setting(0.3, number(1e-6), "G: scale of the constraints' gradients")


def sequences(config: FairGLCConfig, round: Int[Array, ""], constraints: int) -> Steps:
    """eta_t and the damping of a round, theta_t in the original; lambda is set, not stepped.

    >>> config = FairGLCConfig(convexity=0.5, gradient_bound=2.0)
    >>> steps = sequences(config, jnp.array(3), constraints=1)
    >>> steps.primal.item(), steps.damping.item()
    (0.5, 4.0)
    """
    H, G, t = config.convexity, config.gradient_bound, round.astype(jnp.float32)
    eta = 1 / (H * (t + 1))
    return Steps(primal=eta, dual=0.0, damping=eta * (constraints + 1) * G**2)


def fair_glc(problem: Problem, config: FairGLCConfig) -> Learner:
    """The learner `fair-glc`."""

    def price_then_descend(
        round: Int[Array, ""], pair: PrimalDual, rows: Batch, deployed: Deployed
    ) -> PrimalDual:
        steps = sequences(config, round, len(problem.constraints))
        violation = evaluate(problem, pair.primal, rows, deployed)[1]
        priced = pair._replace(dual=jnp.maximum(violation, 0.0) / steps.damping)
        # Where [g]_+ is flat its price is 0, so the plain Lagrangian has the clipped one's slope.
        gradient = descent(problem, priced, rows, deployed)
        primal = project(move(pair.primal, gradient, steps.primal), config.radius)
        return priced._replace(primal=primal)

    return one_pair(problem, config, price_then_descend)
