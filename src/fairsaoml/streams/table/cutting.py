"""Where one task ends and the next begins: every so many rows, or along the calendar.

Each way of cutting gives every row the number of its task; rows are cut where it changes. Only
the rows of the task at hand are held, however long the stream.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.columns import Numbers, array, factor, numbers
from fairsaoml.streams.table.reading import join

__all__ = [
    "ByCount",
    "ByRows",
    "ByTime",
    "Clock",
    "Every",
    "Numbering",
    "OutOfOrder",
    "Piece",
    "Rows",
    "cut",
    "timed",
]

NUMBER = "number"  # a time that is a plain number, such as seconds since 1970
# Seconds since 1970 between 1973 and 2286 in each unit; smaller numbers are no time of ours.
UNIX_UNITS = ((1e8, 1e10, 1.0), (1e11, 1e13, 1e3), (1e14, 1e16, 1e6), (1e17, 1e19, 1e9))
MONTHS_IN = {"M": 1, "Q": 3, "Y": 12}
SECONDS_IN = {"MIN": 60.0, "H": 3600.0, "D": dates.DAY, "W": 7 * dates.DAY}
FIRST_MONDAY = 4 * dates.DAY  # 5 January 1970


class Rows(NamedTuple):
    """A batch of rows, with their times where the stream has a time."""

    table: Any
    seconds: np.ndarray | None


class Piece(NamedTuple):
    """The rows of one task, and its number: numbers that are left out had no rows."""

    table: Any
    number: int


@dataclass(frozen=True, kw_only=True)
class Clock:
    """How a time column is read."""

    column: str
    format: str

    @staticmethod
    def candidates(column: Any) -> tuple[str, ...]:
        """The ways in which every value can be read, the likeliest first.

        >>> Clock.candidates(pa.array(["2011-01-31", "2011-02-01"]))
        ('year-month-day',)
        >>> Clock.candidates(pa.array([881250949, 881250950])), Clock.candidates(pa.array(["?"]))
        (('number',), ())
        """
        column = array(column)
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            return (dates.TYPED,)
        texts = factor(column).values
        known = tuple(name for name in dates.formats(texts) if name != dates.CLOCK)
        read = numbers(texts)
        return known if read.unreadable or not len(texts) else (*known, NUMBER)

    @staticmethod
    def of(name: str, column: Any) -> "Clock":
        """The likeliest reading of all values or, where there is none, of the first."""
        found = Clock.candidates(column)
        if not found:
            texts = factor(column).values
            found = Clock.candidates(texts[:1])
            if not found:
                got = repr(texts[0].as_py()) if len(texts) else "no values"
                raise DataError(
                    f"expected dates or numbers in the time column {name!r}, got {got}; "
                    "write them as 2011-01-31 or 2011-01-31 14:30"
                )
        return Clock(column=name, format=found[0])

    def seconds(self, table: Any, before: int = 0) -> np.ndarray:
        """Times of the rows; a row without one is an error. `before`: rows that came earlier."""
        read = self._read(table[self.column])
        unknown = np.isnan(read.values)
        if unknown.any():
            row = before + int(np.argmax(unknown)) + 1
            got = repr(read.example) if read.unreadable else "nothing"
            raise DataError(
                f"expected a time written as {self.format} in every row of {self.column!r}, got "
                f"{got} (first at row {row}); mend those rows or leave them out"
            )
        return read.values

    def _read(self, column: Any) -> Numbers:
        if self.format == NUMBER:
            return numbers(column)
        return dates.read(column, self.format, utc=True)

    def per_second(self, value: float) -> float:
        """What one second is in the column's numbers, judged by the size of one of them."""
        if self.format != NUMBER:
            return 1.0
        for low, high, unit in UNIX_UNITS:
            if low <= value < high:
                return unit
        raise DataError(
            f"expected dates or seconds since 1970 in {self.column!r} to cut by calendar, got "
            f"{value:g}; cut by number of rows instead"
        )


