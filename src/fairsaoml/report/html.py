"""The report of one run, or of several overlaid: one file that loads nothing from outside."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from markupsafe import Markup

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.flags import new_groups_words
from fairsaoml.evaluate.rule import RULE, ratio_words
from fairsaoml.evaluate.verdict import ANSWERS, NOTIONS, averaged_out
from fairsaoml.report import advice, groups, words
from fairsaoml.report.changes import changes
from fairsaoml.report.chart import Chart
from fairsaoml.report.figures import STYLES, Reach, inside, part, style
from fairsaoml.report.markup import asset, check_picture, render, write_page
from fairsaoml.report.progress import progress
from fairsaoml.report.reading import Block, Run, attributes_of, best_of, read_runs
from fairsaoml.report.svg import Frame, tick_words, ticks

ROWS, SUCH = re.compile(r"\b(\d+) rows"), ", such as "  # in what is said of a round's rows
MEASURES = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "positive_rate": "Positive rate",
    "dp_ratio": "DP",
    "dp_difference": "DP difference",
    "eo_ratio": "EO",
    "eo_ratio_tpr": "TPR ratio",
    "eo_ratio_fpr": "FPR ratio",
}
MOST_FEATURES = 24  # named; the rest is counted
MOST_TROUBLES = 8  # kinds listed for each run; the rest is counted
TROUBLES = {"Undefined": "undefined", "Few cases": "insufficient", "Warning": "warnings"}
BAR_FRAME = (12.0, 2.0, 196.0, 18.0)  # of an interval's bar: left, top, width, height

# Drawing widths: a full page, a phone; small multiples, two or three beside one another.
WIDTHS = {"WIDE": 1032.0, "NARROW": 380.0, "HALF": 500.0, "THIRD": 320.0}
PICTURE = 900.0


def judged_first(run: Run) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return attribute, notion and verdict of each notion by each attribute."""
    return [
        (attribute, key, entry)
        for attribute, by_notion in run.verdict["attributes"].items()
        for key, entry in sorted(
            by_notion["notions"].items(), key=lambda pair: pair[0] not in run.asked.judged
        )
        if key in run.asked.judged or key != "eop"  # half of equalized odds
    ]


def least_shown(runs: Sequence[Run]) -> float:
    """Return where the bars of all intervals begin: at the lowest end of any, in tenths."""
    lows = [entry["low"] for run in runs for *_, entry in judged_first(run)]
    return math.floor(10 * min([*lows, 0.7])) / 10


def bar_frame(least: float) -> Frame:
    """Return where an interval's bar is drawn, on a line from `least` to 1."""
    return Frame(*BAR_FRAME, x_range=(least, 1.0))


def bar_ticks(least: float) -> list[tuple[float, str]]:
    """Return the numbers above such bars."""
    return tick_words(ticks(least, 1.0, 4))


def aligned(
    runs: Sequence[Run], whole: bool = True, all_rounds: bool = True
) -> list[tuple[str, list[tuple[int, Block]]]]:
    """Return the runs' stretches of rounds by title: domains' ends, whole domains, all rounds.

    Over several domains counts are not pooled: gaps in opposite directions would cancel.
    """
    aligned: dict[str, list[tuple[int, Block]]] = {}
    for i, run in enumerate(runs):
        for block in run.blocks:
            if block.end or (all_rounds if block.domain is None else whole):
                aligned.setdefault(block.title, []).append((i, block))
    return list(aligned.items())


def troubles_of(runs: Sequence[Run]) -> list[tuple[int, str, str, str]]:
    """Return what was undefined, rests on few rows or was warned of: run, kind, what, how often."""
    rows = []
    for i, run in enumerate(runs):
        for kind, key in TROUBLES.items():
            counts = _counted(run.lines, key, len(run.seeds)).most_common()
            most, rest = counts[:MOST_TROUBLES], counts[MOST_TROUBLES:]
            said = [(words, f"{times:,} of {len(run.lines):,}") for words, times in most]
            if rest:
                said.append((f"{len(rest)} other kinds", f"{sum(n for _, n in rest):,}"))
            rows += [(i, kind, words, times) for words, times in said]
    return rows


