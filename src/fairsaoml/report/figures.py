"""The charts of a report: panels above one another that share the rounds as their axis.

A `Chart` is drawn as often as needed, once for each width it is read at. Its panels keep the
values beside the strokes, so that a page can show them under a pointer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairsaoml.report.markup import Markup, element, join, number
from fairsaoml.report.reading import Domain, Line, Run, Series, binned, series
from fairsaoml.report.svg import (
    LETTER,
    Frame,
    Values,
    band,
    drawing,
    extent,
    line,
    shorten,
    spread_out,
    text,
    ticks,
)

__all__ = ["FAIR", "Chart", "inside", "interval_lengths", "progress"]

FAIR = 0.8  # the 80 % rule
DP_NOTE = "selection rates, lowest ÷ highest group; bold line: the 80 % rule"
EO_NOTE = "the same of true and of false positive rates, the worse of the two"
STYLES = 8  # as many runs have a colour and a dash of their own in chart.css
RAMP = 8  # steps from the shortest interval's colour to the longest's

LEFT, RIGHT = 40.0, 12.0
LABELS = 220.0  # the most room for the curves' names on the right
PANEL = 170.0  # the height of the panels that matter most
TITLE, BETWEEN = 27.0, 15.0  # above each panel, below each panel
DOMAINS, AXIS = 26.0, 34.0  # the strip of names on top, the rounds below
WAKE_ROW = 13.0  # the height of a level in the strip of awake levels
LABEL_ROOM = 9.0  # to either side of a label inside an area
SMALLEST_LABEL = 13.0  # an area thinner than this is not labelled inside


class Curve(NamedTuple):
    """One line of a panel, or one layer of a stack."""

    name: str
    style: str  # its class in chart.css
    values: Series


class Panel(NamedTuple):
    """What is drawn in one frame, and the curves whose values a reader may ask for."""

    title: str
    note: str
    height: float
    y_range: tuple[float, float]
    y_ticks: Sequence[tuple[float, str]]
    marks: Callable[[Frame], Markup]
    curves: Sequence[Curve] = ()


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Panels over the same rounds."""

    title: str
    description: str
    xs: Sequence[float]
    domains: Sequence[Domain]
    panels: Sequence[Panel]
    name_ends: bool = False  # write each curve's name at its right end, where there is room

    def draw(self, width: float, name_ends: bool = False, alone: str | None = None) -> Markup:
        """The chart at one width, in the units of its text size.

        `name_ends` leaves room on the right for the curves' names. `alone` is the style sheet of
        a picture that stands by itself, with a ground and a margin of its own.
        """
        named = name_ends and self.name_ends
        inner = width - LEFT - (self._room() if named else RIGHT)
        rounds = (self.domains[0].first - 0.5, self.domains[-1].last + 0.5)
        parts: list[Markup] = []
        top = DOMAINS
        frames = []
        for panel in self.panels:
            frame = Frame(LEFT, top + TITLE, inner, panel.height, rounds, panel.y_range)
            frames.append(frame)
            top = frame.bottom + BETWEEN
            parts.append(_scenery(panel, frame, width))
            parts.append(panel.marks(frame))
            if named:
                parts.append(_end_names(panel, frame, self.xs))
        bottom = frames[-1].bottom
        parts.append(_changes(self.domains, frames))
        parts.append(_rounds(frames[-1]))
        return drawing(
            width,
            bottom + AXIS,
            self.title,
            self.description,
            *parts,
            class_="chart",
            alone=alone,
            data_left=number(frames[0].x(self.xs[0])),
            data_right=number(frames[0].x(self.xs[-1])),
            data_top=number(frames[0].top),
            data_bottom=number(bottom),
        )

    def _room(self) -> float:
        names = [curve.name for panel in self.panels for curve in panel.curves]
        return min(max(map(len, names), default=0) * LETTER + 16, LABELS)

    def values(self) -> dict[str, Any]:
        """The numbers under a pointer: for each panel its curves, by place on the axis."""
        return {
            "rounds": list(self.xs),
            "panels": [
                {
                    "title": panel.title,
                    "curves": [
                        {
                            "name": curve.name,
                            "style": curve.style,
                            "values": [
                                None if value is None else float(f"{value:.4g}")
                                for value in curve.values.mean
                            ],
                        }
                        for curve in panel.curves
                    ],
                }
                for panel in self.panels
                if panel.curves
            ],
        }


