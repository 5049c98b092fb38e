"""Progress of one run or many, on stderr: bars on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

FEW = 12  # runs that all fit on a screen
LINES, LINES_OF_MANY = 9, 2  # plain lines per run: among few runs, among many
EVERY = 100  # rounds between plain lines where the length is unknown
LOST = "its worker died; another one continues"
FIGURES = {"accuracy": "accuracy", "dp_ratio": "DP", "eo_ratio": "EO"}

OnEvent = Callable[[Any], None]  # of `fairsaoml.runs.events`, which loads JAX


def progress(names: Sequence[str], seeds: int, *, quiet: bool) -> AbstractContextManager[OnEvent]:
    """Show runs while they go on.

    Args:
        names: how each run is called, in the order of the events' `job`.
        seeds: how many seeds each run has.
        quiet: show nothing.

    Returns:
        A context, of the callback for the runs' events.
    """
    if quiet:
        return nullcontext(lambda event: None)
    return _bars(names, seeds) if sys.stderr.isatty() else nullcontext(_lines(names, seeds))


@contextmanager
def bar(
    title: str, *columns: Any, quiet: bool = False
) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar on a terminal, nothing elsewhere; yields the callback for `(done, total)`.

    Args:
        title: what is under way.
        columns: of rich, right of the bar.
        quiet: show nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with _display(*columns) as bars:
        task = bars.add_task(title, total=None, text="")
        yield lambda done, total: bars.update(task, completed=done, total=total)


class Completion:
    """How much of several runs is done; a run that is half way counts one half."""

    def __init__(self, count: int) -> None:
        self.shares = [0.0] * count  # of each run
        self.kept: set[int] = set()  # the runs that had finished before
        self.begun = time.monotonic()

    def note(self, event: Any) -> None:
        """Take an event into account."""
        if event.kind == "round" and event.length:
            self.shares[event.job] = event.round / event.length
        elif event.kind in ("kept", "finished"):
            self.shares[event.job] = 1.0
            if event.kind == "kept":
                self.kept.add(event.job)

    @property
    def finished(self) -> int:
        """How many runs are finished."""
        return sum(share >= 1.0 for share in self.shares)

    @property
    def seconds_left(self) -> float | None:
        """The time the rest takes at the pace so far; None before anything was run.

        Kept runs took no time and say nothing about the pace.
        """
        done = sum(self.shares) - len(self.kept)
        left = len(self.shares) - sum(self.shares)
        return (time.monotonic() - self.begun) * left / done if done > 0 else None

    @property
    def words(self) -> str:
        """How far the runs are, such as "3/8 runs, about 2 min left"."""
        seconds = self.seconds_left if self.finished < len(self.shares) else None
        left = "" if seconds is None else f", about {duration(seconds)} left"
        return f"{self.finished}/{len(self.shares)} runs{left}"


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> duration(42), duration(130), duration(5000)
    ('42 s', '2 min', '1 h 23 min')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _lines(names: Sequence[str], seeds: int) -> OnEvent:
    completion = Completion(len(names))
    lines = LINES if len(names) <= FEW else LINES_OF_MANY

    def say(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    def on_event(event: Any) -> None:
        completion.note(event)
        name = names[event.job]
        place = f"{event.job + 1}/{len(names)}"
        if event.kind == "started":
            say(f"{name} ({place}, {_seeds(seeds)})")
        elif event.kind == "round":
            every = max(1, event.length // lines) if event.length else EVERY
            if event.round in (1, event.length) or event.round % every == 0:
                say(f"{name} {_round(event)}" if len(names) > 1 else _round(event))
        elif event.kind == "lost":
            say(f"{name} ({place}): {LOST}")
        elif event.kind == "finished" and len(names) > 1:
            say(f"{name} finished: {completion.words}")

    return on_event


@contextmanager
def _bars(names: Sequence[str], seeds: int) -> Iterator[OnEvent]:
    """A bar for each run, or for each that is going on if there are many; and one for all."""
    from rich.progress import TimeRemainingColumn

    alone, few = len(names) == 1, len(names) <= FEW
    completion = Completion(len(names))
    with _display(*[TimeRemainingColumn(compact=True)] * alone) as bars:
        title = f"all runs, {_seeds(seeds)} each"
        whole = bars.add_task(title, total=len(names), visible=not alone, text="compiling")
        tasks = [
            bars.add_task(name, start=alone, total=None, visible=few, text="") for name in names
        ]

        def on_event(event: Any) -> None:
            completion.note(event)
            task = tasks[event.job]
            if event.kind == "round":
                bars.update(task, total=event.length, completed=event.round, text=_round(event))
            elif event.kind == "lost":
                bars.update(task, text=LOST)
            elif event.kind == "started":
                bars.start_task(task)
                bars.update(task, visible=True, text="compiling")
            else:
                bars.stop_task(task)
                bars.update(task, visible=few, text="finished")
            bars.update(whole, completed=sum(completion.shares), text=completion.words)

        yield on_event
        bars.console.print(f"finished in {duration(time.monotonic() - completion.begun)}")


def _display(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[text]}", markup=False),
        *(columns or [TimeElapsedColumn()]),
        console=Console(stderr=True),
        transient=True,
        expand=True,
    )


def _seeds(seeds: int) -> str:
    return f"{seeds} seed{'s' * (seeds > 1)}"


def _round(event: Any) -> str:
    """A round in a line: "round 3/90 market-1: accuracy 0.750 DP 0.910 EO 0.880"."""
    of = f"/{event.length}" if event.length else ""
    place = " ".join(filter(None, [f"round {event.round}{of}", event.domain]))
    values = {words: event.figures[name] for name, words in FIGURES.items()}
    figures = [f"{key} {'-' if one is None else f'{one:.3f}'}" for key, one in values.items()]
    return f"{place}: {' '.join(figures)}"
