"""A bounded uniform sample of past *tasks*, and draws from them: the memory of a meta leader.

Follow-the-leader learners keep every task they have seen, which is O(t). Here each task gets one
random priority when it arrives and the `tasks_kept` of lowest priority stay: a uniform sample of
the past at any time. With at least as many slots as rounds nothing is ever dropped: the original.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import buffers, threefry
from fairsaoml.core.buffers import Buffer, Shuffle, Sizes
from fairsaoml.core.types import Batch, Key, Schema


class TaskMemory(NamedTuple):
    """The tasks kept, slot axis first."""

    rows: Buffer  # (slot, class, row, ...)
    priority: Float[Array, "slot"]
    seen: Int[Array, ""]  # tasks with rows, the dropped ones included


class TaskDraws(NamedTuple):
    """All the randomness of a round: which task each iteration draws, and the order of its rows."""

    memory: TaskMemory  # the present task included, in its last slot
    chosen: Int[Array, "iteration"]
    order: Shuffle  # (iteration, ...)


def no_tasks(slots: int, capacity: int, schema: Schema) -> TaskMemory:
    """A memory of nothing."""
    one = buffers.empty(capacity, len(schema.features), len(schema.attributes))
    return TaskMemory(
        rows=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), one),
        priority=jnp.full(slots, buffers.EMPTY, jnp.float32),
        seen=jnp.zeros((), jnp.int32),
    )


def draw_tasks(key: Key, memory: TaskMemory, batch: Batch, iterations: int) -> TaskDraws:
    """The tasks of a round's iterations, each uniform over all tasks seen, the present one too.

    The present task is drawn with probability 1 / seen; a past one stands for those dropped.
    """
    rows_key, slot_key, choice_key, order_key = threefry.split(key, 4)
    capacity = memory.rows.priority.shape[2]
    arrived = buffers.sample_of(rows_key, batch, capacity)
    joined = TaskMemory(
        rows=jax.tree.map(lambda old, new: jnp.concatenate([old, new[None]]), memory.rows, arrived),
        priority=jnp.append(memory.priority, threefry.uniform(slot_key)),
        seen=memory.seen + 1,
    )
    past = buffers.is_held(memory.priority)
    share = memory.seen.astype(jnp.float32) / jnp.maximum(past.sum(), 1).astype(jnp.float32)
    mass = jnp.append(jnp.where(past, share, 0.0), 1.0)
    chosen = jax.random.categorical(choice_key, jnp.log(mass), shape=(iterations,))
    orders = threefry.split(order_key, iterations)
    pick = jax.vmap(lambda slot, key: buffers.shuffle(key, _task(joined, slot)))
    return TaskDraws(memory=joined, chosen=chosen, order=pick(chosen, orders))


def take(draws: TaskDraws, iteration: Int[Array, ""], sizes: Sizes) -> tuple[Batch, Batch]:
    """Support and query of one iteration, disjoint rows of the task it drew."""
    task = _task(draws.memory, draws.chosen[iteration])
    order = jax.tree.map(lambda leaf: leaf[iteration], draws.order)
    # The order is this iteration's own, so its draws are the first windows of it.
    support, query = (
        buffers.take(buffers.lay_out(task, hand), 0)
        for hand in buffers.deal(order, sizes, once=True)
    )
    return support, query


def remember(draws: TaskDraws) -> TaskMemory:
    """The memory after the round: the slot of highest priority is given up."""
    slots = draws.memory.priority.shape[0] - 1
    kept = jax.lax.top_k(-draws.memory.priority, slots)[1]
    rows, priority = jax.tree.map(lambda leaf: leaf[kept], draws.memory[:2])
    return TaskMemory(rows=rows, priority=priority, seen=draws.memory.seen)


def _task(memory: TaskMemory, slot: Int[Array, ""]) -> Buffer:
    return jax.tree.map(lambda leaf: leaf[slot], memory.rows)