def progress(runs: Sequence[Run], best: Mapping[str, Mapping[str, float]]) -> Chart:
    """DP, EO and accuracy by round, the runs over one another."""
    bins = binned(sorted({round for run in runs for round in run.rounds}))
    xs = [sum(rounds) / len(rounds) for rounds in bins]
    domains = max((run.domains for run in runs), key=lambda found: found[-1].last)

    def curves(key: str) -> list[Curve]:
        return [
            Curve(run.name, style(i), series(run, lambda line: line.get(key), bins))
            for i, run in enumerate(runs)
        ]

    def overlaid(found: Sequence[Curve]) -> Callable[[Frame], Markup]:
        def marks(frame: Frame) -> Markup:
            bands = [band(frame, xs, c.values.low, c.values.high, f"band {c.style}") for c in found]
            return join(*bands, *(line(frame, xs, c.values.mean, c.style) for c in found))

        return marks

    def ratio(title: str, note: str, key: str) -> Panel:
        found = curves(key)

        def marks(frame: Frame) -> Markup:
            y = frame.y(FAIR)
            rule = element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="rule")
            return join(rule, overlaid(found)(frame))

        return Panel(
            title=title,
            note=note,
            height=PANEL,
            y_range=(0, 1),
            y_ticks=[(value, f"{value:.1f}") for value in ticks(0, 1, 5)],
            marks=marks,
            curves=found,
        )

    accuracy = curves("accuracy")
    known = [best[domain.name] for domain in domains if domain.name in best]
    reach = extent(
        [value for c in accuracy for value in (*c.values.low, *c.values.high)]
        + [entry.get(key) for entry in known for key in ("accuracy", "fair_accuracy")]
    )
    low, high = _tenths(reach or (0.5, 1.0))
    remarks = [f"the axis begins at {low:.1f}"] if low > 0 else []
    if known:
        remarks.append("dashed: the best of any rule, dotted: of a fair rule")

    def accuracy_marks(frame: Frame) -> Markup:
        return join(_best(domains, best, frame), overlaid(accuracy)(frame))

    return Chart(
        title="Demographic parity, equalized odds and accuracy by round",
        description=_spoken(runs),
        xs=xs,
        domains=domains,
        panels=[
            ratio("DP", DP_NOTE, "dp_ratio"),
            ratio("EO", EO_NOTE, "eo_ratio"),
            Panel(
                title="Accuracy",
                note="; ".join(remarks),
                height=PANEL,
                y_range=(low, high),
                y_ticks=[(value, f"{value:.1f}") for value in ticks(low, high, 4)],
                marks=accuracy_marks,
                curves=accuracy,
            ),
        ],
        name_ends=len(runs) > 1,
    )


def inside(run: Run, reach: "Reach") -> Chart:
    """What happened inside one learner: weights, waking, dual and violation."""
    bins = binned(run.rounds)
    xs = [sum(rounds) / len(rounds) for rounds in bins]
    panels = []
    levels = _levels(run)
    if levels > 1:
        panels.append(_weights(run, levels, bins, xs))
    if any(line.get("awake") for line in run.lines):
        panels.append(_waking(run, levels))
    for title, note, key, shared in (
        ("Dual λ", "the price of each constraint", "dual", reach.dual),
        ("Violation g", "above 0 the constraint is broken", "violation", reach.violation),
    ):
        if any(line.get(key) for line in run.lines):
            panels.append(_entries(run, title, note, key, shared, bins, xs))
    return Chart(
        title=f"Inside {run.name}: expert weights, awake levels, dual and violation by round",
        description=f"{levels} levels with intervals of "
        + ", ".join(map(str, interval_lengths(run)))
        + f" rounds; {len(run.constraints)} constraints.",
        xs=xs,
        domains=run.domains,
        panels=panels,
    )


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
                for i in range(_entries_in(run, key))
                for value in series(run, _entry(key, i), binned(run.rounds)).mean
            )
            low, high = extent(means) or (0.0, 0.0)
            low, high = min(low, 0.0), max(high, 0.0)
            room = (high - low or 1.0) * 0.06
            return (low - room if low < 0 else 0.0, high + room)

        return cls(dual=over("dual"), violation=over("violation"))