@dataclass(frozen=True, kw_only=True)
class Every:
    """A stretch of the calendar.

    >>> Every.parse("10D")
    Every(count=10, unit='D')
    """

    count: int
    unit: str

    @staticmethod
    def parse(text: str) -> "Every":
        """From a number and a unit: min, H, D, W, M (months), Q, Y."""
        match = re.fullmatch(r"\s*(\d*)\s*([A-Za-z]+)\s*", text)
        count = int(match[1] or 1) if match else 0
        unit = match[2].upper() if match else ""
        if count < 1 or unit not in {*MONTHS_IN, *SECONDS_IN} or (match and match[2] == "m"):
            raise ConfigError(
                f"every must be a number and one of min, H, D, W, M (months), Q, Y, got {text!r}; "
                "use for example 10D or 1M"
            )
        return Every(count=count, unit=unit)

    def windows(self, seconds: np.ndarray, origin: float) -> np.ndarray:
        """The number of the window each time falls in; window 0 is the one of `origin`.

        Days begin at midnight, weeks on Monday, months on the first.

        >>> Every.parse("1M").windows(np.array([0.0, 31 * 86400.0]), 0.0)
        array([0, 1])
        """
        if self.unit in MONTHS_IN:
            months, first = (
                np.floor(time).astype("M8[s]").astype("M8[M]").astype(np.int64)
                for time in (seconds, np.array(origin))
            )
            size = MONTHS_IN[self.unit]
            return (months - first // size * size) // (size * self.count)
        step = SECONDS_IN[self.unit]
        anchor = FIRST_MONDAY if self.unit == "W" else 0.0
        start = np.floor((origin - anchor) / step) * step + anchor
        return np.floor((seconds - start) / (step * self.count)).astype(np.int64)


class Numbering(Protocol):
    """Gives rows, batch after batch, the number of their task."""

    def __call__(self, rows: Rows) -> np.ndarray: ...

    def full(self) -> bool:
        """Whether the next row is sure to open another task."""
        ...


class ByRows:
    """A new task every so many rows."""

    def __init__(self, rows: int) -> None:
        self.rows, self.seen = rows, 0

    def __call__(self, rows: Rows) -> np.ndarray:
        places = self.seen + np.arange(rows.table.num_rows)
        self.seen += rows.table.num_rows
        return places // self.rows

    def full(self) -> bool:
        return self.seen % self.rows == 0


class ByCount:
    """So many tasks of equal size, to a row: task i ends before row floor((i + 1) n / tasks)."""

    def __init__(self, tasks: int, length: int) -> None:
        self.ends = np.arange(1, tasks + 1) * length // tasks
        self.seen = 0

    def __call__(self, rows: Rows) -> np.ndarray:
        places = self.seen + np.arange(rows.table.num_rows)
        self.seen += rows.table.num_rows
        return np.searchsorted(self.ends, places, side="right")

    def full(self) -> bool:
        return bool(self.seen in self.ends)


class ByTime:
    """A new task with every window of the calendar in which there are rows."""

    def __init__(self, every: Every, clock: Clock) -> None:
        self.every, self.clock = every, clock
        self.origin: float | None = None

    def __call__(self, rows: Rows) -> np.ndarray:
        assert rows.seconds is not None  # the caller asks for `every` only where there is a time
        if self.origin is None:
            self.per_second = self.clock.per_second(float(rows.seconds[0]))
            self.origin = float(rows.seconds[0]) / self.per_second
        return self.every.windows(rows.seconds / self.per_second, self.origin)

    def full(self) -> bool:
        return False


def timed(batches: Iterable[Any], clock: Clock | None) -> Iterator[Rows]:
    """Batches with their times, which must not go back."""
    before, last = 0, -np.inf
    for table in batches:
        if not table.num_rows:
            continue
        seconds = None
        if clock is not None:
            seconds = clock.seconds(table, before)
            steps = np.diff(seconds, prepend=last)
            if (steps < 0).any():
                place = int(np.argmax(steps < 0))
                earlier = seconds[place - 1] if place else last
                raise OutOfOrder(clock, before + place + 1, seconds[place], float(earlier))
            last = float(seconds[-1])
        before += table.num_rows
        yield Rows(table, seconds)


class OutOfOrder(DataError):
    """A row that is older than the one before it."""

    def __init__(self, clock: Clock, row: int, later: float, earlier: float) -> None:
        shown = "{:g}".format if clock.format == NUMBER else dates.shown
        super().__init__(
            f"expected rows in order of {clock.column!r}, got {shown(later)} after "
            f"{shown(earlier)} at row {row}; sort them by time first"
        )


def cut(batches: Iterable[Rows], numbering: Numbering) -> Iterator[Piece]:
    """The tasks, one after another, each as soon as its last row is known.

    >>> batches = [Rows(pa.table({"a": [1, 2]}), None), Rows(pa.table({"a": [3, 4, 5]}), None)]
    >>> [piece.table["a"].to_pylist() for piece in cut(batches, ByRows(3))]
    [[1, 2, 3], [4, 5]]
    """
    held: list[Any] = []
    number = -1
    for rows in batches:
        task = numbering(rows)
        edges = [0, *(np.flatnonzero(np.diff(task)) + 1).tolist(), len(task)]
        for low, high in pairwise(edges):
            if held and task[low] != number:
                yield Piece(join(held), number)
                held = []
            number = int(task[low])
            held.append(rows.table.slice(low, high - low))
        if numbering.full():
            yield Piece(join(held), number)
            held = []
    if held:
        yield Piece(join(held), number)
