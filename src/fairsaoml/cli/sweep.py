"""What a person sees while many runs go on: bars on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import typer

from fairsaoml.cli.progress import LINES, OnRound

__all__ = ["Address", "Engine", "Jobs", "Shown", "sweep", "to_rounds"]

OnEvent = Callable[[Any], None]

# The options of every command that plays many runs.
Jobs = Annotated[int, typer.Option(min=1, help="How many runs at a time.")]
Engine = Annotated[str, typer.Option(help="Where they are played: local, or dask.")]
Address = Annotated[
    str | None, typer.Option(help="The Dask scheduler's, such as tcp://10.0.0.1:8786.")
]


class Tally:
    """How far the runs are, in runs: a run of which half is played counts one half."""

    def __init__(self, count: int) -> None:
        self.shares = [0.0] * count  # of each run that is played
        self.kept: set[int] = set()  # those that were there already
        self.begun = time.monotonic()

    def note(self, event: Any) -> None:
        if event.kind == "kept":
            self.kept.add(event.job)
            self.shares[event.job] = 1.0
        elif event.kind == "round" and event.length:
            self.shares[event.job] = event.round / event.length
        elif event.kind == "finished":
            self.shares[event.job] = 1.0

    @property
    def finished(self) -> int:
        return sum(share >= 1.0 for share in self.shares)

    @property
    def seconds_left(self) -> float | None:
        """As long as the rest takes if a run takes as long as those played so far; None: too early.

        Runs that were there already took no time and say nothing.
        """
        played = sum(self.shares) - len(self.kept)
        left = len(self.shares) - sum(self.shares)
        return (time.monotonic() - self.begun) * left / played if played > 0 else None


def span(seconds: float | None) -> str:
    """A time as people say it.

    >>> span(42), span(130), span(5000), span(None)
    ('42 s', '2 min', '1 h 23 min', 'unknown')
    """
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Shown(NamedTuple):
    """A run as it is named while it goes on."""

    name: str
    seeds: int


@contextmanager
def sweep(runs: Sequence[Shown], *, quiet: bool) -> Iterator[OnEvent]:
    """A callback for the events of `run_all`; everything goes to stderr."""
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        with _bars(runs) as on_event:
            yield on_event
    else:
        yield _lines(runs)


def to_rounds(specs: Sequence[Any], watch: Callable[[Any], OnRound | None]) -> OnEvent:
    """Events for a display of runs that are played one after another: `watch(spec)` as each starts.

    It sees of a round what an event carries.
    """
    callbacks: dict[int, OnRound | None] = {}

    def on_event(event: Any) -> None:
        if event.kind == "started":
            callbacks[event.job] = watch(specs[event.job])
        elif event.kind == "round" and (on_round := callbacks[event.job]):
            game = SimpleNamespace(stream=SimpleNamespace(length=event.length))
            record = {"domain": event.domain, **event.figures}
            on_round(game, SimpleNamespace(round=event.round, records=[record]))

    return on_event


def _lines(runs: Sequence[Shown]) -> OnEvent:
    tally = Tally(len(runs))

    def say(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    def on_event(event: Any) -> None:
        tally.note(event)
        name, seeds = runs[event.job]
        place = f"{event.job + 1}/{len(runs)}"
        if event.kind == "started":
            say(f"{name} ({place}, {seeds} seed{'s' * (seeds > 1)})")
        elif event.kind == "round" and _worth_a_line(event, alone=len(runs) == 1):
            of = f"/{event.length}" if event.length else ""
            say(f"{name} round {event.round}{of} {event.domain}: {_figures(event.figures)}")
        elif event.kind == "lost":
            say(f"{name} ({place}): its worker died; going on with it")
        elif event.kind == "finished":
            rest = tally.seconds_left if tally.finished < len(runs) else None
            left = f", about {span(rest)} left" if rest is not None else ""
            say(f"{name} finished; {tally.finished} of {len(runs)} runs done{left}")

    return on_event


def _worth_a_line(event: Any, *, alone: bool) -> bool:
    """A run alone says more of itself than one among many."""
    every = max(1, (event.length or 100 * LINES) // (LINES if alone else 2))
    return event.round % every == 0


def _figures(figures: dict[str, float | None]) -> str:
    names = {"accuracy": "accuracy", "dp_ratio": "DP", "eo_ratio": "EO"}
    return " ".join(
        f"{word} {'-' if figures[key] is None else f'{figures[key]:.3f}'}"
        for key, word in names.items()
    )


@contextmanager
def _bars(runs: Sequence[Shown]) -> Iterator[OnEvent]:
    """A bar for all runs with the time that is left, and one for each that is being played."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    tally = Tally(len(runs))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        whole = bars.add_task("all runs", total=float(len(runs)), said="compiling")
        lines: dict[int, Any] = {}

        def on_event(event: Any) -> None:
            tally.note(event)
            name = runs[event.job].name
            if event.kind == "started" and event.job not in lines:
                lines[event.job] = bars.add_task(name, total=None, said="compiling")
            elif event.kind == "round":
                said = f"{event.round} {event.domain} {_figures(event.figures)}"
                bars.update(lines[event.job], total=event.length, completed=event.round, said=said)
            elif event.kind == "lost":
                bars.update(lines[event.job], said="its worker died; going on with it")
            elif event.kind == "finished":
                bars.remove_task(lines.pop(event.job))
            left = tally.seconds_left
            said = f"{tally.finished}/{len(runs)} runs"
            said += f", about {span(left)} left" if left is not None else ""
            bars.update(whole, completed=sum(tally.shares), said=said)

        yield on_event
