"""One look at a whole table before it is run: its size and order, and nothing of its features.

A file with a broken line, an unreadable time or a third label is refused here, not in the middle
of a run. All that is asked is answered in one pass over the file; a file whose rows are not in
order of time is then read once more, to be sorted in memory.

A digest of the rows is kept, to know the table again, and one that has only grown: it does not
depend on how rows come in batches, so a longer table's first rows have the digest of the shorter.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import DataError
from fairsaoml.streams.table.columns import UNTYPED, array, factor, require_flat
from fairsaoml.streams.table.cutting import TASK_ROWS, Cut, Numbering
from fairsaoml.streams.table.dates import Clock, Unreadable
from fairsaoml.streams.table.reading import Source, join
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
            texts = _texts(table[name])
            lengths.update(pc.fill_null(pc.binary_length(texts), -1).to_numpy(False).tobytes())
            texts = pc.fill_null(texts, "")
            if len(texts):
                offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :]
                data = texts.buffers()[2] or b""
                content.update(memoryview(data)[offsets[0] : offsets[len(texts)]])

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
    place, known_rows = 0, -1
    while known_rows:
        known_rows = known_beginning(table.slice(place), known)
        place += known_rows
    return place


def _texts(column: Any) -> Any:
    """A column as texts in one array; of a type that has none, as Python writes it."""
    try:
        return array(column).cast(pa.large_string())
    except UNTYPED:
        values = column.to_pylist()
        return pa.array([None if value is None else repr(value) for value in values]).cast(
            pa.large_string()
        )


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What is known of a table before its first task is read; of an iterator, nothing."""

    source: Source  # in order of time
    cutting: Cut
    clock: Clock | None = None
    windows: int | None = None  # calendar windows that have rows, if the table is cut by them
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
        return Survey(source=source, cutting=cutting.for_length(None))
    labels, seen = dict[str, None](), Fingerprint()
    readings: list[_Reading] = []
    end = None
    for table in source.batches(roles.columns):
        require_flat(table, roles.flat)
        if not table.num_rows:
            continue
        if len(labels) < MANY_LABELS:
            labels |= dict.fromkeys(factor(table[roles.label]).values.to_pylist())
        if roles.time is not None:
            readings = readings or [
                _Reading(clock, cutting)
                for clock in Clock.readings(roles.time, table[roles.time], time_format)
            ]
            for reading in readings:
                reading.add(table)
        seen.add(table)
        end = _end(end, table)
    rows, fingerprint = seen.rows, seen.to_json()
    if rows < 2:
        raise DataError(
            f"expected at least two rows, got {rows or 'none'}; give more rows to learn from"
        )
    cutting = cutting.for_length(rows)
    if not readings:
        return Survey(
            source=source,
            cutting=cutting,
            labels=tuple(labels),
            fingerprint=fingerprint,
            end=end,
        )
    reading, notes = _chosen(readings, cutting.first_rows())
    if reading.numbering.disorder is not None:
        if source.path is not None and source.path.stat().st_size > SORTABLE_BYTES:
            raise reading.numbering.disorder
        source = _in_order(source, roles, reading.clock)
        notes = (*notes, f"rows were not in order of {roles.time!r}; they have been sorted")
        reading, end = _Reading(reading.clock, cutting), None
        for table in source.batches(roles.columns):
            reading.add(table)
            end = _end(end, table)
    return Survey(
        source=source,
        cutting=cutting,
        clock=reading.clock,
        windows=reading.windows,
        labels=tuple(labels),
        notes=notes,
        fingerprint=fingerprint,
        end=end,
    )


def _end(before: Any, table: Any) -> Any:
    """The last rows of a table and of those before it, as many as a task has."""
    if before is not None and table.num_rows < TASK_ROWS:
        table = join([before, table])
    return table.slice(max(0, table.num_rows - TASK_ROWS))


class _Reading:
    """The rows as one clock tells their times: readable, in order, and in how many windows."""

    def __init__(self, clock: Clock, cutting: Cut) -> None:
        self.clock, self.numbering = clock, Numbering(cutting, clock)
        self.windows, self.last_window, self.first_window_rows = 0, -1, 0
        self.broken: DataError | None = None

    def add(self, table: Any) -> None:
        """Add the next batch."""
        if self.broken is not None:
            return
        try:
            windows = self.numbering(table)
        except DataError as error:
            self.broken = error.with_traceback(None)  # which would hold on to the batch
            return
        self.windows += int(np.count_nonzero(np.diff(windows, prepend=self.last_window)))
        self.last_window = int(windows[-1])
        self.first_window_rows += int(np.count_nonzero(windows == 0))


def _chosen(readings: list[_Reading], first_rows: int | None) -> tuple[_Reading, tuple[str, ...]]:
    """The likeliest way to read every time of the first task, and a note where there are two.

    A later row that it cannot read is refused, not a reason to read all the others differently.
    Where the calendar cuts, which rows are the first task depends on how they are read: then as
    many tell as a task has when nobody says.
    """

    def fits(reading: _Reading) -> bool:
        rows = max(reading.first_window_rows, TASK_ROWS) if first_rows is None else first_rows
        return reading.broken is None or getattr(reading.broken, "row", 0) > max(rows, 1)

    left = [reading for reading in readings if fits(reading)]
    reading = (left or readings)[0]
    if isinstance(broken := reading.broken, Unreadable):
        others = [other.clock.format for other in readings if other.broken is None]
        if others:
            advice = f", or say --time-format {others[0]}"
            raise Unreadable(broken.clock, broken.row, broken.got, advice)
    if broken is not None:
        raise broken
    names = {reading.clock.format for reading in left}
    return reading, (ambiguous(reading.clock.column),) if names >= MONTH_OR_DAY else ()


def ambiguous(column: str) -> str:
    """The note on dates that may be read in two ways."""
    return (
        f"dates in {column!r} may begin with the day or the month; the month is taken "
        "(--time-format day/month/year says otherwise)"
    )


def _in_order(source: Source, roles: Roles, clock: Clock) -> Source:
    """The source with its rows sorted by time; rows of equal times keep their order."""
    whole = join([table for table in source.batches(roles.columns) if table.num_rows])
    order = pa.array(np.argsort(clock.seconds(whole), kind="stable"))
    columns = {name: whole[name] for name in whole.column_names}
    del whole
    for name in columns:  # one by one, so that at most one column is held twice
        columns[name] = columns[name].take(order)
    return source.holding(pa.table(columns))
