"""What AOD and CBCE have in common, interval by interval: descent, gains, the average."""

from collections.abc import Mapping, Sequence

import numpy as np

from oracles.batch import Batch, Vector
from oracles.intervals import Interval
from oracles.lagrangian import Problem, lagrangian_gradient, loss_value, project

__all__ = ["average", "descend", "gains"]

ROUNDING = 1e-6  # of float32, where two experts are at one point

Points = Mapping[Interval, Vector]


def average(p: Mapping[Interval, float], points: Points) -> Vector:
    """sum_I p_I theta_I"""
    return np.asarray(sum(p[i] * theta for i, theta in points.items()))


def gains(
    problem: Problem, p: Mapping[Interval, float], points: Points, draw: Batch
) -> dict[Interval, float]:
    """f(average) - f(theta_I), clipped to [-1, 1]; less than rounding is nothing."""
    of_average = loss_value(problem, average(p, points), draw)
    found = {i: of_average - loss_value(problem, theta, draw) for i, theta in points.items()}
    return {i: min(1.0, max(-1.0, r)) if abs(r) >= ROUNDING else 0.0 for i, r in found.items()}


def descend(
    problem: Problem, theta: Vector, step: float, radius: float | None, draws: Sequence[Batch]
) -> Vector:
    """Online gradient descent on one draw after another."""
    for draw in draws:
        slope = lagrangian_gradient(problem, theta, np.zeros(0), draw, prior=0.5)
        theta = project(theta - step * slope, radius)
    return theta
