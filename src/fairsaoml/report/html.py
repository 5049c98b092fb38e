"""The report of one run, or of several overlaid: one file that loads nothing from outside."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate import flags, metrics, rule, verdict
from fairsaoml.report import changes, figures, groups, reading, words
from fairsaoml.report.markup import asset, check_picture, render, write_page
from fairsaoml.report.reading import Run, read_runs
from fairsaoml.report.svg import Frame, tick_words

ROWS, SUCH = re.compile(r"\b(\d+) rows"), ", such as "  # in what is said of a round's rows
MOST_FEATURES = 24  # named; the rest is counted
BAR_FRAME = (12.0, 2.0, 196.0, 18.0)  # of an interval's bar: left, top, width, height
PICTURE = 900.0  # the width of a drawing that stands alone


def judged_first(run: Run) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return attribute, notion and verdict of each notion by each attribute."""
    judged = run.asked.judged
    return [
        (attribute, key, entry["notions"][key])
        for attribute, entry in run.verdict["attributes"].items()
        for key in sorted(entry["notions"], key=lambda key: key not in judged)
        if key in judged or key != "eop"  # half of equalized odds
    ]


def interval_axis(runs: Sequence[Run]) -> tuple[Frame, list[tuple[float, str]]]:
    """Return the frame of every interval's bar, from the lowest end in tenths to 1; its ticks."""
    lows = [entry["low"] for run in runs for *_, entry in judged_first(run)]
    least = math.floor(10 * min([*lows, 0.7])) / 10
    return Frame(*BAR_FRAME, x_range=(least, 1.0)), tick_words(least, 1.0, 4)


def counted(run: Run, key: str) -> list[tuple[str, int]]:
    """Return what a run's lines say under a key, and how often; rows in it are of all rounds.

    >>> from types import SimpleNamespace as Fake
    >>> said = [{"warnings": ["3 rows are odd, such as 'a'"]}, {"warnings": ["4 rows are odd"]}]
    >>> counted(Fake(lines=said, seeds=[0]), "warnings")
    [("7 rows are odd, such as 'a'", 2)]
    """
    kinds: dict[str, list[str]] = {}
    for item in (_words(item) for line in run.lines for item in line.get(key) or []):
        kinds.setdefault(ROWS.sub("", item.split(SUCH)[0]), []).append(item)
    counts: Counter[str] = Counter()
    for said in kinds.values():
        rows = sum(int(found[1]) for item in said if (found := ROWS.search(item)))
        counts[ROWS.sub(f"{rows // len(run.seeds)} rows", said[0], count=1)] = len(said)
    return counts.most_common()


def settings_of(runs: Sequence[Run]) -> list[dict[str, list[str]]]:
    """Return the content of `spec.json` in sections: of each key the value for every run."""
    return [
        {key: [own.get(key, "") for own in same] for key in dict.fromkeys(chain(*same))}
        for same in zip(*map(_sections, runs), strict=True)
    ]


def _sections(run: Run) -> list[dict[str, str]]:
    """The settings of learner, stream and run as readable keys and values."""
    spec, stream = run.spec, run.source
    features = stream.get("features") or []
    if len(features) > MOST_FEATURES:
        features = [*features[:MOST_FEATURES], f"and {len(features) - MOST_FEATURES} more"]
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
            "features": features,
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
    drawn = figures.progress(runs).draw(PICTURE, name_ends=True, alone=asset("chart.css"))
    return write_page(Path(out), drawn)


def _by_stream(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same stream with the same settings, in the order they were named."""
    streams: dict[str, list[Run]] = {}
    for run in runs:
        settings = run.source.get("settings") or {}
        streams.setdefault(run.stream + json.dumps(settings, sort_keys=True), []).append(run)
    return list(streams.values())


# The templates call by name what these modules have (of equal names the last one's), and this one.
MODULES = (metrics, flags, rule, verdict, reading, changes, figures, words, groups)
PAGE = {name: value for module in MODULES for name, value in vars(module).items()}
for function in (interval_axis, judged_first, settings_of, counted):
    PAGE[function.__name__] = function
