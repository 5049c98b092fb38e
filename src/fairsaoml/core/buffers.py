"""Bounded uniform samples of intervals (D2), and class-balanced draws from them (D20).

Every row gets one random priority when it arrives; a sample keeps, per class, the `capacity` rows
of lowest priority since its interval began: a uniform sample at any length of the interval, in
memory that never grows. Draws go by priority too, so that padding changes none of them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core import threefry
from fairsaoml.core.types import Batch, Classes, Key

EMPTY = 2.0  # the priority of a slot that holds no row; those of rows are below 1
CLASSES = 2
GOLDEN = 2654435769  # 2^32 times the golden section: multiples spread evenly over a circle

Iteration = Int[Array, ""] | int


class Buffer(NamedTuple):
    """One interval's sample, class by class: slot i of class c is empty or a row with y = c.

    Slots are in order of priority, empty ones last.
    """

    x: Float[Array, "class slot feature"]
    group: Int[Array, "class slot attribute"]
    priority: Float[Array, "class slot"]


class Shuffle(NamedTuple):
    """A round's random order of a buffer's rows."""

    slots: Int[Array, "class slot"]  # rows first, empty slots last
    held: Int[Array, "class"]  # how many rows


class Hand(NamedTuple):
    """Which rows draws of one kind come from: a round's order of them, and again the first ones."""

    slots: Int[Array, "class place"]
    held: Int[Array, "class"]  # different rows
    weight: Float[Array, "class drawn"]  # of a draw's rows: 1, and 0 where a class is short
    share: Float[Array, "class drawn"]  # of their class's weight
    classes: Float[Array, ""]  # how many have rows, at least 1


class Hands(NamedTuple):
    """A buffer's rows, those for queries kept apart from those for supports."""

    support: Hand
    query: Hand


class Pool(NamedTuple):
    """The rows of a hand, laid out for many draws.

    Places come last: a window is then copied in long pieces, and is what the models' products want.
    """

    x: Float[Array, "class feature place"]
    group: Int[Array, "class attribute place"]
    hand: Hand


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
    priority = threefry.uniform_each(key, rows)
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
    kept = jax.vmap(_lowest_of_both)(buffer.priority, arrived.priority)
    return jax.tree.map(lambda values: _rows(values, kept), both)


def _lowest_of_both(old: Float[Array, "slot"], new: Float[Array, "arrived"]) -> Int[Array, "slot"]:
    """Where the lowest of two ascending lists are, in order, counted through both.

    Slots are in order of priority from the first on, so that nothing has to be sorted again: a slot
    finds by bisection how many of the old come before it.

    >>> _lowest_of_both(jnp.array([0.1, 0.5, 2.0]), jnp.array([0.2, 0.3, 2.0])).tolist()
    [0, 3, 4]
    """
    slots, last = jnp.arange(old.shape[0]), new.shape[0] - 1

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) // 2
        more = old[middle] <= new[jnp.clip(slots - middle - 1, 0, last)]
        there = low < high
        return jnp.where(there & more, middle + 1, low), jnp.where(there & ~more, middle, high)

    bounds = jnp.maximum(slots - new.shape[0], 0), slots
    before, _ = jax.lax.fori_loop(0, old.shape[0].bit_length(), halve, bounds)
    arrived = slots - before
    stays = (arrived > last) | (old[before] <= new[jnp.clip(arrived, 0, last)])
    return jnp.where(stays, before, old.shape[0] + arrived)


def _lowest(buffer: Buffer, capacity: int) -> Buffer:
    """The rows of lowest priority, at most `capacity` of each class, in order of priority."""
    slots = buffer.priority.shape[1]
    negative, kept = jax.lax.top_k(-buffer.priority, min(slots, capacity))
    wider = ((0, 0), (0, max(capacity - slots, 0)))
    return Buffer(
        x=jnp.pad(_rows(buffer.x, kept), (*wider, (0, 0))),
        group=jnp.pad(_rows(buffer.group, kept), (*wider, (0, 0))),
        priority=jnp.pad(-negative, wider, constant_values=EMPTY),
    )


def shuffle(key: Key, buffer: Buffer) -> Shuffle:
    """A fresh uniform order of the rows held.

    A slot's number rides in the low bits of its random number: one array of integers is sorted
    several times faster than floats and slots side by side.
    """
    held = is_held(buffer.priority)
    slots = jnp.arange(held.shape[1], dtype=jnp.uint32)
    low = jnp.uint32((1 << held.shape[1].bit_length()) - 1)
    random = threefry.bits(key, held.shape) >> 1
    last = jnp.uint32(1 << 31)  # beyond every random number of a slot that holds a row
    tagged = jnp.where(held, random & ~low, last) | slots
    order = (jnp.sort(tagged, axis=1) & low).astype(jnp.int32)
    return Shuffle(slots=order, held=held.sum(axis=1))


