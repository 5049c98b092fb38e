"""Bars and dots with whiskers: how long a round takes, what the base of the intervals changes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paper.drawing.style import (
    EDGE,
    INK,
    SOFT,
    STROKES,
    figure_of,
    label_ends,
    styled,
    to_svg,
    write,
)

__all__ = ["Bar", "Dot", "draw_bars", "draw_dots"]

ROW = 24.0  # points: from one bar to the next
BARS, DOTS, PANEL = 270.0, 200.0, 104.0  # points: the widths of panels, the height of one of dots
NAMES = 100.0  # right of lines
SHIFT = 0.06  # so that whiskers stand side by side
VALUE_ROOM = 1.3  # of the longest bar, for the number at its end
LEAST_RANGE = 0.02  # of an axis: what differs by less looks equal


class Bar(NamedTuple):
    """A value from zero with its whiskers, and what is written at its end."""

    name: str
    value: float
    low: float
    high: float
    words: str
    colour: str = EDGE


class Dot(NamedTuple):
    """A share between 0 and 1 that may be undefined, and its standard deviation over seeds."""

    pooled: float | None
    spread: float | None

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends of its whisker: no share is below 0 or above 1."""
        if self.pooled is None:
            return ()
        spread = self.spread or 0.0
        return max(self.pooled - spread, 0.0), min(self.pooled + spread, 1.0)


@styled
def draw_bars(title: str, description: str, columns: Mapping[str, Sequence[Bar]], unit: str) -> str:
    """Draw horizontal bars as SVG: a panel with its own scale for each column.

    Args:
        title: what the figure is.
        description: what it shows, for whoever cannot see it.
        columns: the bars under each heading.
        unit: the unit of all values.
    """
    names = [bar.name for bar in next(iter(columns.values()))]
    figure = figure_of(len(columns) * BARS + 8 * max(map(len, names)), ROW * len(names) + 70)
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, (heading, bars) in zip(panels, columns.items(), strict=True):
        longest = max(bar.high for bar in bars) or 1.0
        axes.set_title(heading, gid="heading")
        axes.set(xlabel=unit, xlim=(0, VALUE_ROOM * longest), ylim=(len(names) - 0.5, -0.5))
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x")
        axes.locator_params(axis="x", nbins=4)
        for row, bar in enumerate(bars):
            axes.barh(row, bar.value, height=0.55, color=bar.colour, gid=f"bar {bar.name}")
            axes.hlines(row, bar.low, bar.high, color=INK, linewidth=1.1)
            end = max(bar.high, bar.value)
            write(axes, bar.words, (end, row), (6, 0), "data", va="center")
    panels[0].set_yticks(range(len(names)), names, color=INK)
    return to_svg(figure, title, description)


@styled
def draw_dots(
    title: str,
    description: str,
    columns: Mapping[str, Mapping[str, Mapping[str, Sequence[Dot]]]],
    places: Sequence[str],
    axis: str,
) -> str:
    """Draw dots joined by lines as SVG: a column for each stream, a row for each measure.

    Args:
        title: what the figure is.
        description: what it shows, for whoever cannot see it.
        columns: heading -> measure -> line -> a dot for each place on the axis.
        places: what is written at the places on the axis.
        axis: what the axis is.
    """
    rows = max(map(len, columns.values()))
    figure = figure_of(len(columns) * (DOTS + NAMES + 50), rows * (PANEL + 26) + 60)
    grid = figure.subplots(rows, len(columns), squeeze=False, sharex=True)
    for column, (heading, measures) in enumerate(columns.items()):
        for row, (measure, lines) in enumerate(measures.items()):
            axes = grid[row, column]
            axes.set_title(measure, gid="title")
            ends = [end for dots in lines.values() for dot in dots for end in dot.ends]
            low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
            room = max(high - low, LEAST_RANGE) * 0.12
            axes.set(xlim=(-0.3, len(places) - 0.9), ylim=(low - room, high + room))
            axes.locator_params(axis="y", nbins=5)
            names = []
            for at, (name, dots) in enumerate(lines.items()):
                stroke, shift = STROKES[at], (at - (len(lines) - 1) / 2) * SHIFT
                xs = [place + shift for place, dot in enumerate(dots) if dot.ends]
                values = [dot.pooled for dot in dots if dot.pooled is not None]
                for x, dot in zip(xs, [dot for dot in dots if dot.ends], strict=True):
                    axes.vlines(x, *dot.ends, color=stroke.colour, linewidth=1.1)
                axes.plot(
                    xs,
                    values,
                    color=stroke.colour,
                    linestyle=stroke.linestyle,
                    marker="o",
                    markersize=5.5,
                    markeredgewidth=0,
                    gid=f"line {name}",
                )
                if values:
                    names.append((name, values[-1], stroke))
            label_ends(axes, names, DOTS, PANEL)
        write(grid[0, column], heading, (0, 1), (0, 26), size=13, weight="bold", gid="heading")
        grid[-1, column].set_xticks(range(len(places)), places)
        grid[-1, column].set_xlabel(axis, color=SOFT)
    return to_svg(figure, title, description)
