"""A bounded sample of past rows, kept to measure gaps on: two rings of evenly thinned tasks.

Rows of rare groups have a ring of their own, so that theirs reach further back: of a group of one
row in a hundred the newest 3,000 rows hold too few to tell a rate. `weights` give them no more mass
than they have in the time that the other rows are from.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core.logistic_experts import nth_rows
from fairsaoml.core.types import Batch

__all__ = ["Ring", "RowSample", "add", "empty", "rows", "weights"]

CAPACITY, TASK_ROWS = 3072, 512  # rows in all, and at most of one task
RARE_CAPACITY, RARE_TASK_ROWS = 1024, 128
RARE = 0.08  # a group with no larger share of its attribute's rows, or half an equal one, is rare
SHARE_MEMORY = 0.98  # of the groups' shares, a round


class Ring(NamedTuple):
    """Rows of the past; a slot of weight 0 is empty."""

    x: Float[Array, "slot feature"]
    y: Float[Array, "slot"]
    group: Int[Array, "slot attribute"]
    weight: Float[Array, "slot"]  # how many rows of its task a kept row stands for
    born: Float[Array, "slot"]  # the heads' clock before its task was learned
    next: Int[Array, ""]  # the slot that is written next


class RowSample(NamedTuple):
    """The newest rows, and the newest of rare groups."""

    usual: Ring
    rare: Ring
    counts: Float[Array, "attribute level"]  # running sums that say which groups are rare


def empty(features: int, levels: list[int]) -> RowSample:
    """A sample without rows, of attributes with so many levels each."""

    def ring(capacity: int) -> Ring:
        return Ring(
            x=jnp.zeros((capacity, features)),
            y=jnp.zeros(capacity),
            group=jnp.zeros((capacity, len(levels)), jnp.int32),
            weight=jnp.zeros(capacity),
            born=jnp.zeros(capacity),
            next=jnp.zeros((), jnp.int32),
        )

    counts = jnp.zeros((len(levels), max(levels, default=0)))
    return RowSample(usual=ring(CAPACITY), rare=ring(RARE_CAPACITY), counts=counts)


def rows(sample: RowSample) -> Ring:
    """All rows together."""
    return jax.tree.map(
        lambda *both: jnp.concatenate(both) if both[0].ndim else both[0], *sample[:2]
    )


def weights(sample: RowSample, recency: Float[Array, "slot"]) -> Float[Array, "slot"]:
    """How much each row counts, `recency` being how much it is still the present.

    Rare rows older than all others take their weight from the rare rows that are not.
    """
    usual, rare = sample.usual, sample.rare
    oldest = jnp.where(usual.weight > 0, usual.born, jnp.inf).min()
    of_usual, of_rare = jnp.split(rows(sample).weight * recency, [len(usual.y)])
    same_time = jnp.where(rare.born >= oldest, of_rare, 0.0).sum()
    scale = same_time / jnp.maximum(of_rare.sum(), 1e-9)
    return jnp.concatenate([of_usual, of_rare * scale])


def add(sample: RowSample, batch: Batch, clock: Float[Array, ""]) -> RowSample:
    """The sample with a task's rows in place of the oldest; of a large task, every so many-th."""
    real = batch.weight > 0
    codes = jnp.arange(sample.counts.shape[1])
    member = (batch.group[:, :, None] == codes) & real[:, None, None]
    counts = SHARE_MEMORY * sample.counts + member.sum(0, dtype=jnp.float32)
    present = jnp.maximum((counts > 0).sum(1, keepdims=True, dtype=jnp.float32), 1.0)
    rare_share = jnp.minimum(RARE, 0.5 / present)
    is_rare = counts <= rare_share * counts.sum(1, keepdims=True)
    rare = jnp.any(member & is_rare, axis=(1, 2))
    return RowSample(
        usual=_add(sample.usual, batch, real & ~rare, TASK_ROWS, clock),
        rare=_add(sample.rare, batch, rare, RARE_TASK_ROWS, clock),
        counts=counts,
    )


def _add(
    ring: Ring, batch: Batch, chosen: Bool[Array, "row"], most: int, clock: Float[Array, ""]
) -> Ring:
    """The ring with the chosen rows of a task, at most so many."""
    chosen_ = chosen.astype(jnp.float32)
    row, meant = nth_rows(chosen_, most)
    kept = meant.sum()
    capacity = len(ring.y)
    stands_for = chosen_.sum() / jnp.maximum(kept, 1).astype(jnp.float32)
    # Which of the kept rows each slot is for: a gather is several times faster than a scatter.
    turn = (jnp.arange(capacity) - ring.next) % capacity
    taken = row[jnp.minimum(turn, most - 1)]

    def put(old: Array, new: Array) -> Array:
        written = (turn < kept).reshape(-1, *(1,) * (old.ndim - 1))
        return jnp.where(written, new[taken], old)

    return Ring(
        x=put(ring.x, batch.x),
        y=put(ring.y, batch.y),
        group=put(ring.group, batch.group),
        weight=put(ring.weight, batch.weight * stands_for),
        born=jnp.where(turn < kept, clock, ring.born),
        next=((ring.next + kept) % capacity).astype(jnp.int32),
    )
