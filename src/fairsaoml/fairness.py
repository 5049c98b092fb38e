"""Constraints: smooth gaps between groups (Eq. 1), for any number of attributes and levels (D7).

A constraint compares the rows of one level of one attribute with the rows of all other known
levels, among the rows its notion speaks of: all (demographic parity), y = 1 (equal opportunity),
y = 0 (its other half, for equalized odds).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairsaoml.types import Attribute, Batch, Constraint

__all__ = ["gap", "make_constraints", "sides"]

# notion -> the labels it conditions on; None is "any label"
CONDITIONS: dict[str, tuple[int | None, ...]] = {
    "none": (),
    "dp": (None,),
    "eop": (1,),
    "eo": (1, 0),
    "dp+eo": (None, 1, 0),
}
PREFIX = {None: "dp", 1: "tpr", 0: "fpr"}


def gap(
    scores: Float[Array, "row"], one: Float[Array, "row"], other: Float[Array, "row"]
) -> Float[Array, ""]:
    """|E[h | s'=1] - E[h | s'=0]| from the row weights of the two sides.

    Equal to the paper's |mean((s' - p1) / (p1 (1 - p1)) h)| (Eq. 1). NaN-free: a side with
    no rows counts as mean 0, and its constraint is switched off by `make_constraints`.

    >>> one, other = jnp.array([1.0, 1.0, 0.0]), jnp.array([0.0, 0.0, 1.0])
    >>> gap(jnp.array([1.0, 0.5, 0.5]), one, other).item()
    0.25
    """
    return jnp.abs(_mean(scores, one) - _mean(scores, other))


def _mean(scores: Float[Array, "row"], weight: Float[Array, "row"]) -> Float[Array, ""]:
    total = weight.sum()
    return (weight * scores).sum() / jnp.where(total > 0, total, 1.0)


def sides(
    batch: Batch, attribute: int, level: int, levels: int, label: int | None
) -> tuple[Float[Array, "row"], Float[Array, "row"]]:
    """Row weights of one level and of the other known levels; `unseen` is on neither side."""
    code = batch.group[:, attribute]
    spoken_of: Bool[Array, row] = code < levels
    if label is not None:
        spoken_of &= batch.y == label
    one = jnp.where(spoken_of & (code == level), batch.weight, 0.0)
    other = jnp.where(spoken_of & (code != level), batch.weight, 0.0)
    return one, other


def make_constraints(
    notion: str, attributes: Sequence[Attribute], tolerance: float, score: str = "probability"
) -> tuple[Constraint, ...]:
    """The constraints of a notion: notion by notion, attribute by attribute, level by level.

    Two levels of an attribute need one constraint, more need one each (D7). The scores handed to
    a constraint are logits measured from the deployed threshold (D25).

    >>> attributes = [Attribute("sex", ("f", "m")), Attribute("race", ("x", "y", "z"))]
    >>> [c.name for c in make_constraints("dp", attributes, 0.02)]
    ['dp[sex=m]', 'dp[race=x]', 'dp[race=y]', 'dp[race=z]']
    """
    squash = jax.nn.sigmoid if score == "probability" else lambda logits: logits

    def constraint(label: int | None, index: int, level: int) -> Constraint:
        name, levels = attributes[index]

        def violation(scores: Float[Array, "row"], batch: Batch) -> Float[Array, ""]:
            one, other = sides(batch, index, level, len(levels), label)
            both = (one.sum() > 0) & (other.sum() > 0)
            # One group only: g contributes 0, and pulls nowhere (D20).
            return jnp.where(both, gap(squash(scores), one, other) - tolerance, 0.0)

        return Constraint(name=f"{PREFIX[label]}[{name}={levels[level]}]", violation=violation)

    return tuple(
        constraint(label, index, level)
        for label in CONDITIONS[notion]
        for index, (_, levels) in enumerate(attributes)
        for level in (range(1, 2) if len(levels) == 2 else range(len(levels)))
    )
