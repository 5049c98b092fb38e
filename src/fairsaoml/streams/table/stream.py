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

Files are read block by block and only held as a whole when they must be sorted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import Schema, Task
from fairsaoml.streams.stream import Stream
from fairsaoml.streams.table.columns import checksum, factor
from fairsaoml.streams.table.cutting import (
    ByCount,
    ByRows,
    ByTime,
    Clock,
    Every,
    Numbering,
    OutOfOrder,
    Piece,
    cut,
    timed,
)
from fairsaoml.streams.table.encoder import Date, Encoder, fit_encoder
from fairsaoml.streams.table.reading import Source, join, need, open_source
from fairsaoml.streams.table.roles import fit_label, fit_sensitive, split

__all__ = ["encode_rows", "stream_from_table"]

TASK_ROWS = 1000  # rows of a task when nobody says
FEW_TASKS, FEW_ROWS = 20, 50  # a small table: about so many tasks, each of so many rows at least
SMALL_START = 30  # a first task of fewer rows is worth a note
FEW_IN_GROUP = 10  # fewer rows of a group in the first task say little of it
SORTABLE_BYTES = 2 << 30  # a larger file is not loaded to be sorted
RESTATES = 0.99  # correlation from which a feature says the same as label or group
MANY_LABELS = 50  # enough of them to refuse a label
MONTH_OR_DAY = {"month/day/year", "day/month/year"}  # 01/02/2011 is either


def stream_from_table(
    source: Any,
    *,
    label: str,
    sensitive: str | Sequence[str],
    positive: Any = None,
    time: str | None = None,
    tasks: int | None = None,
    every: str | None = None,
    rows: int | None = None,
    domain: str | None = None,
    drop: Sequence[str] = (),
    columns: Sequence[str] = (),
    name: str | None = None,
    encoder: Mapping[str, Any] | None = None,
) -> Stream:
    """A stream of tasks from rows of your own; everything is fitted on the first task.

    `source`: a path (.csv, .tsv, either .gz, .parquet), a dataframe (pandas, polars, pyarrow), an
    iterator of dataframes, or a function that returns a fresh one. `sensitive`: columns, or
    "COL=VALUE" for one value against the rest. `columns`: the inputs, all others by default;
    `drop`: what is no input. `encoder`: a saved `Stream.encoder`, used as it is instead of fitting
    one; this is how a run is resumed.

    >>> table = pa.table({"age": [30, 41, 25, 67] * 50, "sex": ["m", "f", "f", "m"] * 50,
    ...                   "hired": ["no", "yes", "yes", "no"] * 50})
    >>> stream = stream_from_table(table, label="hired", sensitive="sex", rows=100)
    >>> stream.length, stream.schema.features, stream.schema.attributes[0].levels
    (2, ('age',), ('f', 'm'))
    >>> first = next(stream.tasks(0))
    >>> first.y[:4].tolist(), first.group[:4, 0].tolist()
    ([0.0, 1.0, 1.0, 0.0], [1, 0, 0, 1])
    """
    cutting = _Cut.asked(tasks=tasks, every=every, rows=rows, time=time)
    opened = open_source(source)
    roles = _Roles.asked(opened.columns, label, sensitive, time, domain, drop, columns)
    survey = _survey(opened, roles)
    cutting = cutting.settled(survey.rows)

    first, clock = _first_piece(survey, roles, cutting)
    fitted, notes = _fit(first, roles, positive) if encoder is None else _saved(encoder)
    if fitted.label is not None:
        fitted.label.check(survey.labels)
    start = next(_tasks(iter([first]), fitted, roles))

    def passes(seed: int) -> Iterator[Task]:
        rows = timed(survey.source.batches(roles.columns), clock)
        return _tasks(cut(rows, cutting.numbering(clock)), fitted, roles)

    return Stream(
        name=name or opened.name,
        schema=Schema(
            features=fitted.features,
            attributes=tuple(role.attribute for role in fitted.sensitive),
        ),
        tasks=passes,
        length=_length(survey, cutting),
        settings={
            "source": None if opened.path is None else str(opened.path.absolute()),
            "label": label,
            "sensitive": list(roles.sensitive),
            "positive": positive.item() if isinstance(positive, np.generic) else positive,
            "time": time,
            "tasks": tasks,
            "every": every,
            "rows": rows,
            "domain": domain,
            "drop": _names(drop),
            "columns": _names(columns),
            "name": name,
        },
        encoder=fitted.to_json(),
        first_task=checksum(first.table),
        notes=(*opened.notes, *survey.notes, *notes, *_echoes(start, fitted)),
    )


