"""`fairsaoml tune`: search for a learner's settings, accurate and fair at once."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.output import print_json, stem
from fairsaoml.cli.settings import parse_settings

__all__ = ["tune"]

DETAILED = 2  # streams of which a table has room for everything
SHORT = {
    "accuracy": "acc",
    "balanced_accuracy": "bal",
    "dp_ratio": "DP",
    "eo_ratio": "EO",
    "ratio": "ratio",
}


def tune(
    stream: Annotated[
        str,
        typer.Argument(
            help="A stream's name (`fairsaoml streams`), or a table's file; several with commas."
        ),
    ],
    learner: Annotated[str, typer.Option(help="Which learner (`fairsaoml learners`).")],
    trials: Annotated[int, typer.Option(min=1, help="How many settings are tried.")] = 60,
    jobs: Annotated[int, typer.Option(min=1, help="How many at once, each in a process.")] = 2,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds each is tried with.")] = 2,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value: a setting of learner or stream that stays fixed."),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="Where Optuna keeps the study: a database's address, or a journal file."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A folder. [tuning/STREAM-LEARNER]")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Put the chosen settings into this TOML file.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="All trials as JSON.")] = False,
) -> None:
    """Search for settings on `synthetic` and on a stream's first domain; later ones stay unseen.

    Of several streams: settings that do well on all. Trial 0 is the learner as it is. The same
    command goes on with a search that was stopped.
    """
    from paper.tuning_learners import TuningSpec, tune_learner

    spec = TuningSpec(
        stream=stream, learner=learner, settings=parse_settings(set_ or []), seeds=seeds
    )
    folder = out or Path("tuning") / f"{stem(stream)}-{learner}"
    with _progress(trials, quiet=quiet) as on_trial:
        result = tune_learner(
            spec,
            folder,
            trials=trials,
            jobs=jobs,
            storage=storage,
            save=save,
            on_trial=on_trial,
        )
    if json_:
        print_json(result | {"folder": str(folder)})
        return
    _print(result)
    typer.echo(f"picture: {folder / 'front.svg'}")
    if save is not None:
        typer.echo(f"settings: {save}")


@contextmanager
def _progress(trials: int, *, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """A callback for each finished trial; everything goes to stderr."""

    def words(trial: Any) -> str:
        scores = trial.scores
        return f"accuracy {scores.accuracy:.3f} ratio {scores.ratio:.2f} {trial.seconds:.0f} s"

    if quiet:
        yield lambda trial: None
    elif not sys.stderr.isatty():
        yield lambda trial: print(
            f"trial {trial.number} of {trials}: {words(trial)}", file=sys.stderr, flush=True
        )
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("trial {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(compact=True),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
            line = bar.add_task("", total=trials, words="compiling")
            yield lambda trial: bar.update(
                line, completed=trial.number + 1, words=f"{trial.number}: {words(trial)}"
            )


def _print(result: dict[str, Any]) -> None:
    """The front, stream by stream, and what the chosen settings change."""
    from rich.console import Console
    from rich.table import Table

    from fairsaoml.cli.tables import print_rows

    def short(value: float | None, digits: int = 3) -> str:
        return "-" if value is None else f"{value:.{digits}f}".removeprefix("0")

    console, chosen = Console(), result["chosen"]
    shown = [
        trial
        for trial in result["trials"]
        if trial["on_front"] or trial["is_default"] or trial["trial"] == chosen["trial"]
    ]
    shown.sort(key=lambda trial: -trial["accuracy"])
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for title in ("trial", "accuracy", "ratio"):
        table.add_column(title, justify="right")
    # Of several streams, only what counts fits a line.
    some = ("accuracy", "balanced_accuracy", "dp_ratio", "eo_ratio")
    measures = some if len(shown[0]["streams"]) <= DETAILED else ("accuracy", "ratio")
    for _ in shown[0]["streams"]:
        for measure in measures:
            table.add_column(SHORT[measure], justify="right")
    table.add_column("")
    for trial in shown:
        marks = ["chosen"] * (trial["trial"] == chosen["trial"])
        marks += ["default"] * trial["is_default"]
        cells = [str(trial["trial"]), short(trial["accuracy"]), short(trial["ratio"], 2)]
        for found in trial["streams"].values():
            cells += [
                short(found[measure], 2 + measure.endswith("accuracy")) for measure in measures
            ]
        table.add_row(*cells, ", ".join(marks))
    console.print(f"[bold]{result['learner']}[/]: the front", highlight=False)
    console.print(table)
    notes = {
        f"trial {trial['trial']}, {stream}: {note}."
        for trial in shown
        for stream, found in trial["streams"].items()
        for note in found["notes"]
    }
    streams = "; then ".join(shown[0]["streams"])
    for words in (f"On {streams}; first the mean.", *sorted(notes), f"Chosen: {result['rule']}."):
        console.print(words, style="dim", highlight=False)
    rows = [
        [key, str(result["default"].get(key, "")), str(value)]
        for key, value in chosen["settings"].items()
    ]
    print_rows(["setting", "default", "chosen"], rows)
