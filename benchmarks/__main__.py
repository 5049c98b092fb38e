"""`python -m benchmarks [--full] [--only NAME ...]`: measure, print, and write for the docs."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.measure import Measured, Part, measured_here
from fairsaoml.files import write_json, write_text

MODULES = (
    "against_torch",
    "arithmetic",
    "default_arithmetic",
    "seeds",
    "horizon",
    "memory",
    "competitors",
    "start",
    "big_table",
    "fairlearn_refit",
    "refit",
    "throughput",
    "service",
    "size",
)

BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"  # around the table of a page


def main() -> int:
    """0 when everything asked for was measured; whether goals were reached is for the reader."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="more rounds, learners and peers")
    parser.add_argument("--only", nargs="+", choices=MODULES, default=MODULES, metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="puts its table into a page")
    asked = parser.parse_args()
    parts = []
    for part in measured(asked.only, asked.full):
        parts.append(part)
        show(part)
    if asked.json:
        write_json(asked.json, as_json(parts, asked.full))
    if asked.markdown:
        page = asked.markdown.read_text() if asked.markdown.exists() else f"{BEGIN}\n{END}\n"
        write_text(asked.markdown, with_table(page, as_markdown(parts)))
    return int(any(part.missing for part in parts))


def measured(names: Sequence[str], full: bool) -> Iterator[Part]:
    """Module after module, each in a new process: PyTorch, once loaded, slows what comes after."""
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            yield process.submit(measured_here, name, full).result()


def verdict(row: Measured) -> str:
    """In a word."""
    return "reached" if row.reached else "missed"


def show(part: Part) -> None:
    """A part's table."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if part.missing:
        console.print(f"{part.name}: not measured: {part.missing}", style="yellow", markup=False)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (f"{part.name}, {part.seconds:.0f} s", "measured", "goal", "", ""):
        table.add_column(title)
    for row in part.rows:
        style = "green" if row.reached else "red"
        word = f"[{style}]{verdict(row)}[/]"
        table.add_row(row.what, f"{row.ratio:.3g}", str(row.goal), word, row.detail)
    console.print(table)


def as_json(parts: Sequence[Part], full: bool) -> dict[str, Any]:
    """All of it as data."""
    return {
        "measured": datetime.now(UTC).date().isoformat(),
        "form": "full" if full else "quick",
        "parts": [
            {
                "name": part.name,
                "seconds": part.seconds,
                "missing": part.missing or None,
                "rows": [
                    {
                        "what": row.what,
                        "ratio": float(row.ratio),
                        "goal": str(row.goal),
                        "reached": bool(row.reached),
                        "detail": row.detail,
                    }
                    for row in part.rows
                ],
            }
            for part in parts
        ],
    }


def as_markdown(parts: Sequence[Part]) -> str:
    """The table of docs/benchmarks.md."""
    lines = ["| what | measured | goal | | |", "|---|---|---|---|---|"]
    for part in parts:
        if part.missing:
            lines.append(f"| {part.name} | not measured | | | {part.missing} |")
        for row in part.rows:
            cells = (row.what, f"{row.ratio:.3g}", str(row.goal), verdict(row), row.detail)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def with_table(page: str, table: str) -> str:
    """A page with another table between its marks.

    >>> with_table(f"Fast.\\n{BEGIN}\\nold\\n{END}\\n", "new\\n").splitlines()
    ['Fast.', '<!-- measured -->', '', 'new', '', '<!-- end of measured -->']
    """
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    sys.exit(main())
