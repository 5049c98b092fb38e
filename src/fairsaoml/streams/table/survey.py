"""One look at a whole table before it is run: its size and order, and nothing of its features.

A file with a broken line, an unreadable time or a third label is refused here, not in the middle
of a run. All that is asked is answered in one pass over the file; a file whose rows are not in
order of time is then read once more, to be sorted in memory.

A digest of the rows is kept, to know the table again, and one that has only grown: it does not
depend on how rows come in batches, so a longer table's first rows have the digest of the shorter.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import DataError
from fairsaoml.streams.table.columns import UNTYPED, array, factor, require_flat, texts
from fairsaoml.streams.table.cutting import TASK_ROWS, Cut, Numbering
from fairsaoml.streams.table.dates import Clock, Unreadable
from fairsaoml.streams.table.reading import Source, join, open_source
from fairsaoml.streams.table.roles import Roles

SORTABLE_BYTES = 2 << 30  # a larger file is not loaded to be sorted
MANY_LABELS = 50  # enough of them to refuse a label
MONTH_OR_DAY = {"month/day/year", "day/month/year"}  # 01/02/2011 is either


class Fingerprint:
    """Of rows, batch after batch: their number, their columns with types, their digest.

    >>> whole, parts = Fingerprint(), Fingerprint()
    >>> table = pa.table({"age": [30, None, 41], "sex": ["f", "m", ""]})
    >>> whole.add(table)
    >>> for row in range(3):
    ...     parts.add(table.slice(row, 1))
    >>> whole.to_json() == parts.to_json()
    True
    """

    def __init__(self) -> None:
        self.rows = 0
        self._types: dict[str, str] = {}
        self._columns: dict[str, tuple[Any, Any]] = {}  # what each holds, and how long it is

    def add(self, table: Any) -> None:
        """Add the next rows."""
        self.rows += table.num_rows
        for name in table.column_names:
            self._types.setdefault(name, str(table.schema.field(name).type))
            content, lengths = self._columns.setdefault(name, (hashlib.sha256(), hashlib.sha256()))
            try:
                column = array(table[name]).cast(pa.large_string())
            except UNTYPED:  # of a type without texts: as Python writes it
                column = texts(table[name].to_pylist(), repr).cast(pa.large_string())
            lengths.update(pc.fill_null(pc.binary_length(column), -1).to_numpy(False).tobytes())
            column = pc.fill_null(column, "")
            if len(column):
                offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset :]
                data = column.buffers()[2] or b""
                content.update(memoryview(data)[offsets[0] : offsets[len(column)]])

    def to_json(self) -> dict[str, Any]:
        """Plain data, of the rows so far."""
        digest = hashlib.sha256()
        for name, parts in self._columns.items():
            digest.update(name.encode() + b"\0" + b"".join(part.digest() for part in parts))
        return {"rows": self.rows, "columns": dict(self._types), "digest": digest.hexdigest()}


def known_beginning(table: Any, known: Iterable[Mapping[str, Any]]) -> int:
    """How many rows at the beginning of a table have a known fingerprint: were read before."""
    digests = {(entry["rows"], entry["digest"]) for entry in known}
    seen, begins = Fingerprint(), 0
    for rows in sorted({rows for rows, _ in digests if 0 < rows <= table.num_rows}):
        seen.add(table.slice(seen.rows, rows - seen.rows))
        if (rows, seen.to_json()["digest"]) in digests:
            begins = rows
    return begins


def unknown_from(table: Any, known: Collection[Mapping[str, Any]]) -> int:
    """The place of the first row after those that were read before, one table after another.

    >>> first, second = Fingerprint(), Fingerprint()
    >>> table = pa.table({"age": [30, 41, 25, 67]})
    >>> first.add(table.slice(0, 2)), second.add(table.slice(2, 1))
    (None, None)
    >>> unknown_from(table, [second.to_json(), first.to_json()])
    3
    """
    place = 0
    while rows := known_beginning(table.slice(place), known):
        place += rows
    return place


class Survey(NamedTuple):
    """What is known of a table before its first task is read; of an iterator, nothing."""

    source: Source  # in order of time
    cutting: Cut
    clock: Clock | None = None
    length: int | None = None  # number of tasks
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fingerprint: Mapping[str, Any] | None = None  # to know the rows again
    end: Any = None  # the table's last rows, about as many as a task has


def survey(source: Source, roles: Roles, cutting: Cut, time_format: str | None = None) -> Survey:
    """Look through a table once; one that may never end is left alone.

    How its times are read is decided on the rows of the first task (of a table cut by the calendar,
    on its first thousand rows as well), or by `time_format`.

    Raises:
        DataError: The table cannot be read to its end, has fewer than two rows, or is out of
            order and too large to be sorted.
    """
    if not source.finite:
        return Survey(source, cutting.for_length(None))
    labels, seen = dict[str, None](), Fingerprint()
    readings: dict[Clock, Numbering] = {}  # as each clock that may be meant tells the rows' times
    end = None
    for table in source.batches(roles.columns):
        require_flat(table, roles.flat)
        if not table.num_rows:
            continue
        if len(labels) < MANY_LABELS:
            labels |= dict.fromkeys(factor(table[roles.label]).values.to_pylist())
        if roles.time is not None:
            readings = readings or {
                clock: Numbering(cutting, clock)
                for clock in Clock.readings(roles.time, table[roles.time], time_format)
            }
            for reading in readings.values():
                reading.look(table)
        seen.add(table)
        if end is not None and table.num_rows < TASK_ROWS:
            table = join([end, table])
        end = table.slice(max(0, table.num_rows - TASK_ROWS))
    if seen.rows < 2:
        raise DataError(
            f"expected at least two rows, got {seen.rows or 'none'}; give more rows to learn from"
        )
    cutting = cutting.for_length(seen.rows)
    length = int(cutting.task_of(np.array(seen.rows - 1))) + 1
    clock, notes = None, tuple[str, ...]()
    if readings:
        clock, notes = _chosen(readings, cutting.first_rows())
        reading = readings[clock]
        if reading.disorder is not None:
            if source.path is not None and source.path.stat().st_size > SORTABLE_BYTES:
                raise reading.disorder
            table = _in_order(source, roles, clock)
            source = replace(source, batches=open_source(table).batches)
            end = table.slice(max(0, seen.rows - TASK_ROWS))
            notes = (*notes, f"rows were not in order of {roles.time!r}; they have been sorted")
            reading = Numbering(cutting, clock)
            reading.look(table)
        length = reading.windows if cutting.every else length
    return Survey(source, cutting, clock, length, tuple(labels), notes, seen.to_json(), end)


def _chosen(
    readings: Mapping[Clock, Numbering], first_rows: int | None
) -> tuple[Clock, tuple[str, ...]]:
    """The likeliest way to read every time of the first task, and a note where there are two.

    A later row that it cannot read is refused, not a reason to read all the others differently.
    Where the calendar cuts, which rows are the first task depends on how they are read: then as
    many tell as a task has when nobody says.
    """

    def fits(reading: Numbering) -> bool:
        rows = first_rows or max(reading.first_window_rows, TASK_ROWS)
        return reading.broken is None or getattr(reading.broken, "row", 0) > rows

    left = [clock for clock, reading in readings.items() if fits(reading)]
    clock = (left or [*readings])[0]
    others = [other.format for other, reading in readings.items() if reading.broken is None]
    if isinstance(broken := readings[clock].broken, Unreadable) and others:
        raise Unreadable(clock, broken.row, broken.got, others[0])
    if broken is not None:
        raise broken
    ambiguous = {other.format for other in left} >= MONTH_OR_DAY
    return clock, (day_or_month(clock.column),) if ambiguous else ()


def day_or_month(column: str) -> str:
    """The note on dates that may be read in two ways."""
    return (
        f"dates in {column!r} may begin with the day or the month; the month is taken "
        "(--time-format day/month/year says otherwise)"
    )


def _in_order(source: Source, roles: Roles, clock: Clock) -> Any:
    """The rows sorted by time; those of equal times keep their order."""
    whole = join([table for table in source.batches(roles.columns) if table.num_rows])
    order = pa.array(np.argsort(clock.seconds(whole), kind="stable"))
    columns = {name: whole[name] for name in whole.column_names}
    del whole
    for name in columns:  # one by one, so that at most one column is held twice
        columns[name] = columns[name].take(order)
    return pa.table(columns)
