"""All seeds of a run together: their states and their tasks as one, seeds first."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fairsaoml.core.keys import init_key, run_keys
from fairsaoml.core.types import Batch, Learner, State, Task
from fairsaoml.evaluate.compilation import jit_once

SMALLEST_BUCKET = 64  # rows are padded to powers of two from here on: few programs, little waste


def part_of(tree: Any, index: Any) -> Any:
    """What stands at an index of every array of a tree: one seed, where seeds are first."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def together(trees: Sequence[Any]) -> Any:
    """Trees of arrays as one, with seeds as their first axis; of one tree nothing is copied."""
    if len(trees) == 1:
        return jax.tree.map(lambda leaf: np.asarray(leaf)[None], trees[0])
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def first_states(learner: Learner, seeds: Sequence[int]) -> State:
    """Every seed's state before the first round."""
    if learner.turn:
        return together([learner.init(None) for _ in seeds])
    return jit_once(jax.vmap(lambda key: learner.init(init_key(key))))(run_keys(seeds))


def with_room(learner: Learner, state: State, round: int) -> State:
    """Every seed's state with room for a round: an endless stream's state grows outside jit."""
    return jax.vmap(lambda one: learner.grow(one, round))(state)


def bucket(rows: int) -> int:
    """The padded size: the next power of two.

    >>> [bucket(rows) for rows in (0, 64, 65, 1000)]
    [64, 64, 128, 1024]
    """
    return max(SMALLEST_BUCKET, 1 << max(rows - 1, 0).bit_length())


def stacked(tasks: Sequence[Task], size: int) -> Batch:
    """Padded tasks, seed axis first; padding has weight 0."""

    def padded(values: np.ndarray) -> Any:
        return np.pad(values, [(0, size - len(values))] + [(0, 0)] * (values.ndim - 1))

    return jax.tree.map(lambda *same: np.stack([*map(padded, same)]), *map(unpadded, tasks))


def unpadded(task: Task) -> Batch:
    """A checked task as it is."""
    return Batch(x=task.x, y=task.y, group=task.group, weight=np.ones(len(task.y), np.float32))
