"""Dates, whether typed or written as text, as seconds since 1970; and the clock of a time column.

Months and days are checked (`2011-02-30` is no date), and nothing depends on the locale.
"""

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, DataError, closest
from fairsaoml.streams.table.columns import Numbers, array, factor, numbers

DAY = 86_400.0
YEAR = 365.2425 * DAY
CLOCK = "clock"  # the format of a time of day without a date
TYPED = "typed"  # the format of a column that is no text
PATTERN = "%"  # in the formats of strptime, such as %d.%m.%Y
CLOCKS = (" %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S")  # after the pattern of a day
CENTURY_TURN = 69  # two-digit years from here on are 19xx, as POSIX reads them
# Words for numbers, which are their places from 1.
_WORDS = {
    "name": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "half": ("am", "pm"),
    "sign": ("+", "-"),
}

_HOUR = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d+)?))?\s*(?P<half>[AaPp][Mm])?"
)
_ZONE = r"(?:Z|(?P<sign>[+-])(?P<zone_hour>\d{2}):?(?P<zone_minute>\d{2}))"
_TAIL = rf"(?:[ T]+{_HOUR})?\s*{_ZONE}?"
_DAY, _MONTH, _NAME = r"(?P<day>\d{1,2})", r"(?P<month>\d{1,2})", r"(?P<name>[A-Za-z]{3,9})"
_YEAR = r"(?P<year>\d{4})"
_SHORT_YEAR = rf"(?:{_YEAR}|(?P<short>\d{{2}}))"  # 01 is 2001, 0001 is not

# In order of preference: where both month-first and day-first fit, month-first is taken.
_FORMATS = {
    "year-month-day": rf"^{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}{_TAIL}$",
    "yearmonthday": r"^(?P<year>(?:19|20)\d{2})(?P<month>\d{2})(?P<day>\d{2})$",
    "month/day/year": rf"^{_MONTH}[-/.]{_DAY}[-/.]{_SHORT_YEAR}{_TAIL}$",
    "day/month/year": rf"^{_DAY}[-/.]{_MONTH}[-/.]{_SHORT_YEAR}{_TAIL}$",
    "day-name-year": rf"^{_DAY}[- ]{_NAME}[-, ]+{_YEAR}{_TAIL}$",
    "name-day-year": rf"^{_NAME} {_DAY}[, ]+{_YEAR}{_TAIL}$",
    CLOCK: rf"^{_HOUR}$",
}

NUMBER = "number"  # a time that is a plain number, such as seconds since 1970
SMALL_NUMBER, OFTEN = 200, 2  # below which, and how often each on average, a time may be none
# Seconds since 1970 between 1973 and 2286 in each unit; smaller numbers are no time of ours.
UNIX_UNITS = ((1e8, 1e10, 1.0), (1e11, 1e13, 1e3), (1e14, 1e16, 1e6), (1e17, 1e19, 1e9))


def require_format(format: str) -> None:
    """Refuse what is neither a format's name nor a pattern.

    >>> require_format("day/month/yaer")
    Traceback (most recent call last):
    fairsaoml.core.errors.ConfigError: unknown time format 'day/month/yaer'; did you mean \
'day/month/year'?
    """
    known = [name for name in _FORMATS if name != CLOCK]
    if not isinstance(format, str) or (PATTERN not in format and format not in known):
        raise ConfigError(f"unknown time format {format!r}; {closest(str(format), known)}")


def formats(column: Any, asked: str | None = None) -> tuple[str, ...]:
    """The formats that read every value of a column, in order of preference, `asked` first.

    >>> formats(pa.array(["01/02/2011", "12/31/2011"])), formats(pa.array(["01/02/2011"]))
    (('month/day/year',), ('month/day/year', 'day/month/year'))
    >>> formats(pa.array(["2011-02-30"])), formats(pa.array(["soon"]))
    ((), ())
    """
    column = array(column)
    if pa.types.is_temporal(column.type):
        return (CLOCK if pa.types.is_time(column.type) else TYPED,)
    values = factor(column).values
    if not len(values):
        return ()
    likely = [*dict.fromkeys([*([asked] if asked else []), *_FORMATS])]
    # The first value alone rules out nearly every format, and nearly every column that is no date.
    for some in (values[:1], values):
        likely = [name for name in likely if not np.isnan(of_text(some, name)).any()]
    return tuple(likely)


