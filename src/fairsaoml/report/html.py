"""The report of one run, or of several overlaid: one file that loads nothing from outside."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.shares import APART
from fairsaoml.report.advice import advice
from fairsaoml.report.calibration import calibration_chart, group_chances
from fairsaoml.report.chart import Chart
from fairsaoml.report.cost import cost
from fairsaoml.report.figures import STYLES, Reach, inside, part, style
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.page import asset, check_picture, page, write_page
from fairsaoml.report.progress import progress
from fairsaoml.report.rates import RateRow, group_mark, group_rates
from fairsaoml.report.reading import UNNAMED, Run, attributes_of, best_of, read_runs
from fairsaoml.report.tables import (
    chances_table,
    group_table,
    settings_table,
    summary_table,
    troubles_table,
    verdict_table,
)
from fairsaoml.report.words import (
    headline,
    lead,
    listed,
    stream_title,
    who,
)

__all__ = ["write_picture", "write_report"]

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
    chart = progress(runs, best_of(runs))
    drawn = chart.draw(PICTURE, name_ends=True, alone=asset("chart.css"))
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
        element("main", header, *parts, *_record(runs)),
        element("script", Markup(asset("page.js"))),
    )


def _stream(runs: Sequence[Run], key: str) -> list[str]:
    """Everything about the runs on one stream, what matters most first."""
    alone = len(runs) == 1
    parts: list[str] = [verdict_table(runs)]
    parts.append(element("h2", "Who is worse off"))
    for i, run in enumerate(runs):
        words = [] if alone else [element("h3", run.name)]
        parts.append(element("section", *words, *who(run), class_=f"told {style(i)}"))
    parts += _groups(runs)
    parts.append(element("h2", "What fairness cost"))
    for i, run in enumerate(runs):
        name = [] if alone else [element("h3", run.name)]
        parts.append(
            element("section", *name, *cost(run), class_=None if alone else f"told {style(i)}")
        )
    parts += [element("h2", "Over time"), _progress(runs, f"{key}-progress")]
    parts += _calibration(runs)
    for attribute in attributes_of(runs):
        parts += [element("h2", f"Counts by {attribute}"), group_table(runs, attribute)]
    parts.append(element("h2", "What to do next"))
    for i, run in enumerate(runs):
        words = [] if alone else [element("h3", run.name)]
        items = [element("li", words) for words in advice(run)]
        parts.append(element("section", *words, element("ul", *items), class_=f"told {style(i)}"))
    parts.append(_folded("All figures", *_figures(runs)))
    parts.append(_folded("What could not be measured", troubles_table(runs)))
    insides = _insides(runs, key)
    if insides:
        parts.append(_folded("Inside the learner" if alone else "Inside the learners", *insides))
    return parts


def _folded(title: str, *body: str) -> Markup:
    """A section that opens on a click, and in print."""
    return element("details", element("summary", element("h2", title)), *body)


def _figures(runs: Sequence[Run]) -> list[str]:
    parts: list[str] = [summary_table(runs)]
    if any(block.adapted for run in runs for block in run.blocks):
        parts.append(element("h3", "With a few labels of the round"))
        parts.append(summary_table(runs, adapted=True))
    return parts


def _calibration(runs: Sequence[Run]) -> list[str]:
    parts: list[str] = []
    for attribute in attributes_of(runs):
        for run in runs:
            groups = {
                group: own
                for group, own in group_chances(run, attribute).items()
                if group not in APART and own.total[0]
            }
            if groups:
                heading = f"Probabilities by {attribute}"
                parts.append(
                    element(
                        "section",
                        element("h2", heading if len(runs) == 1 else f"{heading}, {run.name}"),
                        element(
                            "div",
                            element("figure", calibration_chart(attribute, groups, NARROW)),
                            chances_table(groups),
                            class_="beside",
                        ),
                    )
                )
    return parts


def _progress(runs: Sequence[Run], key: str) -> Markup:
    chart = progress(runs, best_of(runs))
    caption = []
    if any(len(run.seeds) > 1 for run in runs):
        caption.append("Bands: from the lowest seed to the highest.")
    elif len(runs) == 1:
        caption.append("Bands: 95 % intervals.")
    together = -(-len({round for run in runs for round in run.rounds}) // len(chart.xs))
    if together > 1:
        caption.append(f"Each point is {together} rounds together: fewer say too little.")
    caption.append("A gap in a line is where a ratio is undefined.")
    legend = [
        element(
            "li",
            element(
                "label",
                element("input", type="checkbox", checked="checked", class_=f"show-{i}")
                if len(runs) <= STYLES  # beyond that a style stands for several runs
                else "",
                _sample(f"line {style(i)}"),
                run.name,
            ),
            class_=style(i),
        )
        for i, run in enumerate(runs)
    ]
    return element(
        "figure",
        element("figcaption", " ".join(caption)),
        element("ul", *legend, class_="key") if len(runs) > 1 else "",
        _strokes_key(bool(best_of(runs))),
        *_drawn(chart, WIDE, key),
        class_="progress",
        data_values=key,
    )


def _groups(runs: Sequence[Run]) -> list[str]:
    """The groups' rates at each domain's end, as marks on a line."""
    parts: list[str] = []
    decided = runs[0].asked.decided
    for attribute in attributes_of(runs):
        blocks = [(i, run, block) for i, run in enumerate(runs) for block in run.blocks]
        ends_of = [entry for entry in blocks if entry[2].end]
        domains = dict.fromkeys(block.domain or "" for _, _, block in ends_of)
        rows = [
            RateRow(
                stretch=block.title if domain == UNNAMED else domain,
                name=run.name,
                style=style(i),
                groups=_known((block.figures.pooled.get("counts") or {}).get(attribute, {})),
            )
            for domain in domains
            for i, run, block in ends_of
            if block.domain == domain
        ]
        groups = list(dict.fromkeys(group for row in rows for group in row.groups))
        legend = [
            element("li", element("svg", group_mark(i), viewBox="-15 -6 30 12"), group)
            for i, group in enumerate(groups)
        ]
        where = ends_of[0][2].title if len(domains) == 1 else "The last rounds of each domain"
        parts.append(
            element(
                "figure",
                element(
                    "figcaption",
                    f"{where}: the share of each group by {attribute}, of its positives and of its "
                    f"negatives that was {decided}. Marks that overlap are equal treatment.",
                ),
                element("ul", *legend, class_="key neutral"),
                element("div", group_rates(attribute, rows, decided, WIDE, 3), class_="wide"),
                element("div", group_rates(attribute, rows, decided, NARROW, 1), class_="narrow"),
            )
        )
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
            figure = [*_drawn(chart, width, name), _constraints_key(run)]
            body.append(element("figure", *figure, data_values=name))
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


def _record(runs: Sequence[Run]) -> list[Markup]:
    """The settings, and the commands that repeat the runs."""
    commands = [str(run.spec["command"]) for run in runs if run.spec.get("command")]
    repeat = []
    if commands:
        repeat = [element("p", "To repeat:", class_="aside")]
        repeat.append(element("pre", element("code", "\n".join(commands))))
    return [_folded("Settings and versions", *repeat, settings_table(runs))]


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


def _strokes_key(best: bool) -> Markup:
    """What the bold, dashed and dotted lines mean, where the chart has no room to say it."""
    kinds = [("rule", "asked for")]
    if best:
        kinds += [("best", "best of any rule"), ("best fair", "best of a fair rule")]
    items = [element("li", _sample(class_), words) for class_, words in kinds]
    return element("ul", *items, class_="key tight narrow")


def _constraints_key(run: Run) -> str:
    names = enumerate(run.constraints)
    items = [element("li", _sample(f"line {part(i)}"), str(name)) for i, name in names]
    return element("ul", *items, class_="key tight") if items else ""


def _sample(class_: str) -> Markup:
    stroke = element("line", x1=0, x2=30, y1=6, y2=6, class_=class_)
    return element("svg", stroke, viewBox="0 0 30 12", aria_hidden="true")


def _known(groups: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """The groups that were declared; rows of others are counted, but not compared."""
    return {group: counts for group, counts in groups.items() if group not in APART}


def _by_stream(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same stream with the same settings, in the order they were named."""
    streams: dict[str, list[Run]] = {}
    for run in runs:
        settings = (run.spec.get("stream") or {}).get("settings") or {}
        streams.setdefault(run.stream + json.dumps(settings, sort_keys=True), []).append(run)
    return list(streams.values())
