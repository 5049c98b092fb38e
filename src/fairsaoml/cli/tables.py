"""Tables on stdout, made to fit a narrow window."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fairsaoml.cli.output import print_notes
from fairsaoml.evaluate.flags import left_out_words
from fairsaoml.evaluate.rule import MARKS, RULE

__all__ = ["print_rows", "print_summary"]

SHORT = 20  # letters of a column that is not wrapped
ONE_SIDED = 0.02  # a share of positive decisions below this, or above its complement, gets a note


def _cell(value: float | None) -> str:
    return MARKS["undefined"] if value is None else f"{value:.3f}"


def print_summary(summary: dict[str, Any]) -> None:
    """Print figures of the whole run and of the last rounds of each domain, then the verdict."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(escape(f"{summary['learner']} on {summary['stream']}"))
    bests = [(domain.get("best") or {}).get("fair_accuracy") for domain in summary["domains"]]
    titles = ("accuracy", "balanced", "DP ", "EO ", *(["best fair"] if any(bests) else []))
    for title in titles:
        table.add_column(title, justify="right")

    def ratio(value: float | None, pooled: dict[str, Any], notion: str) -> str:
        few = any(reason.startswith(notion) for reason in pooled.get("insufficient") or ())
        colour = "yellow" if value is not None and value < RULE and not few else "default"
        return f"[{colour}]{_cell(value)}[/]{MARKS['too few'] if few else ' '}"

    def add(name: str, block: dict[str, Any], best: float | None = None) -> None:
        pooled, windows = block["pooled"], block.get("windows") or block["pooled"]
        table.add_row(
            escape(name),  # a domain may be called [/north]
            _cell(pooled["accuracy"]),
            _cell(pooled["balanced_accuracy"]),
            ratio(windows["dp_ratio"], pooled, "dp"),
            ratio(windows["eo_ratio"], pooled, "eo"),
            *([_cell(best)] if any(bests) else []),
        )

    add("all rounds", summary["overall"])
    for domain, best in zip(summary["domains"], bests, strict=True):
        first, last = domain["last"]["rounds"]
        add(domain["name"] or f"last {last - first + 1}", domain["last"], best)
    console = Console()
    console.print(table)
    decided = summary["overall"]["pooled"]["positive_rate"]
    if decided is not None and not ONE_SIDED <= decided <= 1 - ONE_SIDED:
        console.print(
            f"{decided:.1%} of all decisions are positive. For rare or common labels, "
            "--decision balanced puts the threshold at the base rate.",
            style="yellow",
            highlight=False,
        )
    note = f"DP and EO: means of windows of ten rounds; 1 is fair, {RULE} is the 80 % rule"
    note += f"; {MARKS['too few']}: some group has few cases."
    print_notes([("Domains: their last ten rounds. " if len(bests) > 1 else "") + note])
    for attribute in (summary.get("verdict") or {"attributes": {}})["attributes"].values():
        style = {"fair": "green", "not fair": "yellow"}.get(attribute["answer"])
        console.print(attribute["sentence"], style=style, highlight=False, markup=False)
    for sentence in left_out_words(summary):
        console.print(sentence, style="yellow", highlight=False, markup=False)


def print_rows(titles: list[str], rows: list[list[str]]) -> None:
    """Print a plain table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, *cells in zip(titles, *rows, strict=True):
        # A name that is cut short cannot be typed; what is long is wrapped rather than what is not.
        short = max(map(len, [title, *cells])) <= SHORT
        table.add_column(title, overflow="fold", no_wrap=short)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
