"""FairGLC (Yuan and Lamperski 2018) on one draw: the dual in closed form, then theta."""

import numpy as np

from oracles.batch import Batch
from oracles.lagrangian import Problem, constraint_values, lagrangian_gradient, project
from oracles.paper import Pair

__all__ = ["glc_move"]


def glc_move(
    problem: Problem,
    scales: tuple[float, float],
    radius: float | None,
    t: int,
    pair: Pair,
    draw: Batch,
    prior: float,
) -> Pair:
    """L_t = f + lambda [g]_+ - damping lambda^2 / 2, at its maximum over lambda."""
    H, G = scales
    eta = 1 / (H * (t + 1))
    damping = eta * (problem.constraint_count + 1) * G**2
    theta, _ = pair
    g = constraint_values(problem, theta, draw, prior)
    dual = np.maximum(0.0, g) / damping
    # d(lambda [g]_+) = lambda 1[g > 0] dg
    descent = lagrangian_gradient(problem, theta, np.where(g > 0, dual, 0.0), draw, prior)
    return Pair(project(theta - eta * descent, radius), dual)
