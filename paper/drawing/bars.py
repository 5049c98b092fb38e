"""Bars and dots with whiskers: how long a round takes, what a setting changes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.svg import BOLD, LETTER, Frame, drawing, extent, spread_out, text, ticks

__all__ = ["Bar", "Dot", "bars", "dots"]

ROW, BAR = 24.0, 13.0
BETWEEN = 34.0  # from one panel to the next
BARS, DOTS = 240.0, 190.0  # widths of panels
HEADING = 28.0
PANEL = 104.0
VALUE = 56.0  # room for the number at a bar's end
CAP = 3.0  # half of a whisker's end
ENDS = 92.0  # room for the names at the right of lines
AXIS = 34.0  # left of a panel of dots


class Bar(NamedTuple):
    """A value from zero, with whiskers, and what is written at its end."""

    name: str
    value: float
    low: float
    high: float
    words: str
    style: str = ""  # a colour of its own, in chart.css


class Dot(NamedTuple):
    """A share that may be undefined, and how far it strays."""

    value: float | None
    spread: float | None

    @property
    def ends(self) -> tuple[float, ...]:
        """Of its whisker: no share is below 0 or above 1."""
        if self.value is None:
            return ()
        spread = self.spread or 0.0
        return max(self.value - spread, 0.0), min(self.value + spread, 1.0)


def bars(
    title: str,
    description: str,
    columns: Mapping[str, Sequence[Bar]],
    unit: str,
    alone: str | None = None,
) -> Markup:
    """Horizontal bars: a panel for each column, with a scale of its own; the same rows in all."""
    names = [bar.name for bar in next(iter(columns.values()))]
    left = max(map(len, names)) * LETTER * BOLD + 14
    width = left + len(columns) * BARS + (len(columns) - 1) * BETWEEN
    height = HEADING + ROW * len(names)
    parts: list[Markup] = [
        text(0, HEADING + ROW * at + ROW / 2 + 4, name, "row") for at, name in enumerate(names)
    ]
    for at, (heading, found) in enumerate(columns.items()):
        start = left + at * (BARS + BETWEEN)
        reach = max(bar.high for bar in found) or 1.0
        frame = Frame(start, HEADING, BARS - VALUE, height - HEADING, (0, reach), (0, 1))
        parts.append(text(start, 14, heading, "heading"))
        for value in ticks(0, reach, 3):
            x = frame.x(value)
            parts.append(element("line", x1=x, x2=x, y1=frame.top, y2=frame.bottom, class_="grid"))
            parts.append(text(x, height + 16, f"{value:g}", anchor="middle"))
        parts += [_bar(bar, frame, HEADING + ROW * row + ROW / 2) for row, bar in enumerate(found)]
    parts.append(text(0, height + 16, unit, "note"))
    return drawing(width, height + 22, title, description, *parts, class_="chart", alone=alone)


def _bar(bar: Bar, frame: Frame, y: float) -> Markup:
    low, high = frame.x(bar.low), frame.x(bar.high)
    whisker = f"M{low:.1f} {y:.1f}H{high:.1f}"
    return join(
        element(
            "rect",
            x=frame.left,
            y=y - BAR / 2,
            width=max(frame.x(bar.value) - frame.left, 0.5),
            height=BAR,
            rx=2,
            class_=f"bar own {bar.style}" if bar.style else "bar",
        ),
        element("path", d=whisker, class_="whisker"),
        text(max(high, frame.x(bar.value)) + 6, y + 4, bar.words, "value"),
    )


def dots(
    title: str,
    description: str,
    columns: Mapping[str, Mapping[str, Mapping[str, Sequence[Dot]]]],
    places: Sequence[str],
    axis: str,
    alone: str | None = None,
) -> Markup:
    """Dots joined by lines: a column for each stream, a row for each measure.

    `columns`: heading -> measure -> line -> a dot for each of the `places` on the axis.
    """
    each = AXIS + DOTS + ENDS
    width = len(columns) * each + (len(columns) - 1) * BETWEEN
    parts: list[Markup] = []
    bottom = 0.0
    for at, (heading, measures) in enumerate(columns.items()):
        left = at * (each + BETWEEN)
        parts.append(text(left, 14, heading, "heading"))
        top = HEADING
        for measure, lines in measures.items():
            found = [dot for line in lines.values() for dot in line]
            ends = [end for dot in found for end in dot.ends]
            low, high = extent(ends) or (0.0, 1.0)
            room = max(high - low, 0.02) * 0.12
            reach = (low - room, high + room)
            frame = Frame(left + AXIS, top + 22, DOTS, PANEL, (-0.4, len(places) - 0.6), reach)
            parts.append(text(left, top + 12, measure, "title"))
            parts.append(_grid(frame))
            parts.append(_joined(frame, lines))
            top = frame.bottom + 14
        for place, words in enumerate(places):
            parts.append(text(frame.x(place), top + 4, words, anchor="middle"))
        parts.append(text(left, top + 4, axis, "note"))
        bottom = max(bottom, top + 12)
    return drawing(width, bottom, title, description, *parts, class_="chart", alone=alone)


def _grid(frame: Frame) -> Markup:
    parts = []
    for value in ticks(*frame.y_range, 4):
        y = frame.y(value)
        parts.append(element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid"))
        parts.append(text(frame.left - 6, y + 4, f"{value:g}".replace("0.", "."), anchor="end"))
    return join(*parts)


def _joined(frame: Frame, lines: Mapping[str, Sequence[Dot]]) -> Markup:
    parts, ends = [], []
    shift = 0.06  # so that whiskers stand side by side
    for at, (name, found) in enumerate(lines.items()):
        style = f"hue-{at}"
        points = []
        for place, dot in enumerate(found):
            if dot.value is None:
                continue
            x, y = frame.x(place + (at - (len(lines) - 1) / 2) * shift), frame.y(dot.value)
            points.append((x, y))
            if dot.spread:
                down, up = map(frame.y, dot.ends)
                parts.append(
                    element(
                        "path", d=f"M{x:.1f} {up:.1f}V{down:.1f}", class_=f"whisker own {style}"
                    )
                )
            parts.append(element("circle", cx=x, cy=y, r=2.8, class_=f"dot {style}"))
        if points:
            joined = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            parts.append(element("path", d=joined, class_=f"line {style}"))
            ends.append((name, style, points[-1][1]))
    places = spread_out([y for _, _, y in ends], 14, frame.top + 4, frame.bottom)
    for (name, style, _), y in zip(ends, places, strict=True):
        parts.append(text(frame.right + 6, y + 4, name, f"name {style}"))
    return join(*parts)
