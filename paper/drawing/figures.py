"""The figures of the paper: intervals of time, and learners by round on several streams."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from fairsaoml.core import intervals
from fairsaoml.evaluate.rule import RULE
from fairsaoml.report.chart import AXIS, DOMAINS, TITLE, Chart, Curve, Panel
from fairsaoml.report.chart import BETWEEN as GAP
from fairsaoml.report.figures import Reach, inside
from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.reading import Run
from fairsaoml.report.svg import BOLD, LETTER, Frame, drawing, extent, text, ticks
from paper.drawing.strokes import Stroke, smoothed, stacked, strokes

__all__ = ["Column", "Line", "by_round", "geometric_cover"]

CELL, ROW, BAR = 38.0, 42.0, 26.0  # a round's width, a level's height, an interval's
NAMES = 120.0  # left of the intervals
WIDE_ENOUGH = 30.0  # a bar that its interval can be written on

COLUMN, BETWEEN = 350.0, 26.0  # a stream's panels, and the room to the next
PANEL = 132.0
LEGEND_ROW, SAMPLE = 20.0, 30.0
HEADING = 26.0
STYLES = 10  # lines that can be told apart, in chart.css and paper.css
HEADROOM = 0.01
WEIGHTS = "Weight of each expert"  # the panel among those of `inside`


def geometric_cover(*, horizon: int, base: int, round: int, alone: str | None = None) -> Markup:
    """All intervals up to a horizon, level by level; those that start at `round` are marked."""
    levels = intervals.cover(horizon, base)
    chosen = intervals.starts(round, base, len(levels))
    width = NAMES + CELL * horizon
    frame = Frame(NAMES, 26, CELL * horizon, ROW * len(levels), (0.5, horizon + 0.5), (0, 1))
    parts = []
    now = frame.x(round - 0.5)
    parts.append(
        element("line", x1=now, x2=now, y1=frame.top - 6, y2=frame.bottom + 4, class_="now")
    )
    parts.append(
        text(
            now + 5, frame.top - 12, f"C_{round}: the intervals that start in round {round}", "note"
        )
    )
    for level, spans in enumerate(levels):
        y = frame.top + ROW * level + (ROW - BAR) / 2
        length = base**level
        words = f"k = {level}: {length} round{'s' * (length > 1)}"
        parts.append(text(0, y + BAR / 2 + 4, words, "row"))
        for first, last in spans:
            marked = first == round and level in chosen
            left, right = frame.x(first - 0.5) + 1.5, frame.x(last + 0.5) - 1.5
            state = " chosen" * marked
            parts.append(
                element(
                    "rect",
                    x=left,
                    y=y,
                    width=right - left,
                    height=BAR,
                    rx=4,
                    class_="span" + state,
                )
            )
            if right - left >= WIDE_ENOUGH:
                name = f"[{first},{last}]" if last > first or marked else str(first)
                parts.append(
                    text((left + right) / 2, y + BAR / 2 + 4, name, "on" + state, "middle")
                )
    for t in range(1, horizon + 1):
        parts.append(text(frame.x(t), frame.bottom + 20, str(t), anchor="middle"))
    parts.append(text(0, frame.bottom + 20, "round", "note"))
    named = ", ".join(
        "[{}, {}]".format(*intervals.interval(round, level, base, horizon)) for level in chosen
    )
    return drawing(
        width,
        frame.bottom + 30,
        f"Intervals of the adaptive geometric cover up to round {horizon}",
        f"{len(levels)} levels; the target set C_{round} is {named}.",
        *parts,
        class_="chart",
        alone=alone,
    )


class Line(NamedTuple):
    """A learner in a figure: its name, its run on a stream, whether it stands in front."""

    name: str
    run: Run
    front: bool


class Column(NamedTuple):
    """A stream and its lines; whose weights are shown below, if anyone's."""

    stream: str
    lines: Sequence[Line]
    weights: Run | None = None


def by_round(title: str, columns: Sequence[Column], alone: str | None = None) -> Markup:
    """DP, EO and accuracy by round, a column of panels for each stream, one legend for all."""
    names = [(line.name, line.front) for line in columns[0].lines]
    width = len(columns) * COLUMN + (len(columns) - 1) * BETWEEN
    legend, top = _legend(names, width)
    parts, bottom = [legend], 0.0
    lowest = _lowest(columns)
    for at, column in enumerate(columns):
        left = at * (COLUMN + BETWEEN)
        chart = _chart(column, lowest)
        height = DOMAINS + AXIS + sum(TITLE + panel.height for panel in chart.panels)
        height += GAP * (len(chart.panels) - 1)
        parts.append(text(left, top + 16, column.stream, "heading"))
        parts.append(
            # A drawing inside a drawing takes the size of its frame.
            element(
                "svg",
                chart.draw(COLUMN),
                x=left,
                y=top + HEADING,
                width=COLUMN,
                height=height,
            )
        )
        bottom = max(bottom, top + HEADING + height)
    who = ", ".join(name for name, _ in names)
    return drawing(
        width,
        bottom,
        title,
        f"Lines for {who} on {', '.join(column.stream for column in columns)}. The tables give "
        "the numbers.",
        *parts,
        class_="chart",
        alone=alone,
    )


