"""Where one task ends and the next begins: every so many rows, or along the calendar.

Each way of cutting gives every row the number of its task; rows are cut where it changes. Only
the rows of the task at hand are held, however long the stream.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.streams.table.dates import DAY, Clock
from fairsaoml.streams.table.reading import join

TASK_ROWS = 1000  # rows of a task when nobody says
FEW_TASKS, FEW_ROWS = 20, 50  # a small table: about so many tasks, each of so many rows at least
MOST = 10**9  # tasks, rows or units; more is a slip of the keyboard
MONTHS_IN = {"M": 1, "Q": 3, "Y": 12}
SECONDS_IN = {"MIN": 60.0, "H": 3600.0, "D": DAY, "W": 7 * DAY}
FIRST_MONDAY = 4 * DAY  # 5 January 1970


class TaskRows(NamedTuple):
    """The rows of one task, and its number: numbers that are left out had no rows."""

    table: Any
    number: int


@dataclass(frozen=True)
class Every:
    """A stretch of the calendar.

    >>> Every.parse("10D")
    Every(count=10, unit='D')
    """

    count: int
    unit: str

    @staticmethod
    def parse(text: Any) -> "Every":
        """From a number and a unit: min, H, D, W, M (months, never m), Q, Y."""
        match = re.fullmatch(r"\s*(\d*)\s*((?i:min)|[HDWMQYhdwqy])\s*", str(text))
        count = int(match[1][:20] or 1) if match else 0  # Python refuses numbers of 5,000 digits
        if match is None or not 1 <= count <= MOST:
            raise ConfigError(
                f"every must be a number and one of min, H, D, W, M (months), Q, Y, got {text!r}; "
                "use for example 10D or 1M"
            )
        return Every(count=count, unit=match[2].upper())

    def windows(self, seconds: np.ndarray, origin: float) -> np.ndarray:
        """The number of the window each time falls in; window 0 is the one of `origin`.

        Days begin at midnight, weeks on Monday, months on the first.

        >>> Every.parse("1M").windows(np.array([0.0, 31 * 86400.0]), 0.0)
        array([0, 1])
        """
        return (self._units(seconds) - self._units(np.array(origin))) // self.count

    def _units(self, seconds: np.ndarray) -> np.ndarray:
        if self.unit in MONTHS_IN:
            months = np.floor(seconds).astype("M8[s]").astype("M8[M]").astype(np.int64)
            return months // MONTHS_IN[self.unit]
        first = FIRST_MONDAY if self.unit == "W" else 0.0
        return np.floor((seconds - first) / SECONDS_IN[self.unit]).astype(np.int64)


class Cut(NamedTuple):
    """How tasks are cut: along the calendar, or so many tasks in every so many rows."""

    tasks: int | None = None
    rows: int | None = None
    every: Every | None = None

    @classmethod
    def asked(
        cls, *, tasks: int | None, every: str | None, rows: int | None, time: str | None
    ) -> "Cut":
        """The cut that a stream's settings ask for; contradictions raise `ConfigError`."""
        given = {"tasks": tasks, "every": every, "rows": rows}
        chosen = [option for option, value in given.items() if value is not None]
        if len(chosen) > 1:
            got = " and ".join(chosen)
            raise ConfigError(f"tasks are cut in one way, got {got}; use one of them")
        for option, value in (("tasks", tasks), ("rows", rows)):
            if value is not None and (type(value) is not int or not 1 <= value <= MOST):
                raise ConfigError(
                    f"{option} must be at least 1 and at most {MOST}, got {value!r}; "
                    "use for example 100"
                )
        if every is not None and time is None:
            raise ConfigError(f"every={every!r} needs a time column, got none; name it with time")
        asked = None if every in (None, "") else Every.parse(every)
        return cls(tasks=tasks, rows=rows, every=asked)

    def for_length(self, length: int | None) -> "Cut":
        """This cut for a table of `length` rows; None for a stream of unknown length."""
        if self.tasks and length is None:
            raise ConfigError(
                f"tasks={self.tasks} needs the number of rows, which an iterator does not tell; "
                "use rows or every"
            )
        if self.tasks and length is not None and self.tasks > length:
            raise DataError(
                f"expected at least one row per task, got {length} rows for {self.tasks} tasks; "
                "ask for fewer"
            )
        if length is None or self.rows or self.every:
            return self
        tasks = max(length // TASK_ROWS, min(FEW_TASKS, length // FEW_ROWS), 2)
        return Cut(tasks=self.tasks or tasks, rows=length)

    def task_of(self, places: np.ndarray) -> np.ndarray:
        """The number of each row's task, by its place: every so many rows, or of equal size.

        >>> Cut(tasks=3, rows=8).task_of(np.arange(8))
        array([0, 0, 1, 1, 1, 2, 2, 2])
        """
        # Task i ends before row (i + 1) rows // tasks.
        return ((places + 1) * (self.tasks or 1) - 1) // (self.rows or TASK_ROWS)

    def first_rows(self) -> int | None:
        """The number of rows of the first task; None where the calendar decides."""
        return None if self.every else (self.rows or TASK_ROWS) // (self.tasks or 1)


class Numbering:
    """Gives rows, batch after batch, the number of their task; `disorder` says where times go back.

    Windows of the calendar are counted from `origin`, a second, and `per_second` is what one second
    is in the time column's numbers: both are told by the first row where nobody says.
    """

    origin: float | None = None
    per_second: float | None = None

    def __init__(self, cutting: Cut, clock: Clock | None = None) -> None:
        self.cutting, self.clock = cutting, clock
        self.rows, self.last = 0, -np.inf  # so many have come, and the last one's time
        self.disorder: DataError | None = None
        self.broken: DataError | None = None
        self.windows, self.last_window, self.first_window_rows = 0, -1, 0

    def __call__(self, table: Any) -> np.ndarray:
        """The numbers of the next rows; `Unreadable` where one has no time."""
        before, self.rows = self.rows, self.rows + table.num_rows
        places = np.arange(before, self.rows)
        if self.clock is None:
            return self.cutting.task_of(places)
        seconds = self.clock.seconds(table, before)
        back = np.diff(seconds, prepend=self.last) < 0
        if self.disorder is None and back.any():
            place = int(np.argmax(back))
            earlier = float(seconds[place - 1] if place else self.last)
            self.disorder = DataError(
                f"expected rows in order of {self.clock.column!r}, got "
                f"{self.clock.shown(seconds[place])} after {self.clock.shown(earlier)} at row "
                f"{before + place + 1}; sort them by time first"
            )
        self.last = float(seconds[-1])
        if self.cutting.every is None:
            return self.cutting.task_of(places)
        if self.origin is None or self.per_second is None:
            self.per_second = self.clock.per_second(float(seconds[0]))
            self.origin = float(seconds[0]) / self.per_second
        return self.cutting.every.windows(seconds / self.per_second, self.origin)

    def look(self, table: Any) -> None:
        """Pass over the next rows: count their windows, or keep as `broken` why there are none."""
        if self.broken is not None:
            return
        try:
            windows = self(table)
        except DataError as error:
            self.broken = error.with_traceback(None)  # which would hold on to the batch
            return
        self.windows += int(np.count_nonzero(np.diff(windows, prepend=self.last_window)))
        self.last_window = int(windows[-1])
        self.first_window_rows += int(np.count_nonzero(windows == 0))

    def full(self) -> bool:
        """Whether the next row is sure to open another task."""
        last, following = self.cutting.task_of(np.array([self.rows - 1, self.rows]))
        return self.cutting.every is None and bool(last != following)


def continued_cut(numbering: Numbering, domain: str | None) -> dict[str, Any]:
    """How rows that are added to a table later are cut, as plain values.

    A table that was cut into so many tasks goes on with as many rows a task.
    """
    cutting, clock = numbering.cutting, numbering.clock
    return {
        "rows": cutting.first_rows(),
        "every": None if cutting.every is None else f"{cutting.every.count}{cutting.every.unit}",
        "time": None if clock is None else clock.column,
        "format": None if clock is None else clock.format,
        "origin": numbering.origin,
        "per_second": numbering.per_second,
        "domain": domain,
    }


def whole_tasks(table: Any, how: Mapping[str, Any]) -> tuple[list[TaskRows], Any]:
    """Rows that come after a table's: the tasks that are full, and the rows that wait for more.

    Args:
        table: the rows, those first that were waiting.
        how: what `continued_cut` returned. Where tasks are cut by time, rows are put in its order,
            and those of the newest window wait: the next file may have more of it.

    >>> import pyarrow as pa
    >>> tasks, rest = whole_tasks(pa.table({"a": [1, 2, 3, 4, 5]}), {"rows": 2, "every": None})
    >>> [task.table["a"].to_pylist() for task in tasks], rest["a"].to_pylist()
    ([[1, 2], [3, 4]], [5])
    """
    if not table.num_rows:
        return [], table
    every = None if how["every"] is None else Every.parse(how["every"])
    clock = None
    if how.get("time") is not None:
        clock = Clock(column=how["time"], format=how["format"])
        table = table.take(np.argsort(clock.seconds(table), kind="stable"))
    cutting = Cut(rows=how["rows"], every=every)
    numbering = Numbering(cutting, clock)
    numbering.origin, numbering.per_second = how.get("origin"), how.get("per_second")
    tasks = list(cut([table], numbering))
    rest = table.slice(table.num_rows) if numbering.full() else tasks.pop().table
    return tasks, rest


def cut(batches: Iterable[Any], numbering: Numbering) -> Iterator[TaskRows]:
    """The tasks, one after another, each as soon as its last row is known.

    Raises DataError where a row has no time, or an earlier one than the row before it.

    >>> import pyarrow as pa
    >>> batches = pa.table({"a": [1, 2]}), pa.table({"a": [3, 4, 5]})
    >>> [task.table["a"].to_pylist() for task in cut(batches, Numbering(Cut(rows=3)))]
    [[1, 2, 3], [4, 5]]
    """
    held: list[Any] = []
    number = -1
    for table in batches:
        if not table.num_rows:
            continue
        task = numbering(table)
        if numbering.disorder is not None:
            raise numbering.disorder
        edges = [0, *(np.flatnonzero(np.diff(task)) + 1).tolist(), len(task)]
        for low, high in pairwise(edges):
            if held and task[low] != number:
                yield TaskRows(join(held), number)
                held = []
            number = int(task[low])
            held.append(table.slice(low, high - low))
        if numbering.full():
            yield TaskRows(join(held), number)
            held = []
    if held:
        yield TaskRows(join(held), number)
