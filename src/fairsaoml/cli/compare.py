"""`fairsaoml compare`: several learners on one stream, side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairsaoml.cli.options import (
    DECISION,
    TABLE,
    Address,
    AsJson,
    Engine,
    Force,
    Jobs,
    Quiet,
    StreamName,
    decision_settings,
    table_settings,
    takes,
)
from fairsaoml.cli.output import chosen, print_json, print_notes, stem
from fairsaoml.cli.progress import progress
from fairsaoml.cli.settings import parse_settings
from fairsaoml.evaluate.rule import MARKS, ratio_words, worst

__all__ = ["compare", "print_comparison"]

RATIOS = {"dp": "dp_ratio", "eo": "eo_ratio"}
COLOURS = {"met": "green", "missed": "yellow"}


@takes(TABLE, into="table")
@takes(DECISION, into="rule")
def compare(
    stream: StreamName,
    learners: Annotated[
        str, typer.Option(help="Which learners: all, or A,B (`fairsaoml learners`).")
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, run together.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value: of the stream, or of every learner that takes it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for all runs. \\[runs/STREAM-comparison]")
    ] = None,
    jobs: Jobs = 1,
    engine: Engine = "local",
    address: Address = None,
    force: Force = False,
    quiet: Quiet = False,
    json_: AsJson = False,
    *,
    table: dict[str, Any],
    rule: dict[str, Any],
) -> None:
    """Run several learners on one stream: one table and one report of all.

    The same command finishes a comparison that was stopped.
    """
    from fairsaoml.compare import compare as comparing
    from fairsaoml.learners import registry

    names = chosen(learners, registry.registered())
    settings = parse_settings(set_ or []) | decision_settings(rule) | table_settings(stream, table)
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
        print_json(comparison | {"folder": str(folder)})
        return
    print_comparison(comparison)
    typer.echo(f"report: {folder / 'report.html'}")


def print_comparison(comparison: dict[str, Any]) -> None:
    """Print one table with a row for each learner, and which of them to take."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console, learners = Console(), comparison["learners"]
    changes = "after_changes" in learners[0]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for heading in ("accuracy", "balanced", "DP", "EO", *(["back by"] if changes else []), "s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in learners:
        cells = [_share(entry["overall"][name]) for name in ("accuracy", "balanced_accuracy")]
        cells += [_ratio(_worst_end(entry, name)) for name in RATIOS.values()]
        if changes:
            rounds = entry["after_changes"]["back_by_round"]
            cells.append("never" if None in rounds else str(max(rounds)))
        table.add_row(escape(entry["learner"]), *cells, f"{entry['seconds_per_round']:.3f}")
    console.print(table)
    back = (
        "Back by: the round of a new domain by which accuracy and DP are within .05 of its end, "
        "after the slowest change. "
    )
    seeds = len(comparison["seeds"])
    spread = f" and {seeds} seeds ± the standard deviation over seeds" if seeds > 1 else ""
    notes = [
        f"Accuracy: pooled over all rounds{spread}. {back if changes else ''}s: seconds a round of "
        "one seed, compilation left out.",
        "DP and EO: of the last ten rounds, in the worst domain; 1 is fair; "
        f"{MARKS['met']} surely meets the 80 % rule ({comparison['rule']}), {MARKS['missed']} "
        f"surely does not, {MARKS['too few']} has not enough rows to tell. Every domain, with "
        "intervals, is in comparison.json.",
    ]
    print_notes(notes)
    console.print(recommendation(learners), highlight=False, markup=False)


def recommendation(learners: Sequence[dict[str, Any]]) -> str:
    """Which learner to take on this stream, and why; by the notions asked for, or else by EO.

    >>> def row(name, eo, accuracy):
    ...     end = {"eo_ratio": {"ratio": eo, "rule": "met" if eo >= 0.8 else "missed"}}
    ...     figures = {"balanced_accuracy": {"pooled": accuracy}}
    ...     return {"learner": name, "domains": [{"last": end}], "overall": figures}
    >>> recommendation([row("a", 0.9, 0.7), row("b", 0.8, 0.6), row("c", 0.5, 0.8)])
    'Take a: the highest balanced accuracy (0.700) of those whose EO surely meets the 80 % rule.'
    >>> recommendation([row("c", 0.5, 0.8), row("d", 0.7, 0.6)])
    'Take none as it is: no EO is known to meet the 80 % rule; d comes nearest (0.70).'
    """
    given = [entry.get("settings", {}).get("constraints") for entry in learners]
    asked = {name for names in given if names for name in str(names).split("+")}
    notions = [name for name in RATIOS if name in asked] or ["eo"]
    words = " and ".join(name.upper() for name in notions)

    def verdicts(entry: dict[str, Any]) -> set[str]:
        return {_worst_end(entry, RATIOS[name])["rule"] for name in notions}

    def lowest(entry: dict[str, Any]) -> float:
        return min(_worst_end(entry, RATIOS[name])["ratio"] or 0.0 for name in notions)

    def accuracy(entry: dict[str, Any]) -> float:
        return entry["overall"]["balanced_accuracy"]["pooled"] or 0.0

    if fair := [entry for entry in learners if verdicts(entry) == {"met"}]:
        best = max(fair, key=accuracy)
        why = f"the highest balanced accuracy ({accuracy(best):.3f}) of those whose {words}"
        return f"Take {best['learner']}: {why} surely meets the 80 % rule."
    best = max(learners, key=lowest)
    nearest = f"{best['learner']} comes nearest ({ratio_words(lowest(best))})"
    return f"Take none as it is: no {words} is known to meet the 80 % rule; {nearest}."


def _worst_end(entry: dict[str, Any], name: str) -> dict[str, Any]:
    """A ratio in the last rounds of the domain whose verdict, and then whose ratio, is worst."""
    ends = [domain["last"][name] for domain in entry["domains"]]
    verdict = worst(end["rule"] for end in ends)
    return min((end for end in ends if end["rule"] == verdict), key=lambda end: end["ratio"] or 0.0)


def _share(figure: dict[str, Any]) -> str:
    def short(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}".removeprefix("0")

    spread = "" if figure["spread"] is None else f"[dim]±{short(figure['spread'])}[/]"
    return short(figure["pooled"]) + spread


def _ratio(figure: dict[str, Any]) -> str:
    words = "" if figure["ratio"] is None else ratio_words(figure["ratio"]).removeprefix("0")
    verdict = figure["rule"]
    return f"[{COLOURS.get(verdict, 'default')}]{words}{MARKS[verdict]}[/]"
