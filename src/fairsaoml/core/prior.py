"""The class prior that balanced training batches hide, and the decision that is deployed (D25).

Training on 50:50 draws shifts every logit by the prior's log-odds. The deployed score adds them
back, so that its sigmoid is calibrated; the decision is a threshold on that score; and the
constraint speaks of the decisions that are made: its scores are measured from the threshold, its
row weights restore the prior.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Float

from fairsaoml.core.arrays import Array, library
from fairsaoml.core.problem import in_classes
from fairsaoml.core.types import Batch

SMALLEST_RATE = 1e-3  # keeps the log-odds finite where a class has not been seen


class Prior(NamedTuple):
    """Discounted sums of the tasks' base rates, and of ones."""

    rates: Float[Array, ""]
    tasks: Float[Array, ""]


class Deployed(NamedTuple):
    """What the constraint must know of the decision: base rate, and logit minus threshold."""

    rate: Float[Array, ""] | None  # None: rows count as they were drawn
    shift: Float[Array, ""]


def no_prior(xp: Any = jnp) -> Prior:
    """Before any task: even odds. `xp` is the library of its arrays."""
    return Prior(rates=xp.zeros((), xp.float32), tasks=xp.zeros((), xp.float32))


def observe(prior: Prior, batch: Batch, discount: float) -> Prior:
    """Add a task's base rate; an empty task changes nothing."""
    rows = batch.weight.sum()
    xp = library(rows)
    rate = (batch.weight * batch.y).sum() / xp.where(rows > 0, rows, 1.0)
    return Prior(
        rates=xp.where(rows > 0, discount * prior.rates + rate, prior.rates),
        tasks=xp.where(rows > 0, discount * prior.tasks + 1.0, prior.tasks),
    )


def base_rate(prior: Prior) -> Float[Array, ""]:
    """The running share of positives, 0.5 before any task.

    >>> base_rate(Prior(rates=jnp.array(0.3), tasks=jnp.array(1.0))).round(3).item()
    0.30000001192092896
    """
    rate = jnp.where(prior.tasks > 0, prior.rates / jnp.where(prior.tasks > 0, prior.tasks, 1), 0.5)
    return jnp.clip(rate, SMALLEST_RATE, 1 - SMALLEST_RATE)


def log_odds(prior: Prior) -> Float[Array, ""]:
    """What the deployed score adds to the model's logit."""
    return _log_odds_of(base_rate(prior))


def _log_odds_of(rate: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.log(rate / (1 - rate))


def threshold(prior: Prior, decision: str | float) -> Float[Array, ""]:
    """The deployed score above which a row is decided positive."""
    if decision == "accuracy":
        return jnp.zeros(())
    if decision == "balanced":
        return log_odds(prior)
    return _log_odds_of(jnp.asarray(decision, jnp.float32))


def deployed(prior: Prior, decision: str | float, gap: str = "deployed") -> Deployed:
    """The view of the decision that the constraints take; `gap="drawn"` is that of Eq. 1."""
    if gap == "drawn":
        return Deployed(rate=None, shift=jnp.zeros(()))
    shift = log_odds(prior) - threshold(prior, decision)
    return Deployed(rate=base_rate(prior), shift=shift)


def restore(batch: Batch, rate: Float[Array, ""]) -> Batch:
    """The same rows, weighted so that the classes present carry the prior's mass."""
    mass = jnp.where(batch.y > 0, rate, 1 - rate)
    return batch._replace(weight=mass * in_classes(batch).share, classes=None)