def of_text(values: Any, format: str, *, utc: bool = False) -> np.ndarray:
    """Seconds since 1970 of each text, NaN where it is no such date.

    A zone is ignored, so that the hour is that of the wall clock, unless `utc` asks for it.

    >>> of_text(pa.array(["1970-01-02 00:00:01.5+01:00", "x"]), "year-month-day")
    array([86401.5,     nan])
    >>> of_text(pa.array(["1970-01-02 00:00:01.5+01:00"]), "year-month-day", utc=True)
    array([82801.5])
    """
    if PATTERN in format:
        moments = pc.strptime(values, format=format, unit="us", error_is_null=True)
        return _of_typed(moments, utc=utc)
    part = _parts(values, _FORMATS[format])
    seconds = _seconds_of_day(part)
    if format == CLOCK:
        return np.where(np.isnan(part["hour"]), np.nan, seconds)
    seconds = seconds + DAY * _days(part)
    if utc:
        ahead = np.nan_to_num(3600 * part["zone_hour"] + 60 * part["zone_minute"])
        seconds = seconds - np.where(part["sign"] == 2, -ahead, ahead)
    return seconds


def read(column: Any, format: str, *, utc: bool = False) -> Numbers:
    """A whole column as seconds, typed dates as they are and texts in this format.

    >>> import datetime
    >>> read(pa.array([datetime.date(1970, 1, 2), None]), TYPED).values
    array([86400.,    nan])
    >>> read(pa.array(["2/1/1970", "May"]), "day/month/year")[:3]
    (array([86400.,    nan]), 1, 'May')
    """
    column = array(column)
    if pa.types.is_temporal(column.type):
        return Numbers(values=_of_typed(column, utc=utc), unreadable=0)
    distinct = factor(column)
    if format == TYPED:  # fitted on dates, given texts: take them as they are written
        format = (*formats(distinct.values), "year-month-day")[0]
    seconds = of_text(distinct.values, format, utc=utc)
    return distinct.numbers(seconds, np.isnan(seconds))


def _with_clock(format: str, text: str) -> str:
    """The pattern with which a text can be read that has a time of day too; "" if there is none.

    >>> _with_clock("%d.%m.%Y", "31.01.2011 14:30"), _with_clock("%d.%m.%Y", "soon")
    ('%d.%m.%Y %H:%M', '')
    """
    longer = [f"{format}{clock}" for clock in CLOCKS if PATTERN in format]
    return next((one for one in longer if not np.isnan(of_text(pa.array([text]), one)).any()), "")


def _of_typed(column: Any, *, utc: bool) -> np.ndarray:
    """Seconds of an Arrow date, timestamp or time-of-day array, NaN where it is null."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None and not utc:
        column = pc.local_timestamp(column)
    kind = pa.time64("us") if pa.types.is_time(column.type) else pa.timestamp("us")
    ticks = column.cast(kind, safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.asarray(ticks.to_numpy(zero_copy_only=False)) / 1e6


def _parts(values: Any, pattern: str) -> Mapping[str, np.ndarray]:
    """The pattern's named groups as numbers, NaN where one is absent."""
    matches = pc.extract_regex(values, pattern)
    parts = defaultdict[str, np.ndarray](lambda: np.full(len(values), np.nan))
    for name in re.compile(pattern).groupindex:
        text = matches.field(name)
        if name in _WORDS:
            word = pc.utf8_slice_codeunits(pc.utf8_lower(text), 0, 3)
            number = pc.add(pc.index_in(word, value_set=pa.array(_WORDS[name])), 1)
        else:
            number = pc.if_else(pc.equal(text, ""), None, text)
        parts[name] = number.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return parts


def _days(part: Mapping[str, np.ndarray]) -> np.ndarray:
    """Days since 1970, NaN where the month has no such day."""
    short, day, month = part["short"], part["day"], np.fmax(part["month"], part["name"])
    year = np.fmax(part["year"], short + 1900 + 100 * (short < CENTURY_TURN))
    months = np.nan_to_num((year - 1970) * 12 + month - 1).astype(np.int64)
    first, after = ((months + k).astype("M8[M]").astype("M8[D]").astype(np.int64) for k in (0, 1))
    real = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= after - first)
    return np.where(real, first + day - 1, np.nan)


