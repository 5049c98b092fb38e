"""Figure 3 and the ablation: DP, EO and accuracy by round, and the weights of the experts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from fairsaoml.evaluate.rule import RULE
from fairsaoml.report.chart import Series
from fairsaoml.report.reading import Run
from paper.drawing.style import (
    EDGE,
    GROUND,
    INK,
    LEVELS,
    STROKES,
    figure_of,
    label_ends,
    styled,
    to_svg,
    write,
)

__all__ = ["SMOOTHED", "Column", "Line", "draw_by_round", "smoothed"]

SMOOTHED = 5  # rounds that a point is the mean of
WIDTH, PANEL = 300.0, 132.0  # points: a panel without its axes
NAMES = 150.0  # right of the last column
MEASURES = {"DP": "dp_ratio", "EO": "eo_ratio", "Accuracy": "accuracy"}
HEADROOM = 0.01
LETTER = 7.5  # points of a letter, generously
THICK = 0.12  # of the whole: a layer of this weight is named
LIGHT_LEVELS = 4  # of the colours of levels, those that dark letters stand on


class Line(NamedTuple):
    """A learner in a figure: its name, its run on a stream, whether it stands in front."""

    name: str
    run: Run
    front: bool


class Column(NamedTuple):
    """A stream and its lines; the run whose experts' weights are shown below, if any."""

    stream: str
    lines: Sequence[Line]
    weights: Run | None = None


def smoothed(run: Run, key: str, rounds: int = SMOOTHED) -> Series:
    """Return a figure by round: the mean over seeds of each seed's last rounds.

    Only backwards, and never across a change of domain. A round whose own value is undefined is a
    gap.
    """
    values = {(line["seed"], line["round"]): line.get(key) for line in run.lines}
    first = {
        t: domain.first for domain in run.domains for t in range(domain.first, domain.last + 1)
    }
    series = Series(mean=[], low=[], high=[])
    for t in run.rounds:
        window = range(max(first[t], t - rounds + 1), t + 1)
        means = []
        for seed in run.seeds:
            known = [v for u in window if (v := values.get((seed, u))) is not None]
            if values.get((seed, t)) is not None:
                means.append(sum(known) / len(known))
        series.mean.append(sum(means) / len(means) if means else None)
        series.low.append(min(means, default=None))
        series.high.append(max(means, default=None))
    return series


@styled
def draw_by_round(title: str, columns: Sequence[Column]) -> str:
    """Draw a column of panels for each stream, as SVG; the last column names the lines."""
    has_weights = any(column.weights is not None for column in columns)
    rows = len(MEASURES) + has_weights
    figure = figure_of(len(columns) * (WIDTH + 50) + NAMES, rows * (PANEL + 28) + 80)
    grid = figure.add_gridspec(rows, len(columns))
    lowest = _lowest(columns)
    for place, column in enumerate(columns):
        panels = [figure.add_subplot(grid[row, place]) for row in range(rows)]
        last = place == len(columns) - 1
        for axes, (name, key) in zip(panels, MEASURES.items(), strict=False):
            axes.set_title(name, gid="title")
            _draw_measure(axes, column, key, lowest, named=last)
        if column.weights is not None:
            _draw_weights(panels[-1], column.weights)
        elif has_weights:
            panels[-1].set_axis_off()
        _draw_domains(panels, column)
    names = ", ".join(line.name for line in columns[0].lines)
    streams = ", ".join(column.stream for column in columns)
    return to_svg(figure, title, f"Lines for {names} on {streams}. The tables give the numbers.")


def _lowest(columns: Sequence[Column]) -> float:
    """Where the axes of all ratios begin: a fifth below every line, and below the 80 % rule."""
    runs = [line.run for column in columns for line in column.lines]
    ratios = [smoothed(run, key).mean for run in runs for key in ("dp_ratio", "eo_ratio")]
    low = min((value for mean in ratios for value in mean if value is not None), default=0.0)
    return min(int(low * 5) / 5, 0.6)


