"""Run a learner on a stream, round by round: score a task, and only then learn from it.

All seeds of a run share one compiled program, in which they are an axis: `prequential` calls it
once a round, `rollout` puts all rounds into one scan. A learner that computes with NumPy has no
program: its seeds run one after another, on rows as they come.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.core.keys import run_keys
from fairsaoml.core.types import Batch, Key, Learner, Problem, RoundInfo, Shown, State, Task
from fairsaoml.evaluate.compilation import jit
from fairsaoml.evaluate.measures import Adapted
from fairsaoml.evaluate.records import RoundResult, finished
from fairsaoml.evaluate.round import Outcome, run_round
from fairsaoml.evaluate.seeds import (
    bucket,
    first_states,
    part_of,
    stacked,
    together,
    unpadded,
    with_room,
)
from fairsaoml.evaluate.traced import TracedOnce
from fairsaoml.streams.stream import Stream, checked

Played = tuple[State, list[Outcome]]  # the state after a round, and what each seed showed


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
    run = round_of_seeds(learner, problem, stream, seeds)
    for round, arrived in enumerate(rounds_of(stream, seeds), start=before + 1):
        if round <= after:
            continue
        tasks = [checked(task, stream.schema, round) for task in arrived]
        begun = time.perf_counter()
        state, outcomes = run(np.int32(round), state, tasks)
        seconds = (time.perf_counter() - begun) / len(seeds)
        yield finished(round, tasks, outcomes, state, stream.schema, seeds, seconds)


def round_of_seeds(
    learner: Learner, problem: Problem, stream: Stream, seeds: Sequence[int]
) -> Callable[[np.int32, State, Sequence[Task]], Played]:
    """A round of all seeds, given its number, their state and their tasks, or one for all."""

    def one_by_one(round: np.int32, state: State, tasks: Sequence[Task]) -> Played:
        batches = [*map(unpadded, tasks)]
        done = [
            run_round(learner, problem, None, round, part_of(state, i), batches[i % len(batches)])
            for i in range(len(seeds))
        ]
        return together([state for state, _ in done]), [outcome for _, outcome in done]

    if learner.turn:
        return one_by_one
    keys = run_keys(seeds)
    program = compiled(learner, problem, shared=not stream.seeded)

    def by_program(round: np.int32, state: State, tasks: Sequence[Task]) -> Played:
        state = with_room(learner, state, int(round))
        batch = stacked(tasks, bucket(max(len(task.y) for task in tasks)))
        batch = batch if stream.seeded else part_of(batch, 0)
        state, outcome = program(keys, round, state, batch)
        outcome = jax.device_get(outcome)
        return state, [part_of(outcome, index) for index in range(len(seeds))]

    return by_program


@lru_cache(maxsize=4)
def compiled(learner: Learner, problem: Problem, *, shared: bool) -> Callable:
    """The round's program: seeds are an axis, the round's number is not."""
    one = partial(run_round, learner, problem)
    seeds = jax.vmap(one, in_axes=(0, None, 0, None if shared else 0))

    def program(keys: Key, round: Any, state: State, batch: Batch) -> tuple[State, Outcome]:
        if len(keys) > 1:
            return seeds(keys, round, state, batch)
        # A branch on the state stays one: under vmap both sides would be computed.
        done = one(keys[0], round, part_of(state, 0), batch if shared else part_of(batch, 0))
        return jax.tree.map(lambda leaf: leaf[None], done)

    made_of = learner.made_of and f"shared={shared} {learner.made_of}"
    returned = (Outcome, Shown, Adapted, RoundInfo)
    return TracedOnce(program, made_of, returned, donate=(2,))


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
    rounds = [
        [checked(task, stream.schema, round) for task in tasks]
        for round, tasks in enumerate(rounds_of(stream, seeds), start=1)
    ]
    if not rounds:
        return []
    batches = all_rounds(rounds, shared=not stream.seeded)
    axes = (0, 0, 0 if stream.seeded else None)
    program = jit(jax.vmap(partial(run_rounds, learner, problem), in_axes=axes))
    begun = time.perf_counter()
    state = with_room(learner, first_states(learner, seeds), len(rounds))
    state, outcomes = jax.device_get(program(run_keys(seeds), state, batches))
    seconds = (time.perf_counter() - begun) / len(seeds) / len(rounds)
    results = []
    for at, tasks in enumerate(rounds):
        of_seeds = [part_of(outcomes, (seed, at)) for seed in range(len(seeds))]
        results.append(finished(at + 1, tasks, of_seeds, state, stream.schema, seeds, seconds))
    return results


def all_rounds(rounds: Sequence[Sequence[Task]], *, shared: bool) -> Batch:
    """Every round's tasks padded to one size: (seed, round, row, ...), (round, ...) if shared."""
    size = bucket(max(len(task.y) for tasks in rounds for task in tasks))
    by_round = [stacked(tasks, size) for tasks in rounds]
    batches = jax.tree.map(lambda *same: np.stack(same, axis=1), *by_round)
    return part_of(batches, 0) if shared else batches


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


def rounds_of(stream: Stream, seeds: Sequence[int]) -> Iterable[tuple[Task, ...]]:
    """The tasks of each round, one per seed, or one for all where rows are real."""
    passes = [stream.tasks(seed) for seed in (seeds if stream.seeded else seeds[:1])]
    return zip(*passes, strict=True)
