"""The solving experts' problem in NumPy, solved by SciPy: no Newton step, no automatic gradient.

f = (rows x balanced logistic loss of the present + theta' H theta / 2 - b' theta
     + ridge theta' theta / 2) / all rows
    + sum_i ([|nu_i + mu c_i gap_i| - mu tolerance]_+)^2 / 2 mu
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

__all__ = ["Present", "Remembered", "Terms", "best_fair_model", "objective", "signed_relative_gaps"]


class Present(NamedTuple):
    x: np.ndarray  # a column of ones first
    y: np.ndarray
    group: np.ndarray  # 0 or 1
    rate: float  # of the class prior
    shift: float  # from logit to distance from the threshold


class Remembered(NamedTuple):
    rows: float
    curvature: np.ndarray
    slope: np.ndarray
    weight: np.ndarray  # tpr, fpr
    offset: np.ndarray
    lean: np.ndarray
    multiplier: np.ndarray


class Terms(NamedTuple):
    ridge: float
    penalty: float
    tolerance: float
    gap_scale: float


def _sides(now: Present, label: int) -> tuple[np.ndarray, np.ndarray]:
    return (now.y == label) & (now.group == 1), (now.y == label) & (now.group == 0)


def signed_relative_gaps(theta: np.ndarray, now: Present) -> tuple[np.ndarray, np.ndarray]:
    """Equalized odds by hand: gap of mean probabilities over twice their mean, and that mean."""
    score = 1 / (1 + np.exp(-(now.x @ theta + now.shift)))
    gaps, rates = [], []
    for label in (1, 0):
        one, other = _sides(now, label)
        rate = np.clip(score[one | other].mean(), 0.01, 0.99)
        gaps.append((score[one].mean() - score[other].mean()) / (2 * rate))
        rates.append(rate)
    return np.array(gaps), np.array(rates)


def objective(
    theta: np.ndarray, now: Present, past: Remembered, terms: Terms, rates: np.ndarray | None = None
) -> float:
    """What is minimised; `rates` given are held fixed, as the learner's derivatives hold them."""
    z = now.x @ theta
    loss = np.logaddexp(0, np.where(now.y == 1, -z, z))
    balanced = (loss[now.y == 1].mean() + loss[now.y == 0].mean()) / 2
    quadratic = theta @ past.curvature @ theta / 2 - past.slope @ theta
    total = len(now.y) * balanced + quadratic + terms.ridge * theta @ theta / 2
    gaps, own = signed_relative_gaps(theta, now)
    if rates is not None:
        gaps, own = gaps * own / rates, rates
    counts = [[side.sum() for side in _sides(now, label)] for label in (1, 0)]
    seen = np.array([1 / (1 / one + 1 / other) for one, other in counts])
    weight = past.weight + seen
    pooled = (past.offset + past.lean @ theta + seen * gaps) / weight
    error = (1 - own) / (4 * own) / weight
    believed = terms.gap_scale**2 / (terms.gap_scale**2 + error) * pooled
    pressed = np.abs(past.multiplier + terms.penalty * believed) - terms.penalty * terms.tolerance
    return (
        total / (past.rows + len(now.y)) + np.sum(np.maximum(pressed, 0) ** 2) / 2 / terms.penalty
    )


def best_fair_model(now: Present, past: Remembered, terms: Terms, rates: np.ndarray) -> np.ndarray:
    """The minimiser with the rates held fixed, by a method that knows nothing of the problem."""
    start = np.zeros(now.x.shape[1])
    return minimize(
        objective, start, args=(now, past, terms, rates), method="BFGS", options={"gtol": 1e-9}
    ).x
