"""`fairsaoml regret`: how much a run lost to the best fixed model of every window."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.options import AsJson, Quiet
from fairsaoml.cli.output import print_json
from fairsaoml.cli.progress import bar

__all__ = ["regret"]


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
    from fairsaoml.runs.regret import run_regret

    if picture is not None:
        check_picture(picture)
    with bar("windows solved", quiet=quiet or json_) as on_progress:
        measured = run_regret(
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
    titles += ["rounds"] * bool(measured["constraints"])
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
