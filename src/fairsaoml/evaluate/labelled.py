"""The tenth of a task whose labels a learner may see before it is measured on the rest (D18)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairsaoml.core import threefry
from fairsaoml.core.types import Batch, Key, Learner, Problem, State
from fairsaoml.evaluate.measures import loss_and_violation

__all__ = ["Adapted", "after_adapting", "labelled_share"]

SUPPORT_SHARE = 0.1  # of a task's rows are labelled for `adapted`


class Adapted(NamedTuple):
    """A round's rows after adapting to a few labels of it."""

    margins: Float[Array, "row"]
    loss: Float[Array, ""]  # of the rows held out, like the violation
    violation: Float[Array, "constraint"]
    held_out: Bool[Array, "row"]  # rows that were not adapted to


def after_adapting(
    learner: Learner, problem: Problem, key: Key, state: State, batch: Batch
) -> Adapted:
    """Adapt to a labelled share of a round's rows and measure on the others."""
    assert learner.adapt is not None
    support, held_out = labelled_share(key, batch)
    adapted = learner.adapt(state, support)
    margins = learner.margins(adapted, batch.x, batch.group)
    rest = batch._replace(weight=jnp.where(held_out, batch.weight, 0.0))
    loss, violation = loss_and_violation(problem, learner.scores(adapted, batch.x), margins, rest)
    return Adapted(margins=margins, loss=loss, violation=violation, held_out=held_out)


def labelled_share(key: Key, batch: Batch) -> tuple[Batch, Bool[Array, "row"]]:
    """A uniform tenth of the task's rows as a support batch, and which rows are not in it."""
    slots = batch.y.shape[0]
    rows = jnp.arange(slots)
    priority = threefry.uniform_each(key, rows)
    priority = jnp.where(batch.weight > 0, priority, jnp.inf)
    size = jnp.ceil(SUPPORT_SHARE * batch.weight.sum())
    room = -(-slots // 8)  # a tenth of the rows always fits into an eighth of the slots
    chosen = jax.lax.top_k(-priority, room)[1]
    taken = jnp.arange(room) < size.astype(jnp.int32)
    support = jax.tree.map(lambda leaf: leaf[chosen], batch)
    support = support._replace(weight=jnp.where(taken, support.weight, 0.0))
    held_out = (batch.weight > 0).at[jnp.where(taken, chosen, slots)].set(False, mode="drop")
    return support, held_out