def deal(order: Shuffle, sizes: Sizes, *, once: bool = False) -> Hands:
    """The rows for supports and the rows for queries: no row is among both.

    They share a class in proportion to what they ask for: half and half when both ask for the same
    (D20). A draw is a window of its hand, and takes at most half of it, so that the draws of a
    round differ; no draw is given room for more. `once` is for a single draw of each kind, which
    may take all there is.
    """
    support, query = sizes
    capacity = order.slots.shape[1]
    supported = -(-order.held * support // (support + query))
    room = -(-capacity * support // (support + query))
    if once:
        supported = jnp.minimum(support, supported)

    def hand(first: Int[Array, "class"], rows: Int[Array, "class"], room: int, size: int) -> Hand:
        most = size if once else min(size, -(-room // 2))
        places = jnp.arange(most if once else room + most)
        place = first[:, None] + places % jnp.maximum(rows, 1)[:, None]
        drawn = jnp.minimum(rows if once else -(-rows // 2), most)[:, None]
        weight = (jnp.arange(most) < drawn).astype(jnp.float32)
        return Hand(
            slots=_rows(order.slots, place % capacity),
            held=rows,
            weight=weight,
            share=weight / jnp.maximum(drawn, 1).astype(jnp.float32),
            classes=jnp.maximum((rows > 0).sum(), 1).astype(jnp.float32),
        )

    return Hands(
        support=hand(jnp.zeros_like(supported), supported, room, support),
        query=hand(supported, order.held - supported, capacity - room, query),
    )


def lay_out(buffer: Buffer, hand: Hand) -> Pool:
    """The rows of a hand, for `take`."""
    return Pool(
        x=jnp.swapaxes(_rows(buffer.x, hand.slots), 1, 2),
        group=jnp.swapaxes(_rows(buffer.group, hand.slots), 1, 2),
        hand=hand,
    )


def take(pool: Pool, iteration: Iteration) -> Batch:
    """The draw of an iteration: up to as many rows per class as were asked for."""
    x, group = _window(pool.x, pool.hand, iteration), _window(pool.group, pool.hand, iteration)
    return _balanced(x.T, group.T, pool.hand)


def pick(buffer: Buffer, hand: Hand, iteration: Iteration) -> Batch:
    """The same draw without laying out a hand: for a single one."""
    places = places_of(buffer, hand, iteration)
    return _balanced(_flat(buffer.x)[places], _flat(buffer.group)[places], hand)


def places_of(buffer: Buffer, hand: Hand, iteration: Iteration) -> Int[Array, "row"]:
    """Where the rows of a draw are in a sample whose classes come one after another."""
    first = buffer.priority.shape[1] * jnp.arange(CLASSES)[:, None]
    return _window(hand.slots + first, hand, iteration)


def rows_of(buffer: Buffer) -> Float[Array, "row feature"]:
    """The features of a sample, classes one after another."""
    return _flat(buffer.x)


def _balanced(x: Array, group: Array, hand: Hand) -> Batch:
    y = jnp.repeat(jnp.arange(CLASSES, dtype=jnp.float32), hand.weight.shape[1])
    classes = Classes(share=hand.share.reshape(-1), present=hand.classes)
    return Batch(x=x, y=y, group=group, weight=hand.weight.reshape(-1), classes=classes)


def _window(values: Array, hand: Hand, iteration: Iteration) -> Array:
    """What a draw has of `values`: (class, ..., place) to (..., row), classes one after another.

    Windows start at multiples of the golden section of the rows held. So a round sees its rows
    evenly, and no window comes twice where rows are three times as many as draws.
    """
    turns = (jnp.asarray(iteration, jnp.uint32) * jnp.uint32(GOLDEN)).astype(jnp.float32)
    start = (turns / 2.0**32 * hand.held.astype(jnp.float32)).astype(jnp.uint32)
    size = hand.weight.shape[1]
    windows = [
        jax.lax.dynamic_slice_in_dim(values[label], start[label], size, axis=-1)
        for label in range(CLASSES)
    ]
    return jnp.concatenate(windows, axis=-1)


def _flat(values: Array) -> Array:
    """(class, slot, ...) to (row, ...), classes one after another."""
    return values.reshape(values.shape[0] * values.shape[1], values.shape[2])


def _rows(values: Array, slots: Int[Array, "class size"]) -> Array:
    """values[class, slots[class]] for every class."""
    return jax.vmap(lambda one_class, chosen: one_class[chosen])(values, slots)


def sample_of(key: Key, batch: Batch, capacity: int) -> Buffer:
    """One task's rows alone, as a sample in which no place depends on padding."""
    nothing = empty(capacity, batch.x.shape[1], batch.group.shape[1])
    return merge(nothing, arrivals(key, batch, capacity))


def longest_row(batch: Batch) -> Float[Array, ""]:
    """The largest row norm of a task; padding does not count."""
    return jnp.max(jnp.where(batch.weight > 0, jnp.linalg.norm(batch.x, axis=1), 0.0), initial=0.0)
