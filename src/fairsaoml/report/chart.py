"""A chart: stacked panels that share the rounds as their axis.

A `Chart` is drawn once for each width it is read at. Its panels keep the values beside the lines,
so that a page can show them under the pointer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairsaoml.report import svg
from fairsaoml.report.markup import Markup, element, number
from fairsaoml.report.reading import UNNAMED, Domain, Run, Series, day

__all__ = ["Chart", "Curve", "Panel", "middles"]

LEFT, RIGHT = 40.0, 12.0
LABELS = 260.0  # the most room for the curves' names on the right
TITLE, BETWEEN = 27.0, 15.0  # above each panel, below each panel
DOMAINS, AXIS = 26.0, 34.0  # the strip of names on top, the rounds below
TITLE_LETTER = 8.0  # the width of a letter of a panel's title, generously
TICK_ROOM = 90.0  # between the rounds that are written on the axis, about


class Curve(NamedTuple):
    """One line of a panel, or one layer of a stack."""

    name: str
    style: str  # its class in chart.css
    values: Series


class Panel(NamedTuple):
    """What is drawn in one frame, and the curves whose values the pointer shows."""

    title: str
    note: str
    height: float
    y_range: tuple[float, float]
    y_ticks: Sequence[tuple[float, str]]
    marks: Callable[[svg.Frame], Markup]
    curves: Sequence[Curve] = ()


def middles(bins: Sequence[Sequence[int]]) -> list[float]:
    """Return the position of each bin of rounds on the axis."""
    return [sum(rounds) / len(rounds) for rounds in bins]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Panels over the same rounds."""

    title: str
    description: str
    run: Run  # whose domains and days stand on the axis
    bins: Sequence[Sequence[int]]  # the rounds of each position
    panels: Sequence[Panel]
    name_ends: bool = False  # write each curve's name at its right end, where there is room

    def draw(self, width: float, name_ends: bool = False, alone: str | None = None) -> Markup:
        """Draw the chart.

        Args:
            width: in the units of its text size.
            name_ends: leave room on the right for the curves' names.
            alone: the style sheet of a picture that stands by itself.
        """
        named = name_ends and self.name_ends
        inner = width - LEFT - (self._room() if named else RIGHT)
        domains, xs = self.run.domains, middles(self.bins)
        rounds = (domains[0].first - 0.5, domains[-1].last + 0.5)
        parts: list[Markup] = []
        top = DOMAINS
        frames = []
        for panel in self.panels:
            frame = svg.Frame(LEFT, top + TITLE, inner, panel.height, rounds, panel.y_range)
            frames.append(frame)
            top = frame.bottom + BETWEEN
            parts.append(_scenery(panel, frame, width))
            parts.append(panel.marks(frame))
            if named:
                parts.append(_end_names(panel, frame))
        bottom = frames[-1].bottom
        parts.append(_changes(domains, frames))
        days = {number: day(period[0]) for number, period in self.run.periods.items()}
        parts.append(_rounds(frames[-1], days))
        return svg.drawing(
            width,
            bottom + AXIS,
            self.title,
            self.description,
            *parts,
            class_="chart",
            alone=alone,
            data_left=number(frames[0].x(xs[0])),
            data_right=number(frames[0].x(xs[-1])),
            data_top=number(frames[0].top),
            data_bottom=number(bottom),
        )

    @property
    def rounds_a_point(self) -> int:
        """How many rounds are drawn as one point."""
        return -(-sum(map(len, self.bins)) // len(self.bins))

    def _room(self) -> float:
        names = [curve.name for panel in self.panels for curve in panel.curves]
        return min(max(map(len, names), default=0) * svg.BOLD * svg.LETTER + 12, LABELS)

    def values(self) -> dict[str, Any]:
        """Return what the pointer shows: for each panel its curves, by position on the axis."""

        def shown(curve: Curve) -> dict[str, Any]:
            values = [None if v is None else float(f"{v:.4g}") for v in curve.values.mean]
            return {"name": curve.name, "style": curve.style, "values": values}

        def label(first: int, last: int) -> str:
            words = f"Round {first}" if first == last else f"Rounds {first} to {last}"
            return words + self.run.days(first, last)

        return {
            "rounds": middles(self.bins),
            "labels": [label(rounds[0], rounds[-1]) for rounds in self.bins],
            "panels": [
                {"title": panel.title, "curves": [shown(curve) for curve in panel.curves]}
                for panel in self.panels
                if panel.curves
            ],
        }


def _scenery(panel: Panel, frame: svg.Frame, width: float) -> Markup:
    parts = [svg.text(0, frame.top - 12, panel.title, "title")]
    taken = (len(panel.title) + 2) * TITLE_LETTER
    if panel.note and taken + len(panel.note) * svg.LETTER < width - RIGHT:
        parts.append(svg.text(taken, frame.top - 12, panel.note, "note"))
    # A strip of rows needs no lines between them.
    parts.append(svg.y_axis(frame, panel.y_ticks, "grid" if panel.curves else None))
    return Markup().join(parts)


def _changes(domains: Sequence[Domain], frames: Sequence[svg.Frame]) -> Markup:
    """Each domain's name on top, and a line where it begins, not crossing the titles."""
    parts = []
    for i, domain in enumerate(domains):
        left = frames[0].x(domain.first - 0.5)
        room = frames[0].x(domain.last + 0.5) - left
        if i > 0:
            x = number(left)
            edges = [(6.0, 18.0), *((frame.top, frame.bottom) for frame in frames)]
            parts += [
                element("line", x1=x, x2=x, y1=top, y2=bottom, class_="change")
                for top, bottom in edges
            ]
        if domain.name == UNNAMED:
            continue
        name = svg.shorten(domain.name, room - 10)
        if len(name) > 2 or name == domain.name:
            whole = [] if name == domain.name else [element("title", domain.name)]
            parts.append(element("text", name, *whole, x=left + 6, y=16, class_="domain"))
    return Markup().join(parts)


def _rounds(frame: svg.Frame, days: Mapping[int, str]) -> Markup:
    """The axis: the rounds' first days where there are times, else their numbers."""
    low, high = frame.x_range
    about = max(int(frame.width / TICK_ROOM), 2 if days else 4)
    inside = [value for value in svg.ticks(low, high, about) if value == int(value) and value >= 1]
    if high - low <= 3:
        inside = [float(value) for value in range(int(low + 0.5), int(high) + 1)]
    if days:
        inside = [value for value in inside if frame.x(value) < frame.right - TICK_ROOM / 4]
    places = [(x, days.get(int(x), f"{x:g}")) for x in inside]
    return svg.x_axis(frame, places, "first day of the round" if days else "round", below=31)


def _end_names(panel: Panel, frame: svg.Frame) -> Markup:
    ends = []
    for curve in panel.curves:
        known = [value for value in curve.values.mean if value is not None]
        if known:
            words = svg.shorten(curve.name, (LABELS - 12) / svg.BOLD)
            ends.append((words, f"name {curve.style}", frame.right, frame.y(known[-1])))
    return svg.end_names(frame, ends)
