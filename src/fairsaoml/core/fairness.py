"""Constraints: smooth gaps between groups (Eq. 1), for any number of attributes and levels (D7).

A constraint compares the rows of one level of one attribute with the rows of all other known
levels, among the rows its notion speaks of: all (demographic parity), y = 1 (equal opportunity),
y = 0 (its other half, for equalized odds).
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairsaoml.core.types import Attribute, Batch, Constraint, Gap

__all__ = ["gap", "make_constraints", "sharpness", "sides"]

# notion -> the labels it conditions on; None is "any label"
CONDITIONS: dict[str, tuple[int | None, ...]] = {
    "none": (),
    "dp": (None,),
    "eop": (1,),
    "eo": (1, 0),
    "dp+eo": (None, 1, 0),
}
SPREAD = 3.0  # the standard deviation, in logits, that `as_decision` stretches scores to
SMALLEST_DEVIATION = 0.1  # a constant score has no spread to stretch
PREFIX = {None: "dp", 1: "tpr", 0: "fpr"}


def gap(scores: Float[Array, "row"], one: Float[Array, "row"], other: Float[Array, "row"]) -> Gap:
    """E[h | s'=1] - E[h | s'=0] from the row weights of the two sides, if both have rows.

    Its size is the paper's |mean((s' - p1) / (p1 (1 - p1)) h)| (Eq. 1).

    >>> one, other = jnp.array([1.0, 1.0, 0.0]), jnp.array([0.0, 0.0, 1.0])
    >>> gap(jnp.array([1.0, 0.5, 0.5]), one, other).value.item()
    0.25
    """
    known = (one.sum() > 0) & (other.sum() > 0)
    return Gap(
        value=jnp.where(known, _mean(scores, one) - _mean(scores, other), 0.0),
        known=known,
        rate=_mean(scores, one + other),
    )


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


def as_decision(logits: Float[Array, "row"], weight: Float[Array, "row"]) -> Float[Array, "row"]:
    """A smooth stand-in for the decision itself: sigmoid(sharpness * z).

    A gap in probabilities says little about decisions where all probabilities lie close to the
    threshold. The sharpness undoes that: it stretches the scores to a standard deviation of at
    least SPREAD, whatever the stream. It is held fixed in gradients: to spread the scores is no
    way to be fair.
    """
    return jax.nn.sigmoid(jax.lax.stop_gradient(sharpness(logits, weight)) * logits)


def sharpness(logits: Float[Array, "row"], weight: Float[Array, "row"]) -> Float[Array, ""]:
    """What scores are multiplied by, at least 1, to spread by SPREAD.

    >>> sharpness(jnp.array([1.0, -1.0]), jnp.ones(2)).item()
    3.0
    """
    total = jnp.where(weight.sum() > 0, weight.sum(), 1.0)
    mean = (weight * logits).sum() / total
    deviation = jnp.sqrt((weight * (logits - mean) ** 2).sum() / total)
    return jnp.maximum(SPREAD / jnp.maximum(deviation, SMALLEST_DEVIATION), 1.0)


# What the smooth gap is taken of, from logits and row weights.
SCORES: dict[str, Callable[[Array, Array], Array]] = {
    "decision": as_decision,
    "probability": lambda logits, weight: jax.nn.sigmoid(logits),
    "logit": lambda logits, weight: logits,
}


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
    squash = SCORES[score]

    def constraint(label: int | None, index: int, level: int) -> Constraint:
        name, levels = attributes[index]

        def signed(scores: Float[Array, "row"], batch: Batch) -> Gap:
            one, other = sides(batch, index, level, len(levels), label)
            found = gap(squash(scores, batch.weight), one, other)
            # Logits are no rates: nothing is relative to their mean.
            return found._replace(rate=jnp.full((), 0.5)) if score == "logit" else found

        def rows(batch: Batch) -> tuple[Float[Array, ""], Float[Array, ""]]:
            one, other = sides(batch, index, level, len(levels), label)
            return (one > 0).sum(dtype=jnp.float32), (other > 0).sum(dtype=jnp.float32)

        title = f"{PREFIX[label]}[{name}={levels[level]}]"
        return Constraint(name=title, gap=signed, rows=rows, tolerance=tolerance)

    return tuple(
        constraint(label, index, level)
        for label in CONDITIONS[notion]
        for index, (_, levels) in enumerate(attributes)
        for level in (range(1, 2) if len(levels) == 2 else range(len(levels)))
    )
