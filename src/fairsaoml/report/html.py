"""The report of one run, or of several overlaid: one file that loads nothing from outside."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TypeVar

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.metrics import APART
from fairsaoml.report import tables
from fairsaoml.report.advice import advice
from fairsaoml.report.chart import Chart
from fairsaoml.report.cost import cost
from fairsaoml.report.figures import STYLES, Reach, inside, part, style
from fairsaoml.report.groups import (
    RateRow,
    calibration_chart,
    group_chances,
    group_mark,
    group_rates,
)
from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.page import asset, check_picture, page, write_page
from fairsaoml.report.progress import progress
from fairsaoml.report.reading import UNNAMED, Run, attributes_of, best_of, read_runs
from fairsaoml.report.words import headline, lead, listed, stream_title, who

__all__ = ["write_picture", "write_report"]

Group = TypeVar("Group")  # what is known of a group

WIDE, NARROW = 1032.0, 380.0  # drawing widths: a full page, a phone
HALF, THIRD = 500.0, 320.0  # small multiples, two or three beside one another
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
    return write_page(Path(out), _page(read_runs(folders)))


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


def _page(runs: Sequence[Run]) -> str:
    streams = _by_stream(runs)
    parts: list[str] = []
    for at, same in enumerate(streams):
        if len(streams) > 1:
            parts.append(element("h2", f"Stream {stream_title(same[0])}", class_="stream"))
        parts += _stream(same, f"s{at}")
    title = headline(runs)
    header = element("header", element("h1", title), element("p", lead(runs), class_="lead"))
    return page(
        f"{title}: {listed(list(dict.fromkeys(map(stream_title, runs))))}",
        asset("chart.css") + asset("page.css"),
        element("main", header, *parts, _record(runs)),
        element("script", Markup(asset("page.js"))),
    )


def _stream(runs: Sequence[Run], key: str) -> list[str]:
    """Everything about the runs on one stream, what matters most first."""
    alone = len(runs) == 1
    figures = [tables.summary_table(runs)]
    if any(block.adapted for run in runs for block in run.blocks):
        figures.append(element("h3", "With a few labels of the round"))
        figures.append(tables.summary_table(runs, adapted=True))
    counts = [
        part
        for attribute in attributes_of(runs)
        for part in (element("h2", f"Counts by {attribute}"), tables.group_table(runs, attribute))
    ]
    insides = _insides(runs, key)
    return [
        tables.verdict_table(runs),
        *_told("Who is worse off", runs, who),
        *_groups(runs),
        *_told("What fairness cost", runs, cost, framed=not alone),
        element("h2", "Over time"),
        _progress(runs, f"{key}-progress"),
        *_calibration(runs),
        *counts,
        *_told("What to do next", runs, lambda run: [_list(advice(run))]),
        _folded("All figures", *figures),
        _folded("What could not be measured", tables.troubles_table(runs)),
        *([_folded(f"Inside the learner{'' if alone else 's'}", *insides)] if insides else []),
    ]


def _told(
    title: str, runs: Sequence[Run], tell: Callable[[Run], list[Markup]], framed: bool = True
) -> list[Markup]:
    """What there is to say of each run, by the run's name where there are several."""
    parts = [element("h2", title)]
    for i, run in enumerate(runs):
        name = [element("h3", run.name)] if len(runs) > 1 else []
        class_ = f"told {style(i)}" if framed else None
        parts.append(element("section", *name, *tell(run), class_=class_))
    return parts


def _folded(title: str, *body: str) -> Markup:
    """A section that opens on a click, and in print."""
    return element("details", element("summary", element("h2", title)), *body)


def _list(items: Iterable[str], class_: str | None = None) -> Markup:
    return element("ul", *(element("li", item) for item in items), class_=class_)


def _calibration(runs: Sequence[Run]) -> list[Markup]:
    parts = []
    for attribute, run in product(attributes_of(runs), runs):
        groups = _known(group_chances(run, attribute))
        groups = {group: own for group, own in groups.items() if own.total[0]}
        if groups:
            which = "" if len(runs) == 1 else f", {run.name}"
            chart = element("figure", calibration_chart(attribute, groups, NARROW))
            body = element("div", chart, tables.chances_table(groups), class_="beside")
            heading = element("h2", f"Probabilities by {attribute}{which}")
            parts.append(element("section", heading, body))
    return parts


