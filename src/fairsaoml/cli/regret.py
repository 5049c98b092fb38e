"""`fairsaoml regret`: how much a run lost to the best fixed model of every window."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.output import print_json

__all__ = ["regret"]


def regret(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    windows: Annotated[
        str | None,
        typer.Option(help="Window lengths: 1,4,16, or all. [powers of two, and all rounds]"),
    ] = None,
    adapted: Annotated[
        bool, typer.Option("--adapted", help="Of the scores after a few labels of each round.")
    ] = False,
    comparator: Annotated[
        bool, typer.Option(help="Solve for the best models; without, violations only.")
    ] = True,
    picture: Annotated[Path | None, typer.Option(help="Also an SVG picture.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Regret against the best fixed model of every window, and the worst sums of violations."""
    from fairsaoml.report.regret import check_picture, write_regret_picture

    if picture is not None:
        check_picture(picture)
    measured = _measure(folder, windows, adapted, comparator, quiet or json_)
    if picture is not None:
        write_regret_picture(measured, picture)
    if json_:
        from fairsaoml.files import tidy

        print_json(tidy(measured))
        return
    _print(measured)
    if picture is not None:
        typer.echo(f"picture: {picture}")


def _measure(
    folder: Path, windows: str | None, adapted: bool, comparator: bool, quiet: bool
) -> dict[str, Any]:
    from fairsaoml.evaluate.compilation import use_cache
    from fairsaoml.evaluate.regret import regret as regrets
    from fairsaoml.files import read_json
    from fairsaoml.runs.journal import read_rounds
    from fairsaoml.runs.runner import load_spec

    spec = load_spec(folder)
    lines = read_rounds(folder / "rounds.jsonl")
    played = [regrets.played_series(lines, seed, adapted=adapted) for seed in spec.seeds]
    rounds = len(played[0].loss)
    chosen = regrets.chosen_windows(windows, rounds)
    names = read_json(folder / "spec.json")["constraints"]
    about = {"run": str(folder), "learner": spec.learner, "stream": spec.stream}
    if not comparator:
        entries = [
            {
                "window": window,
                "violation": regrets.windowed_violation(played, names, window),
                "proven": regrets.proven_growth(rounds, window)._asdict(),
            }
            for window in chosen
        ]
        form = "adapted" if adapted else "zero-shot"
        return {
            **about,
            "form": form,
            "rounds": rounds,
            "seeds": list(spec.seeds),
            "constraints": names,
            "comparator": None,
            "windows": entries,
        }
    from fairsaoml.runs.spec import Setup
    from fairsaoml.streams.stream import checked

    use_cache()
    game = Setup.of(spec)
    schema = game.stream.schema

    def tasks(seed: int) -> list[Any]:
        return [checked(task, schema, at) for at, task in enumerate(game.stream.tasks(seed), 1)]

    with _progress(quiet) as on_progress:
        measured = regrets.regret(
            played,
            tasks,
            game.problem,
            game.config,
            seeds=spec.seeds,
            windows=chosen,
            shared=not game.stream.seeded,
            adapted=adapted,
            on_progress=on_progress,
        )
    return {**about, **measured}


def _progress(quiet: bool) -> Any:
    """A bar on stderr, where somebody looks."""
    from contextlib import contextmanager, nullcontext

    if quiet or not sys.stderr.isatty():
        return nullcontext(lambda done, total: None)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("windows solved"), BarColumn(), TimeElapsedColumn())

    @contextmanager
    def bar() -> Any:
        with Progress(*columns, console=Console(stderr=True)) as bars:
            line = bars.add_task("")
            yield lambda done, total: bars.update(line, total=total, completed=done)

    return bar()


def _print(measured: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from fairsaoml.cli.tables import print_rows

    console = Console()
    solved = measured["comparator"] is not None
    titles = ["window"] + ["FairSAR", "rounds", "SAR"] * solved
    titles += [escape(f"sum of {name}") for name in measured["constraints"]]
    titles += ["rounds"] * bool(measured["constraints"])
    rows = []
    for entry in measured["windows"]:
        row = [str(entry["window"])]
        if solved:
            fair = entry["fair_regret"]
            row += [_cell(fair), _span(fair), _cell(entry["regret"])]
        found = list(entry["violation"].values())
        row += [_cell(figure) for figure in found]
        if found:
            row.append(_span(max(found, key=lambda figure: figure["high"])))
        rows.append(row)
    head = f"{measured['learner']} on {measured['stream']}, {measured['form']}"
    console.print(f"[bold]{head}[/]", highlight=False)
    print_rows(titles, rows)
    seeds = len(measured["seeds"])
    notes = [f"Means over {seeds} seeds, ± half their range." * (seeds > 1)]
    if solved:
        static = measured["static"]
        notes += [
            f"Static regret over all {measured['rounds']} rounds: "
            f"{_cell(static['fair_regret'])} against the best fair model, "
            f"{_cell(static['regret'])} against the best of all.",
            f"Comparator: {measured['comparator']['words']}.",
        ]
        if measured["form"] == "adapted":
            notes.append("The comparator is a fixed model and does not adapt.")
    else:
        notes.append("Sums of violations only; the comparator was not asked for.")
    for note in filter(None, notes):
        console.print(note, style="dim", highlight=False)


def _cell(figure: dict[str, Any]) -> str:
    half = (figure["high"] - figure["low"]) / 2
    return f"{figure['mean']:.3f}" + (f" ±{half:.3f}" if half else "")


def _span(figure: dict[str, Any]) -> str:
    first, last = figure["rounds"]
    return f"{first}-{last}"
