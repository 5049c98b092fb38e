"""A chart: stacked panels that share the rounds as their axis.

A `Chart` is drawn once for each width it is read at. Its panels keep the values beside the lines,
so that a page can show them under the pointer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from fairsaoml.report import svg
from fairsaoml.report.markup import number, render
from fairsaoml.report.reading import UNNAMED, Domain, Line, Run, day

MOST_POINTS = 400  # more than that is finer than the charts' pixels: rounds are averaged in bins

LEFT, RIGHT = 40.0, 12.0
LABELS = 260.0  # the most room for the curves' names on the right
TITLE, BETWEEN = 27.0, 15.0  # above each panel, below each panel
DOMAINS = 26.0  # the strip of names on top
TITLE_LETTER = 8.0  # the width of a letter of a panel's title, generously
LABEL_ROOM = 9.0  # to either side of a label inside a layer
SMALLEST_LABEL = 13.0  # a layer thinner than this is not labelled inside
TICK_ROOM = 90.0  # between the rounds that are written on the axis, about; between dates, at least


class Series(NamedTuple):
    """A figure by round: its mean over the seeds, and its lowest and highest seed.

    None where no seed has a value: a gap in the line.
    """

    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


class Curve(NamedTuple):
    """One line of a panel, or one layer of a stack."""

    name: str
    style: str  # its class in chart.css
    values: Series


class Layer(NamedTuple):
    """A layer of a stack."""

    name: str
    style: str
    places: Sequence[float]
    below: svg.Values
    above: svg.Values

    def label_at(self, frame: svg.Frame) -> tuple[float, float] | None:
        """Return where the name stands, in the thickest part; None where that is too thin."""
        beside = round(LABEL_ROOM * len(self.places) / frame.width)
        thick = [
            0.0 if low is None or high is None else high - low
            for low, high in zip(self.below, self.above, strict=True)
        ]
        room = [  # the least thickness around each place
            min(thick[i - beside : i + beside + 1]) if beside <= i < len(thick) - beside else 0.0
            for i in range(len(thick))
        ]
        at = max(range(len(room)), key=lambda i: room[i])
        if room[at] * frame.height <= SMALLEST_LABEL:
            return None
        middle = ((self.below[at] or 0.0) + (self.above[at] or 0.0)) / 2
        return frame.x(self.places[at]), frame.y(middle) + 4


class Bars(NamedTuple):
    """Stretches of rounds in one row, each from the beginning of a round to that of another."""

    style: str
    row: float  # its place on the axis of values
    stretches: Sequence[tuple[int, int]]

    def path(self, frame: svg.Frame) -> str:
        """Return the bars as SVG writes them, a little apart."""
        gap = min(0.15, 1.0 / (frame.x(2) - frame.x(1)))  # rounds; a pixel at most
        y = number(frame.y(self.row))
        ends = [(frame.x(a - 0.5), frame.x(b - 0.5 - gap)) for a, b in self.stretches]
        return "".join(f"M{number(x1)} {y}H{number(x2)}" for x1, x2 in ends)


class Panel(NamedTuple):
    """What is drawn in one frame, and the curves whose values the pointer shows."""

    title: str
    note: str
    height: float
    y_range: tuple[float, float]
    y_ticks: Sequence[tuple[float, str]]
    curves: Sequence[Curve] = ()
    levels: Sequence[tuple[float, str, float, float]] = ()  # value, class, first and last position
    bands: bool = False  # from each curve's low to its high
    layers: Sequence[Layer] = ()  # drawn instead of the curves, as are bars
    bars: Sequence[Bars] = ()

    def note_at(self, width: float) -> float | None:
        """Return where the note begins, beside the title; None where it has no room or is none."""
        begins = (len(self.title) + 2) * TITLE_LETTER
        fits = begins + len(self.note) * svg.LETTER < width - RIGHT
        return begins if self.note and fits else None

    def ends(self, frame: svg.Frame) -> list[svg.EndName]:
        """Return the curves' names at their right ends."""
        ends: list[svg.EndName] = []
        for curve in self.curves:
            known = [value for value in curve.values.mean if value is not None]
            if known:
                words = svg.shorten(curve.name, (LABELS - 12) / svg.BOLD)
                ends.append((words, f"name {curve.style}", frame.right, frame.y(known[-1])))
        return svg.end_names(frame, ends)


