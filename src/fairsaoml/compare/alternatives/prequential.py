"""Run an alternative: decide each task with what was learned before it, then show its labels."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from threadpoolctl import threadpool_limits

from fairsaoml.compare.alternatives import catalog
from fairsaoml.core.types import Schema, Task
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.prequential import rounds_of
from fairsaoml.evaluate.records import RoundResult, line, tally
from fairsaoml.streams.stream import Stream, checked

__all__ = ["prequential"]


def prequential(
    stream: Stream, name: str, settings: Mapping[str, Any], seeds: Sequence[int]
) -> Iterator[RoundResult]:
    """Run an alternative on a stream, one round at a time, on one thread.

    Args:
        stream: an open stream.
        name: the alternative's, in the catalog.
        settings: what differs from the library's defaults.
        seeds: each is a model of its own.

    Yields:
        The finished rounds, in order; without predictions or state.
    """
    models = [catalog.make(name, stream.schema, seed, settings) for seed in seeds]
    for round, arrived in enumerate(rounds_of(stream, seeds), start=1):
        tasks = [checked(task, stream.schema, round) for task in arrived]
        records = []
        for at, (seed, model) in enumerate(zip(seeds, models, strict=True)):
            task = tasks[at % len(tasks)]  # real rows are one task for all seeds
            decisions: Any = []
            begun = time.perf_counter()
            with _warnings() as raised:
                if len(task.y):
                    decisions = model.decide(task.x, task.group)
                    model.learn(task)
            seconds = time.perf_counter() - begun
            record = _record(task, decisions, stream.schema, raised)
            records.append(line(round, seed, task, record, seconds))
        yield RoundResult(round=round, records=records, predictions=[], state=None)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Use one thread; yield a list that holds, after the block, each warning once."""
    raised: list[str] = []
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # What a library will have to change in its own code is no news of the round.
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        yield raised
    raised += dict.fromkeys(str(one.message).splitlines()[0] for one in caught)


def _record(task: Task, decisions: Any, schema: Schema, raised: Sequence[str]) -> dict[str, Any]:
    """A journal line as our learners write it; what only they have is empty."""
    empty = [] if len(task.y) else [WARNINGS["empty"]]
    return {
        **tally(task.y, decisions, task.group, schema),
        "loss": None,
        "violation": [],
        "dual": [],
        "weights": [],
        "awake": [],
        "chances": None,
        "warnings": [*task.warnings, *empty, *raised],
        "adapted": None,
    }
