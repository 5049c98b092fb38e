"""`fairsaoml learn`: continue a run with new rows; `fairsaoml runs`: what runs there are."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.options import AsJson, Quiet
from fairsaoml.cli.output import piped, print_json
from fairsaoml.cli.progress import progress
from fairsaoml.core.errors import ConfigError

__all__ = ["learn", "runs"]


def learn(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    file: Annotated[
        str | None, typer.Argument(help="New rows: CSV or Parquet, or - for standard input.")
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column that tells rows apart: known ones are skipped.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the last `learn` back.")] = False,
    quiet: Quiet = False,
    json_: AsJson = False,
) -> None:
    """Continue a run with new rows: score them, then learn from them, round by round.

    Rows that were learned before are skipped. Rows that do not fill a task wait for the next file.
    """
    if undo == (file is not None):
        raise ConfigError("expected a file of new rows, or --undo; give one of them")

    from fairsaoml.cli.run import finish
    from fairsaoml.runs import learn as runs
    from fairsaoml.runs.events import as_events

    if undo:
        if summary := runs.undo(folder):
            finish(folder, summary, as_json=json_)
        return
    assert file is not None
    with piped(file) as path, progress([folder.name], 1, quiet=quiet) as on_event:
        done = runs.learn(folder, path, id=id, on_round=as_events(on_event))
    typer.echo(
        f"{done.rows} rows: {done.known} were learned before and skipped; {done.learned} learned "
        f"now in {done.rounds} rounds; {done.waiting} wait for the next file",
        err=True,
    )
    if done.summary:  # a model from Python has none before its first round
        finish(folder, done.summary, as_json=json_)


def runs(
    folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs"),
    json_: AsJson = False,
) -> None:
    """List the runs in a folder: stream, learner, rounds, verdict, when."""
    from fairsaoml.cli.tables import print_rows
    from fairsaoml.runs.listing import list_runs

    listed: list[dict[str, Any]] = list_runs(folder)
    if json_:
        print_json(listed)
        return
    if not listed:
        typer.echo(f"no runs in {folder}; `fairsaoml run` makes one", err=True)
        return
    titles = ["name", "stream", "learner", "rounds", "verdict", "when"]
    print_rows(titles, [[str(run[title]) for title in titles] for run in listed])
