"""A bounded sample of past rows, kept to measure gaps on: two rings of evenly thinned tasks.

Rows of rare groups have a ring of their own, so that theirs reach further back: of a group of one
row in a hundred the newest 3,000 rows hold too few to tell a rate. `weights` give them no more mass
than they have in the time that the other rows are from.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from fairsaoml.core.arrays import Array
from fairsaoml.core.types import Batch
from fairsaoml.core.unseeded import nth_rows

__all__ = ["PastRows", "Ring", "RowSample", "add", "empty", "rows", "weights"]

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
            x=np.zeros((capacity, features), np.float32),
            y=np.zeros(capacity, np.float32),
            group=np.zeros((capacity, len(levels)), np.int32),
            weight=np.zeros(capacity, np.float32),
            born=np.zeros(capacity, np.float32),
            next=np.zeros((), np.int32),
        )

    counts = np.zeros((len(levels), max(levels, default=0)), np.float32)
    return RowSample(usual=ring(CAPACITY), rare=ring(RARE_CAPACITY), counts=counts)


class PastRows(NamedTuple):
    """All rows of a sample together."""

    x: Float[Array, "row feature"]
    y: Float[Array, "row"]
    group: Int[Array, "row attribute"]
    born: Float[Array, "row"]
    weight: Float[Array, "row"]


def rows(sample: RowSample) -> PastRows:
    """All rows together, empty slots left out."""
    parts = []
    for ring in sample[:2]:
        taken = ring.weight > 0
        if taken.all():
            parts.append([getattr(ring, name) for name in PastRows._fields])
        elif taken.any() or not parts:
            parts.append([getattr(ring, name)[taken] for name in PastRows._fields])
    if len(parts) == 1:
        return PastRows(*parts[0])  # nothing is copied
    return PastRows(*map(np.concatenate, zip(*parts, strict=True)))


def weights(sample: RowSample, past: PastRows, recency: Float[Array, "row"]) -> Float[Array, "row"]:
    """How much each row counts, `recency` being how much it is still the present.

    Rare rows older than all others take their weight from the rare rows that are not.
    """
    weight = past.weight * recency
    usual = np.count_nonzero(sample.usual.weight)
    rare, born = weight[usual:], past.born[usual:]
    oldest = past.born[:usual].min(initial=np.inf)
    rare *= rare[born >= oldest].sum() / np.maximum(rare.sum(), 1e-9)
    return weight


def add(sample: RowSample, batch: Batch, clock: Float[Array, ""]) -> RowSample:
    """The sample with a task's rows in place of the oldest; of a large task, every so many-th."""
    real = batch.weight > 0
    codes = np.arange(sample.counts.shape[1])
    member = (batch.group[:, :, None] == codes) & real[:, None, None]
    counts = SHARE_MEMORY * sample.counts + member.sum(0, dtype=np.float32)
    present = np.maximum((counts > 0).sum(1, keepdims=True), 1)
    rare_share = np.minimum(RARE, 0.5 / present).astype(np.float32)
    is_rare = counts <= rare_share * counts.sum(1, keepdims=True)
    rare = np.any(member & is_rare, axis=(1, 2))
    return RowSample(
        usual=_add(sample.usual, batch, real & ~rare, TASK_ROWS, clock),
        rare=_add(sample.rare, batch, rare, RARE_TASK_ROWS, clock),
        counts=counts,
    )


def _add(
    ring: Ring, batch: Batch, chosen: Bool[Array, "row"], most: int, clock: Float[Array, ""]
) -> Ring:
    """The ring with the chosen rows of a task, at most so many."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return ring
    kept = rows[nth_rows(len(rows), most)]
    stands_for = np.float32(len(rows) / len(kept))
    slots = (int(ring.next) + np.arange(len(kept))) % len(ring.y)

    def put(old: Array, new: Array | Float[Array, ""]) -> Array:
        written = old.copy()
        written[slots] = new
        return written

    return Ring(
        x=put(ring.x, batch.x[kept]),
        y=put(ring.y, batch.y[kept]),
        group=put(ring.group, batch.group[kept]),
        weight=put(ring.weight, batch.weight[kept] * stands_for),
        born=put(ring.born, clock),
        next=np.asarray((int(ring.next) + len(kept)) % len(ring.y), np.int32),
    )
