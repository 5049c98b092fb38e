"""Where things lie in a chart: frames, points, ticks, names."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float | None]
Place = TypeVar("Place", float, NDArray[np.float64])
EndName = tuple[str, str, float, float]  # a curve's name, its class, and where its line ends

LETTER = 6.7  # the width of a letter of chart text, generously
BOLD = 1.1  # and how much wider a bold one is
NAME_HEIGHT = 15.0  # from one curve's name to the next


class Frame(NamedTuple):
    """Where a panel lies in its drawing, and the values at its edges."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float] = (0, 1)
    y_range: tuple[float, float] = (0, 1)

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value: Place) -> Place:
        low, high = self.x_range
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value: Place) -> Place:
        low, high = self.y_range
        return self.bottom - self.height * (value - low) / (high - low)


def stretches(xs: Sequence[float], *values: Values) -> list[list[tuple[Any, ...]]]:
    """Return the points between gaps: where every one of the values is known.

    >>> stretches([1, 2, 3, 4], [0.5, 0.6, None, 0.8])
    [[(1, 0.5), (2, 0.6)], [(4, 0.8)]]
    """
    points = groupby(zip(xs, *values, strict=True), key=lambda point: None not in point)
    return [list(stretch) for known, stretch in points if known]


def around(points: Sequence[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Return the edge of an area of which each position's low and high are known.

    >>> around([(1, 0.2, 0.5), (2, 0.3, 0.6)])
    [(1, 0.5), (2, 0.6), (2, 0.3), (1, 0.2)]
    """
    forth = [(x, high) for x, _, high in points]
    return forth + [(x, low) for x, low, _ in reversed(points)]


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


def tick_words(low: float, high: float, about: int) -> list[tuple[float, str]]:
    """Return `ticks` with their numbers, all with as many digits as the step between them needs.

    >>> tick_words(0.0, 0.1, 2), tick_words(20, 40, 2)
    ([(0.0, '0.00'), (0.05, '0.05'), (0.1, '0.10')], [(20.0, '20'), (30.0, '30'), (40.0, '40')])
    """
    values = ticks(low, high, about)
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
    for i in order:
        moved[i] = max(moved[i], low)
        low = moved[i] + apart
    for i in reversed(order):
        moved[i] = min(moved[i], high)
        high = moved[i] - apart
    return moved


def end_names(frame: Frame, ends: Sequence[EndName]) -> list[EndName]:
    """Return names at the right ends of curves, moved apart where they would overlap."""
    heights = spread_out([y for *_, y in ends], NAME_HEIGHT, frame.top + 4, frame.bottom)
    return [(*end[:3], y) for end, y in zip(ends, heights, strict=True)]


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