def interval_lengths(run: Run) -> list[int]:
    """The length of each level's intervals: base to the power of the level."""
    return [run.base**level for level in range(_levels(run))]


def style(i: int) -> str:
    """The class of the i-th run; after the eighth they come round again."""
    return f"hue-{i % STYLES}"


def part(i: int) -> str:
    """The class of the i-th constraint, so that none looks like a run."""
    return f"part-{i % STYLES}"


def shade(level: int, levels: int) -> str:
    """The class of a level's colour, from the shortest intervals (light) to the longest.

    >>> shade(0, 5), shade(4, 5)
    ('level-0', 'level-7')
    """
    return f"level-{round(level * (RAMP - 1) / max(levels - 1, 1))}"


def _weights(run: Run, levels: int, bins: Sequence[Sequence[int]], xs: Sequence[float]) -> Panel:
    lengths = interval_lengths(run)
    curves = [
        Curve(
            f"{length} round{'s' if length > 1 else ''}",
            shade(level, levels),
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

    def marks(frame: Frame) -> Markup:
        areas, names = [], []
        for level, curve in enumerate(curves):
            below, above = edges[level], edges[level + 1]
            areas.append(band(frame, xs, below, above, f"area {curve.style}"))
            beside = round(LABEL_ROOM * len(xs) / frame.width)
            place, thickness = _thickest(below, above, beside)
            if thickness * frame.height > SMALLEST_LABEL:
                y = frame.y(((below[place] or 0.0) + (above[place] or 0.0)) / 2) + 4
                name = str(lengths[level])
                names.append(text(frame.x(xs[place]), y, name, f"inside {curve.style}", "middle"))
        return join(*areas, *names)

    return Panel(
        title="Weight of each expert",
        note="by the length of its intervals, in rounds",
        height=130,
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


def _waking(run: Run, levels: int) -> Panel:
    wakes: list[list[int]] = [[] for _ in range(levels)]
    for level, rounds in enumerate(wakes):
        rounds.extend(sorted({li["round"] for li in run.lines if level in (li.get("awake") or [])}))
    lengths = interval_lengths(run)

    def marks(frame: Frame) -> Markup:
        drawn = []
        gap = min(0.15, 1.0 / (frame.x(2) - frame.x(1)))  # rounds; a pixel at most
        for level, rounds in enumerate(wakes):
            if not rounds:
                continue
            y = number(frame.y(levels - level - 0.5))
            until = [*rounds[1:], run.rounds[-1] + 1]
            spans = "".join(
                f"M{number(frame.x(a - 0.5))} {y}H{number(frame.x(b - 0.5 - gap))}"
                for a, b in zip(rounds, until, strict=True)
            )
            starts = "".join(
                f"M{number(frame.x(a - 0.5))} {y}H{number(frame.x(a + 0.5 - gap))}" for a in rounds
            )
            drawn.append(element("path", d=spans, class_=f"interval {shade(level, levels)}"))
            drawn.append(element("path", d=starts, class_="wake"))
        return join(*drawn)

    return Panel(
        title="Awake levels",
        note="a mark where an interval begins",
        height=WAKE_ROW * levels,
        y_range=(0, levels),
        y_ticks=[(levels - level - 0.5, str(length)) for level, length in enumerate(lengths)],
        marks=marks,
    )


def _entries(
    run: Run,
    title: str,
    note: str,
    key: str,
    shared: tuple[float, float],
    bins: Sequence[Sequence[int]],
    xs: Sequence[float],
) -> Panel:
    names = run.constraints
    count = _entries_in(run, key)
    curves = [
        Curve(
            str(names[i]) if i < len(names) else f"constraint {i + 1}",
            part(i),
            series(run, _entry(key, i), bins),
        )
        for i in range(count)
    ]

    def marks(frame: Frame) -> Markup:
        y = frame.y(0)
        zero = element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="zero")
        return join(zero, *(line(frame, xs, c.values.mean, c.style) for c in curves))

    values = ticks(*shared, 3)
    return Panel(
        title=title,
        note=note,
        height=84,
        y_range=shared,
        y_ticks=[(value, f"{value:g}") for value in values],
        marks=marks,
        curves=curves,
    )


def _levels(run: Run) -> int:
    return max((len(line.get("weights") or []) for line in run.lines), default=0)


def _entries_in(run: Run, key: str) -> int:
    return max((len(line.get(key) or []) for line in run.lines), default=0)


def _entry(key: str, i: int, absent: float | None = None) -> Callable[[Line], float | None]:
    def pick(line: Line) -> float | None:
        values = line.get(key) or []
        return values[i] if i < len(values) else (absent if values else None)

    return pick


def _scenery(panel: Panel, frame: Frame, width: float) -> Markup:
    parts = [text(0, frame.top - 12, panel.title, "title")]
    taken = (len(panel.title) + 2) * LETTER * 1.08
    if panel.note and taken + len(panel.note) * LETTER < width - RIGHT:
        parts.append(text(taken, frame.top - 12, panel.note, "note"))
    for value, words in panel.y_ticks:
        y = frame.y(value)
        if panel.curves:  # a strip of rows needs no lines between them
            parts.append(element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid"))
        parts.append(text(frame.left - 8, y + 4, words, anchor="end"))
    return join(*parts)


def _changes(domains: Sequence[Domain], frames: Sequence[Frame]) -> Markup:
    """Each domain's name on top, and a line where it begins, beside the titles and not in them."""
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
        name = shorten(domain.name, room - 10)
        if len(name) > 2 or name == domain.name:
            parts.append(text(left + 6, 16, name, "domain"))
    return join(*parts)


def _rounds(frame: Frame) -> Markup:
    low, high = frame.x_range
    about = max(int(frame.width / 90), 4)
    inside = [value for value in ticks(low, high, about) if value == int(value) and value >= 1]
    if high - low <= 3:
        inside = [float(value) for value in range(int(low + 0.5), int(high) + 1)]
    marks = [
        text(frame.x(value), frame.bottom + 16, f"{value:g}", anchor="middle") for value in inside
    ]
    middle = (frame.left + frame.right) / 2
    return join(*marks, text(middle, frame.bottom + 31, "round", "note", "middle"))


def _best(
    domains: Sequence[Domain], best: Mapping[str, Mapping[str, float]], frame: Frame
) -> Markup:
    """Lines at what can be reached in each domain."""
    lines = []
    for domain in domains:
        for key, class_ in (("accuracy", "best"), ("fair_accuracy", "best fair")):
            value = best.get(domain.name, {}).get(key)
            if value is not None:
                y = frame.y(value)
                x1, x2 = frame.x(domain.first - 0.5), frame.x(domain.last + 0.5)
                lines.append(element("line", x1=x1, x2=x2, y1=y, y2=y, class_=class_))
    return join(*lines)


def _end_names(panel: Panel, frame: Frame, xs: Sequence[float]) -> Markup:
    ends = []
    for curve in panel.curves:
        known = [value for value in curve.values.mean if value is not None]
        if known:
            ends.append((curve, frame.y(known[-1])))
    places = spread_out([y for _, y in ends], 15, frame.top + 4, frame.bottom)
    return join(
        *(
            text(frame.right + 8, y + 4, shorten(curve.name, LABELS - 16), f"name {curve.style}")
            for (curve, _), y in zip(ends, places, strict=True)
        )
    )


def _tenths(reach: tuple[float, float]) -> tuple[float, float]:
    """Widened to tenths, at least two of them, within 0 and 1."""
    low, high = int(reach[0] * 10) / 10, -int(-reach[1] * 10 - 0.999) / 10
    high = min(max(high, low + 0.2), 1.0)
    return (max(min(low, high - 0.2), 0.0), high)


def _spoken(runs: Sequence[Run]) -> str:
    names = ", ".join(run.name for run in runs)
    return (
        f"Lines for {names}: the mean over the seeds, within a band from the lowest to the "
        "highest seed. A gap is a round in which the ratio is undefined. The tables below "
        "give the numbers."
    )
