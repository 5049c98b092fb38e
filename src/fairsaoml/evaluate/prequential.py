"""Run a learner on a stream, round by round: score a task, and only then learn from it.

All seeds of a run share one compiled program: `prequential` calls it once a round, `rollout`
puts all rounds into one scan. A learner that computes with NumPy has no program: its seeds run
one after another, on rows as they come.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.core.keys import init_key, run_keys
from fairsaoml.core.types import Batch, Key, Learner, Problem, RoundInfo, State, Task
from fairsaoml.evaluate.compilation import jit
from fairsaoml.evaluate.records import RoundResult, finished
from fairsaoml.evaluate.round import Adapted, Outcome, run_round
from fairsaoml.evaluate.traced import TracedOnce
from fairsaoml.streams.stream import Stream, checked

__all__ = ["all_rounds", "first_states", "prequential", "rollout", "run_rounds"]

SMALLEST_BUCKET = 64  # rows are padded to powers of two from here on: few programs, little waste


def prequential(
    stream: Stream,
    learner: Learner,
    problem: Problem,
    seeds: Sequence[int],
    *,
    state: State | None = None,
    after: int = 0,
    before: int = 0,
) -> Iterator[RoundResult]:
    """Run a learner on a stream, one round at a time, all seeds together.

    Args:
        stream: where the tasks come from.
        learner: a `Learner` that was built for `problem`.
        problem: what is learned; its constraints are measured in every round.
        seeds: one run each, as an axis of one program.
        state: the seeds' states after round `after`, to go on from there.
        after: rounds up to here are skipped.
        before: rounds that came before the stream's first task.

    Yields a `RoundResult` for each round. Rows are padded to powers of two, one compilation each.
    Raises DataError if a task does not fit the stream's schema.
    """
    state = first_states(learner, seeds) if state is None else state
    play = (_plain if learner.turn else _compiled)(learner, problem, stream, seeds)
    for round, arrived in enumerate(rounds_of(stream, seeds), start=before + 1):
        if round <= after:
            continue
        tasks = [checked(task, stream.schema, round) for task in arrived]
        begun = time.perf_counter()
        state, outcomes = play(np.int32(round), state, tasks)
        seconds = (time.perf_counter() - begun) / len(seeds)
        yield finished(round, tasks, outcomes, state, stream.schema, seeds, seconds)


Play = Callable[[np.int32, State, Sequence[Task]], tuple[State, list[Outcome]]]


def _compiled(learner: Learner, problem: Problem, stream: Stream, seeds: Sequence[int]) -> Play:
    """A round of all seeds by one program."""
    keys = run_keys(seeds)
    program = compiled(learner, problem, shared=not stream.seeded)

    def play(round: np.int32, state: State, tasks: Sequence[Task]) -> tuple[State, list[Outcome]]:
        state = with_room(learner, state, int(round))
        batch = stacked(tasks, bucket(max(len(task.y) for task in tasks)))
        batch = batch if stream.seeded else _seed(batch, 0)
        state, outcome = program(keys, round, state, batch)
        outcome = jax.device_get(outcome)
        return state, [_seed(outcome, index) for index in range(len(seeds))]

    return play


def _plain(learner: Learner, problem: Problem, stream: Stream, seeds: Sequence[int]) -> Play:
    """A round of all seeds, one after another."""

    def play(round: np.int32, state: State, tasks: Sequence[Task]) -> tuple[State, list[Outcome]]:
        batches = [_seed(stacked([task], len(task.y)), 0) for task in tasks]
        played = [
            run_round(
                learner, problem, None, round, _seed(state, index), batches[index % len(batches)]
            )
            for index in range(len(seeds))
        ]
        return _together([state for state, _ in played]), [outcome for _, outcome in played]

    return play


def _seed(tree: Any, index: int) -> Any:
    """One seed of a tree of arrays with seeds as their first axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _together(trees: Sequence[Any]) -> Any:
    """Trees of arrays as one, with seeds as their first axis; of one tree nothing is copied."""
    if len(trees) == 1:
        return jax.tree.map(lambda leaf: np.asarray(leaf)[None], trees[0])
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def rollout(
    stream: Stream, learner: Learner, problem: Problem, seeds: Sequence[int]
) -> list[RoundResult]:
    """Run a learner on all rounds of a stream as one compiled scan, vmapped over seeds.

    Args:
        stream: The tasks; all of them are held in memory, padded to one size.
        learner: A learner for the stream's schema.
        problem: What the learner was built for.
        seeds: One run for each.

    Returns:
        The results, round by round, as `prequential` yields them.
    """
    if learner.turn:
        return list(prequential(stream, learner, problem, seeds))
    keys = run_keys(seeds)
    rounds = [
        [checked(task, stream.schema, round) for task in tasks]
        for round, tasks in enumerate(rounds_of(stream, seeds), start=1)
    ]
    if not rounds:
        return []
    batches = all_rounds(rounds, shared=not stream.seeded)
    program = jit(
        jax.vmap(
            partial(run_rounds, learner, problem), in_axes=(0, 0, 0 if stream.seeded else None)
        )
    )
    begun = time.perf_counter()
    state = with_room(learner, first_states(learner, seeds), len(rounds))
    state, outcomes = jax.device_get(program(keys, state, batches))
    seconds = (time.perf_counter() - begun) / len(seeds) / len(rounds)
    return [
        finished(
            index + 1,
            tasks,
            [_seed(_seed(outcomes, seed), index) for seed in range(len(seeds))],
            state,
            stream.schema,
            seeds,
            seconds,
        )
        for index, tasks in enumerate(rounds)
    ]