def _counted(lines: Sequence[Mapping[str, Any]], key: str, seeds: int) -> Counter[str]:
    """How often each thing was said; rows that were counted in it are those of all rounds.

    >>> said = [{"warnings": ["3 rows are odd, such as 'a'"]}, {"warnings": ["4 rows are odd"]}]
    >>> _counted(said, "warnings", seeds=1)
    Counter({"7 rows are odd, such as 'a'": 2})
    """
    kinds: dict[str, list[str]] = {}
    for item in (_words(item) for line in lines for item in line.get(key) or []):
        kinds.setdefault(ROWS.sub("", item.split(SUCH)[0]), []).append(item)
    counts: Counter[str] = Counter()
    for said in kinds.values():
        rows = sum(int(found[1]) for item in said if (found := ROWS.search(item)))
        counts[ROWS.sub(f"{rows // seeds} rows", said[0], count=1)] = len(said)
    return counts


def settings_of(runs: Sequence[Run]) -> list[dict[str, list[str]]]:
    """Return the content of `spec.json` in sections: of each key the value for every run."""
    return [
        {
            key: [own.get(key, "") for own in same]
            for key in dict.fromkeys(k for o in same for k in o)
        }
        for same in zip(*map(_sections, runs), strict=True)
    ]


def _sections(run: Run) -> list[dict[str, str]]:
    """The settings of learner, stream and run as readable keys and values."""
    spec, stream = run.spec, run.source
    features = stream.get("features") or []
    rest = [f"and {len(features) - MOST_FEATURES} more"] if len(features) > MOST_FEATURES else []
    seconds = [line["seconds"] for line in run.lines if line.get("seconds") is not None]
    sections: list[dict[str, Any]] = [
        {
            "learner": run.learner or None,
            **{key: _words(value) for key, value in run.config.items()},
            "constraints in use": spec.get("constraints"),
        },
        {
            "stream": stream.get("name"),
            **(stream.get("settings") or {}),
            **{f"protected: {a['name']}": a["levels"] for a in stream.get("attributes") or []},
            "features": [*features[:MOST_FEATURES], *rest],
            "notes": stream.get("notes"),
        },
        {
            "seeds": spec.get("seeds"),
            **{f"version of {key}": value for key, value in (spec.get("versions") or {}).items()},
            "seconds a round and seed": f"{fmean(seconds):.3g}" if seconds else None,
        },
    ]
    return [
        {key: _words(value) for key, value in section.items() if value not in (None, [], {})}
        for section in sections
    ]


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, str | int | float) for v in value):
        return ", ".join(map(str, value))
    return "none" if value is None else json.dumps(value)


def write_report(folders: Path | str | Sequence[Path], out: Path | str) -> Path:
    """Write the report of some runs as one self-contained HTML file.

    Args:
        folders: a run's, or several to overlay.
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
    return write_page(Path(out), drawn)


def insides(runs: Sequence[Run]) -> list[tuple[int, Run, Chart]]:
    """Return the learners of which something is to be seen, each with its place among the runs."""
    reach = Reach.of(runs)
    charts = [(i, run, inside(run, reach)) for i, run in enumerate(runs) if not run.sealed]
    return [(i, run, chart) for i, run, chart in charts if chart.panels or not run.constraints]


def constraint_strokes(run: Run) -> list[tuple[str, str]]:
    """Return a constraint's line and its name, of each."""
    return [(f"line {part(k)}", str(name)) for k, name in enumerate(run.constraints)]


def as_script(values: Any) -> Markup:
    """Return JSON inside a script: there only "<" could end the element, so none is written."""
    return Markup(json.dumps(values, separators=(",", ":")).replace("<", "\\u003c"))


def _by_stream(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same stream with the same settings, in the order they were named."""
    streams: dict[str, list[Run]] = {}
    for run in runs:
        settings = run.source.get("settings") or {}
        streams.setdefault(run.stream + json.dumps(settings, sort_keys=True), []).append(run)
    return list(streams.values())


CALLED = (  # by the templates, besides the functions of the modules below
    *(attributes_of, averaged_out, best_of, changes, new_groups_words),
    *(progress, ratio_words, style),
    *(aligned, as_script, bar_frame, bar_ticks, constraint_strokes, insides, judged_first),
    *(least_shown, settings_of, troubles_of),
)
PAGE = {
    **{name: vars(module)[name] for module in (advice, groups, words) for name in module.__all__},
    **{function.__name__: function for function in CALLED},
    "ANSWERS": ANSWERS,
    "NOTIONS": NOTIONS,
    "MEASURES": MEASURES,
    "RULE": RULE,
    "STYLES": STYLES,
    **WIDTHS,
}
