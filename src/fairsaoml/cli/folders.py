"""The commands on folders of runs: `fairsaoml learn`, `predict`, `regret`, `report`, `runs`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.options import AsJson, Quiet, piped, print_json
from fairsaoml.cli.progress import bar, progress
from fairsaoml.core.errors import ConfigError

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

    Rows that were given before are skipped. Rows that do not fill a task wait for the next file.
    """
    if undo == (file is not None):
        raise ConfigError("expected a file of new rows, or --undo; give one of them")

    from fairsaoml.cli.run import finish
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
        if summary:
            finish(folder, summary, as_json=json_)
        return
    assert file is not None
    with piped(file) as path, progress([folder.name], 1, quiet=quiet) as on_event:
        done = runs.learn(folder, path, id=id, on_round=as_events(on_event))
    needed = f" (a task has {done.task_rows})" if done.waiting and done.task_rows else ""
    typer.echo(
        f"{done.rows} rows: {done.known} were given before and skipped; {done.learned} learned "
        f"now in {done.rounds} rounds; {done.waiting} wait for the next file{needed}",
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
    from fairsaoml.serve.predict import (
        check_ending,
        decision_table,
        predict_rows,
        to_bytes,
        write_decisions,
    )

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
    from fairsaoml.cli.tables import print_runs
    from fairsaoml.runs.listing import list_runs

    listed: list[dict[str, Any]] = list_runs(folder)
    if json_:
        print_json(listed)
        return
    if not listed:
        typer.echo(f"no runs in {folder}; `fairsaoml run` makes one", err=True)
        return
    print_runs(listed)


def regret(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    windows: Annotated[
        str | None,
        typer.Option(help="Window lengths: 1,4,16, or all. \\[powers of two, and all rounds]"),
    ] = None,
    adapted: Annotated[
        bool, typer.Option("--adapted", help="Of the scores after a few labels of each round.")
    ] = False,
    every_round: Annotated[
        bool, typer.Option("--every-round", help="Best models that are fair in every round.")
    ] = False,
    adapting: Annotated[
        bool, typer.Option("--adapting", help="As --adapted, and the best models adapt as well.")
    ] = False,
    comparator: Annotated[
        bool, typer.Option(help="Solve for the best models; without, measure violations only.")
    ] = True,
    picture: Annotated[Path | None, typer.Option(help="Also write an SVG picture.")] = None,
    quiet: Quiet = False,
    json_: AsJson = False,
) -> None:
    """Measure regret against the best fixed model of every window, and the sums of violations."""
    from fairsaoml.files import tidy
    from fairsaoml.report.markup import check_picture
    from fairsaoml.report.regret import write_regret_picture
    from fairsaoml.runs.regret import regret as regret_of

    if picture is not None:
        check_picture(picture)
    with bar("windows solved", quiet=quiet or json_) as on_progress:
        measured = regret_of(
            folder,
            windows=windows,
            adapted=adapted,
            every_round=every_round,
            adapting=adapting,
            comparator=comparator,
            on_progress=on_progress,
        )
    if picture is not None:
        write_regret_picture(measured, picture)
    if json_:
        print_json(tidy(measured))
        return
    _print(measured)
    if picture is not None:
        typer.echo(f"picture: {picture}")


def _print(measured: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from fairsaoml.cli.tables import print_rows, say

    solved = measured["comparator"] is not None
    titles = ["window"] + ["FairSAR", "rounds", "SAR"] * solved
    titles += [escape(f"sum of {name}") for name in measured["constraints"]]
    several = len(measured["constraints"]) > 1
    titles += ["rounds of the largest" if several else "rounds"] * bool(measured["constraints"])
    rows = []
    for entry in measured["windows"]:
        row = [str(entry["window"])]
        if solved:
            fair = entry["fair_regret"]
            row += [_cell(fair), _rounds(fair), _cell(entry["regret"])]
        violations = list(entry["violation"].values())
        row += [_cell(figure) for figure in violations]
        if violations:
            row.append(_rounds(max(violations, key=lambda figure: figure["high"])))
        rows.append(row)
    head = f"{measured['learner']} on {measured['stream']}, {measured['form']}"
    Console().print(f"[bold]{head}[/]", highlight=False)
    print_rows(titles, rows)
    seeds = len(measured["seeds"])
    notes = [f"Means over {seeds} seeds, ± half their range."] * (seeds > 1)
    if solved:
        static = measured["static"]
        where = "in every round of" if measured["comparator"]["every_round"] else "over"
        notes += [
            f"Static regret over all {measured['rounds']} rounds: "
            f"{_cell(static['fair_regret'])} against the best fair model, "
            f"{_cell(static['regret'])} against the best of all.",
            f"Comparator: {measured['comparator']['words']}.",
            f"The best fair model is fair {where} its window.",
        ]
        if measured["form"] == "adapted" and not measured["comparator"]["adapts"]:
            notes.append("The comparator is a fixed model and does not adapt.")
    else:
        notes.append("Sums of violations only; the comparator was not solved for.")
    for note in notes:
        say(note, style="dim")


def _cell(figure: dict[str, Any]) -> str:
    half = (figure["high"] - figure["low"]) / 2
    return f"{figure['mean']:.3f}" + (f" ±{half:.3f}" if half else "")


def _rounds(figure: dict[str, Any]) -> str:
    first, last = figure["rounds"]
    return f"{first}-{last}"
