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
from fairsaoml.evaluate.rule import MARKS, ratio_words

__all__ = ["compare", "print_comparison"]

COLUMNS = {"accuracy": 14, "balanced": 14, "DP": 13, "EO": 13}  # all of it fits 80 columns
SECONDS, RECOVERS = "seconds", "back by"  # headings of the last column
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
    """Print a comparison: a block for each stretch of rounds, in it a row for each learner."""
    from rich.console import Console
    from rich.table import Table

    console, learners = Console(), comparison["learners"]
    for title, figures, last in _blocks(learners):
        console.print(title, style="bold", highlight=False, markup=False)
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("", width=max(len(entry["learner"]) for entry in learners))
        for heading, width in {**COLUMNS, last: len(SECONDS)}.items():
            table.add_column(heading, justify="right", no_wrap=True, width=width)
        for entry, block in zip(learners, figures, strict=True):
            cells = [_cell(block[name]) for name in ("accuracy", "balanced_accuracy")]
            cells += [_cell(block[name], digits=2) for name in ("dp_ratio", "eo_ratio")]
            table.add_row(entry["learner"], *cells, _extra(entry, last))
        console.print(table)
    rule, few = comparison["rule"], comparison["minimum_count"]
    notes = [
        f"First pooled over rounds and {len(comparison['seeds'])} seeds; then the mean over rounds "
        "± the standard deviation over seeds. Seconds: a round of one seed, compilation left out. "
        "Back by: the round of a new domain by which accuracy and DP are within .05 of its end, "
        "after the slowest change.",
        f"DP and EO: 1 is fair; {MARKS['met']} meets the 80 % rule ({rule}), {MARKS['missed']} "
        f"does not, {MARKS['too few']} has fewer than {few} positive decisions in some group. "
        "A pool over several domains has no mark: opposite gaps cancel in it.",
    ]
    for name, words in (("dp_ratio", "DP"), ("eo_ratio", "EO")):
        met = [entry["learner"] for entry in learners if entry["rule"][name] == "met"]
        notes.append(f"{words} meets the rule at every domain's end: {', '.join(met) or 'none'}.")
    print_notes(notes)
    console.print(recommendation(learners), highlight=False, markup=False)


def recommendation(learners: Sequence[dict[str, Any]]) -> str:
    """Which learner to take on this stream, and why.

    >>> def row(name, eo, accuracy):
    ...     figures = {"balanced_accuracy": {"pooled": accuracy}}
    ...     return {"learner": name, "rule": {"eo_ratio": eo}, "overall": figures}
    >>> recommendation([row("a", "met", 0.7), row("b", "met", 0.6), row("c", "missed", 0.8)])
    'Take a: the highest balanced accuracy (0.700) among those whose EO meets the 80 % rule.'
    """
    fair = [entry for entry in learners if entry["rule"]["eo_ratio"] == "met"]

    def accuracy(entry: dict[str, Any]) -> float:
        return entry["overall"]["balanced_accuracy"]["pooled"] or 0.0

    best = max(fair or learners, key=accuracy)
    among = "among those whose EO meets the 80 % rule" if fair else "but none meets the 80 % rule"
    return f"Take {best['learner']}: the highest balanced accuracy ({accuracy(best):.3f}) {among}."


def _blocks(learners: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]], str]]:
    """Each block's title, its figures for every learner, and what its last column shows."""
    blocks = [("all rounds", [entry["overall"] for entry in learners], SECONDS)]
    domains = learners[0]["domains"]
    if len(domains) > 1:
        for at, domain in enumerate(domains):
            wholes = [entry["domains"][at] for entry in learners]
            blocks.append((domain["name"], wholes, ""))
            if domain["last"]["rounds"] != domain["rounds"]:
                ends = [block["last"] for block in wholes]
                blocks.append((f"{domain['name']}, last ten rounds", ends, ""))
        after = [entry["after_changes"] for entry in learners]
        blocks.insert(1, ("first five rounds after each change", after, RECOVERS))
    if len(domains) == 1 or learners[0]["last"]["rounds"] != domains[-1]["last"]["rounds"]:
        blocks.append(("last ten rounds", [entry["last"] for entry in learners], ""))
    return blocks


def _extra(entry: dict[str, Any], column: str) -> str:
    if column == SECONDS:
        return f"{entry['seconds_per_round']:.3f}"
    if column == RECOVERS:
        rounds = entry["after_changes"]["back_by_round"]
        return "never" if None in rounds else str(max(rounds))
    return ""


def _cell(figure: dict[str, Any], digits: int = 3) -> str:
    def short(value: float | None) -> str:
        return "-" if value is None else f"{value:.{digits}f}".removeprefix("0")

    spread = "" if figure["spread"] is None else f"±{short(figure['spread'])}"
    pooled, verdict = short(figure["pooled"]), figure.get("rule")
    if verdict is not None:
        if verdict == "missed":
            pooled = ratio_words(figure["pooled"]).removeprefix("0")  # never rounded up to the rule
        pooled = f"[{COLOURS.get(verdict, 'default')}]{pooled}{MARKS[verdict]}[/]"
    return f"{pooled} [dim]{short(figure['mean'])}{spread}[/]"
