"""What a person sees while a run goes on: a live line on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress"]

LINES = 9  # so many plain lines over a whole run of known length
EVERY = 100  # rounds between plain lines where the length is unknown

OnRound = Callable[[Any, Any], None]


def _figure(records: list[dict], name: str) -> str:
    values = [record[name] for record in records if record[name] is not None]
    return f"{sum(values) / len(values):.3f}" if values else "-"


def _figures(records: list[dict]) -> str:
    shown = {"accuracy": "accuracy", "DP": "dp_ratio", "EO": "eo_ratio"}
    return " ".join(f"{word} {_figure(records, key)}" for word, key in shown.items())


@contextmanager
def progress(*, quiet: bool) -> Iterator[OnRound | None]:
    """A callback for each finished round; everything goes to stderr."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _live() as on_round:
            yield on_round
    else:
        yield _lines()


def _lines() -> OnRound:
    def on_round(game: Any, played: Any) -> None:
        length = game.stream.length
        every = max(1, length // LINES) if length else EVERY
        if played.round == 1 or played.round % every == 0 or played.round == length:
            of = f"/{length}" if length else ""
            domain = played.records[0]["domain"]
            print(
                f"round {played.round}{of} {domain}: {_figures(played.records)}",
                file=sys.stderr,
                flush=True,
            )

    return on_round


@contextmanager
def _live() -> Iterator[OnRound]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("round {task.completed:.0f}{task.fields[of]} {task.fields[domain]}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        begun = time.monotonic()
        line = bar.add_task("", total=None, of="", domain="compiling", figures="")

        def on_round(game: Any, played: Any) -> None:
            length = game.stream.length
            bar.update(
                line,
                total=length,
                completed=played.round,
                of=f"/{length}" if length else "",
                domain=played.records[0]["domain"],
                figures=_figures(played.records),
            )

        yield on_round
    console.print(f"played in {time.monotonic() - begun:.0f} s")
