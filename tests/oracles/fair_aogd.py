"""FairAOGD (Jenatton et al. 2016) on one draw: theta and lambda move at once."""

from oracles.batch import Batch
from oracles.lagrangian import Problem, ascend, constraint_values, lagrangian_gradient, project
from oracles.paper import Pair

__all__ = ["aogd_move"]


def aogd_move(
    problem: Problem,
    scales: tuple[float, float, float],
    radius: float | None,
    t: int,
    pair: Pair,
    draw: Batch,
    prior: float,
) -> Pair:
    """L_t = f + lambda g - damping lambda^2 / 2, both gradients at the old pair."""
    R, G, b = scales
    eta = R / (G * t**b)
    damping = 6 * R * G / t**b
    mu = 1 / (damping * (t + 1))
    theta, dual = pair
    descent = lagrangian_gradient(problem, theta, dual, draw, prior)
    ascent = constraint_values(problem, theta, draw, prior) - damping * dual
    return Pair(project(theta - eta * descent, radius), ascend(dual, mu, ascent))
