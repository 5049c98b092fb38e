"""The commands on folders of runs: `fairsaoml learn`, `predict`, `report` and `runs`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.options import AsJson, Quiet
from fairsaoml.cli.output import piped, print_json
from fairsaoml.cli.progress import progress
from fairsaoml.core.errors import ConfigError

__all__ = ["learn", "predict", "report", "runs"]

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")]


def learn(
    folder: RunFolder,
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


def predict(
    folder: RunFolder,
    file: Annotated[
        str, typer.Argument(help="New rows: CSV or Parquet, columns as learned; - reads stdin.")
    ],
    seed: Annotated[int | None, typer.Option(help="Which seed's model. \\[the first]")] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns of the new rows to keep: id,name.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why: threshold, fairness, columns that counted.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A file ending in .csv, .jsonl or .parquet. \\[CSV on standard output]"),
    ] = None,
) -> None:
    """Score new rows: a calibrated probability and the decision for each, in the label's words."""
    from fairsaoml.runs.decisions import check_ending, decision_table, to_bytes, write_decisions
    from fairsaoml.runs.predict import predict_rows

    if out is not None:
        check_ending(out)
    with piped(file) as path:
        predicted = predict_rows(folder, path, seed=seed, explain=explain)
    for note in predicted.notes:
        typer.echo(note, err=True)
    table = decision_table(predicted, keep.split(",") if keep else ())
    if out is None:
        sys.stdout.write(to_bytes(table).decode())
    else:
        write_decisions(table, out)
        typer.echo(f"{table.num_rows} rows: {out}", err=True)


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file. [DIR/report.html]")] = None,
    picture: Annotated[Path | None, typer.Option(help="Also write a small SVG picture.")] = None,
) -> None:
    """Write the report of one run, or of several overlaid, as one HTML file."""
    from fairsaoml.report import write_picture, write_report

    shared = folders[0] if len(folders) == 1 else Path(folders[0]).parent
    typer.echo(f"report: {write_report(folders, out or shared / 'report.html')}")
    if picture is not None:
        write_picture(folders, picture)
        typer.echo(f"picture: {picture}")


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
