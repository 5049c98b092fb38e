"""What runs report while they go on: plain data, so that it can cross processes."""

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any, NamedTuple

from fairsaoml.evaluate.records import RoundResult

SHOWN = ("accuracy", "dp_ratio", "eo_ratio")  # the figures of a round that an event carries


class Event(NamedTuple):
    """What happened to a job.

    `kind` is "kept" (it had finished before), "started", "round", "finished", or "lost": its worker
    died, and another one continues it.
    """

    kind: str
    job: int  # its position among the jobs
    process: int = 0  # the process that runs it, on whatever machine
    round: int = 0
    length: int | None = None  # of the stream, in rounds
    domain: str = ""
    figures: Mapping[str, float | None] = {}  # means over the seeds


OnEvent = Callable[[Event], None]


def as_events(
    on_event: OnEvent, job: int = 0, process: int = 0
) -> Callable[[Any, RoundResult], None]:
    """Return a callback for finished rounds that passes each on as a "round" event."""

    def on_round(setup: Any, result: RoundResult) -> None:
        def mean(name: str) -> float | None:
            known = [record[name] for record in result.records if record[name] is not None]
            return fmean(known) if known else None

        event = Event("round", job, process, round=result.round, length=setup.stream.length)
        figures = {name: mean(name) for name in SHOWN}
        on_event(event._replace(domain=result.records[0]["domain"], figures=figures))

    return on_round
