"""Eq. 1 in its literal form, for any number of notions, attributes and levels (D4 to D7, D25)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oracles.batch import Batch, Matrix, Vector
from oracles.network import sigmoid

__all__ = [
    "Comparison",
    "Gaps",
    "Sharpen",
    "comparisons",
    "eq1_coefficients",
    "gaps",
    "prior_weights",
    "sharpness",
    "violations",
]

SHARPEST_SPREAD = 0.1  # scores that spread less are sharpened as if they spread so much

Sharpen = Callable[[Vector, Vector], float]  # of scores and row weights

NOTIONS: dict[str, tuple[str, ...]] = {
    "none": (),
    "dp": ("all",),
    "eop": ("positives",),
    "eo": ("positives", "negatives"),
    "dp+eo": ("all", "positives", "negatives"),
}


class Comparison(NamedTuple):
    """One constraint: this level of this attribute against the rest, among these rows."""

    rows: str  # all, positives (y = 1) or negatives (y = 0)
    attribute: int
    level: int
    levels: int  # how many the attribute has


def comparisons(notion: str, levels: tuple[int, ...]) -> list[Comparison]:
    """In the order of the dual: by notion, then attribute, then level (D7).

    >>> [(c.rows, c.attribute, c.level) for c in comparisons("eo", (2,))]
    [('positives', 0, 1), ('negatives', 0, 1)]
    >>> [(c.rows, c.attribute, c.level) for c in comparisons("dp", (2, 3))]
    [('all', 0, 1), ('all', 1, 0), ('all', 1, 1), ('all', 1, 2)]
    """
    found = []
    for rows in NOTIONS[notion]:
        for attribute, count in enumerate(levels):
            compared = [1] if count == 2 else range(count)
            found += [Comparison(rows, attribute, level, count) for level in compared]
    return found


def prior_weights(batch: Batch, prior: float) -> Vector:
    """Row weights with the class prior restored: class 1 weighs `prior`, class 0 the rest (D25).

    A class without rows has nothing to weigh.
    """
    restored = np.zeros_like(batch.weight)
    for label, share in ((1.0, prior), (0.0, 1.0 - prior)):
        members = np.where(batch.y == label, batch.weight, 0.0)
        if members.sum() > 0:
            restored += share * members / members.sum()
    return restored


def eq1_coefficients(comparison: Comparison, batch: Batch, weight: Vector) -> Vector | None:
    """The factor of h in Eq. 1, row by row: weight / total * (s' - p1) / (p1 (1 - p1)).

    None if either side of the comparison is empty.

    >>> from oracles.batch import Batch
    >>> rows = Batch(np.zeros((3, 1)), np.ones(3), np.array([[1], [0], [0]]), np.ones(3))
    >>> eq1_coefficients(comparisons("dp", (2,))[0], rows, rows.weight)
    array([ 1. , -0.5, -0.5])
    """
    code = batch.group[:, comparison.attribute]
    inside = code < comparison.levels  # `unseen` is in no constraint
    if comparison.rows == "positives":
        inside = inside & (batch.y == 1)
    if comparison.rows == "negatives":
        inside = inside & (batch.y == 0)
    weight = np.where(inside, weight, 0.0)
    member = np.where(code == comparison.level, 1.0, 0.0)  # s'
    if (weight * member).sum() == 0 or (weight * (1 - member)).sum() == 0:
        return None
    p1 = (weight * member).sum() / weight.sum()
    return weight / weight.sum() * (member - p1) / (p1 * (1 - p1))


def sharpness(scores: Vector, weight: Vector) -> float:
    """kappa = max(1, 3 / max(sd, 0.1)), sd the weighted standard deviation of all the scores.

    >>> two = np.ones(2)
    >>> [sharpness(np.array(pair), two) for pair in ([0.0, 2.0], [-5.0, 5.0])]  # sd 1 and 5
    [3.0, 1.0]
    >>> round(sharpness(two, two), 6)  # sd 0
    30.0
    """
    if weight.sum() == 0:
        return 1.0  # no rows, no gap to sharpen
    mean = np.average(scores, weights=weight)
    sd = np.sqrt(np.average((scores - mean) ** 2, weights=weight))
    return float(max(1.0, 3.0 / max(sd, SHARPEST_SPREAD)))


class Gaps(NamedTuple):
    """E[h | s' = 1] - E[h | s' = 0] with its sign, one entry per constraint."""

    value: Vector  # 0 where unknown
    known: NDArray[np.bool_]  # False where a side of the comparison has no rows
    slope: Matrix  # (constraint, row): by z; 0 where unknown


def gaps(
    z: Vector,
    batch: Batch,
    found: list[Comparison],
    score: str,
    prior: float,
    shift: float,
    sharpen: Sharpen = sharpness,
) -> Gaps:
    """Eq. 1 without the absolute value.

    h of s = z + shift, the score measured from the deployed threshold: sigmoid(s), s itself, or
    sigmoid(kappa s) with kappa a constant in the slope.
    """
    s, weight = z + shift, prior_weights(batch, prior)
    if score == "logit":
        h, dh = s, np.ones_like(s)
    elif score in ("probability", "decision"):
        kappa = sharpen(s, weight) if score == "decision" else 1.0
        h = sigmoid(kappa * s)
        dh = kappa * h * (1 - h)
    else:
        raise ValueError(f"score must be probability, logit or decision, got {score!r}")
    value, known, slope = np.zeros(len(found)), [], np.zeros((len(found), len(z)))
    for i, comparison in enumerate(found):
        factor = eq1_coefficients(comparison, batch, weight)
        known.append(factor is not None)
        if factor is not None:
            value[i] = (factor * h).sum()
            slope[i] = factor * dh
    return Gaps(value, np.array(known, dtype=bool), slope)


def violations(gap: Gaps, tolerance: float) -> Vector:
    """g = |gap| - tolerance; an unknown gap contributes 0."""
    return np.where(gap.known, np.abs(gap.value) - tolerance, 0.0)
