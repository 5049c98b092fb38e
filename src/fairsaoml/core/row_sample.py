"""A bounded sample of the newest rows, kept to measure gaps on: a ring, evenly thinned tasks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core.types import Batch

__all__ = ["RowSample", "add", "empty"]

CAPACITY = 4096
TASK_ROWS = 512  # at most so many rows of one task


class RowSample(NamedTuple):
    """Rows of the past; a slot of weight 0 is empty."""

    x: Float[Array, "slot feature"]
    y: Float[Array, "slot"]
    group: Int[Array, "slot attribute"]
    weight: Float[Array, "slot"]  # how many rows of its task a kept row stands for
    born: Float[Array, "slot"]  # the heads' clock before its task was learned
    next: Int[Array, ""]  # the slot that is written next


def empty(features: int, attributes: int) -> RowSample:
    """A sample without rows."""
    return RowSample(
        x=jnp.zeros((CAPACITY, features)),
        y=jnp.zeros(CAPACITY),
        group=jnp.zeros((CAPACITY, attributes), jnp.int32),
        weight=jnp.zeros(CAPACITY),
        born=jnp.zeros(CAPACITY),
        next=jnp.zeros((), jnp.int32),
    )


def add(sample: RowSample, batch: Batch, clock: Float[Array, ""]) -> RowSample:
    """The sample with a task's rows in place of the oldest; of a large task, every so many-th."""
    real = batch.weight > 0
    count = real.sum()
    kept = jnp.minimum(count, TASK_ROWS)
    place = jnp.arange(TASK_ROWS)
    stride = count.astype(jnp.float32) / jnp.maximum(kept, 1).astype(jnp.float32)
    nth = ((place.astype(jnp.float32) + 0.5) * stride).astype(jnp.int32)
    order = jnp.argsort(~real, stable=True)
    row = order[jnp.clip(nth, 0, len(order) - 1)]
    slot = jnp.where(place < kept, (sample.next + place) % CAPACITY, CAPACITY)

    def put(old: Array, new: Array) -> Array:
        return old.at[slot].set(new, mode="drop")

    arrived = jax.tree.map(lambda leaf: leaf[row], batch)
    return RowSample(
        x=put(sample.x, arrived.x),
        y=put(sample.y, arrived.y),
        group=put(sample.group, arrived.group),
        weight=put(sample.weight, arrived.weight * stride),
        born=put(sample.born, jnp.broadcast_to(clock, (TASK_ROWS,))),
        next=((sample.next + kept) % CAPACITY).astype(jnp.int32),
    )
