"""Your own table as a stream: CSV, Parquet, a dataframe, or batches that never end.

How tasks are cut: `tasks=N` makes N of equal size, `rows=N` begins a new one every N rows,
`every="10D"` follows the calendar along `time` (windows without rows are passed over, with a
warning). None of them: equal tasks of about 1,000 rows, or about 20 tasks of at least 50 rows
where the table is small; batches of unknown number are cut every 1,000 rows.

`time` is the order of the rows. A table or a file that is not in order is sorted (stably, in
memory); batches that come out of order are an error. Where there is no `time`, rows are taken as
they come. The time, the domain, the label and the sensitive columns are no inputs; naming the time
or the domain among `columns` makes it one as well. A `domain` only gives a task its name: that
of most of its rows.

The streams of our own data sets are cut beforehand: slices of a table, encoded when they are asked
for, so that only the task at hand is ever a matrix.

A file is read twice for a run, block by block: once to look through it (`survey`), once for its
tasks. It is held as a whole only when it must be sorted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import Task
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table.columns import checksum, factor, require_flat, some
from fairsaoml.streams.table.cutting import Cut, Numbering, TaskRows, continued_cut, cut
from fairsaoml.streams.table.dates import Clock, require_format
from fairsaoml.streams.table.encoder import Encoder
from fairsaoml.streams.table.fitting import fit_first_task, leaks
from fairsaoml.streams.table.groups import known_by_column
from fairsaoml.streams.table.reading import open_source
from fairsaoml.streams.table.roles import Roles, column_name, names_of
from fairsaoml.streams.table.survey import survey


def stream_from_table(
    source: Any,
    *,
    label: str,
    sensitive: str | Sequence[str],
    known_groups: Mapping[str, Sequence[str]] | Sequence[str] = (),
    positive: Any = None,
    time: str | None = None,
    tasks: int | None = None,
    every: str | None = None,
    rows: int | None = None,
    domain: str | None = None,
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
    time_format: str | None = None,
    favourable: str | bool = "yes",
    name: str | None = None,
    encoder: Mapping[str, Any] | None = None,
    read: int | None = None,
) -> Stream:
    """A stream of tasks from rows of your own; everything is fitted on the first task.

    Args:
        source: A path (.csv, .tsv, either .gz, .parquet), a dataframe (pandas, polars, pyarrow),
            an iterator of dataframes, or a function that returns a fresh one.
        label: The column to predict, of two values.
        sensitive: Columns; "COL=VALUE" is one value against the rest, "COL>40" two ranges,
            "COL:18,30,50" four, and "A*B" every pair of two.
        known_groups: Values of sensitive columns that the first task may lack, as "COL=A,B" or by
            column: they are compared with the others from when they come.
        positive: The label's positive value. By default the greater of two numbers, or the one
            that the words tell: yes, approved or paid against no, denied or default.
        time: The column that orders the rows.
        tasks: Cut into so many tasks of equal size.
        every: Cut along the calendar, such as "10D" or "1M".
        rows: Cut every so many rows.
        domain: The column that names a task's domain.
        drop: Columns that are no inputs.
        columns: The inputs, if not all other columns.
        time_format: How dates are written, such as "day/month/year" or "%d.%m.%Y".
        favourable: "no" if a positive decision is bad for a person; only words depend on it.
        name: The stream's name, by default that of the file.
        encoder: A saved `Stream.encoder`, used as it is instead of fitting one: how a run is
            resumed.
        read: Take so many rows of the source and no more: those that a run had read before it
            grew.

    Returns:
        The stream, with notes on what a person should know of the table.

    Raises:
        ConfigError: The settings contradict each other.
        DataError: The rows cannot be read, or do not fit their roles.

    >>> table = pa.table({"age": [30, 41, 25, 67] * 50, "sex": ["m", "f", "f", "m"] * 50,
    ...                   "hired": ["no", "yes", "yes", "no"] * 50})
    >>> stream = stream_from_table(table, label="hired", sensitive="sex", rows=100)
    >>> stream.length, stream.schema.features, stream.schema.attributes[0].levels
    (2, ('age',), ('f', 'm'))
    >>> first = next(stream.tasks(0))
    >>> first.y[:4].tolist(), first.group[:4, 0].tolist()
    ([0.0, 1.0, 1.0, 0.0], [1, 0, 0, 1])
    """
    time, domain = column_name(time), column_name(domain)
    cutting = Cut.asked(tasks=tasks, every=every, rows=rows, time=time)
    if time_format is not None:
        require_format(time_format)
    word = ("no", "yes")[favourable] if isinstance(favourable, bool) else favourable
    if word not in ("yes", "no"):
        raise ConfigError(
            f"favourable must be yes or no, got {favourable!r}; "
            "say whether a positive decision is good for a person"
        )
    opened = open_source(source) if read is None else open_source(source).first(read)
    roles = Roles(opened.columns, column_name(label), sensitive, time, domain, drop, columns)
    known = known_by_column(known_groups, roles.protected)
    surveyed = survey(opened, roles, cutting, time_format)
    cutting, clock = surveyed.cutting, surveyed.clock

    batches = surveyed.source.batches(roles.columns)
    if clock is None and time is not None:  # an iterator: its first rows tell
        head = next((table for table in batches if table.num_rows), None)
        if head is not None:
            batches = chain([head], batches)
            require_flat(head, roles.flat)
            clock = Clock.readings(time, head[time], time_format)[0]
    numbering = Numbering(cutting, clock)
    begun = cut(batches, numbering)
    first = next(begun, None)
    if first is None:
        raise DataError("expected at least two rows, got none; give more rows to learn from")
    if encoder is None:
        fitted, notes = fit_first_task(first.table, roles, positive, time_format, known)
        if opened.is_text and fitted.label is not None:  # numbers that a dataframe holds as such
            fitted = replace(fitted, label=fitted.label.typed("integer", "boolean"))
    else:
        fitted = Encoder.from_json(encoder)
        notes = fitted.notes()
    if fitted.label is not None:
        fitted.label.check(surveyed.labels)
    waiting = [chain([first], begun)]  # the pass that fitting began is the first one's to finish

    def passes(seed: int) -> Iterator[Task]:
        again = cut(surveyed.source.batches(roles.columns), Numbering(cutting, clock))
        return encoded_tasks(waiting.pop() if waiting else again, fitted, domain, clock)

    ends = [first] if surveyed.end is None else [first, TaskRows(surveyed.end, 0)]
    first_task, *last_rows = encoded_tasks(ends, fitted)
    return Stream(
        name=name or opened.name,
        schema=fitted.schema,
        tasks=passes,
        length=surveyed.length,
        settings={
            "source": None if opened.path is None else str(opened.path.absolute()),
            "label": roles.label,
            "sensitive": roles.sensitive,
            "known_groups": known,
            "positive": positive.item() if isinstance(positive, np.generic) else positive,
            "time": time,
            "tasks": tasks,
            "every": every,
            "rows": rows,
            "domain": domain,
            "drop": names_of(drop),
            "columns": names_of(columns),
            "time_format": time_format,
            "favourable": word,
            "name": name,
        },
        encoder=fitted.to_json(),
        fingerprint=surveyed.fingerprint,
        cut=continued_cut(numbering, domain),
        base_rate=float(first_task.y.mean()) if len(first_task.y) else None,
        notes=(
            *surveyed.source.notes,
            *surveyed.notes,
            *(() if clock is None else clock.doubts(first.table)),
            *notes,
            *leaks(fitted, first_task, *last_rows),
        ),
    )


def encoded_tasks(
    task_rows: Iterable[TaskRows],
    encoder: Encoder,
    domain: str | None = None,
    clock: Clock | None = None,
) -> Iterator[Task]:
    """Tasks as learners see them, each with what is odd about its rows.

    Args:
        task_rows: Raw rows with label and sensitive columns, cut into tasks.
        encoder: Fitted on the first task, label and sensitive columns included.
        domain: The column that names a task's domain.
        clock: How the time column is read, where there is one.
    """
    last = None
    for table, number in task_rows:
        warnings = []
        if last is not None and number > last + 1:
            warnings.append(f"no rows in the {number - last - 1} windows before this one")
        last = number
        period = () if clock is None else clock.period(table)
        assert encoder.label is not None
        y = encoder.label.codes(table[encoder.label.column])
        left_out = int((y < 0).sum())
        if left_out:
            warnings.append(f"{left_out} rows without a label were left out")
            table, y = table.filter(pa.array(y >= 0)), y[y >= 0]
        grouped = [role.codes(table) for role in encoder.sensitive]
        new_groups = {}
        for role, (codes, missing, strange) in zip(encoder.sensitive, grouped, strict=True):
            attribute = role.attribute.name
            if strange:
                new_groups[attribute] = dict(strange)
            if missing:
                warnings.append(f"{attribute}: {missing} rows without a value, counted apart")
            new = int((codes == len(role.levels)).sum()) - missing
            if strange and new > 0:
                warnings.append(
                    f"{attribute}: {new} rows in groups the first task had not "
                    f"({some([*strange])}), counted apart"
                )
        x, remarks = encoder.encode(table)
        warnings += map(str, remarks)
        name, domains = _domain(table, domain)
        if domains > 1:
            warnings.append(f"{domains} domains in one task, named after most of its rows")
        yield Task(
            x=x,
            y=y.astype(np.float32),
            group=np.stack([one.codes for one in grouped], axis=1),
            domain=name,
            warnings=tuple(warnings),
            left_out=left_out,
            period=period,
            new_groups=new_groups,
        )


def _domain(table: Any, column: str | None) -> tuple[str, int]:
    """The name most rows give, the first in the alphabet among equals; and how many names."""
    if column is None:
        return "", 0
    names = factor(table[column])
    rows = dict(zip(names.values.to_pylist(), names.counts(), strict=True))
    return min(rows, key=lambda name: (-rows[name], name), default=""), len(rows)


class TaskSlice(NamedTuple):
    """One task's rows, before they are numbers."""

    domain: str
    table: Any  # Arrow table
    sign: float = 1.0  # the features are multiplied by it after scaling


