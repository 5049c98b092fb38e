"""f, the gaps, g and F = f + sum_i lambda_i g_i, with gradients by hand (Eq. 10), on one batch."""

from typing import NamedTuple

import numpy as np

from oracles.batch import Batch, Vector
from oracles.fairness import Gaps, Sharpen, comparisons, gaps, sharpness, violations
from oracles.network import logits, parameter_count, pull_back, sigmoid

__all__ = [
    "Problem",
    "ascend",
    "class_mean_loss",
    "constraint_values",
    "gaps_at",
    "lagrangian",
    "lagrangian_gradient",
    "log_odds",
    "loss_value",
    "priced_gradient",
    "project",
    "threshold_shift",
]


class Problem(NamedTuple):
    widths: tuple[int, ...]  # of the layers, the input first and 1 last
    levels: tuple[int, ...]  # of the protected attributes
    notion: str = "dp"
    tolerance: float = 0.02
    score: str = "probability"
    decision: str | float = "accuracy"
    sharpen: Sharpen = sharpness  # kappa of score="decision"

    @property
    def constraint_count(self) -> int:
        return len(comparisons(self.notion, self.levels))

    @property
    def parameter_count(self) -> int:
        return parameter_count(self.widths)


def log_odds(share: float) -> float:
    return float(np.log(share / (1 - share)))


def threshold_shift(prior: float, decision: str | float) -> float:
    """Prior log-odds minus the deployed threshold: what turns z into a logit from the threshold.

    >>> threshold_shift(0.5, "accuracy"), threshold_shift(0.9, "balanced")
    (0.0, 0.0)
    """
    if decision == "accuracy":
        threshold = 0.0
    elif decision == "balanced":
        threshold = log_odds(prior)
    else:
        threshold = log_odds(float(decision))
    return log_odds(prior) - threshold


def class_mean_loss(z: Vector, batch: Batch) -> tuple[float, Vector]:
    """f and df/dz: the mean over the classes present of their mean logistic loss (D20).

    log(1 + exp(z)) - y z; without rows 0.

    >>> rows = Batch(np.zeros((3, 1)), np.array([1.0, 0.0, 0.0]), np.zeros((3, 1)), np.ones(3))
    >>> class_mean_loss(np.zeros(3), rows)
    (0.6931471805599453, array([-0.25 ,  0.125,  0.125]))
    """
    loss = np.logaddexp(0.0, z) - batch.y * z
    slope = sigmoid(z) - batch.y
    classes = [np.where(batch.y == label, batch.weight, 0.0) for label in (0.0, 1.0)]
    classes = [members / members.sum() for members in classes if members.sum() > 0]
    if not classes:
        return 0.0, np.zeros_like(z)
    share = sum(classes) / len(classes)  # of each row in the mean of means
    return float((share * loss).sum()), share * slope


def loss_value(problem: Problem, theta: Vector, batch: Batch) -> float:
    """f(theta, batch)."""
    return class_mean_loss(logits(theta, batch.x, problem.widths), batch)[0]


def gaps_at(problem: Problem, theta: Vector, batch: Batch, prior: float) -> Gaps:
    """The signed gaps of theta on this batch."""
    return gaps(
        logits(theta, batch.x, problem.widths),
        batch,
        comparisons(problem.notion, problem.levels),
        problem.score,
        prior,
        threshold_shift(prior, problem.decision),
        problem.sharpen,
    )


def constraint_values(problem: Problem, theta: Vector, batch: Batch, prior: float) -> Vector:
    """g(theta, batch), one entry per constraint."""
    return violations(gaps_at(problem, theta, batch, prior), problem.tolerance)


def lagrangian(problem: Problem, theta: Vector, dual: Vector, batch: Batch, prior: float) -> float:
    """F(theta, lambda) = f + sum_i lambda_i g_i."""
    g = constraint_values(problem, theta, batch, prior)
    return loss_value(problem, theta, batch) + float((dual * g).sum())


def lagrangian_gradient(
    problem: Problem, theta: Vector, dual: Vector, batch: Batch, prior: float
) -> Vector:
    """dF/dtheta, lambda held: d|gap| = sign(gap) dgap."""
    gap = gaps_at(problem, theta, batch, prior)
    return priced_gradient(problem, theta, dual * np.sign(gap.value), gap, batch)


def priced_gradient(
    problem: Problem, theta: Vector, price: Vector, gap: Gaps, batch: Batch
) -> Vector:
    """d/dtheta [f + sum_i price_i gap_i], the gaps with their signs; the unknown pull nowhere."""
    _, slope = class_mean_loss(logits(theta, batch.x, problem.widths), batch)
    for multiplier, gap_slope in zip(price, gap.slope, strict=True):
        slope = slope + multiplier * gap_slope
    return pull_back(theta, batch.x, slope, problem.widths)


def ascend(dual: Vector, step: float, direction: Vector) -> Vector:
    """[lambda + step direction]_+"""
    return np.maximum(0.0, dual + step * direction)


def project(theta: Vector, radius: float | None) -> Vector:
    """The nearest point of the ball of this radius around 0 (D9); no radius, no ball.

    >>> project(np.array([3.0, 4.0]), 1.0), project(np.array([0.3, 0.4]), 1.0)
    (array([0.6, 0.8]), array([0.3, 0.4]))
    """
    norm = np.sqrt((theta**2).sum())
    if radius is None or norm <= radius:
        return theta
    return theta * (radius / norm)
