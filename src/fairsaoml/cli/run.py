"""`fairsaoml run`, `learn`, `compare` and `peers`: learners, or other libraries, on a stream."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import typer
from typer import Argument, Option

from fairsaoml.cli import options
from fairsaoml.cli.options import (
    flag,
    parse_settings,
    parse_value,
    piped,
    print_json,
    read_config,
    stem,
)
from fairsaoml.cli.progress import progress
from fairsaoml.core.errors import ConfigError, RunError

SEEDS = 5
LARGEST = 2**31 - 1  # a seed is a 32-bit integer in files and programs


@options.takes("rule", "table")
def run(
    stream: str | None = Argument(None, help=options.STREAM),
    learner: str | None = Option(
        None, help="Which learner (`fairsaoml learners`). \\[fairsaoml-decoupled]"
    ),
    seeds: int | None = Option(None, help="How many seeds, run together. [5]"),
    seed: int | None = Option(None, help="The first of them. [0]"),
    set_: list[str] = Option([], "--set", help="key=value: a setting of learner or stream."),
    config: Path | None = Option(None, help="Settings from a TOML file."),
    out: Path | None = Option(None, help="The run's folder. \\[runs/STREAM-...]"),
    force: options.Force = False,
    resume: Path | None = Option(None, help="Continue the run in this folder."),
    save_predictions: bool = flag("--save-predictions", help="Keep every decision (Parquet)."),
    quiet: options.Quiet = False,
    json_: options.AsJson = False,
    **panels: Any,
) -> None:
    """Run a learner on a stream: score each task with what was learned before, then learn from it.

    Writes a folder with every round, a summary and a report to look at.
    """
    if resume is not None:
        others = (stream, learner, seeds, seed, set_, config, out, *panels.values())
        if force or save_predictions or any(value not in (None, []) for value in others):
            raise ConfigError("--resume takes the run's own stream and settings; give DIR alone")
        return _resume(resume, quiet=quiet, as_json=json_)
    if stream is None:
        raise ConfigError("expected a stream, got none; try `fairsaoml run synthetic`")

    settings = (read_config(config) if config else {}) | parse_settings(set_)
    typed = {"learner": learner, "seeds": seeds, "seed": seed}
    settings |= {key: value for key, value in typed.items() if value is not None}
    settings |= options.decision_settings(panels)
    count = _whole("seeds", settings.pop("seeds", SEEDS), 1)
    first = _whole("seed", settings.pop("seed", 0), 0)

    from fairsaoml.learners.registry import DEFAULT
    from fairsaoml.runs import runner
    from fairsaoml.runs.events import as_events
    from fairsaoml.runs.folder import free_folder
    from fairsaoml.runs.spec import RunSpec, split_settings

    settings |= options.table_settings(stream, panels)
    name = settings.pop("learner", None) or DEFAULT
    of_stream, of_learner = split_settings(stream, name, settings, also=typed)
    spec = RunSpec(
        stream=stream,
        learner=name,
        stream_settings=of_stream,
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


def learn(
    folder: options.RunFolder,
    file: str | None = Argument(None, help="New rows: CSV or Parquet, or - for standard input."),
    id: str | None = Option(None, help="Column that tells rows apart: known ones are skipped."),
    undo: bool = flag("--undo", help="Take the last `learn` back."),
    quiet: options.Quiet = False,
    json_: options.AsJson = False,
) -> None:
    """Continue a run with new rows: score them, then learn from them, round by round.

    Rows that were given before are skipped. Rows that do not fill a task wait for the next file.
    """
    if undo == (file is not None):
        raise ConfigError("expected a file of new rows, or --undo; give one of them")

    from fairsaoml.evaluate.flags import count
    from fairsaoml.runs import learn as runs
    from fairsaoml.runs.events import as_events

    if undo:
        call, waiting, summary = runs.take_back(folder)
        also = f", and {count(waiting, 'row')} waiting" if waiting else ""
        typer.echo(
            f"taken back: {count(call['fingerprint']['rows'] - call['known'], 'new row')} and "
            f"{count(call['rounds'], 'round')}; the run has {count(call['after'], 'round')} "
            f"again{also}",
            err=True,
        )
        return finish(folder, summary, as_json=json_)
    assert file is not None
    with piped(file) as path, progress([folder.name], 1, quiet=quiet) as on_event:
        done = runs.learn(folder, path, id=id, on_round=as_events(on_event))
    needed = f" (a task has {done.task_rows})" if done.waiting and done.task_rows else ""
    typer.echo(
        f"{done.rows} rows: {done.known} were given before and skipped; {done.learned} learned "
        f"now in {done.rounds} rounds; {done.waiting} wait for the next file{needed}",
        err=True,
    )
    finish(folder, done.summary, as_json=json_)


@options.takes("rule", "table")
def compare(
    stream: options.StreamName,
    learners: str = Option("all", help="Which learners: all, or A,B (`fairsaoml learners`)."),
    seeds: int = Option(10, min=1, help="How many seeds, run together."),
    seed: int = Option(0, min=0, help="The first of them."),
    set_: list[str] = Option(
        [], "--set", help="key=value: of the stream, or of every learner that takes it."
    ),
    out: Path | None = Option(None, help="A folder for all runs. \\[runs/STREAM-comparison]"),
    jobs: options.Jobs = 1,
    engine: options.Engine = "local",
    address: options.Address = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json_: options.AsJson = False,
    **panels: Any,
) -> None:
    """Run several learners on one stream: one table and one report of all.

    The same command finishes a comparison that was stopped.
    """
    from fairsaoml.cli.tables import print_comparison
    from fairsaoml.compare import compare as comparing
    from fairsaoml.learners import registry

    names = options.chosen(learners, registry.registered())
    settings = parse_settings(set_) | options.decision_settings(panels)
    settings |= options.table_settings(stream, panels)
    specs = comparing.plan(stream, names, settings, range(seed, seed + seeds))
    folder = out or Path("runs") / f"{stem(stream)}-comparison"
    with progress(names, seeds, quiet=quiet) as on_event:
        comparison = comparing.compare(
            specs,
            folder,
            force=force,
            engine=engine,
            workers=jobs,
            address=address,
            on_event=on_event,
        )
    if json_:
        return print_json(comparison | {"folder": str(folder)})
    print_comparison(comparison)
    typer.echo(f"report: {folder / 'report.html'}")


@options.takes("table")
def peers(
    stream: options.StreamName,
    alternatives: str = Option("all", "--alternatives", "--peers", help="Which: all, or A,B."),
    seeds: int = Option(1, min=1, help="How many, where anything is random."),
    refit_every: int = Option(
        1, min=1, help="Refit only every so many rounds; the row's name says so."
    ),
    decision: str | None = Option(
        None,
        help="When a row is positive: accuracy (at 0.5), or balanced (both classes weigh the "
        "same). \\[accuracy]",
    ),
    set_: list[str] = Option([], "--set", help="key=value: a setting of the stream, or decision."),
    out: Path | None = Option(None, help="A folder for all of them. \\[runs/paper/peers/STREAM]"),
    force: options.Force = False,
    quiet: options.Quiet = False,
    json_: options.AsJson = False,
    **panels: Any,
) -> None:
    """Run scikit-learn, Fairlearn and River models on the same stream.

    Finished runs are kept: the same command finishes one that was stopped.
    """
    from fairsaoml.cli.tables import print_comparison
    from fairsaoml.compare.alternatives import CATALOG, compare_alternatives, plan
    from fairsaoml.learners import registry

    settings = parse_settings(set_) | options.table_settings(stream, panels)
    of_set = settings.pop("decision", None)
    asked = of_set if decision is None else parse_value(decision)
    specs = plan(
        stream,
        options.chosen(alternatives, CATALOG),
        stream_settings=settings,
        seeds=range(seeds),
        every=refit_every,
        decision="accuracy" if asked is None else asked,
    )
    if not quiet:
        _say_how_they_decide(specs[0], asked)
    folder = out or Path("runs") / "paper" / "peers" / stem(stream)
    with progress([spec.label for spec in specs], seeds, quiet=quiet) as on_event:
        comparison = compare_alternatives(specs, folder, force=force, on_event=on_event)
    if json_:
        return print_json(comparison | {"folder": str(folder)})
    print_comparison(
        comparison,
        f"The learners of fairsaoml are not among them: fairsaoml compare {stream} --learners "
        f"{registry.DEFAULT} with the same options of the stream and the same --decision shows "
        "the default one.",
    )
    for entry in comparison["learners"]:
        typer.echo(f"{entry['learner']}: {entry['what']}.")
    typer.echo(f"runs: {folder}")


def _say_first(setup: Any) -> None:
    """What a person should know before the first round."""
    from fairsaoml.runs.spec import decision_words

    if (base_rate := setup.stream.base_rate) is not None:
        typer.echo(decision_words(setup.config["decision"], base_rate), err=True)
    for note in setup.stream.notes:
        typer.echo(f"note: {note}", err=True)


def _say_how_they_decide(peer: Any, asked: str | None) -> None:
    """What a person should know of a table's label before other libraries' models decide it."""
    from fairsaoml.runs.spec import decision_words, suggested_decision
    from fairsaoml.streams.catalog import is_table, open_stream

    if not is_table(peer.stream):
        return
    if (base_rate := open_stream(peer.stream, peer.stream_settings).base_rate) is None:
        return
    typer.echo(decision_words(asked or "accuracy", base_rate), err=True)
    if asked is None and (ours := suggested_decision(base_rate)) != "accuracy":
        typer.echo(
            f"note: `fairsaoml run` and `compare` take {ours} here; with --decision {ours} these "
            "models do, too",
            err=True,
        )


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
    if not summary:
        return  # a model from Python has none before its first round
    from fairsaoml.report import write_report

    report = write_report([folder], folder / "report.html")
    if as_json:
        print_json(summary | {"folder": str(folder), "report": str(report)})
    else:
        from fairsaoml.cli.tables import print_summary
        from fairsaoml.runs.folder import read_spec

        print_summary(summary, read_spec(folder)["learner"]["config"].get("decision", "accuracy"))
        typer.echo(f"report: {report}")
    if summary.get("left_out", {}).get("rounds") == summary["rounds"]:
        raise RunError(f"nothing was learned in any of {summary['rounds']} rounds; see {report}")
