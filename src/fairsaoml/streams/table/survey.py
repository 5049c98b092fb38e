"""One look at a whole table before it is run: its size and order, and nothing of its features.

A file with a broken line, an unreadable time or a third label is refused here, not in the middle
of a run. All that is asked is answered in one pass over the file; a file whose rows are not in
order of time is then read once more, to be sorted in memory.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import DataError
from fairsaoml.streams.table.clock import Clock, OutOfOrder, TimedRows, Timeline
from fairsaoml.streams.table.columns import factor
from fairsaoml.streams.table.cutting import ByTime, Every
from fairsaoml.streams.table.reading import Source, join, look_through
from fairsaoml.streams.table.roles import Roles

__all__ = ["MONTH_OR_DAY", "Survey", "ambiguous", "survey"]

SORTABLE_BYTES = 2 << 30  # a larger file is not loaded to be sorted
MANY_LABELS = 50  # enough of them to refuse a label
MONTH_OR_DAY = {"month/day/year", "day/month/year"}  # 01/02/2011 is either


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What is known of a table before its first task is read; of an iterator, nothing."""

    source: Source  # in order of time
    clock: Clock | None = None
    rows: int | None = None
    windows: int | None = None  # calendar windows that have rows, if the table is cut by them
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def survey(source: Source, roles: Roles, every: Every | None) -> Survey:
    """Look through a table once; one that may never end is left alone.

    Raises:
        DataError: The table cannot be read to its end, has fewer than two rows, or is out of
            order and too large to be sorted.
    """
    if not source.finite:
        return Survey(source=source)
    return look_through(source, lambda opened: _survey(opened, roles, every))


class _Reading:
    """The rows as one clock tells their times: in order or not, and in how many windows."""

    def __init__(self, clock: Clock, every: Every | None) -> None:
        self.clock, self.timeline = clock, Timeline(clock)
        self.numbering = None if every is None else ByTime(every, clock)
        self.windows, self.last_window = 0, -1
        self.disorder: OutOfOrder | None = None

    def add(self, table: Any) -> None:
        """Take in the next batch; after the first row out of order nothing more is asked."""
        if self.disorder is not None:
            return
        try:
            seconds = self.timeline.seconds(table)
        except OutOfOrder as error:
            self.disorder = error.with_traceback(None)  # which would hold on to the batch
            return
        if self.numbering is not None:
            windows = self.numbering(TimedRows(table, seconds))
            self.windows += int(np.count_nonzero(np.diff(windows, prepend=self.last_window)))
            self.last_window = int(windows[-1])


def _survey(source: Source, roles: Roles, every: Every | None) -> Survey:
    narrow = [roles.label] if roles.time is None else [roles.label, roles.time]
    rows, labels = 0, dict[str, None]()
    readings: list[_Reading] = []
    for table in source.batches(narrow):
        if not table.num_rows:
            continue
        rows += table.num_rows
        if len(labels) < MANY_LABELS:
            labels |= dict.fromkeys(factor(table[roles.label]).values.to_pylist())
        if roles.time is not None:
            clocks = _clocks(roles.time, table[roles.time], [r.clock for r in readings])
            readings = readings or [_Reading(clock, every) for clock in clocks]
            readings = [reading for reading in readings if reading.clock in clocks]
            for reading in readings:
                reading.add(table)
    if rows < 2:
        raise DataError(
            f"expected at least two rows, got {rows or 'none'}; give more rows to learn from"
        )
    if not readings or roles.time is None:
        return Survey(source=source, rows=rows, labels=tuple(labels))
    reading = readings[0]
    notes = [ambiguous(roles.time)] if len(readings) > 1 else []
    if reading.disorder is not None:
        if source.path is not None and source.path.stat().st_size > SORTABLE_BYTES:
            raise reading.disorder
        source = _in_order(source, roles, reading.clock)
        notes.append(f"rows were not in order of {roles.time!r}; they have been sorted")
        reading = _Reading(reading.clock, every)
        for table in source.batches([roles.time]):
            reading.add(table)
    return Survey(
        source=source,
        clock=reading.clock,
        rows=rows,
        windows=None if every is None else reading.windows,
        labels=tuple(labels),
        notes=tuple(notes),
    )


def _clocks(name: str, column: Any, before: list[Clock]) -> list[Clock]:
    """The ways to read a time column that are left after one more batch, the likeliest first.

    There are two as long as every date may begin with the day or with the month.
    """
    if len(before) == 1:
        return before
    candidates = Clock.candidates(column)
    if before:
        return [clock for clock in before if clock.format in candidates] or before[:1]
    clock = Clock.of(name, column)
    if clock.format not in MONTH_OR_DAY or not candidates:
        return [clock]
    return [Clock(column=name, format=format) for format in candidates if format in MONTH_OR_DAY]


def ambiguous(column: str) -> str:
    """The note on dates that may be read in two ways."""
    return f"dates in {column!r} may begin with the day or the month; the month is taken"


def _in_order(source: Source, roles: Roles, clock: Clock) -> Source:
    """The same rows by time; those of one time stay as they came."""
    tables, seconds, rows = [], [], 0
    for table in source.batches(roles.columns):
        seconds.append(clock.seconds(table, before=rows))
        tables.append(table)
        rows += table.num_rows
    order = pa.array(np.argsort(np.concatenate(seconds), kind="stable"))
    whole = join(tables)
    columns = {name: whole[name] for name in whole.column_names}
    del tables, table, whole
    for name in columns:  # one by one, so that at most one column is held twice
        columns[name] = columns[name].take(order)
    return source.holding(pa.table(columns))
