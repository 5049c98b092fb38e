"""A bounded sample of past rows, kept to measure gaps on: two rings of evenly thinned tasks.

Rows of rare groups have a ring of their own, so that theirs reach further back: of a group of one
row in a hundred the newest 3,000 rows hold too few to tell a rate. `weights` give them no more mass
than they have in the time that the other rows are from.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num

from fairsaoml.core.arrays import Array
from fairsaoml.core.types import Batch
from fairsaoml.core.unseeded import nth_rows

CAPACITY, TASK_ROWS = 2048, 512  # rows in all, and at most of one task
RARE_CAPACITY, RARE_TASK_ROWS = 512, 128
SEGMENT = 512  # slots whose features lie together: a round copies those that it writes to
RARE = 0.08  # a group with no larger share of its attribute's rows, or half an equal one, is rare
SHARE_MEMORY = 0.98  # of the groups' shares, a round


class Ring(NamedTuple):
    """Rows of the past, as the heads see them. Slots fill in order; one of weight 0 is empty."""

    features: tuple[Float[Array, "width segment"], ...]
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


def empty(width: int, levels: list[int]) -> RowSample:
    """A sample without rows, of so many features, and attributes with so many levels each."""

    def ring(capacity: int) -> Ring:
        return Ring(
            features=tuple(
                np.zeros((width, SEGMENT), np.float32) for _ in range(capacity // SEGMENT)
            ),
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

    features: tuple[Float[Array, "width _"], ...]  # segment by segment, those of rare rows last
    usual: int  # how many rows are none of a rare group: they come first
    y: Float[Array, "row"]
    group: Int[Array, "row attribute"]
    born: Float[Array, "row"]
    weight: Float[Array, "row"]


def rows(sample: RowSample) -> PastRows:
    """All rows together, empty slots left out."""
    rings = [sample.usual, sample.rare]
    filled = [int(np.count_nonzero(ring.weight)) for ring in rings]

    def joined(name: str) -> Array:
        parts = [getattr(ring, name)[:count] for ring, count in zip(rings, filled, strict=True)]
        return np.concatenate(parts) if filled[1] else parts[0]

    return PastRows(
        features=tuple(
            segment[:, : count - first]
            for ring, count in zip(rings, filled, strict=True)
            for first, segment in zip(range(0, count, SEGMENT), ring.features, strict=False)
        ),
        usual=filled[0],
        y=joined("y"),
        group=joined("group"),
        born=joined("born"),
        weight=joined("weight"),
    )


def weights(past: PastRows, recency: Float[Array, "row"]) -> Float[Array, "row"]:
    """How much each row counts, `recency` being how much it is still the present.

    Rare rows older than all others take their weight from the rare rows that are not.
    """
    weight = past.weight * recency
    rare, born = weight[past.usual :], past.born[past.usual :]
    oldest = past.born[: past.usual].min(initial=np.inf)
    rare *= rare[born >= oldest].sum() / np.maximum(rare.sum(), 1e-9)
    return weight


def add(
    sample: RowSample, batch: Batch, features: Float[Array, "width row"], clock: Float[Array, ""]
) -> RowSample:
    """The sample with a task's rows in place of the oldest; of a large task, every so many-th."""
    real = batch.weight > 0
    levels = sample.counts.shape[1]
    found = [np.bincount(codes[real], minlength=levels)[:levels] for codes in batch.group.T]
    counts = SHARE_MEMORY * sample.counts
    counts += np.array(found, np.float32).reshape(counts.shape)
    present = np.maximum((counts > 0).sum(1, keepdims=True), 1)
    rare_share = np.minimum(RARE, 0.5 / present).astype(np.float32)
    is_rare = np.zeros((len(counts), levels + 1), bool)  # a group that nobody knows is not rare
    is_rare[:, :levels] = counts <= rare_share * counts.sum(1, keepdims=True)
    rare = np.zeros(len(real), bool)
    for codes, of_attribute in zip(batch.group.T, is_rare, strict=True):
        rare |= of_attribute[np.minimum(codes, levels)]
    rare &= real

    def added(ring: Ring, chosen: Array, most: int) -> Ring:
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return ring
        kept = rows[nth_rows(len(rows), most)]
        stands_for = np.float32(len(rows) / len(kept))
        whole = len(kept) == len(chosen)  # nothing has to be gathered
        return Ring(
            features=_put_features(ring, features if whole else features.take(kept, axis=1)),
            y=_put(ring, ring.y, batch.y[kept]),
            group=_put(ring, ring.group.T, batch.group[kept].T).T,
            weight=_put(ring, ring.weight, batch.weight[kept] * stands_for),
            born=_put(ring, ring.born, np.full(len(kept), clock)),
            next=np.asarray((ring.next + len(kept)) % len(ring.y), np.int32),
        )

    return RowSample(
        usual=added(sample.usual, real & ~rare, TASK_ROWS),
        rare=added(sample.rare, rare, RARE_TASK_ROWS),
        counts=counts,
    )


def _put(ring: Ring, old: Num[Array, "*of slot"], new: Num[Array, "*of row"]) -> Array:
    """A ring's values with new ones from its next slot on, and round to its first."""
    written = old.copy()
    begin = int(ring.next)
    before_end = len(ring.y) - begin
    written[..., begin : begin + new.shape[-1]] = new[..., :before_end]
    written[..., : max(new.shape[-1] - before_end, 0)] = new[..., before_end:]
    return written


def _put_features(
    ring: Ring, new: Float[Array, "width row"]
) -> tuple[Float[Array, "width segment"], ...]:
    """The same for features; segments that are not written to stay as they are."""
    segments, row = list(ring.features), 0
    while row < new.shape[1]:
        place, first = divmod((int(ring.next) + row) % len(ring.y), SEGMENT)
        some = new[:, row : row + SEGMENT - first]
        if some.shape[1] < SEGMENT:
            segments[place] = segments[place].copy()
            segments[place][:, first : first + some.shape[1]] = some
        else:
            segments[place] = some
        row += some.shape[1]
    return tuple(segments)