def encode_rows(encoder: Mapping[str, Any], frame: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """New rows, without a label, as a saved encoder reads them; and notes on what was odd.

    >>> table = pa.table({"a": [1.5, 2.5], "s": ["x", "y"], "y": [0, 1]})
    >>> stream = stream_from_table(table, label="y", sensitive="s", tasks=1)
    >>> encode_rows(stream.encoder, pa.table({"a": [2.0], "more": ["ignored"]}))
    (array([[0.]], dtype=float32), ())
    """
    x, remarks = Encoder.from_json(encoder).encode(frame)
    return x, tuple(str(remark) for remark in remarks)


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """One of three ways to cut, or none yet."""

    tasks: int | None = None
    rows: int | None = None
    every: Every | None = None
    length: int | None = None

    @classmethod
    def asked(
        cls, *, tasks: int | None, every: str | None, rows: int | None, time: str | None
    ) -> "_Cut":
        given = {"tasks": tasks, "every": every, "rows": rows}
        chosen = [option for option, value in given.items() if value is not None]
        if len(chosen) > 1:
            raise ConfigError(
                f"tasks are cut in one way, got {' and '.join(chosen)}; use one of them"
            )
        for option, value in (("tasks", tasks), ("rows", rows)):
            if value is not None and value < 1:
                raise ConfigError(f"{option} must be at least 1, got {value}; use for example 100")
        if every is not None and time is None:
            raise ConfigError(f"every={every!r} needs a time column, got none; name it with time")
        return cls(tasks=tasks, rows=rows, every=Every.parse(every) if every else None)

    def settled(self, length: int | None) -> "_Cut":
        """Now that the number of rows is known, or known to be unknown."""
        cutting = replace(self, length=length)
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
        if self.tasks or self.rows or self.every:
            return cutting
        if length is None:
            return replace(cutting, rows=TASK_ROWS)
        return replace(
            cutting, tasks=max(length // TASK_ROWS, min(FEW_TASKS, length // FEW_ROWS), 2)
        )

    def numbering(self, clock: Clock | None) -> Numbering:
        """Fresh, for one pass."""
        if self.every is not None and clock is not None:
            return ByTime(self.every, clock)
        if self.tasks is not None and self.length is not None:
            return ByCount(self.tasks, self.length)
        return ByRows(self.rows or TASK_ROWS)


@dataclass(frozen=True, kw_only=True)
class _Roles:
    """Which column is what."""

    label: str
    protected: tuple[str, ...]  # the columns of `sensitive`
    sensitive: tuple[str, ...]  # "COL" or "COL=VALUE", as asked
    time: str | None
    domain: str | None
    inputs: tuple[str, ...]
    named: bool  # whether the inputs were named one by one

    @classmethod
    def asked(
        cls,
        known: Sequence[str],
        label: str,
        sensitive: str | Sequence[str],
        time: str | None,
        domain: str | None,
        drop: str | Sequence[str],
        columns: str | Sequence[str],
    ) -> "_Roles":
        specs, dropped, named = _names(sensitive), _names(drop), _names(columns)
        if not specs or len(set(specs)) < len(specs):
            raise ConfigError(f"sensitive must name columns, each once, got {specs}; name one")
        protected = [split(spec, known)[0] for spec in specs]
        order = [name for name in (time, domain) if name is not None]
        need([label, *protected, *order, *dropped, *named], known)
        if label in protected or label in order:
            raise ConfigError(
                f"the label must be a column of its own, got {label!r} also as "
                f"{'sensitive' if label in protected else 'time or domain'}; choose another"
            )
        for name in named:
            if name == label or name in protected:
                role = "the label" if name == label else "sensitive"
                raise ConfigError(f"an input must not be {role}, got {name!r}; leave it out")
        rest = {label, *protected, *order}
        inputs = named or [name for name in known if name not in rest]
        return cls(
            label=label,
            protected=tuple(protected),
            sensitive=tuple(specs),
            time=time,
            domain=domain,
            inputs=tuple(name for name in inputs if name not in dropped),
            named=bool(named),
        )

    @property
    def columns(self) -> list[str]:
        """All columns that must be read, each once."""
        others = [name for name in (self.time, self.domain) if name is not None]
        return list(dict.fromkeys([self.label, *self.protected, *others, *self.inputs]))


@dataclass(frozen=True, kw_only=True)
class _Survey:
    """What one look at a whole table tells of its size and order, and nothing of its features."""

    source: Source
    clock: Clock | None = None
    rows: int | None = None
    labels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _survey(source: Source, roles: _Roles) -> _Survey:
    """Count the rows, see that time goes forward, and put the rows in order if it does not.

    A file with a broken line or a third label is refused here, not in the middle of a run.
    """
    if not source.finite:
        return _Survey(source=source)
    clock, notes = _clock(source, roles.time)
    narrow = [roles.label] if roles.time is None else [roles.label, roles.time]
    rows, labels, ordered = 0, dict[str, None](), True
    try:
        for batch in timed(source.batches(narrow), clock):
            rows += batch.table.num_rows
            if len(labels) < MANY_LABELS:
                labels |= dict.fromkeys(factor(batch.table[roles.label]).values.to_pylist())
    except OutOfOrder:
        if source.path is not None and source.path.stat().st_size > SORTABLE_BYTES:
            raise
        ordered = False
    if clock is not None and not ordered:  # outside of `except`, which holds on to the blocks read
        survey = _survey(_in_order(source, roles, clock), roles)
        note = f"rows were not in order of {roles.time!r}; they have been sorted"
        return replace(survey, notes=(*survey.notes, note))
    if rows < 2:
        raise DataError(
            f"expected at least two rows, got {rows or 'none'}; give more rows to learn from"
        )
    return _Survey(source=source, clock=clock, rows=rows, labels=tuple(labels), notes=notes)


def _clock(source: Source, time: str | None) -> tuple[Clock | None, tuple[str, ...]]:
    """How the time is written; looks on while it may be month first or day first."""
    if time is None:
        return None, ()
    clock, either = None, set(MONTH_OR_DAY)
    for table in source.batches([time]):
        if table.num_rows:
            clock = clock or Clock.of(time, table[time])
            either &= set(Clock.candidates(table[time]))
            if len(either) < 2:
                break
    if clock is None or clock.format not in MONTH_OR_DAY or not either:
        return clock, ()
    if len(either) == 2:
        return clock, (_ambiguous(time),)
    return replace(clock, format=either.pop()), ()


def _in_order(source: Source, roles: _Roles, clock: Clock) -> Source:
    """The same rows by time; those of one time stay as they came."""
    pieces, seconds, rows = [], [], 0
    for piece in source.batches(roles.columns):
        seconds.append(clock.seconds(piece, before=rows))
        pieces.append(piece)
        rows += piece.num_rows
    order = pa.array(np.argsort(np.concatenate(seconds), kind="stable"))
    table = join(pieces)
    columns = {name: table[name] for name in table.column_names}
    del pieces, piece, table
    for name in columns:  # one by one, so that at most one column is held twice
        columns[name] = columns[name].take(order)
    return source.holding(pa.table(columns))


def _first_piece(survey: _Survey, roles: _Roles, cutting: _Cut) -> tuple[Piece, Clock | None]:
    """The rows everything is fitted on; the clock too, where no survey could be made."""
    batches = survey.source.batches(roles.columns)
    head = next((table for table in batches if table.num_rows), None)
    if head is None:
        raise DataError("expected at least two rows, got none; give more rows to learn from")
    clock = survey.clock
    if clock is None and roles.time is not None:
        clock = Clock.of(roles.time, head[roles.time])
    rows = timed(chain([head], batches), clock)
    return next(cut(rows, cutting.numbering(clock))), clock


def _fit(first: Piece, roles: _Roles, positive: Any) -> tuple[Encoder, tuple[str, ...]]:
    """The encoder, roles included, from the first task's labelled rows."""
    label, notes = fit_label(roles.label, first.table[roles.label], positive)
    codes = label.codes(first.table[roles.label])
    table = first.table.filter(pa.array(codes >= 0))
    sensitive = tuple(
        fit_sensitive(spec, first.table.column_names, table) for spec in roles.sensitive
    )
    encoder = fit_encoder(
        table.select(list(roles.inputs)), keep=roles.inputs if roles.named else ()
    )
    notes = (*notes, *encoder.notes())
    if not encoder.columns:
        raise DataError(
            f"expected inputs besides label and groups, got none ({'; '.join(notes)}); "
            "name the columns to use"
        )
    encoder = replace(encoder, label=label, sensitive=sensitive)
    return encoder, (*notes, *_doubts(table, encoder))


def _saved(encoder: Mapping[str, Any]) -> tuple[Encoder, tuple[str, ...]]:
    read = Encoder.from_json(encoder)
    return read, read.notes()


def _doubts(table: Any, encoder: Encoder) -> Iterator[str]:
    """Notes on a first task that is a weak base for what is fitted on it."""
    label = encoder.label
    if table.num_rows < SMALL_START:
        yield f"the first task has only {table.num_rows} rows, on which categories and scales rest"
    if label is not None and len(factor(table[label.column]).values) == 1:
        pair = f"{label.negative!r} and {label.positive!r}"
        yield f"the first task has one label only; {pair} are taken to be the two"
    for role in encoder.sensitive:
        rows = np.bincount(role.codes(table[role.column])[0], minlength=len(role.levels) + 1)
        few = [level for code, level in enumerate(role.levels) if rows[code] < FEW_IN_GROUP]
        if few:
            yield (
                f"{role.attribute.name}: fewer than {FEW_IN_GROUP} rows of the first task in "
                f"{', '.join(few)}"
            )
    for name in (column.name for column in encoder.columns if isinstance(column, Date)):
        if set(Clock.candidates(table[name])) >= MONTH_OR_DAY:
            yield _ambiguous(name)


def _ambiguous(column: str) -> str:
    return f"dates in {column!r} may begin with the day or the month; the month is taken"


def _tasks(pieces: Iterator[Piece], encoder: Encoder, roles: _Roles) -> Iterator[Task]:
    """Tasks as learners see them; what is odd about a column is said once a pass."""
    told: set[tuple[str, str]] = set()
    last = None
    for table, number in pieces:
        warnings = []
        if last is not None and number > last + 1:
            warnings.append(f"no rows in the {number - last - 1} windows before this one")
        last = number
        assert encoder.label is not None
        y = encoder.label.codes(table[roles.label])
        if (y < 0).any():
            warnings.append(f"{int((y < 0).sum())} rows without a label were left out")
            table, y = table.filter(pa.array(y >= 0)), y[y >= 0]
        groups = []
        for role in encoder.sensitive:
            codes, strange = role.codes(table[role.column])
            groups.append(codes)
            if strange:
                warnings.append(_unseen(role.attribute.name, codes, len(role.levels), strange))
        x, remarks = encoder.encode(table)
        warnings += [str(r) for r in remarks if (r.column, r.what) not in told]
        told |= {(remark.column, remark.what) for remark in remarks}
        domain, domains = _domain(table, roles.domain)
        if domains > 1 and ("", "domains") not in told:
            warnings.append(f"{domains} domains in one task, named after most of its rows")
            told.add(("", "domains"))
        yield Task(
            x=x,
            y=y.astype(np.float32),
            group=np.stack(groups, axis=1),
            domain=domain,
            warnings=tuple(warnings),
        )


def _unseen(name: str, codes: np.ndarray, unseen: int, strange: Sequence[str]) -> str:
    some = ", ".join(repr(value) for value in strange[:3])
    rows = int((codes == unseen).sum())
    return f"{name}: {rows} rows in groups the first task had not ({some}), counted as unseen"


def _domain(table: Any, column: str | None) -> tuple[str, int]:
    """The name most rows give, the first in the alphabet among equals; and how many names."""
    distinct = None if column is None else factor(table[column])
    if distinct is None or not len(distinct.values):
        return "", 0
    counts = distinct.counts()
    return min(distinct.values.filter(pa.array(counts == counts.max())).to_pylist()), len(counts)


def _echoes(start: Task, encoder: Encoder) -> tuple[str, ...]:
    """Notes on features that say in the first task what the label or a group says."""
    if len(start.y) < SMALL_START:
        return ()
    targets = {"the label": start.y > 0}
    for place, role in enumerate(encoder.sensitive):
        for code, level in enumerate(role.levels):
            targets[f"{role.attribute.name} ({level})"] = start.group[:, place] == code
    features, notes = _standard(start.x), []
    for target, values in targets.items():
        if values.sum() < FEW_IN_GROUP:
            continue
        correlation = np.abs(_standard(values[:, None]).T @ features)[0]
        same = [encoder.features[place] for place in np.flatnonzero(correlation > RESTATES)]
        if same:
            notes.append(
                f"restates {target} in the first task, think of dropping it: {', '.join(same)}"
            )
    return tuple(notes)


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns of length one around zero; constant columns are zero."""
    centred = values.astype(np.float64) - values.mean(axis=0, dtype=np.float64)
    length = np.sqrt((centred**2).sum(axis=0))
    return centred / np.where(length > 0, length, 1.0)


def _length(survey: _Survey, cutting: _Cut) -> int | None:
    """The number of tasks, where the number of rows is known."""
    if survey.rows is None:
        return None
    if cutting.every is not None and survey.clock is not None:
        rows = timed(survey.source.batches([survey.clock.column]), survey.clock)
        return sum(1 for _ in cut(rows, cutting.numbering(survey.clock)))
    return cutting.tasks or -(-survey.rows // (cutting.rows or TASK_ROWS))


def _names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
