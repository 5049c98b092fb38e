"""The report of one run, or of several overlaid: one file that loads nothing from outside."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.rule import RULE, ratio_words
from fairsaoml.evaluate.verdict import ANSWERS
from fairsaoml.report import groups, tables, words
from fairsaoml.report.advice import advice
from fairsaoml.report.chart import Chart
from fairsaoml.report.cost import cost
from fairsaoml.report.figures import STYLES, Reach, inside, part, style
from fairsaoml.report.markup import Markup, asset, check_picture, render, write_page
from fairsaoml.report.progress import progress
from fairsaoml.report.reading import Run, attributes_of, best_of, read_runs

__all__ = ["write_picture", "write_report"]

# Drawing widths: a full page, a phone; small multiples, two or three beside one another.
WIDTHS = {"WIDE": 1032.0, "NARROW": 380.0, "HALF": 500.0, "THIRD": 320.0}
PICTURE = 900.0


def write_report(folders: Sequence[Path], out: Path) -> Path:
    """Write the report of some runs as one self-contained HTML file.

    Args:
        folders: of runs, one or several to overlay.
        out: the HTML file.

    Returns:
        The same file.

    Raises:
        RunError: a folder that holds no run, or a damaged one.
    """
    runs = read_runs(folders)
    return write_page(Path(out), render("report.html", runs=runs, streams=_by_stream(runs), **PAGE))


def write_picture(folders: Sequence[Path], out: Path) -> Path:
    """Write DP, EO and accuracy by round as one self-contained SVG file.

    Args:
        folders: of runs of one stream.
        out: the file, named *.svg.

    Returns:
        The same file.

    Raises:
        RunError: another name, runs of several streams, or a folder that holds no run.
    """
    check_picture(Path(out))
    runs = read_runs(folders)
    if len(streams := _by_stream(runs)) > 1:
        names = ", ".join(sorted({same[0].stream for same in streams}))
        raise RunError(
            f"expected runs of one stream in one picture, got {len(streams)} ({names}); "
            "draw each stream's runs separately"
        )
    drawn = progress(runs).draw(PICTURE, name_ends=True, alone=asset("chart.css"))
    return write_page(Path(out), drawn + "\n")


def _insides(runs: Sequence[Run]) -> list[tuple[int, Run, Chart]]:
    """The learners of which something is to be seen, each with its place among the runs."""
    reach = Reach.of(runs)
    charts = [(i, run, inside(run, reach)) for i, run in enumerate(runs) if not run.sealed]
    return [(i, run, chart) for i, run, chart in charts if chart.panels or not run.constraints]


def _constraint_strokes(run: Run) -> list[tuple[str, str]]:
    return [(f"line {part(k)}", str(name)) for k, name in enumerate(run.constraints)]


def _as_script(values: Any) -> Markup:
    """JSON inside a script: there only "<" could end the element, so none is written."""
    return Markup(json.dumps(values, separators=(",", ":")).replace("<", "\\u003c"))


def _by_stream(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same stream with the same settings, in the order they were named."""
    streams: dict[str, list[Run]] = {}
    for run in runs:
        settings = run.source.get("settings") or {}
        streams.setdefault(run.stream + json.dumps(settings, sort_keys=True), []).append(run)
    return list(streams.values())


PAGE = (  # what the template calls
    {name: getattr(module, name) for module in (groups, tables, words) for name in module.__all__}
    | {
        one.__name__: one
        for one in (advice, attributes_of, best_of, cost, progress, ratio_words, style)
    }
    | {"as_script": _as_script, "constraint_strokes": _constraint_strokes, "insides": _insides}
    | {"ANSWERS": ANSWERS, "RULE": RULE, "STYLES": STYLES, **WIDTHS}
)