def _chart(column: Column, lowest: float) -> Chart:
    """A stream's panels, one below the other; ratios from `lowest` to 1."""
    runs = [line.run for line in column.lines]
    longest = max(runs, key=lambda run: len(run.rounds))
    xs = list(longest.rounds)

    def drawn(key: str) -> list[Stroke]:
        return [
            Stroke(Curve(line.name, f"hue-{at % STYLES}", smoothed(line.run, key)), line.front)
            for at, line in enumerate(column.lines)
        ]

    panels = [
        _ratio("DP", drawn("dp_ratio"), xs, lowest),
        _ratio("EO", drawn("eo_ratio"), xs, lowest),
        _accuracy(drawn("accuracy"), xs),
    ]
    if column.weights is not None:
        panels += _weights(column.weights)
    return Chart(
        title=f"DP, EO and accuracy by round on {column.stream}",
        description="Drawn in the figure around it.",
        xs=xs,
        domains=longest.domains,
        panels=panels,
    )


def _lowest(columns: Sequence[Column]) -> float:
    """Where the axes of all ratios begin: a fifth below every line, and below the rule."""
    runs = [line.run for column in columns for line in column.lines]
    values = [smoothed(run, key).mean for run in runs for key in ("dp_ratio", "eo_ratio")]
    low, _ = extent(value for found in values for value in found) or (0.0, 1.0)
    return min(int(low * 5) / 5, 0.6)


def _ratio(title: str, found: Sequence[Stroke], xs: Sequence[float], lowest: float) -> Panel:
    def marks(frame: Frame) -> Markup:
        y = frame.y(RULE)
        rule = element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="rule")
        return join(rule, strokes(frame, xs, found))

    return Panel(
        title=title,
        note="",
        height=PANEL,
        y_range=(lowest, 1),
        y_ticks=[(value, f"{value:.1f}") for value in ticks(lowest, 1, 5)],
        marks=marks,
        curves=[one.curve for one in found],
    )


def _accuracy(found: Sequence[Stroke], xs: Sequence[float]) -> Panel:
    shown = [one.curve.values.mean for one in found]
    for one in found:
        shown += [one.curve.values.low, one.curve.values.high] if one.front else []
    reach = extent(value for values in shown for value in values) or (0.5, 1.0)
    low, high = reach[0] - HEADROOM, reach[1] + HEADROOM
    return Panel(
        title="Accuracy",
        note="",
        height=PANEL,
        y_range=(low, high),
        y_ticks=[(value, f"{value:.2f}".rstrip("0")) for value in ticks(low, high, 4)],
        marks=lambda frame: strokes(frame, xs, found),
        curves=[one.curve for one in found],
    )


def _weights(run: Run) -> list[Panel]:
    """The weights of a run's experts, stacked; no panel where there is a single expert."""
    found = [panel for panel in inside(run, Reach.of([run])).panels if panel.title == WEIGHTS]
    return [
        panel._replace(
            title=f"Weights of {run.learner}'s experts",
            note="",
            height=PANEL,
            marks=partial(stacked, curves=panel.curves, xs=list(run.rounds)),
        )
        for panel in found
    ]


def _legend(names: Sequence[tuple[str, bool]], width: float) -> tuple[Markup, float]:
    """A sample and a name for each line, in as many rows as it takes; and where they end."""
    parts = []
    x, y = 0.0, 0.0
    for at, (name, front) in enumerate(names):
        room = SAMPLE + 8 + len(name) * LETTER * BOLD + 18
        if x > 0 and x + room > width:
            x, y = 0.0, y + LEGEND_ROW
        style = f"hue-{at % STYLES}"
        sample = element("line", x1=x, x2=x + SAMPLE, y1=y + 8, y2=y + 8, class_=f"line {style}")
        parts.append(sample if front else element("g", sample, class_="back"))
        parts.append(text(x + SAMPLE + 8, y + 12, name, f"name {style}"))
        x += room
    return join(*parts), y + LEGEND_ROW + 14