def _progress(runs: Sequence[Run], key: str) -> Markup:
    chart = progress(runs)
    caption = []
    if any(len(run.seeds) > 1 for run in runs):
        caption.append("Bands: from the lowest seed to the highest.")
    elif len(runs) == 1:
        caption.append("Bands: 95 % intervals.")
    together = -(-len({round for run in runs for round in run.rounds}) // len(chart.bins))
    if together > 1:
        caption.append(f"Each point is {together} rounds together: fewer say too little.")
    caption.append("A gap in a line is where a ratio is undefined.")
    legend = []
    for i, run in enumerate(runs):
        box: str = element("input", type="checkbox", checked="checked", class_=f"show-{i}")
        box = box if len(runs) <= STYLES else ""  # beyond that a style stands for several runs
        label = element("label", box, _sample(f"line {style(i)}"), run.name)
        legend.append(element("li", label, class_=style(i)))
    # What the bold, dashed and dotted lines mean, where the chart has no room to say it.
    strokes = [("rule", "asked for")]
    if best_of(runs):
        strokes += [("best", "best of any rule"), ("best fair", "best of a fair rule")]
    return element(
        "figure",
        element("figcaption", " ".join(caption)),
        element("ul", *legend, class_="key") if len(runs) > 1 else "",
        _strokes_key(strokes, "key tight narrow"),
        *_drawn(chart, WIDE, key),
        class_="progress",
        data_values=key,
    )


def _groups(runs: Sequence[Run]) -> list[str]:
    """The groups' rates at each domain's end, as marks on a line."""
    parts: list[str] = []
    decided = runs[0].asked.decided
    for attribute in attributes_of(runs):
        ends = [(i, run, b) for i, run in enumerate(runs) for b in run.blocks if b.end]
        domains = list(dict.fromkeys(block.domain for _, _, block in ends))
        rows = [
            RateRow(
                stretch=block.title if block.domain == UNNAMED else str(block.domain),
                name=run.name,
                style=style(i),
                groups=_known((block.figures.pooled.get("counts") or {}).get(attribute, {})),
            )
            for i, run, block in sorted(ends, key=lambda end: domains.index(end[2].domain))
        ]
        groups = dict.fromkeys(group for row in rows for group in row.groups)
        legend = [
            join(element("svg", group_mark(i), viewBox="-15 -6 30 12"), group)
            for i, group in enumerate(groups)
        ]
        where = ends[0][2].title if len(domains) == 1 else "The last rounds of each domain"
        caption = (
            f"{where}: the share of each group by {attribute}, of its positives and of its "
            f"negatives that was {decided}. Marks that overlap are equal treatment."
        )
        drawings = [
            element("div", group_rates(attribute, rows, decided, width, columns), class_=class_)
            for class_, width, columns in (("wide", WIDE, 3), ("narrow", NARROW, 1))
        ]
        key = _list(legend, "key neutral")
        parts.append(element("figure", element("figcaption", caption), key, *drawings))
    return parts


def _insides(runs: Sequence[Run], key: str) -> list[Markup]:
    reach = Reach.of(runs)
    seen = [(i, run) for i, run in enumerate(runs) if not run.sealed]
    width = {1: WIDE, 2: HALF}.get(len(seen), THIRD)
    sections = []
    for i, run in seen:
        chart = inside(run, reach)
        name = f"{key}-inside-{i}"
        body: list[str] = []
        if chart.panels:
            strokes = [(f"line {part(k)}", str(one)) for k, one in enumerate(run.constraints)]
            key_of = _strokes_key(strokes, "key tight") if strokes else ""
            body.append(element("figure", *_drawn(chart, width, name), key_of, data_values=name))
        if not run.constraints:
            body.append(element("p", "No constraint, so no dual and no violation.", class_="aside"))
        if body:
            sections.append(element("section", element("h3", run.name), *body, class_=style(i)))
    if not sections:
        return []
    return [
        element(
            "p",
            "There is one expert for each length of memory. Weight on short ones means that the "
            "data are changing, weight on long ones that they are stable. The dual is the price of "
            "breaking a constraint; a violation above 0 is a broken constraint, on the smooth "
            "measure used in training. Means over the seeds.",
            class_="aside",
        ),
        element("div", *sections, class_="multiples"),
    ]


def _record(runs: Sequence[Run]) -> Markup:
    """The settings, and the commands that repeat the runs."""
    commands = "\n".join(str(run.spec["command"]) for run in runs if run.spec.get("command"))
    words = element("p", "To repeat:", class_="aside")
    repeat = [words, element("pre", element("code", commands))] if commands else []
    return _folded("Settings and versions", *repeat, tables.settings_table(runs))


def _drawn(chart: Chart, width: float, key: str) -> list[str]:
    """The chart at the width of a page and of a phone, and the values under a pointer."""
    small = chart.draw(min(width, NARROW))
    drawings = [element("div", small, class_="any")]
    if width > NARROW:
        large = chart.draw(width, name_ends=True)
        drawings = [element("div", large, class_="wide"), element("div", small, class_="narrow")]
    # Inside a script only "<" could end the element, so none is written.
    values = json.dumps(chart.values(), separators=(",", ":")).replace("<", "\\u003c")
    return [*drawings, element("script", Markup(values), type="application/json", id=key)]


def _strokes_key(strokes: Sequence[tuple[str, str]], class_: str) -> Markup:
    """What lines mean, by their class."""
    return _list((join(_sample(kind), words) for kind, words in strokes), class_)


def _sample(class_: str) -> Markup:
    stroke = element("line", x1=0, x2=30, y1=6, y2=6, class_=class_)
    return element("svg", stroke, viewBox="0 0 30 12", aria_hidden="true")


def _known(groups: Mapping[str, Group]) -> dict[str, Group]:
    """The groups that were declared; rows of others are counted, but not compared."""
    return {name: group for name, group in groups.items() if name not in APART}


def _by_stream(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same stream with the same settings, in the order they were named."""
    streams: dict[str, list[Run]] = {}
    for run in runs:
        settings = run.source.get("settings") or {}
        streams.setdefault(run.stream + json.dumps(settings, sort_keys=True), []).append(run)
    return list(streams.values())
