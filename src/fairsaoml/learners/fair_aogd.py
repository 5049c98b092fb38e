"""FairAOGD: adaptive online gradient descent with long-term constraints (Jenatton et al. 2016).

One primal-dual pair, no memory. On the augmented Lagrangian of a draw,

    L_t(theta, lambda) = f_t(theta) + lambda . g_t(theta) - damping_t |lambda|^2 / 2,

theta descends and lambda ascends at once, both from the old pair, with

    eta_t = R / (G t^b),  damping_t = 6 R G / t^b,  mu_t = 1 / (damping_t (t + 1)),  lambda_1 = 0.

With b = 2/3 the original's regret is O(T^2/3) and its summed violation O(T^2/3), for convex f, g.

Adapted: the original has one convex loss a round. Here a round brings `meta_iterations` draws of
its loss; t stays the round's number, for all of them are samples of the same f_t, and because
steps that shrank with every draw would be spent before the first change. R and G, there bounds on
the domain and the gradients, are scales to be set: R / G is the first step, R G the first damping
over 6. The loss is that of the shared model, convex for `model="logistic"` only.

Reference: Jenatton, Huang, Archambeau: Adaptive algorithms for online convex optimization with
long-term constraints, ICML 2016.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Int

from fairsaoml.core.config import DrawingConfig, number, setting
from fairsaoml.core.primal_dual import Steps, descent, evaluate, move, project
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Learner, PrimalDual, Problem
from fairsaoml.learners.families.one_pair import one_pair

DAMPING_SCALE = 6.0  # the 6 in 6 R G / t^b


@dataclass(frozen=True, kw_only=True)
class FairAOGDConfig(DrawingConfig):
    """Settings of FairAOGD; the defaults are the same for every stream."""

    domain_bound: float = setting(0.17, number(1e-6), "R: scale of the domain")
    gradient_bound: float = setting(0.12, number(1e-6), "G: scale of the gradients")
    decay: float = setting(2 / 3, number(0, 1), "b: how fast the steps shrink with the rounds")


def sequences(config: FairAOGDConfig, round: Int[Array, ""]) -> Steps:
    """eta_t, mu_t and the damping of a round, theta_t in the original.

    >>> config = FairAOGDConfig(domain_bound=1.0, gradient_bound=0.5, decay=1.0)
    >>> [value.item() for value in sequences(config, jnp.array(2))[:3]]  # 2/2, 1/(1.5 x 3), 3/2
    [1.0, 0.2222222238779068, 1.5]
    """
    R, G, t = config.domain_bound, config.gradient_bound, round.astype(jnp.float32)
    damping = DAMPING_SCALE * R * G / t**config.decay
    eta, mu = R / (G * t**config.decay), 1 / (damping * (t + 1))
    return Steps(primal=eta, dual=mu, damping=damping)


def fair_aogd(problem: Problem, config: FairAOGDConfig) -> Learner:
    """The learner `fair-aogd`."""

    def both_at_once(
        round: Int[Array, ""], pair: PrimalDual, rows: Batch, deployed: Deployed
    ) -> PrimalDual:
        steps = sequences(config, round)
        gradient = descent(problem, pair, rows, deployed)
        violation = evaluate(problem, pair.primal, rows, deployed)[1]  # at the old theta
        primal = project(move(pair.primal, gradient, steps.primal), config.radius)
        dual = pair.dual + steps.dual * (violation - steps.damping * pair.dual)
        return PrimalDual(primal=primal, dual=jnp.maximum(dual, 0.0))

    return one_pair(problem, config, both_at_once)
