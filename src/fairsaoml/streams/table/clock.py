"""The time of each row: how a time column is written, and what is wrong with a row's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import DataError
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.columns import Numbers, array, factor, numbers

__all__ = ["Clock", "OutOfOrder", "Unreadable"]

NUMBER = "number"  # a time that is a plain number, such as seconds since 1970
# Seconds since 1970 between 1973 and 2286 in each unit; smaller numbers are no time of ours.
UNIX_UNITS = ((1e8, 1e10, 1.0), (1e11, 1e13, 1e3), (1e14, 1e16, 1e6), (1e17, 1e19, 1e9))


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
    def readings(name: str, column: Any, asked: str | None) -> "list[Clock]":
        """The ways in which the first value can be read, the likeliest first; or the one asked for.

        Raises DataError if there is none.
        """
        column = array(column)
        texts = column[:1] if pa.types.is_temporal(column.type) else factor(column).values[:1]
        formats = [asked] if asked else Clock.candidates(texts)
        if not formats:
            got = repr(texts[0].as_py()) if len(texts) else "no values"
            raise DataError(
                f"expected dates or numbers in the time column {name!r}, got {got}; "
                "write them as 2011-01-31 or 2011-01-31 14:30, or say how with --time-format"
            )
        return [Clock(column=name, format=format) for format in formats]

    def seconds(self, table: Any, before: int = 0) -> np.ndarray:
        """Times of the rows; a row without one is an error. `before`: rows that came earlier."""
        read = self._read(table[self.column])
        unknown = np.isnan(read.values)
        if unknown.any():
            row = before + int(np.argmax(unknown)) + 1
            got = repr(read.example) if read.unreadable else "nothing"
            raise Unreadable(self, row, got)
        return read.values

    def period(self, table: Any) -> tuple[str, str]:
        """The times of the first and the last row in words; a number that is no date as it is.

        >>> table = pa.table({"t": ["31.1.2011", "1.2.2011"]})
        >>> Clock(column="t", format="day/month/year").period(table)
        ('2011-01-31', '2011-02-01')
        """
        ends = self.seconds(table.take([0, table.num_rows - 1]))
        try:
            unit = self.per_second(float(ends[0]))
        except DataError:
            return f"{ends[0]:g}", f"{ends[1]:g}"
        return dates.shown(ends[0] / unit), dates.shown(ends[1] / unit)

    def _read(self, column: Any) -> Numbers:
        if self.format == NUMBER:
            return numbers(column)
        return dates.read(column, self.format, utc=True)

    def per_second(self, value: float) -> float:
        """What one second is in the column's numbers, told from the size of one of them."""
        if self.format != NUMBER:
            return 1.0
        for low, high, unit in UNIX_UNITS:
            if low <= value < high:
                return unit
        raise DataError(
            f"expected dates or seconds since 1970 in {self.column!r} to cut by calendar, got "
            f"{value:g}; cut by number of rows instead"
        )


class Unreadable(DataError):
    """A row whose time cannot be read as those before it."""

    def __init__(self, clock: Clock, row: int, got: str, advice: str = "") -> None:
        self.clock, self.row, self.got = clock, row, got
        super().__init__(
            f"expected a time written as {clock.format} in every row of {clock.column!r}, got "
            f"{got} (first at row {row}); mend those rows or leave them out{advice}"
        )


class OutOfOrder(DataError):
    """A row that is older than the one before it."""

    def __init__(self, clock: Clock, row: int, later: float, earlier: float) -> None:
        shown = "{:g}".format if clock.format == NUMBER else dates.shown
        super().__init__(
            f"expected rows in order of {clock.column!r}, got {shown(later)} after "
            f"{shown(earlier)} at row {row}; sort them by time first"
        )