def equal_slices(table: Any, count: int, domain: str, sign: float = 1.0) -> list[TaskSlice]:
    """The rows in `count` slices of equal size; where that leaves a remainder, the first get it.

    >>> import pyarrow as pa
    >>> [task.table.num_rows for task in equal_slices(pa.table({"a": range(8)}), 3, "x")]
    [3, 3, 2]
    """
    if table.num_rows < count:
        raise DataError(
            f"{domain}: expected at least {count} rows, one for each task, got {table.num_rows}"
        )
    parts = np.array_split(np.arange(table.num_rows), count)
    return [TaskSlice(domain, table.slice(part[0], len(part)), sign) for part in parts]


def stream_of_slices(
    name: str,
    slices: Sequence[TaskSlice],
    encoder: Encoder,
    *,
    settings: Mapping[str, Any],
    notes: tuple[str, ...] = (),
) -> Stream:
    """One task for each slice. What an encoder would remark on is by design here: see the docs."""

    def tasks(seed: int) -> Iterator[Task]:
        for domain, table, sign in slices:
            for task in encoded_tasks([TaskRows(table, 0)], encoder):
                yield task._replace(x=sign * task.x, domain=domain, warnings=())

    return Stream(
        name=name,
        schema=encoder.schema,
        tasks=tasks,
        length=len(slices),
        settings=settings,
        encoder=encoder.to_json(),
        fingerprint={"first_task": checksum(slices[0].table)},
        notes=notes,
    )
