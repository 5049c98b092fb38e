"""All seeds of a run together: their states as one, seeds first, and a round of them all.

Seeds share one compiled program, in which they are an axis. A learner that computes with NumPy has
no program: its seeds run one after another, on rows as they come.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np

from fairsaoml.core.keys import init_key, run_keys
from fairsaoml.core.types import Batch, Key, Learner, Problem, RoundInfo, State, Task
from fairsaoml.evaluate.compilation import jit_once
from fairsaoml.evaluate.measures import Adapted
from fairsaoml.evaluate.round import Outcome, run_round
from fairsaoml.evaluate.traced import TracedOnce
from fairsaoml.streams.stream import Stream

SMALLEST_BUCKET = 64  # rows are padded to powers of two from here on: few programs, little waste

Played = tuple[State, list[Outcome]]  # the state after a round, and what each seed showed
RunRound = Callable[[np.int32, State, Sequence[Task]], Played]


def round_of_seeds(
    learner: Learner, problem: Problem, stream: Stream, seeds: Sequence[int]
) -> RunRound:
    """A round of all seeds, given its number, their state and their tasks, or one for all."""

    def one_by_one(round: np.int32, state: State, tasks: Sequence[Task]) -> Played:
        batches = [seed_of(stacked([task], len(task.y)), 0) for task in tasks]
        states, outcomes = [], []
        for index in range(len(seeds)):
            batch, own = batches[index % len(batches)], seed_of(state, index)
            own, outcome = run_round(learner, problem, None, round, own, batch)
            states.append(own)
            outcomes.append(outcome)
        return _together(states), outcomes

    if learner.turn:
        return one_by_one
    keys = run_keys(seeds)
    program = compiled(learner, problem, shared=not stream.seeded)

    def by_program(round: np.int32, state: State, tasks: Sequence[Task]) -> Played:
        state = with_room(learner, state, int(round))
        batch = stacked(tasks, bucket(max(len(task.y) for task in tasks)))
        batch = batch if stream.seeded else seed_of(batch, 0)
        state, outcome = program(keys, round, state, batch)
        outcome = jax.device_get(outcome)
        return state, [seed_of(outcome, index) for index in range(len(seeds))]

    return by_program


def seed_of(tree: Any, index: int) -> Any:
    """One seed of a tree of arrays with seeds as their first axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _together(trees: Sequence[Any]) -> Any:
    """Trees of arrays as one, with seeds as their first axis; of one tree nothing is copied."""
    if len(trees) == 1:
        return jax.tree.map(lambda leaf: np.asarray(leaf)[None], trees[0])
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


@lru_cache(maxsize=4)
def compiled(learner: Learner, problem: Problem, *, shared: bool) -> Callable:
    """The round's program: seeds are an axis, the round's number is not."""
    one = partial(run_round, learner, problem)
    seeds = jax.vmap(one, in_axes=(0, None, 0, None if shared else 0))

    def program(keys: Key, round: Any, state: State, batch: Batch) -> tuple[State, Outcome]:
        if len(keys) > 1:
            return seeds(keys, round, state, batch)
        # A branch on the state stays one: under vmap both sides would be computed.
        done = one(keys[0], round, seed_of(state, 0), batch if shared else seed_of(batch, 0))
        return jax.tree.map(lambda leaf: leaf[None], done)

    made_of = learner.made_of and f"shared={shared} {learner.made_of}"
    returned = (Outcome, Adapted, RoundInfo)
    return TracedOnce(program, made_of, returned, donate=(2,))


def first_states(learner: Learner, seeds: Sequence[int]) -> State:
    """Every seed's state before the first round."""
    if learner.turn:
        return _together([learner.init(None) for _ in seeds])
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

    rows = [(task.x, task.y, task.group, np.ones(len(task.y), np.float32)) for task in tasks]
    return Batch(*(np.stack([*map(padded, same)]) for same in zip(*rows, strict=True)))
