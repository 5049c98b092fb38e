"""Run a learner on a stream, round by round: score a task, and only then learn from it.

All seeds of a run share one compiled program (`evaluate.seeds`): `prequential` calls it once a
round, `rollout` puts all rounds into one scan.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.core.keys import run_keys
from fairsaoml.core.types import Batch, Key, Learner, Problem, State, Task
from fairsaoml.evaluate.compilation import jit
from fairsaoml.evaluate.records import RoundResult, finished
from fairsaoml.evaluate.round import Outcome, run_round
from fairsaoml.evaluate.seeds import (
    bucket,
    first_states,
    part_of,
    round_of_seeds,
    stacked,
    with_room,
)
from fairsaoml.streams.stream import Stream, checked


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
    batches = Batch(*(np.stack(same, axis=1) for same in zip(*by_round, strict=True)))
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
