"""Bounded uniform samples of intervals (D2), and class-balanced draws from them (D20).

Every row gets one random priority when it arrives; a sample keeps, per class, the `capacity` rows
of lowest priority since its interval began: a uniform sample at any length of the interval, in
memory that never grows. Draws go by priority too, so that padding changes none of them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core.types import Batch, Key

__all__ = [
    "Buffer",
    "Deck",
    "Shuffle",
    "Sizes",
    "arrivals",
    "cut",
    "deal",
    "empty",
    "forget",
    "is_held",
    "merge",
    "sample_of",
    "shuffle",
    "take_query",
    "take_support",
]

EMPTY = 2.0  # the priority of a slot that holds no row; those of rows are below 1
CLASSES = 2
GOLDEN = 2654435769  # 2^32 times the golden section: multiples spread evenly over a circle

Iteration = Int[Array, ""] | int


class Buffer(NamedTuple):
    """One interval's sample, class by class: slot i of class c is empty or a row with y = c."""

    x: Float[Array, "class slot feature"]
    group: Int[Array, "class slot attribute"]
    priority: Float[Array, "class slot"]


class Shuffle(NamedTuple):
    """A round's random order of a buffer's rows."""

    slots: Int[Array, "class slot"]  # rows first, empty slots last
    held: Int[Array, "class"]  # how many rows


class Pool(NamedTuple):
    """Rows that draws of one kind come from, in a round's order, and again the first ones.

    Places come last: a window is then copied in long pieces, and is what the models' products want.
    """

    x: Float[Array, "class feature place"]
    group: Int[Array, "class attribute place"]
    held: Int[Array, "class"]
    weight: Float[Array, "class drawn"]  # of a draw's rows: 1, and 0 where a class is short


class Deck(NamedTuple):
    """A buffer's rows in a round's order, those for queries kept apart from those for supports."""

    support: Pool
    query: Pool


class Sizes(NamedTuple):
    """Rows per class of the two draws of an iteration."""

    support: int
    query: int = 0


def empty(capacity: int, features: int, attributes: int) -> Buffer:
    """A sample of nothing."""
    return Buffer(
        x=jnp.zeros((CLASSES, capacity, features)),
        group=jnp.zeros((CLASSES, capacity, attributes), jnp.int32),
        priority=jnp.full((CLASSES, capacity), EMPTY, jnp.float32),
    )


def is_held(priority: Float[Array, "*slot"]) -> Bool[Array, "*slot"]:
    """Which slots hold a row (or a task: `task_memory`)."""
    return priority < EMPTY


def forget(buffer: Buffer, when: Bool[Array, ""]) -> Buffer:
    """Empty the sample where its interval starts anew."""
    return buffer._replace(priority=jnp.where(when, EMPTY, buffer.priority))


def arrivals(key: Key, batch: Batch, capacity: int) -> Buffer:
    """The rows of a task as a sample of its own, each with a fresh priority."""
    rows = jnp.arange(batch.y.shape[0])
    # One key per row, so that a row's priority does not depend on how many rows pad the batch.
    priority = jax.vmap(lambda row: jax.random.uniform(jax.random.fold_in(key, row)))(rows)
    member = (batch.weight > 0) & (batch.y == jnp.arange(CLASSES, dtype=jnp.float32)[:, None])
    return _lowest(
        Buffer(
            x=jnp.broadcast_to(batch.x, (CLASSES, *batch.x.shape)),
            group=jnp.broadcast_to(batch.group, (CLASSES, *batch.group.shape)),
            priority=jnp.where(member, priority, EMPTY),
        ),
        capacity,
    )


def merge(buffer: Buffer, arrived: Buffer) -> Buffer:
    """The sample of both samples' rows, in the first one's capacity."""
    both = jax.tree.map(lambda old, new: jnp.concatenate([old, new], axis=1), buffer, arrived)
    return _lowest(both, buffer.priority.shape[1])


def _lowest(buffer: Buffer, capacity: int) -> Buffer:
    """The rows of lowest priority, at most `capacity` of each class."""
    slots = buffer.priority.shape[1]
    if slots < capacity:
        wider = ((0, 0), (0, capacity - slots))
        return Buffer(
            x=jnp.pad(buffer.x, (*wider, (0, 0))),
            group=jnp.pad(buffer.group, (*wider, (0, 0))),
            priority=jnp.pad(buffer.priority, wider, constant_values=EMPTY),
        )
    kept = jax.lax.top_k(-buffer.priority, capacity)[1]
    return jax.tree.map(lambda values: _rows(values, kept), buffer)


