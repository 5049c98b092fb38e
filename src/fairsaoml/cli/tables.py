"""Tables on stdout, made to fit a narrow window."""

from typing import Any

from rich.console import Console
from rich.table import Table

from fairsaoml.cli.output import print_notes
from fairsaoml.evaluate.rule import RULE, verdict

__all__ = ["print_rows", "print_summary"]

ONE_SIDED = 0.02  # a share of positive decisions below this, or above its complement, gets a note


def _cell(value: float | None, ratio: bool = False) -> str:
    if value is None:
        return "-"
    missed = ratio and verdict(value) == "missed"
    return f"[yellow]{value:.3f}[/]" if missed else f"{value:.3f}"


def print_summary(summary: dict[str, Any]) -> None:
    """Print figures of the whole run and of the last rounds of each domain, then the verdict."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"{summary['learner']} on {summary['stream']}")
    for title in ("accuracy", "balanced", "DP", "EO", "best fair"):
        table.add_column(title, justify="right")

    def add(name: str, block: dict[str, Any], best: float | None = None) -> None:
        pooled, windows = block["pooled"], block.get("windows") or block["pooled"]
        table.add_row(
            name,
            _cell(pooled["accuracy"]),
            _cell(pooled["balanced_accuracy"]),
            _cell(windows["dp_ratio"], ratio=True),
            _cell(windows["eo_ratio"], ratio=True),
            _cell(best),
        )

    add("all rounds", summary["overall"])
    for domain in summary["domains"]:
        best = (domain.get("best") or {}).get("fair_accuracy")
        add(domain["name"] or "last ten", domain["last"], best)
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
    note = "Domains: their last ten rounds. DP and EO: means of windows of ten rounds; "
    print_notes([note + f"1 is fair, {RULE} is the 80 % rule."])
    for attribute in (summary.get("verdict") or {"attributes": {}})["attributes"].values():
        style = {"fair": "green", "not fair": "yellow"}.get(attribute["answer"])
        console.print(attribute["sentence"], style=style, highlight=False)


def print_rows(titles: list[str], rows: list[list[str]]) -> None:
    """Print a plain table."""
    table = Table(*titles, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
