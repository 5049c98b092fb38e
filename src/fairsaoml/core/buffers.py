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


class Deck(NamedTuple):
    """A buffer's rows laid out in a round's order; draws are successive windows of it.

    Places come last: a window is then copied in long pieces, and is what the models' products want.
    """

    x: Float[Array, "class feature place"]
    group: Int[Array, "class attribute place"]
    held: Int[Array, "class"]


class Sizes(NamedTuple):
    """Rows per class of the two disjoint draws of an iteration."""

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
    """The rows in their order, and again the first ones, for windows that wrap around.

    `once` is a deck for the first iteration's draws alone.
    """
    places = jnp.arange(sum(sizes) if once else order.slots.shape[1] + max(sizes))
    slot = jnp.take_along_axis(order.slots, places % _at_least_one(order.held), axis=1)
    return Deck(
        x=jnp.swapaxes(_rows(buffer.x, slot), 1, 2),
        group=jnp.swapaxes(_rows(buffer.group, slot), 1, 2),
        held=order.held,
    )


def take_support(deck: Deck, iteration: Iteration, sizes: Sizes) -> Batch:
    """The support draw of an iteration: up to `sizes.support` rows per class.

    Each iteration starts where the support of the one before ended and wraps around, so that a
    round sees its sample evenly.
    """
    supported, _ = _split(deck.held, sizes)
    return _window(deck, iteration * supported, supported, sizes.support)


def take_query(deck: Deck, iteration: Iteration, sizes: Sizes) -> Batch:
    """The query draw of an iteration: the rows after its support, disjoint from it."""
    supported, queried = _split(deck.held, sizes)
    return _window(deck, (iteration + 1) * supported, queried, sizes.query)


def _split(
    held: Int[Array, "class"], sizes: Sizes
) -> tuple[Int[Array, "class"], Int[Array, "class"]]:
    """How many rows of each class the two draws get.

    A class that is short shares what it has in proportion: half and half when both ask for the
    same (D20).
    """
    support, query = sizes
    supported = jnp.minimum(support, -(-held * support // (support + query)))
    return supported, jnp.minimum(query, held - supported)


def _window(
    deck: Deck, first: Int[Array, "class"], filled: Int[Array, "class"], size: int
) -> Batch:
    start = first % _at_least_one(deck.held)[:, 0]

    def cut(values: Array) -> Array:
        """(class, ..., place) to rows, classes one after another."""
        return jnp.concatenate(
            [
                jax.lax.dynamic_slice_in_dim(values[label], start[label], size, axis=1)
                for label in range(CLASSES)
            ],
            axis=1,
        ).T

    return Batch(
        x=cut(deck.x),
        y=jnp.repeat(jnp.arange(CLASSES, dtype=jnp.float32), size),
        group=cut(deck.group),
        weight=(jnp.arange(size) < filled[:, None]).astype(jnp.float32).reshape(-1),
    )


def _at_least_one(held: Int[Array, "class"]) -> Int[Array, "class 1"]:
    """What places are counted modulo."""
    return jnp.maximum(held, 1)[:, None]


def _rows(values: Array, slots: Int[Array, "class size"]) -> Array:
    """values[class, slots[class]] for every class."""
    return jax.vmap(lambda one_class, chosen: one_class[chosen])(values, slots)


def sample_of(key: Key, batch: Batch, capacity: int) -> Buffer:
    """One task's rows alone, as a sample in which no place depends on padding."""
    nothing = empty(capacity, batch.x.shape[1], batch.group.shape[1])
    return merge(nothing, arrivals(key, batch, capacity))