def binned(rounds: Sequence[int], most: int = MOST_POINTS) -> list[list[int]]:
    """Return consecutive rounds in equal bins, at most `most` of them; bins of one if they fit.

    >>> binned([1, 2, 3]), binned([1, 2, 3, 4, 5], most=3)
    ([[1], [2], [3]], [[1, 2], [3, 4], [5]])
    """
    width = -(-len(rounds) // most)
    return [list(rounds[i : i + width]) for i in range(0, len(rounds), width)]


def series(run: Run, pick: Callable[[Line], float | None], bins: Sequence[Sequence[int]]) -> Series:
    """Return a figure by bin of rounds: each seed's mean over the bin, then over the seeds.

    Nulls are skipped; a bin in which every seed is null is a gap.
    """

    def mean(lines: Sequence[Line]) -> float | None:
        values = [value for line in lines if (value := pick(line)) is not None]
        return sum(values) / len(values) if values else None

    return over_seeds([[mean(lines) for lines in seeds] for seeds in binned_lines(run, bins)])


def binned_lines(run: Run, bins: Sequence[Sequence[int]]) -> list[list[list[Line]]]:
    """Return the lines of each bin of rounds, those of each seed together."""
    place = {round: i for i, rounds in enumerate(bins) for round in rounds}
    lines: list[dict[int, list[Line]]] = [{} for _ in bins]
    for line in run.lines:
        if line["round"] in place:
            lines[place[line["round"]]].setdefault(line["seed"], []).append(line)
    return [list(by_seed.values()) for by_seed in lines]


def over_seeds(values: Sequence[Sequence[float | None]]) -> Series:
    """Return the mean, the lowest and the highest of the seeds that have a value, by position."""
    known = [[value for value in seeds if value is not None] for seeds in values]
    return Series(
        mean=[sum(seeds) / len(seeds) if seeds else None for seeds in known],
        low=[min(seeds, default=None) for seeds in known],
        high=[max(seeds, default=None) for seeds in known],
    )


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
        frames: list[svg.Frame] = []
        top = DOMAINS
        for panel in self.panels:
            frames.append(
                svg.Frame(LEFT, top + TITLE, inner, panel.height, self.run.span, panel.y_range)
            )
            top = frames[-1].bottom + BETWEEN
        return render(
            "chart.svg",
            chart=self,
            frames=frames,
            places=middles(self.bins),
            width=width,
            named=named,
            alone=alone,
            name_of=_name_of,
            round_ticks=_round_ticks(self.run, frames[-1]),
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


def _name_of(domain: Domain, frame: svg.Frame) -> str:
    """A domain's name, as much of it as there is room for; empty where that says nothing."""
    room = frame.x(domain.last + 0.5) - frame.x(domain.first - 0.5)
    name = svg.shorten(domain.name, room - 10)
    told = domain.name != UNNAMED and (len(name) > 2 or name == domain.name)
    return name if told else ""


def _step(places: Sequence[float]) -> float:
    """From one tick to the next; endless where there are fewer than two."""
    return places[1] - places[0] if len(places) > 1 else math.inf


def _round_ticks(run: Run, frame: svg.Frame) -> list[tuple[float, str]]:
    """Places on the axis: with the rounds' first days where there are times, else their numbers."""
    days = {number: day(period[0]) for number, period in run.periods.items()}
    low, high = frame.x_range
    about = max(int(frame.width / TICK_ROOM), 2 if days else 4)
    room = TICK_ROOM * (high - low) / frame.width  # in rounds; dates run together in less
    while days and about > 1 and _step(svg.ticks(low, high, about)) < room:
        about -= 1
    inside = [value for value in svg.ticks(low, high, about) if value == int(value) and value >= 1]
    if high - low <= 3:
        inside = [float(value) for value in range(int(low + 0.5), int(high) + 1)]
    if days:
        inside = [value for value in inside if frame.x(value) < frame.right - TICK_ROOM / 4]
    return [(x, days.get(int(x), f"{x:g}")) for x in inside]
