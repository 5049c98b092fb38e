"""The tenth of a task whose labels a learner may see before it is measured on the rest (D18)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from fairsaoml.core.types import Batch, Key

__all__ = ["labelled_share"]

SUPPORT_SHARE = 0.1  # of a task's rows are labelled for `adapted`


def labelled_share(key: Key, batch: Batch) -> tuple[Batch, Bool[Array, "row"]]:
    """A uniform tenth of the task's rows as a support batch, and which rows are not in it."""
    slots = batch.y.shape[0]
    rows = jnp.arange(slots)
    priority = jax.vmap(lambda row: jax.random.uniform(jax.random.fold_in(key, row)))(rows)
    priority = jnp.where(batch.weight > 0, priority, jnp.inf)
    size = jnp.ceil(SUPPORT_SHARE * batch.weight.sum())
    room = -(-slots // 8)  # a tenth of the rows always fits into an eighth of the slots
    chosen = jax.lax.top_k(-priority, room)[1]
    taken = jnp.arange(room) < size.astype(jnp.int32)
    support = jax.tree.map(lambda leaf: leaf[chosen], batch)
    support = support._replace(weight=jnp.where(taken, support.weight, 0.0))
    held_out = (batch.weight > 0).at[jnp.where(taken, chosen, slots)].set(False, mode="drop")
    return support, held_out
