"""The game as peers play it: decide a task by what was learned before it, then see its labels."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from fairsaoml.compare.alternatives import catalog
from fairsaoml.core.types import Schema, Task
from fairsaoml.evaluate.prequential import rounds_of
from fairsaoml.evaluate.records import WARNINGS, RoundResult, line, tally
from fairsaoml.streams.stream import Stream, checked

__all__ = ["AlternativeSetup", "prequential"]


@dataclass(frozen=True, kw_only=True)
class AlternativeSetup:
    """An open stream, and who plays it."""

    stream: Stream
    peer: str
    settings: Mapping[str, Any]
    seeds: Sequence[int]


def prequential(game: AlternativeSetup) -> Iterator[RoundResult]:
    """Play a stream one round at a time, each seed for itself, on one thread."""
    stream, seeds = game.stream, game.seeds
    peers = [catalog.make(game.peer, stream.schema, seed, game.settings) for seed in seeds]
    for round, arrived in enumerate(rounds_of(stream, seeds), start=1):
        tasks = [checked(task, stream.schema, round) for task in arrived]
        records = []
        for at, (seed, peer) in enumerate(zip(seeds, peers, strict=True)):
            task = tasks[at % len(tasks)]  # real rows are one task for all seeds
            decisions: Any = []
            begun = time.perf_counter()
            with _listening() as heard:
                if len(task.y):
                    decisions = peer.decide(task.x, task.group)
                    peer.learn(task)
            seconds = time.perf_counter() - begun
            about = _record(task, decisions, stream.schema, heard)
            records.append(line(round, seed, task, about, seconds))
        yield RoundResult(round=round, records=records, predictions=[], state=None)


@contextmanager
def _listening() -> Iterator[list[str]]:
    """One thread, and what is warned of, each thing once."""
    heard: list[str] = []
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # What a library will have to change in its own code is no news of the round.
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        yield heard
    heard += dict.fromkeys(str(one.message).splitlines()[0] for one in caught)


def _record(task: Task, decisions: Any, schema: Schema, heard: Sequence[str]) -> dict[str, Any]:
    """What a line of the journal says of ours; what only they have is empty."""
    empty = [] if len(task.y) else [WARNINGS["empty"]]
    return {
        **tally(task.y, decisions, task.group, schema),
        "loss": None,
        "violation": [],
        "dual": [],
        "weights": [],
        "awake": [],
        "warnings": [*task.warnings, *empty, *heard],
        "adapted": None,
    }
