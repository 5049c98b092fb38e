"""The learner's state by round, and the styles that all charts share."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairsaoml.report.chart import Chart, Curve, Panel, binned, middles, series
from fairsaoml.report.markup import Markup, element, number
from fairsaoml.report.reading import Line, Run
from fairsaoml.report.svg import Frame, Values, band, extent, tick_words, ticks
from fairsaoml.report.words import count

__all__ = ["STYLES", "Reach", "inside", "part", "style"]

STYLES = 12  # so many runs have a colour and a dash of their own in chart.css
PARTS = 8  # and so many constraints
RAMP = 8  # steps from the shortest interval's colour to the longest's

TALL, MIDDLE, LOW = 170.0, 130.0, 84.0  # heights of panels, by how much there is to see
WAKE_ROW = 13.0  # the height of a level in the strip of awake levels
LABEL_ROOM = 9.0  # to either side of a label inside an area
SMALLEST_LABEL = 13.0  # an area thinner than this is not labelled inside
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

    def marks(frame: Frame) -> Markup:
        areas, names = [], []
        for level, curve in enumerate(curves):
            below, above = edges[level], edges[level + 1]
            areas.append(band(frame, places, below, above, f"area {curve.style}"))
            beside = round(LABEL_ROOM * len(places) / frame.width)
            place, thickness = _thickest(below, above, beside)
            if thickness * frame.height > SMALLEST_LABEL:
                x = frame.x(places[place])
                y = frame.y(((below[place] or 0.0) + (above[place] or 0.0)) / 2) + 4
                class_ = f"inside {curve.style}"
                words = str(lengths[level])
                names.append(element("text", words, x=x, y=y, class_=class_, text_anchor="middle"))
        return Markup().join([*areas, *names])

    return Panel(
        title="Weight of each expert",
        note="by the length of its intervals, in rounds",
        height=MIDDLE,
        y_range=(0, 1),
        y_ticks=[(0, "0"), (0.5, "0.5"), (1, "1")],
        marks=marks,
        curves=curves,
    )


def _thickest(below: Values, above: Values, beside: int) -> tuple[int, float]:
    """Where a layer has most room for a label: the place, and the least thickness around it."""
    thick = [
        0.0 if low is None or high is None else high - low
        for low, high in zip(below, above, strict=True)
    ]
    room = [
        min(thick[i - beside : i + beside + 1]) if beside <= i < len(thick) - beside else 0.0
        for i in range(len(thick))
    ]
    place = max(range(len(room)), key=lambda i: room[i])
    return place, room[place]


def _waking(run: Run, lengths: Sequence[int]) -> Panel:
    levels = len(lengths)
    wakes = [
        sorted({line["round"] for line in run.lines if level in (line.get("awake") or [])})
        for level in range(levels)
    ]

    def marks(frame: Frame) -> Markup:
        gap = min(0.15, 1.0 / (frame.x(2) - frame.x(1)))  # rounds; a pixel at most

        def bars(level: int, ends: Sequence[int], class_: str) -> Markup:
            y = number(frame.y(levels - level - 0.5))
            path = [
                f"M{number(frame.x(a - 0.5))} {y}H{number(frame.x(b - 0.5 - gap))}"
                for a, b in zip(wakes[level], ends, strict=True)
            ]
            return element("path", d="".join(path), class_=class_)

        drawn = []
        for level, rounds in enumerate(wakes):
            if rounds:
                until = [*rounds[1:], run.rounds[-1] + 1]
                drawn.append(bars(level, until, f"interval {shade(level, levels)}"))
                drawn.append(bars(level, [round + 1 for round in rounds], "wake"))
        return Markup().join(drawn)

    return Panel(
        title="Awake levels",
        note="a mark where an interval begins",
        height=WAKE_ROW * levels,
        y_range=(0, levels),
        y_ticks=[(levels - level - 0.5, str(length)) for level, length in enumerate(lengths)],
        marks=marks,
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
