"""`fairsaoml run`: one learner on one stream."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.output import print_json
from fairsaoml.cli.settings import parse_settings, read_config
from fairsaoml.core.errors import ConfigError

__all__ = ["run"]

TABLE = "Your own table"
OWN = ("learner", "seeds", "seed")  # what a config file may say besides settings
LARGEST = 2**31 - 1  # a seed is a 32-bit integer in files and programs


def run(
    stream: Annotated[
        str | None, typer.Argument(help="A stream's name (`fairsaoml streams`), or a table's file.")
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="Which learner (`fairsaoml learners`). [fairsaoml-live]")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds, played together. [5]")] = None,
    seed: Annotated[int | None, typer.Option(help="The first of them. [0]")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: a setting of learner or stream.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings from a TOML file.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder. [runs/STREAM-...]")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in the folder.")] = False,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")] = None,
    save_predictions: Annotated[
        bool, typer.Option("--save-predictions", help="Keep every decision (Parquet).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
    label: Annotated[
        str | None, typer.Option(help="Column to predict.", rich_help_panel=TABLE)
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Which label is positive.", rich_help_panel=TABLE)
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help="Protected column, or COL=VALUE against the rest.", rich_help_panel=TABLE
        ),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column that orders the rows.", rich_help_panel=TABLE)
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(help="Cut into this many tasks.", rich_help_panel=TABLE)
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="Cut by time: 10D, 1W, 6H.", rich_help_panel=TABLE)
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Cut every so many rows.", rich_help_panel=TABLE)
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="Column that names domains.", rich_help_panel=TABLE)
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Columns to leave out: A,B.", rich_help_panel=TABLE)
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="The only columns to use: A,B.", rich_help_panel=TABLE)
    ] = None,
) -> None:
    """Play a stream: score each task with what was learned so far, then learn from it.

    Writes a folder with every round, a summary and a report to look at.
    """
    table = {
        "label": label,
        "positive": positive,
        "sensitive": sensitive,
        "time": time,
        "tasks": tasks,
        "every": every,
        "rows": rows,
        "domain": domain,
        "drop": drop and drop.split(","),
        "columns": columns and columns.split(","),
    }
    table = {key: value for key, value in table.items() if value is not None and value != []}
    if resume is not None:
        others = (stream, learner, seeds, seed, set_, config, out, table)
        if force or save_predictions or any(value not in (None, [], {}) for value in others):
            raise ConfigError("--resume takes the run's own stream and settings; give DIR alone")
        return _resume(resume, quiet=quiet, as_json=json_)
    if stream is None:
        raise ConfigError("expected a stream, got none; try `fairsaoml run synthetic`")

    given = read_config(config) if config else {}
    given |= parse_settings(set_ or [])
    own = {key: given.pop(key, None) for key in OWN}
    chosen_learner = learner or own["learner"]
    count = _whole("seeds", next(n for n in (seeds, own["seeds"], 5) if n is not None), least=1)
    first = _whole("seed", next(n for n in (seed, own["seed"], 0) if n is not None), least=0)

    from fairsaoml.learners.registry import DEFAULT
    from fairsaoml.runs.runner import free_folder
    from fairsaoml.runs.runner import run as play
    from fairsaoml.runs.spec import RunSpec, split_settings
    from fairsaoml.streams.catalog import is_table

    if table and not is_table(stream):
        raise ConfigError(f"--{next(iter(table))} is for a table of your own, not for {stream!r}")
    name = chosen_learner or DEFAULT
    of_stream, of_learner = split_settings(stream, name, given, also=OWN)
    spec = RunSpec(
        stream=stream,
        learner=name,
        stream_settings=of_stream | table,
        learner_settings=of_learner,
        seeds=tuple(range(first, first + count)),
    )
    folder = out or free_folder(spec)

    from fairsaoml.cli.progress import progress

    with progress(quiet=quiet) as on_round:
        summary = play(
            spec, folder, force=force, save_predictions=save_predictions, on_round=on_round
        )
    _finish(folder, summary, as_json=json_)


def _resume(folder: Path, *, quiet: bool, as_json: bool) -> None:
    from fairsaoml.cli.progress import progress
    from fairsaoml.runs.runner import is_finished, resume

    if is_finished(folder):
        typer.echo(f"the run in {folder} is finished already", err=True)
    with progress(quiet=quiet) as on_round:
        summary = resume(folder, on_round=on_round)
    _finish(folder, summary, as_json=as_json)


def _whole(name: str, value: Any, *, least: int) -> int:
    if type(value) is not int or not least <= value <= LARGEST:
        raise ConfigError(f"{name} must be a whole number from {least} to {LARGEST}; got {value!r}")
    return value


def _finish(folder: Path, summary: dict[str, Any], *, as_json: bool) -> None:
    from fairsaoml.report import write_report

    report = write_report([folder], folder / "report.html")
    if as_json:
        print_json(summary | {"folder": str(folder), "report": str(report)})
        return
    from fairsaoml.cli.tables import print_summary

    print_summary(summary)
    typer.echo(f"report: {report}")