def _draw_measure(axes: Axes, column: Column, key: str, lowest: float, *, named: bool) -> None:
    """One panel: bands, then the lines behind, then the lines in front."""
    ends, shown = [], []
    for at, (line, stroke) in enumerate(zip(column.lines, STROKES * 9, strict=False)):
        series = smoothed(line.run, key)
        rounds, mean = np.asarray(line.run.rounds), _floats(series.mean)
        # A value between two gaps is a dot: a line of one point cannot be seen.
        alone = (
            ~np.isnan(mean) & np.isnan(np.r_[np.nan, mean[:-1]]) & np.isnan(np.r_[mean[1:], np.nan])
        )
        shown.append(mean)
        if line.front:
            low, high = _floats(series.low), _floats(series.high)
            shown += [low, high]
            axes.fill_between(
                rounds, low, high, color=stroke.colour, alpha=0.13, linewidth=0, gid="band"
            )
        axes.plot(
            rounds,
            mean,
            color=stroke.colour,
            linestyle=stroke.linestyle,
            linewidth=1.9 if line.front else 1.2,
            marker=".",
            markersize=4.0,
            markevery=alone,
            zorder=3 + (len(STROKES) - at) / 10 if line.front else 2,
            gid=f"line {line.name}",
        )
        if not np.isnan(mean).all():
            ends.append((line.name, float(mean[~np.isnan(mean)][-1]), stroke))
    if key == "accuracy":
        known = np.concatenate(shown)
        known = known[~np.isnan(known)] if not np.isnan(known).all() else np.array([0.5, 1.0])
        axes.set_ylim(known.min() - HEADROOM, known.max() + HEADROOM)
    else:
        axes.axhline(RULE, color=INK, linewidth=1.4, zorder=1.5, gid="rule")
        axes.set_ylim(lowest, 1.0)
    axes.locator_params(axis="y", nbins=5)
    if named:
        label_ends(axes, ends, WIDTH, PANEL)


def _draw_weights(axes: Axes, run: Run) -> None:
    """The weights of a run's experts, stacked, each named where its layer is thickest."""
    weights = _weights(run)
    lengths = [run.base**level for level in range(len(weights))]
    shades = [
        round(at * (len(LEVELS) - 1) / max(len(weights) - 1, 1)) for at in range(len(weights))
    ]
    axes.set_title(f"Weights of {run.learner}'s experts", gid="title")
    axes.stackplot(
        run.rounds,
        weights,
        colors=[LEVELS[shade] for shade in shades],
        edgecolor=GROUND,
        linewidth=0.5,
    )
    axes.set(ylim=(0.0, 1.0), yticks=[0.0, 0.5, 1.0])
    tops = np.cumsum(weights, axis=0)
    inner = slice(len(run.rounds) // 20, -(len(run.rounds) // 20) or None)
    for layer, top, length, shade in zip(weights, tops, lengths, shades, strict=True):
        at = int(np.argmax(layer[inner])) + inner.start
        if layer[at] > THICK:
            axes.text(
                run.rounds[at],
                top[at] - layer[at] / 2,
                str(length),
                color="#14202b" if shade < LIGHT_LEVELS else "#fefefe",  # on dark pages too
                size=10,
                weight="bold",
                ha="center",
                va="center",
            )


def _weights(run: Run) -> NDArray[np.float64]:
    """The mean over seeds of each expert's weight: (level, round); absent experts weigh nothing."""
    levels = max(len(line.get("weights") or ()) for line in run.lines)
    places = {t: at for at, t in enumerate(run.rounds)}
    total = np.zeros((levels, len(run.rounds)))
    for line in run.lines:
        for level, weight in enumerate(line.get("weights") or ()):
            total[level, places[line["round"]]] += weight or 0.0
    return total / len(run.seeds)


def _draw_domains(panels: Sequence[Axes], column: Column) -> None:
    """The stream's name and its domains' on top, a dotted line where a domain begins."""
    run = max((line.run for line in column.lines), key=lambda run: len(run.rounds))
    first, last = run.domains[0].first - 0.5, run.domains[-1].last + 0.5
    for axes in panels:
        axes.set_xlim(first, last)
        axes.tick_params(labelbottom=axes is panels[-1])
        for domain in run.domains[1:]:
            axes.axvline(
                domain.first - 0.5, color=EDGE, linewidth=1.6, linestyle=(0, (1, 3)), gid="change"
            )
    panels[-1].set_xlabel("round")
    panels[-1].locator_params(axis="x", integer=True)
    write(panels[0], column.stream, (0, 1), (0, 44), size=13, weight="bold", gid="heading")
    for domain in run.domains:
        room = int(WIDTH * (domain.last + 1 - domain.first) / (last - first) / LETTER)
        name = domain.name if len(domain.name) <= room else domain.name[: room - 1] + "…"
        place = (domain.first - 0.5, 1.0)
        write(panels[0], name, place, (2, 25), ("data", "axes fraction"), size=10.5)


def _floats(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Numbers, NaN where there is none."""
    return np.array(values, dtype=np.float64)