def _seconds_of_day(part: Mapping[str, np.ndarray]) -> np.ndarray:
    """Seconds since midnight, which is where none is said; NaN where the day has no such time."""
    hour, minute, second = (np.nan_to_num(part[name]) for name in ("hour", "minute", "second"))
    whole_day, half = np.isnan(part["half"]), part["half"]
    real = (hour <= 24) & (minute < 60) & (second < 61)
    real &= whole_day | ((hour >= 1) & (hour <= 12))
    hour = np.where(whole_day, hour, hour % 12 + 12 * (half == 2))
    return np.where(real, 3600 * hour + 60 * minute + second, np.nan)


class Clock(NamedTuple):
    """How a time column is read."""

    column: str
    format: str

    @classmethod
    def readings(cls, name: str, column: Any, asked: str | None = None) -> "list[Clock]":
        """The ways in which the first value can be read, the likeliest first; or the one asked for.

        Raises DataError if there is none.

        >>> [clock.format for clock in Clock.readings("t", pa.array(["2011-01-31", "?"]))]
        ['year-month-day']
        >>> [clock.format for clock in Clock.readings("t", pa.array([881250949, 881250950]))]
        ['number']
        """
        column = array(column)
        texts = column[:1] if pa.types.is_temporal(column.type) else factor(column).values[:1]
        known = [asked] if asked else [name for name in formats(texts) if name != CLOCK]
        if not asked and len(texts) and not numbers(texts).unreadable:
            known.append(NUMBER)
        if not known:
            got = repr(texts[0].as_py()) if len(texts) else "no values"
            raise DataError(
                f"expected dates or numbers in the time column {name!r}, got {got}; "
                "write them as 2011-01-31 or 2011-01-31 14:30, or say how with --time-format"
            )
        return [cls(column=name, format=format) for format in known]

    def seconds(self, table: Any, before: int = 0) -> np.ndarray:
        """Times of the rows; a row without one is an error. `before`: rows that came earlier."""
        column = table[self.column]
        times = numbers(column) if self.format == NUMBER else read(column, self.format, utc=True)
        unknown = np.isnan(times.values)
        if unknown.any():
            row = before + int(np.argmax(unknown)) + 1
            raise Unreadable(self, row, times.example, _with_clock(self.format, times.example))
        return times.values

    def period(self, table: Any) -> tuple[str, str]:
        """The times of the first and the last row in words; a number that is no date as it is.

        >>> table = pa.table({"t": ["31.1.2011", "1.2.2011"]})
        >>> Clock(column="t", format="day/month/year").period(table)
        ('2011-01-31', '2011-02-01')
        """
        first, last = self.seconds(table.take([0, table.num_rows - 1]))
        return self.shown(first), self.shown(last)

    def shown(self, value: float) -> str:
        """A time of the column for people.

        >>> [Clock(column="t", format="number").shown(value) for value in (12.0, 881250949.0)]
        ['12', '1997-12-04 15:55:49']
        """
        try:
            seconds = int(value / self.per_second(value))
        except DataError:  # no time since 1970
            return f"{value:g}"
        return str(np.datetime64(seconds, "s")).replace("T", " ").removesuffix(" 00:00:00")

    def doubts(self, table: Any) -> tuple[str, ...]:
        """A note where times are small whole numbers that come again and again, as ages do.

        >>> ages = pa.table({"age": [19, 19, 20, 20, 19, 20]})
        >>> len(Clock(column="age", format="number").doubts(ages))
        1
        """
        if self.format != NUMBER:
            return ()
        values = self.seconds(table)
        whole = (values == np.round(values)).all() and np.abs(values).max() < SMALL_NUMBER
        if not whole or OFTEN * len(np.unique(values)) > len(values):
            return ()
        return (
            f"the time {self.column!r} holds small whole numbers, such as {values[0]:g}: rows are "
            "put in their order, and those of equal ones stay as they are; if it is no time but an "
            "age or a number of things, name another column",
        )

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
    """A row whose time cannot be read as those before it; `other`: a format that reads it."""

    def __init__(self, clock: Clock, row: int, got: str, other: str = "") -> None:
        self.row, self.got = row, got
        advice = f", or say --time-format {shlex.quote(other)}" if other else ""
        super().__init__(
            f"expected a time written as {clock.format} in every row of {clock.column!r}, got "
            f"{repr(got) if got else 'nothing'} (first at row {row}); "
            f"mend those rows or leave them out{advice}"
        )