def all_rounds(rounds: Sequence[Sequence[Task]], *, shared: bool) -> Batch:
    """Every round's tasks padded to one size: (seed, round, row, ...), (round, ...) if shared."""
    size = bucket(max(len(task.y) for tasks in rounds for task in tasks))
    batches = jax.tree.map(
        lambda *leaves: np.stack(leaves, axis=1), *[stacked(tasks, size) for tasks in rounds]
    )
    return jax.tree.map(lambda leaf: leaf[0], batches) if shared else batches


def run_rounds(
    learner: Learner,
    problem: Problem,
    run_key: Key,
    state: State,
    batches: Batch,
    keep: Callable[[Outcome], Any] = lambda outcome: outcome,
) -> tuple[State, Any]:
    """All rounds of one seed as one scan; what is not kept of a round is not computed either."""
    numbers = jnp.arange(1, batches.y.shape[0] + 1, dtype=jnp.int32)

    def one(state: State, turn: tuple) -> tuple[State, Any]:
        round, batch = turn
        state, outcome = run_round(learner, problem, run_key, round, state, batch)
        return state, keep(outcome)

    return jax.lax.scan(one, state, (numbers, batches))


@lru_cache(maxsize=4)
def compiled(learner: Learner, problem: Problem, *, shared: bool) -> Callable:
    """The round's program: seeds are an axis, the round's number is not."""
    one = partial(run_round, learner, problem)
    seeds = jax.vmap(one, in_axes=(0, None, 0, None if shared else 0))

    def program(keys: Key, round: Any, state: State, batch: Batch) -> tuple[State, Outcome]:
        if len(keys) > 1:
            return seeds(keys, round, state, batch)
        # A branch on the state stays one: under vmap both sides would be computed.
        first, only = jax.tree.map(lambda leaf: leaf[0], (state, batch))
        done = one(keys[0], round, first, batch if shared else only)
        return jax.tree.map(lambda leaf: leaf[None], done)

    made_of = learner.made_of and f"shared={shared} {learner.made_of}"
    returned = (Outcome, Adapted, RoundInfo)
    return TracedOnce(program, made_of, returned, donate=(2,))


def first_states(learner: Learner, seeds: Sequence[int]) -> State:
    """Every seed's state before the first round."""
    if learner.turn:
        return _together([learner.init(None) for _ in seeds])
    return jax.jit(jax.vmap(lambda key: learner.init(init_key(key))))(run_keys(seeds))


def with_room(learner: Learner, state: State, round: int) -> State:
    """Every seed's state with room for a round: an endless stream's state grows outside jit."""
    return jax.vmap(lambda one: learner.grow(one, round))(state)


def rounds_of(stream: Stream, seeds: Sequence[int]) -> Iterable[tuple[Task, ...]]:
    """The tasks of each round, one per seed, or one for all where rows are real."""
    passes = [stream.tasks(seed) for seed in (seeds if stream.seeded else seeds[:1])]
    return zip(*passes, strict=True)


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

    batches = [
        Batch(
            x=padded(task.x),
            y=padded(task.y),
            group=padded(task.group),
            weight=padded(np.ones(len(task.y), np.float32)),
        )
        for task in tasks
    ]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *batches)