def shuffle(key: Key, buffer: Buffer) -> Shuffle:
    """A fresh uniform order of the rows held.

    A slot's number rides in the low bits of its random number: one array of integers is sorted
    several times faster than floats and slots side by side.
    """
    held = is_held(buffer.priority)
    slots = jnp.arange(held.shape[1], dtype=jnp.uint32)
    low = jnp.uint32((1 << held.shape[1].bit_length()) - 1)
    random = jax.random.bits(key, held.shape) >> 1
    last = jnp.uint32(1 << 31)  # beyond every random number of a slot that holds a row
    tagged = jnp.where(held, random & ~low, last) | slots
    order = (jnp.sort(tagged, axis=1) & low).astype(jnp.int32)
    return Shuffle(slots=order, held=held.sum(axis=1))


def deal(buffer: Buffer, order: Shuffle, sizes: Sizes, *, once: bool = False) -> Deck:
    """The rows for supports and the rows for queries: no row is among both.

    They share a class in proportion to what they ask for: half and half when both ask for the same
    (D20). A draw is a window of its pool, and takes at most half of it, so that the draws of a
    round differ; no draw is given room for more. `once` is a deck for a single draw of each kind,
    which may take all there is.
    """
    support, query = sizes
    capacity = order.slots.shape[1]
    supported = -(-order.held * support // (support + query))
    room = -(-capacity * support // (support + query))
    if once:
        supported = jnp.minimum(support, supported)

    def pool(first: Int[Array, "class"], rows: Int[Array, "class"], room: int, size: int) -> Pool:
        most = size if once else min(size, -(-room // 2))
        places = jnp.arange(most if once else room + most)
        place = first[:, None] + places % jnp.maximum(rows, 1)[:, None]
        slot = jnp.take_along_axis(order.slots, place % capacity, axis=1)
        drawn = rows if once else -(-rows // 2)
        return Pool(
            x=jnp.swapaxes(_rows(buffer.x, slot), 1, 2),
            group=jnp.swapaxes(_rows(buffer.group, slot), 1, 2),
            held=rows,
            weight=(jnp.arange(most) < drawn[:, None]).astype(jnp.float32),
        )

    return Deck(
        support=pool(jnp.zeros_like(supported), supported, room, support),
        query=pool(supported, order.held - supported, capacity - room, query),
    )


def take_support(deck: Deck, iteration: Iteration) -> Batch:
    """The support draw of an iteration: up to as many rows per class as supports asked for."""
    return _window(deck.support, iteration)


def take_query(deck: Deck, iteration: Iteration) -> Batch:
    """The query draw of an iteration: rows that are in no support of the round."""
    return _window(deck.query, iteration)


def _window(pool: Pool, iteration: Iteration) -> Batch:
    """Draw `iteration` of a pool."""
    size = pool.weight.shape[1]
    return Batch(
        x=cut(pool, pool.x, iteration).T,
        y=jnp.repeat(jnp.arange(CLASSES, dtype=jnp.float32), size),
        group=cut(pool, pool.group, iteration).T,
        weight=pool.weight.reshape(-1),
    )


def cut(pool: Pool, values: Array, iteration: Iteration) -> Array:
    """What draw `iteration` of a pool has of `values`: (class, ..., place) to (..., row).

    Windows start at multiples of the golden section of the rows held. So a round sees its rows
    evenly, and no window comes twice where rows are three times as many as draws. Classes come one
    after another.
    """
    size = pool.weight.shape[1]
    turns = (jnp.asarray(iteration, jnp.uint32) * jnp.uint32(GOLDEN)).astype(jnp.float32)
    start = (turns / 2.0**32 * pool.held.astype(jnp.float32)).astype(jnp.int32)
    windows = [
        jax.lax.dynamic_slice_in_dim(values[label], start[label], size, axis=-1)
        for label in range(CLASSES)
    ]
    return jnp.concatenate(windows, axis=-1)


def _rows(values: Array, slots: Int[Array, "class size"]) -> Array:
    """values[class, slots[class]] for every class."""
    return jax.vmap(lambda one_class, chosen: one_class[chosen])(values, slots)


def sample_of(key: Key, batch: Batch, capacity: int) -> Buffer:
    """One task's rows alone, as a sample in which no place depends on padding."""
    nothing = empty(capacity, batch.x.shape[1], batch.group.shape[1])
    return merge(nothing, arrivals(key, batch, capacity))
