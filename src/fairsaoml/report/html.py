"""The report of one run, or of several overlaid: one file that loads nothing from outside."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.rule import RULE
from fairsaoml.report.chart import Chart
from fairsaoml.report.figures import STYLES, Reach, inside, part, progress, style
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.page import asset, check_picture, page, write_page
from fairsaoml.report.rates import RateRow, group_mark, group_rates
from fairsaoml.report.reading import Run, best_of, read_runs
from fairsaoml.report.tables import (
    group_table,
    scoreboard,
    settings_table,
    summary_table,
    troubles_table,
)
from fairsaoml.report.words import conclusion, count, headline, last_rounds

__all__ = ["write_picture", "write_report"]

WIDE, NARROW = 1032.0, 380.0  # drawing widths: a full page, a phone
HALF, THIRD = 500.0, 320.0  # small multiples, two or three beside one another
PICTURE = 900.0

APART = ("not known", "unseen")  # as in `evaluate.metrics`, repeated here to avoid loading NumPy


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
    title = headline(runs)
    streams = _by_stream(runs)
    parts: list[str] = []
    for at, same in enumerate(streams):
        if len(streams) > 1:
            parts.append(element("h2", f"Stream {same[0].stream}", class_="stream"))
        parts += _stream(same, f"s{at}")
    header = element("header", element("h1", title), _lead(runs))
    return page(
        title,
        asset("chart.css") + asset("page.css"),
        element("main", header, *parts, *_record(runs)),
        element("script", Markup(asset("page.js"))),
    )


def _stream(runs: Sequence[Run], key: str) -> list[str]:
    """Everything about the runs on one stream."""
    conclusions = [element("li", conclusion(run), class_=style(i)) for i, run in enumerate(runs)]
    parts: list[str] = [element("ul", *conclusions, class_="verdicts")]
    parts.append(scoreboard(runs))
    parts += [element("h2", "Round by round"), _progress(runs, f"{key}-progress")]
    parts += _groups(runs)
    parts += _insides(runs, key)
    parts += _section(
        "Summary",
        "Large: counts pooled over the rounds and the seeds. Small: the mean over the rounds, "
        "then over the seeds, ± the standard deviation over the seeds; a mean skips the "
        "rounds in which a figure is undefined, and says how many.",
        summary_table(runs),
    )
    if any(block.adapted for run in runs for block in run.blocks):
        parts += _section(
            "With a few labels of the round",
            "The same after one pass on a labelled tenth of each round, scored on the rest.",
            summary_table(runs, adapted=True),
        )
    for attribute in _attributes(runs):
        parts += [element("h2", f"Counts by {attribute}"), group_table(runs, attribute)]
    parts += [element("h2", "What could not be measured"), troubles_table(runs)]
    return parts


def _section(title: str, words: str, body: Markup) -> list[Markup]:
    """A heading, a remark in small print, and what they are about."""
    return [element("h2", title), element("p", words, class_="aside"), body]


def _lead(runs: Sequence[Run]) -> Markup:
    longest = max(runs, key=lambda run: len(run.rounds))
    rounds = count(len(longest.rounds), "round")
    domains = f" in {count(len(longest.domains), 'domain')}" if len(longest.domains) > 1 else ""
    seeds = count(len(longest.seeds), "seed")
    return element(
        "p",
        f"{rounds}{domains}, {seeds}. Each round is scored with what was learned before it; only "
        "then does the learner learn from it. DP (demographic parity) and EO (equalized odds) "
        "compare how the groups are treated: the lowest rate divided by the highest. 1 is equal; "
        f"from {RULE} on, the 80 % rule is met.",
        class_="lead",
    )


def _progress(runs: Sequence[Run], key: str) -> Markup:
    chart = progress(runs, best_of(runs))
    caption = []
    if any(len(run.seeds) > 1 for run in runs):
        caption.append(
            "Lines: the mean over the seeds. Bands: from the lowest seed to the highest."
        )
    together = -(-len({round for run in runs for round in run.rounds}) // len(chart.xs))
    if together > 1:
        caption.append(f"Each point is the mean of {together} rounds.")
    caption.append("A gap in a line is a round in which the ratio is undefined.")
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
    parts: list[str] = []
    for attribute in _attributes(runs):
        blocks = [(i, run, block) for i, run in enumerate(runs) for block in run.blocks]
        ends_of = [entry for entry in blocks if entry[2].end]
        domains = dict.fromkeys(block.domain or "" for _, _, block in ends_of)
        rows = [
            RateRow(
                stretch=domain,
                name=run.name,
                style=style(i),
                groups=_seen((block.figures.pooled.get("counts") or {}).get(attribute, {})),
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
        parts += [
            element("h2", f"Treatment by {attribute}"),
            element(
                "figure",
                element(
                    "figcaption",
                    f"{last_rounds(runs)} of each domain, pooled: the share of each group, of its "
                    "positives and of its negatives that was selected. Overlapping marks mean "
                    "equal treatment.",
                ),
                element("ul", *legend, class_="key neutral"),
                element("div", group_rates(attribute, rows, WIDE, 3), class_="wide"),
                element("div", group_rates(attribute, rows, NARROW, 1), class_="narrow"),
            ),
        ]
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
    return _section(
        "Inside the learner" if len(seen) == 1 else "Inside the learners",
        "There is one expert for each length of interval. Weight on short intervals means that the "
        "data are changing, weight on long ones that they are stable. The dual is the price of "
        "breaking a constraint; a violation above 0 is a broken constraint, on the smooth measure "
        "used in training. Means over the seeds.",
        element("div", *sections, class_="multiples"),
    )


def _record(runs: Sequence[Run]) -> list[str]:
    """The settings, and the commands that repeat the runs."""
    commands = [str(run.spec["command"]) for run in runs if run.spec.get("command")]
    parts: list[str] = [element("h2", "Settings and versions")]
    if commands:
        parts.append(element("p", "To repeat:", class_="aside"))
        parts.append(element("pre", element("code", "\n".join(commands))))
    parts.append(settings_table(runs))
    return parts


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
    kinds = [("rule", "80 % rule")]
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


def _seen(groups: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """The groups that were declared; rows of others are counted, but not compared."""
    return {group: counts for group, counts in groups.items() if group not in APART}


def _attributes(runs: Sequence[Run]) -> list[str]:
    lines = (line for run in runs for line in run.lines)
    return list(dict.fromkeys(name for line in lines for name in line.get("counts") or {}))


def _by_stream(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same stream with the same settings, in the order they were named."""
    streams: dict[str, list[Run]] = {}
    for run in runs:
        settings = (run.spec.get("stream") or {}).get("settings") or {}
        streams.setdefault(run.stream + json.dumps(settings, sort_keys=True), []).append(run)
    return list(streams.values())
