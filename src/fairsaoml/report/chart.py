"""A chart: stacked panels that share the rounds as their axis.

A `Chart` is drawn once for each width it is read at. Its panels keep the values beside the lines,
so that a page can show them under the pointer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from fairsaoml.report import svg
from fairsaoml.report.markup import render
from fairsaoml.report.reading import UNNAMED, Line, Run, day

MOST_POINTS = 400  # more than that is finer than the charts' pixels: rounds are averaged in bins

LEFT, RIGHT = 40.0, 12.0
LABELS = 260.0  # the most room for the curves' names on the right
TITLE, BETWEEN = 27.0, 15.0  # above each panel, below each panel
DOMAINS = 26.0  # the strip of names on top
LABEL_ROOM = 9.0  # to either side of a label inside a layer
SMALLEST_LABEL = 13.0  # a layer thinner than this is not labelled inside
TICK_ROOM = 90.0  # between the rounds that are written on the axis, about; between dates, at least

Level = tuple[float, str, float, float]  # a line at a value: its class, first and last position
# Bars of a class, in a row of the axis of values: from the beginning of a round to another's.
Bars = tuple[str, float, Sequence[tuple[int, int]]]


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
        below, above = (np.array(edge, float) for edge in (self.below, self.above))  # None is NaN
        thick = np.pad(np.nan_to_num(above - below), beside)
        # The least thickness around each place.
        room = np.lib.stride_tricks.sliding_window_view(thick, 2 * beside + 1).min(axis=1)
        at = int(room.argmax())
        if room[at] * frame.height <= SMALLEST_LABEL:
            return None
        return frame.x(self.places[at]), frame.y((below[at] + above[at]) / 2) + 4


class Panel(NamedTuple):
    """What is drawn in one frame, and the curves whose values the pointer shows."""

    title: str
    note: str
    height: float
    y_range: tuple[float, float]
    y_ticks: Sequence[tuple[float, str]]
    curves: Sequence[Curve] = ()
    levels: Sequence[Level] = ()
    bands: bool = False  # from each curve's low to its high
    layers: Sequence[Layer] = ()  # drawn instead of the curves, as are bars
    bars: Sequence[Bars] = ()

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
        names = [curve.name for panel in self.panels for curve in panel.curves]
        longest = max(map(len, names), default=0) * svg.BOLD * svg.LETTER + 12
        inner = width - LEFT - (min(longest, LABELS) if named else RIGHT)
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
            right=RIGHT,
            unnamed=UNNAMED,
            round_ticks=_round_ticks(self.run, frames[-1]),
        )

    @property
    def rounds_a_point(self) -> int:
        """How many rounds are drawn as one point."""
        return -(-sum(map(len, self.bins)) // len(self.bins))

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


def _round_ticks(run: Run, frame: svg.Frame) -> list[tuple[float, str]]:
    """Places on the axis: with the rounds' first times where there are some, else their numbers."""
    days = {number: day(period[0]) for number, period in run.periods.items()}
    low, high = frame.x_range
    about = max(int(frame.width / TICK_ROOM), 2 if days else 4)
    places = svg.ticks(low, high, about)
    room = TICK_ROOM * (high - low) / frame.width  # in rounds; dates run together in less
    while days and about > 1 and len(places) > 1 and places[1] - places[0] < room:
        about -= 1
        places = svg.ticks(low, high, about)
    rounds = [int(value) for value in places if value == int(value) and value >= 1]
    if high - low <= 3:
        rounds = list(range(int(low + 0.5), int(high) + 1))
    if days:
        rounds = [number for number in rounds if frame.x(number) < frame.right - TICK_ROOM / 4]
    return [(number, days.get(number, str(number))) for number in rounds]
