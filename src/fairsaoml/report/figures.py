"""The learner's state by round, and the styles that all charts share."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from fairsaoml.report.chart import Bars, Chart, Curve, Layer, Panel, binned, middles, series
from fairsaoml.report.reading import Line, Run
from fairsaoml.report.svg import extent, tick_words, ticks
from fairsaoml.report.words import count

STYLES = 12  # so many runs have a colour and a dash of their own in chart.css
PARTS = 8  # and so many constraints
RAMP = 8  # steps from the shortest interval's colour to the longest's

TALL, MIDDLE, LOW = 170.0, 130.0, 84.0  # heights of panels, by how much there is to see
WAKE_ROW = 13.0  # the height of a level in the strip of awake levels
HEADROOM = 0.06  # of the values' reach, kept free above and below them


class Reach(NamedTuple):
    """The axes that small multiples share, so that they can be compared."""

    dual: tuple[float, float]
    violation: tuple[float, float]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Reach":
        def over(key: str) -> tuple[float, float]:
            means = (
                value
                for run in runs
                for curve in _curves(run, key, binned(run.rounds))
                for value in curve.values.mean
            )
            low, high = extent(means) or (0.0, 0.0)
            low, high = min(low, 0.0), max(high, 0.0)
            room = (high - low or 1.0) * HEADROOM
            return (low - room if low < 0 else 0.0, high + room)

        return cls(dual=over("dual"), violation=over("violation"))


def inside(run: Run, reach: Reach) -> Chart:
    """Return the chart of one learner's weights, awake levels, dual and violation."""
    bins, lengths = binned(run.rounds), _interval_lengths(run)
    panels = []
    if len(lengths) > 1:
        panels.append(_weights(run, lengths, bins))
    if any(line.get("awake") for line in run.lines):
        panels.append(_waking(run, lengths))
    for title, note, key, shared in (
        ("Dual λ", "the price of each constraint", "dual", reach.dual),
        ("Violation g", "above 0 the constraint is broken", "violation", reach.violation),
    ):
        if curves := _curves(run, key, bins):
            panels.append(
                Panel(
                    title=title,
                    note=note,
                    height=LOW,
                    y_range=shared,
                    y_ticks=tick_words(ticks(*shared, 3)),
                    curves=curves,
                    levels=[(0.0, "zero", *run.span)],
                )
            )
    return Chart(
        title=f"Inside {run.name}: expert weights, awake levels, dual and violation by round",
        description=f"{len(lengths)} levels with intervals of {', '.join(map(str, lengths))} "
        f"rounds; {len(run.constraints)} constraints.",
        run=run,
        bins=bins,
        panels=panels,
    )


def _interval_lengths(run: Run) -> list[int]:
    """The length of each level's intervals: base to the power of the level."""
    return [run.base**level for level in range(_entries_in(run, "weights"))]


def style(i: int) -> str:
    """Return the CSS class of the i-th run; after the twelfth they repeat."""
    return f"hue-{i % STYLES}"


def part(i: int) -> str:
    """Return the CSS class of the i-th constraint, so that none looks like a run."""
    return f"part-{i % PARTS}"


def shade(level: int, levels: int) -> str:
    """Return the CSS class of a level, from the shortest intervals (light) to the longest.

    >>> shade(0, 5), shade(4, 5)
    ('level-0', 'level-7')
    """
    return f"level-{round(level * (RAMP - 1) / max(levels - 1, 1))}"


def _weights(run: Run, lengths: Sequence[int], bins: Sequence[Sequence[int]]) -> Panel:
    curves = [
        Curve(
            count(length, "round"),
            shade(level, len(lengths)),
            series(run, _entry("weights", level, absent=0.0), bins),
        )
        for level, length in enumerate(lengths)
    ]
    edges: list[list[float | None]] = [
        [None if value is None else 0.0 for value in curves[0].values.mean]
    ]
    for curve in curves:
        pairs = zip(edges[-1], curve.values.mean, strict=True)
        edges.append([None if a is None or b is None else a + b for a, b in pairs])

    places = middles(bins)
    if len(places) == 1:  # a single round has no width to fill: draw it as wide as a round
        places = [places[0] - 0.5, places[0] + 0.5]
        edges = [edge * 2 for edge in edges]

    return Panel(
        title="Weight of each expert",
        note="by the length of its intervals, in rounds",
        height=MIDDLE,
        y_range=(0, 1),
        y_ticks=[(0, "0"), (0.5, "0.5"), (1, "1")],
        curves=curves,
        layers=[
            Layer(str(length), curve.style, places, below, above)
            for length, curve, (below, above) in zip(lengths, curves, pairwise(edges), strict=True)
        ],
    )


def _waking(run: Run, lengths: Sequence[int]) -> Panel:
    levels = len(lengths)
    bars = []
    for level in range(levels):
        wakes = {line["round"] for line in run.lines if level in (line.get("awake") or [])}
        rounds, row = sorted(wakes), levels - level - 0.5
        until = [*rounds[1:], run.rounds[-1] + 1]
        if rounds:
            style = f"interval {shade(level, levels)}"
            bars.append(Bars(style, row, list(zip(rounds, until, strict=True))))
            bars.append(Bars("wake", row, [(round, round + 1) for round in rounds]))
    return Panel(
        title="Awake levels",
        note="a mark where an interval begins",
        height=WAKE_ROW * levels,
        y_range=(0, levels),
        y_ticks=[(levels - level - 0.5, str(length)) for level, length in enumerate(lengths)],
        bars=bars,
    )


def _curves(run: Run, key: str, bins: Sequence[Sequence[int]]) -> list[Curve]:
    """What the journal says of each constraint under a key."""
    number = _entries_in(run, key)
    unnamed = [f"constraint {i + 1}" for i in range(len(run.constraints), number)]
    names = [*map(str, run.constraints), *unnamed][:number]
    return [Curve(name, part(i), series(run, _entry(key, i), bins)) for i, name in enumerate(names)]


def _entries_in(run: Run, key: str) -> int:
    return max((len(line.get(key) or []) for line in run.lines), default=0)


def _entry(key: str, i: int, absent: float | None = None) -> Callable[[Line], float | None]:
    def pick(line: Line) -> float | None:
        values = line.get(key) or []
        return values[i] if i < len(values) else (absent if values else None)

    return pick
