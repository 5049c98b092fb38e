"""The elements that every chart is made of. Colours are in `assets/chart.css`."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from fairsaoml.report.markup import Markup, element, number

__all__ = [
    "BOLD",
    "LETTER",
    "Frame",
    "Values",
    "band",
    "drawing",
    "end_names",
    "extent",
    "hline",
    "line",
    "shorten",
    "spread_out",
    "stretches",
    "text",
    "tick_words",
    "ticks",
    "x_axis",
    "y_axis",
]

Values = Sequence[float | None]

MARGIN = 20.0  # around a picture that stands alone
LETTER = 6.7  # the width of a letter of chart text, generously
BOLD = 1.1  # and how much wider a bold one is
NAME_HEIGHT = 15.0  # from one curve's name to the next


class Frame(NamedTuple):
    """Where a panel lies in its drawing, and the values at its edges."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        low, high = self.x_range
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return self.bottom - self.height * (value - low) / (high - low)

    def path(self, points: Iterable[tuple[float, float]]) -> str:
        """A line through points, as SVG writes it."""
        return "M" + "L".join(f"{number(self.x(x))} {number(self.y(y))}" for x, y in points)


def drawing(
    width: float,
    height: float,
    title: str,
    description: str,
    *parts: str,
    alone: str | None = None,
    **attributes: str,
) -> Markup:
    """Return an SVG picture.

    Args:
        width, height: of the drawing.
        title, description: read out where the picture cannot be seen.
        parts: its elements.
        alone: the style sheet of a picture outside a page; it gets a background and a margin.
        attributes: of the SVG element.
    """
    edge = MARGIN if alone else 0.0
    corner, outer, across = number(-edge), width + 2 * edge, height + 2 * edge
    ground = [
        element("style", Markup(alone)),
        element("rect", x=corner, y=corner, width=outer, height=across, rx=8, class_="ground"),
    ]
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *(ground if alone else []),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"{corner} {corner} {number(outer)} {number(across)}",
        width=outer if alone else None,
        height=across if alone else None,
        role="img",
        **attributes,
    )


def text(x: float, y: float, words: str, class_: str = "tick", anchor: str | None = None) -> Markup:
    """Return text at a point."""
    return element("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def hline(frame: Frame, value: float, class_: str) -> Markup:
    """Return a horizontal line through a frame at a value."""
    y = frame.y(value)
    return element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_=class_)


def y_axis(frame: Frame, places: Sequence[tuple[float, str]], grid: str | None = None) -> Markup:
    """Return numbers on the left of a frame, each with a line of a class where one is given."""
    parts = []
    for value, words in places:
        parts += [hline(frame, value, grid)] if grid else []
        parts.append(text(frame.left - 8, frame.y(value) + 4, words, anchor="end"))
    return Markup().join(parts)


def x_axis(
    frame: Frame, places: Sequence[tuple[float, str]], title: str, below: float = 32
) -> Markup:
    """Return numbers under a frame, and what they are so far `below` it."""
    marks = [
        text(frame.x(value), frame.bottom + 16, words, anchor="middle") for value, words in places
    ]
    middle = (frame.left + frame.right) / 2
    marks.append(text(middle, frame.bottom + below, title, "note", "middle"))
    return Markup().join(marks)


def line(frame: Frame, xs: Sequence[float], ys: Values, class_: str) -> Markup:
    """Return a line that breaks where a value is missing; a single value between gaps is a dot."""
    path, dots = "", []
    for points in stretches(xs, ys):
        if len(points) == 1:
            (x, y) = points[0]
            dot = element("circle", cx=frame.x(x), cy=frame.y(y), r=2.2, class_=f"dot {class_}")
            dots.append(dot)
        else:
            path += frame.path(points)
    drawn = [element("path", d=path, class_=f"line {class_}")] if path else []
    return Markup().join([*drawn, *dots])


def band(frame: Frame, xs: Sequence[float], low: Values, high: Values, class_: str) -> Markup:
    """Return the area between two lines, with the same gaps; nothing for a single point."""
    outlines = ""
    for points in stretches(xs, low, high):
        if len(points) > 1:
            back = [(x, bottom) for x, bottom, _ in reversed(points)]
            outlines += frame.path([*((x, top) for x, _, top in points), *back]) + "Z"
    return element("path", d=outlines, class_=class_) if outlines else Markup()


def stretches(xs: Sequence[float], *values: Values) -> list[list[tuple[Any, ...]]]:
    """Return the points between gaps: where every one of the values is known.

    >>> stretches([1, 2, 3, 4], [0.5, 0.6, None, 0.8])
    [[(1, 0.5), (2, 0.6)], [(4, 0.8)]]
    """
    points = groupby(zip(xs, *values, strict=True), key=lambda point: None not in point)
    return [list(stretch) for known, stretch in points if known]


def ticks(low: float, high: float, about: int) -> list[float]:
    """Return about so many round numbers from low to high: steps of 1, 2 or 5 times 10^n.

    >>> ticks(0, 1, 5), ticks(1, 90, 4)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [20.0, 40.0, 60.0, 80.0])
    """
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = min((1, 2, 5, 10), key=lambda m: abs(m * power - rough)) * power
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(float(i * step), 10) for i in range(first, last + 1)]


def tick_words(values: Sequence[float]) -> list[tuple[float, str]]:
    """Return each tick with its number, all with as many digits as the step between them needs.

    >>> tick_words([0.0, 0.05, 0.1]), tick_words([20.0, 40.0])
    ([(0.0, '0.00'), (0.05, '0.05'), (0.1, '0.10')], [(20.0, '20'), (40.0, '40')])
    """
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(value, f"{value:.{digits}f}") for value in values]


def spread_out(places: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Return positions moved to stand `apart`, in their order, within low and high.

    >>> spread_out([10, 11, 40], apart=10, low=0, high=100)
    [10, 20, 40]
    >>> spread_out([99, 98], apart=10, low=0, high=100)
    [100, 90]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    floor = low
    for i in order:
        moved[i] = max(moved[i], floor)
        floor = moved[i] + apart
    ceiling = high
    for i in reversed(order):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - apart
    return moved


def end_names(frame: Frame, ends: Sequence[tuple[str, str, float, float]]) -> Markup:
    """Return names beside the right ends of curves, moved apart where they would overlap.

    Args:
        frame: that the curves are in.
        ends: name, CSS class, x and y of each.
    """
    heights = spread_out([y for *_, y in ends], NAME_HEIGHT, frame.top + 4, frame.bottom)
    pairs = zip(ends, heights, strict=True)
    return Markup().join(text(x + 8, y + 4, name, class_) for (name, class_, x, _), y in pairs)


def shorten(words: str, width: float) -> str:
    """Return as many letters as fit a width: of several words the end too, where names differ.

    >>> shorten("fairsaoml-decoupled", 60), shorten("dp", 60)
    ('fairsao…', 'dp')
    >>> shorten("fairsaoml-decoupled constraints=none", 230)
    'fairsaoml-decoup… constraints=none'
    """
    room = max(int(width / LETTER), 1)
    if len(words) <= room:
        return words
    end = room // 2 if " " in words else 0
    return words[: max(room - 1 - end, 0)] + "…" + words[len(words) - end :]


def extent(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Return the smallest and largest known value; None if there is none."""
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None
