"""What a smooth gap between groups is taken of: smoothed decisions, probabilities or logits."""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from fairsaoml.core.arrays import Array, library, sigmoid
from fairsaoml.core.types import Score

SPREAD = 3.0  # the standard deviation, in logits, that `as_decision` stretches scores to
SMALLEST_DEVIATION = 0.1  # a constant score has no spread to stretch


def as_decision(logits: Float[Array, "row"], weight: Float[Array, "row"]) -> Float[Array, "row"]:
    """A smooth stand-in for the decision itself: sigmoid(sharpness * z).

    A gap in probabilities says little about decisions where all probabilities lie close to the
    threshold. The sharpness undoes that: it stretches the scores to a standard deviation of at
    least SPREAD, whatever the stream. It is held fixed in gradients: to spread the scores is no
    way to be fair.
    """
    sharp = sharpness(logits, weight)
    return sigmoid((jax.lax.stop_gradient(sharp) if library(sharp) is jnp else sharp) * logits)


def sharpness(logits: Float[Array, "row"], weight: Float[Array, "row"]) -> Float[Array, ""]:
    """What scores are multiplied by, at least 1, to spread by SPREAD.

    >>> sharpness(jnp.array([1.0, -1.0]), jnp.ones(2)).item()
    3.0
    """
    xp = library(logits)
    total = xp.where(weight.sum() > 0, weight.sum(), 1.0)
    mean = (weight * logits).sum() / total
    deviation = xp.sqrt((weight * (logits - mean) ** 2).sum() / total)
    return xp.maximum(SPREAD / xp.maximum(deviation, SMALLEST_DEVIATION), 1.0)


SCORES: dict[str, Score] = {
    "decision": as_decision,
    "probability": lambda margins, weight: sigmoid(margins),
    "logit": lambda margins, weight: margins,
}
