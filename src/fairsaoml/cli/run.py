"""`fairsaoml run`: one learner on one stream."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli import options
from fairsaoml.cli.options import print_json, stem
from fairsaoml.cli.progress import progress
from fairsaoml.cli.settings import parse_settings, read_config
from fairsaoml.core.errors import ConfigError, RunError

OPTIONS = {"learner": None, "seeds": 5, "seed": 0}  # and defaults; a config file may have them
# Settings that people ask for by name of learners that have none.
NOT_EVERY_LEARNER = {"ratio": "asked for a ratio", "aware": "told the group at decision time"}
LARGEST = 2**31 - 1  # a seed is a 32-bit integer in files and programs


@options.takes(options.TABLE, into="table")
@options.takes(options.DECISION, into="rule")
def run(
    stream: Annotated[
        str | None, typer.Argument(help="A stream's name (`fairsaoml streams`), or a table's file.")
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(help="Which learner (`fairsaoml learners`). \\[fairsaoml-decoupled]"),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds, run together. [5]")] = None,
    seed: Annotated[int | None, typer.Option(help="The first of them. [0]")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: a setting of learner or stream.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings from a TOML file.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder. \\[runs/STREAM-...]")] = None,
    force: options.Force = False,
    resume: Annotated[Path | None, typer.Option(help="Continue the run in this folder.")] = None,
    save_predictions: Annotated[
        bool, typer.Option("--save-predictions", help="Keep every decision (Parquet).")
    ] = False,
    quiet: options.Quiet = False,
    json_: options.AsJson = False,
    *,
    table: dict[str, Any],
    rule: dict[str, Any],
) -> None:
    """Run a learner on a stream: score each task with what was learned before, then learn from it.

    Writes a folder with every round, a summary and a report to look at.
    """
    if resume is not None:
        others = (stream, learner, seeds, seed, set_, config, out, table, rule)
        if force or save_predictions or any(value not in (None, [], {}) for value in others):
            raise ConfigError("--resume takes the run's own stream and settings; give DIR alone")
        return _resume(resume, quiet=quiet, as_json=json_)
    if stream is None:
        raise ConfigError("expected a stream, got none; try `fairsaoml run synthetic`")

    settings = (read_config(config) if config else {}) | parse_settings(set_ or [])
    settings |= options.decision_settings(rule)
    chosen = OPTIONS | {key: settings.pop(key) for key in OPTIONS if key in settings}
    typed = {"learner": learner, "seeds": seeds, "seed": seed}
    chosen |= {key: value for key, value in typed.items() if value is not None}
    count, first = _whole("seeds", chosen["seeds"], 1), _whole("seed", chosen["seed"], 0)

    from fairsaoml.learners.registry import DEFAULT, configure, entry, registered
    from fairsaoml.runs import runner
    from fairsaoml.runs.events import as_events
    from fairsaoml.runs.folder import free_folder
    from fairsaoml.runs.spec import RunSpec, split_settings

    table = options.table_settings(stream, table)
    name = chosen["learner"] or DEFAULT
    for key, words in NOT_EVERY_LEARNER.items():
        if key in settings and key not in entry(name).settings:
            able = ", ".join(one for one, item in registered().items() if key in item.settings)
            fair = configure(name, {}).constraints != "none"  # its tolerance is of use
            also = ", or set its tolerance" if key == "ratio" and fair else ""
            raise ConfigError(f"{name} cannot be {words}; choose --learner {able}{also}")
    of_stream, of_learner = split_settings(stream, name, settings, also=list(OPTIONS))
    spec = RunSpec(
        stream=stream,
        learner=name,
        stream_settings=of_stream | table,
        learner_settings=of_learner,
        seeds=tuple(range(first, first + count)),
    )
    folder = out or free_folder(f"{stem(stream)}-{name}")
    try:
        with progress([spec.learner], count, quiet=quiet) as on_event:
            summary = runner.run(
                spec,
                folder,
                force=force,
                save_predictions=save_predictions,
                repeat=False,
                on_start=None if quiet else _say_first,
                on_round=as_events(on_event),
            )
    finally:
        if out is None:
            with suppress(OSError):
                folder.rmdir()  # where nothing was run it is empty
    if len(summary["seeds"]) < count:
        typer.echo("nothing is random in this run: one seed was run", err=True)
    finish(folder, summary, as_json=json_)


def _say_first(setup: Any) -> None:
    """What a person should know before the first round."""
    from fairsaoml.runs.spec import decision_words

    if (base_rate := setup.stream.base_rate) is not None:
        typer.echo(decision_words(setup.config["decision"], base_rate), err=True)
    for note in setup.stream.notes:
        typer.echo(f"note: {note}", err=True)


def _resume(folder: Path, *, quiet: bool, as_json: bool) -> None:
    from fairsaoml.runs import runner
    from fairsaoml.runs.events import as_events
    from fairsaoml.runs.folder import is_finished

    if is_finished(folder):
        typer.echo(f"the run in {folder} is finished already{_more_rows(folder)}", err=True)
        quiet = True
    with progress([folder.name], 1, quiet=quiet) as on_event:
        summary = runner.resume(folder, on_round=as_events(on_event))
    finish(folder, summary, as_json=as_json)


def _more_rows(folder: Path) -> str:
    """What to do about rows that were added to a finished run's table."""
    from fairsaoml.core.errors import FairSAOMLError
    from fairsaoml.runs.learn import new_rows_of_the_table

    try:
        path, rows = new_rows_of_the_table(folder)
    except (FairSAOMLError, OSError, KeyError, TypeError):
        return ""  # no table, or one that is gone: nothing is missing to the run
    if rows is None:
        return f"; {path} has changed since: `fairsaoml run` learns from it anew"
    command = f"`fairsaoml learn {folder} {path}`"
    return f"; its table has {rows} more rows now: {command} learns them" if rows else ""


def _whole(name: str, value: Any, least: int) -> int:
    if type(value) is not int or not least <= value <= LARGEST:
        raise ConfigError(f"{name} must be a whole number from {least} to {LARGEST}; got {value!r}")
    return value


def finish(folder: Path, summary: dict[str, Any], *, as_json: bool) -> None:
    """Write a run's report, and print its summary."""
    from fairsaoml.report import write_report

    report = write_report([folder], folder / "report.html")
    if as_json:
        print_json(summary | {"folder": str(folder), "report": str(report)})
    else:
        from fairsaoml.cli.tables import print_summary

        print_summary(summary)
        typer.echo(f"report: {report}")
    if summary.get("left_out", {}).get("rounds") == summary["rounds"]:
        raise RunError(f"nothing was learned in any of {summary['rounds']} rounds; see {report}")
