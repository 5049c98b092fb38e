"""Lines by round, many to a picture: smoothed to be read, written small to be kept."""

from collections.abc import Sequence
from typing import NamedTuple

from fairsaoml.report.chart import Curve
from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.reading import Run, Series
from fairsaoml.report.svg import Frame, Values, gaps, text

__all__ = ["SMOOTHED", "Stroke", "smoothed", "stacked", "strokes"]

SMOOTHED = 5  # rounds that a point is the mean of
NAME_ROOM = 4  # rounds from the edges to a name inside an area
NAME_HEIGHT = 14.0  # an area thinner than this is not named


class Stroke(NamedTuple):
    """A curve as it is drawn: with its band, or in the back row."""

    curve: Curve
    front: bool


def smoothed(run: Run, key: str, rounds: int = SMOOTHED) -> Series:
    """A figure by round: each seed's mean over the last rounds of the domain, then over seeds.

    Only backwards, and never across a change: nothing is anticipated, no fall is softened. A round
    whose own value is undefined is a gap, not bridged by its neighbours.
    """
    values = {(line["seed"], line["round"]): line.get(key) for line in run.lines}
    first = {
        t: domain.first for domain in run.domains for t in range(domain.first, domain.last + 1)
    }
    mean: list[float | None] = []
    low: list[float | None] = []
    high: list[float | None] = []
    for t in run.rounds:
        window = range(max(first[t], t - rounds + 1), t + 1)
        seeds = []
        for seed in run.seeds:
            known = [v for u in window if (v := values.get((seed, u))) is not None]
            if values.get((seed, t)) is not None:
                seeds.append(sum(known) / len(known))
        mean.append(sum(seeds) / len(seeds) if seeds else None)
        low.append(min(seeds, default=None))
        high.append(max(seeds, default=None))
    return Series(mean=mean, low=low, high=high)


def strokes(frame: Frame, xs: Sequence[float], drawn: Sequence[Stroke]) -> Markup:
    """Bands, then the back row, then what stands in front."""
    bands = [_band(frame, xs, one.curve) for one in drawn if one.front]
    back = [_line(frame, xs, one.curve) for one in drawn if not one.front]
    front = [_line(frame, xs, one.curve) for one in reversed(drawn) if one.front]
    return join(*bands, element("g", *back, class_="back") if back else "", *front)


def stacked(frame: Frame, curves: Sequence[Curve], xs: Sequence[float]) -> Markup:
    """Shares on top of one another, each with its name where it is thickest.

    Drawn from the top down, each to the ground: the next one covers the rest.
    """
    tops: list[list[float]] = []
    below = [0.0] * len(xs)
    for curve in curves:
        below = [
            edge + (share or 0.0) for edge, share in zip(below, curve.values.mean, strict=True)
        ]
        tops.append(below)
    areas, names = [], []
    for at in reversed(range(len(curves))):
        top, bottom = tops[at], tops[at - 1] if at else [0.0] * len(xs)
        edge = path(_points(frame, xs, top, range(len(xs))))
        ground = f"{edge}V{frame.bottom:.1f}H{frame.x(xs[0]):.1f}z"
        areas.append(element("path", d=ground, class_=f"area {curves[at].style}"))
        inner = range(NAME_ROOM, len(xs) - NAME_ROOM) or range(len(xs))
        place = max(inner, key=lambda i: top[i] - bottom[i])
        if frame.height * (top[place] - bottom[place]) > NAME_HEIGHT:
            y = frame.y((top[place] + bottom[place]) / 2) + 4
            name = curves[at].name.split()[0]
            names.append(text(frame.x(xs[place]), y, name, f"inside {curves[at].style}", "middle"))
    return join(*areas, *names)


def _line(frame: Frame, xs: Sequence[float], curve: Curve) -> Markup:
    values = curve.values.mean
    paths, dots = [], []
    for stretch in gaps(values):
        points = _points(frame, xs, values, stretch)
        if len(points) > 1:
            paths.append(path(points))
        else:
            x, y = points[0]
            dots.append(element("circle", cx=x, cy=y, r=2.2, class_=f"dot {curve.style}"))
    drawn = [element("path", d="".join(paths), class_=f"line {curve.style}")] if paths else []
    return join(*drawn, *dots)


def _band(frame: Frame, xs: Sequence[float], curve: Curve) -> Markup:
    """From the lowest to the highest, as far as the panel reaches."""
    bottom, top = frame.y_range

    def within(values: Sequence[float | None]) -> list[float | None]:
        return [None if value is None else min(max(value, bottom), top) for value in values]

    low, high = within(curve.values.low), within(curve.values.high)
    outlines = [
        path([*_points(frame, xs, high, stretch), *reversed(_points(frame, xs, low, stretch))])
        for stretch in gaps(low)
        if len(stretch) > 1
    ]
    closed = "".join(f"{outline}z" for outline in outlines)
    return element("path", d=closed, class_=f"band {curve.style}") if closed else Markup()


def _points(
    frame: Frame, xs: Sequence[float], ys: Values, places: Sequence[int]
) -> list[tuple[float, float]]:
    return [(frame.x(xs[i]), frame.y(y)) for i in places if (y := ys[i]) is not None]


def path(points: Sequence[tuple[float, float]]) -> str:
    """A path in tenths of a unit, each point from the one before: half the bytes.

    Tenths are counted from the start, so that rounding does not add up.

    >>> path([(10, 20), (13.04, 19.5), (16.08, 19.5)])
    'M10 20l3-.5l3.1 0'
    """
    tenths = [(round(x * 10), round(y * 10)) for x, y in points]
    (x, y), written = tenths[0], []
    for u, v in tenths[1:]:
        across, up = _tenth(u - x), _tenth(v - y)
        written.append(f"l{across}{up if up.startswith('-') else ' ' + up}")
        x, y = u, v
    return f"M{_tenth(tenths[0][0])} {_tenth(tenths[0][1])}" + "".join(written)


def _tenth(count: int) -> str:
    """A number of tenths, as short as SVG allows.

    >>> _tenth(5), _tenth(-12), _tenth(30)
    ('.5', '-1.2', '3')
    """
    whole, tenth = divmod(abs(count), 10)
    sign = "-" if count < 0 else ""
    return f"{sign}{whole or ''}.{tenth}" if tenth else f"{sign}{whole}"
