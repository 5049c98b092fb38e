"""Eq. 1 in its literal form, for any number of notions, attributes and levels (D4 to D7, D25)."""

from typing import NamedTuple

import numpy as np

from oracles.batch import Batch, Matrix, Vector
from oracles.network import sigmoid

__all__ = ["Comparison", "comparisons", "eq1_coefficients", "prior_weights", "violations"]

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


def violations(
    z: Vector,
    batch: Batch,
    found: list[Comparison],
    tolerance: float,
    score: str,
    prior: float,
    shift: float,
) -> tuple[Vector, Matrix]:
    """g of Eq. 1 and dg/dz, one row per constraint.

    h = sigmoid(z + shift), or z + shift itself: the score measured from the deployed threshold.
    A group that is absent on either side contributes 0, and no slope.
    """
    if score == "probability":
        h = sigmoid(z + shift)
        dh = h * (1 - h)
    elif score == "logit":
        h, dh = z + shift, np.ones_like(z)
    else:
        raise ValueError(f"score must be probability or logit, got {score!r}")
    weight = prior_weights(batch, prior)
    g, dg = np.zeros(len(found)), np.zeros((len(found), len(z)))
    for i, comparison in enumerate(found):
        factor = eq1_coefficients(comparison, batch, weight)
        if factor is not None:
            inner = (factor * h).sum()
            g[i] = abs(inner) - tolerance
            dg[i] = np.sign(inner) * factor * dh
    return g, dg
