"""Any table as a pass over Arrow batches: a file, a dataframe, an iterator of dataframes.

CSV is read as text and Parquet by row groups, block after block: what a column means is decided
later, from the first task (`encoder`), so a text that turns up in a column of numbers is a value
to be dealt with there and not a broken file. Nothing is held that was not asked for.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairsaoml.core.errors import DataError, closest
from fairsaoml.streams.table.columns import UNTYPED, numbers, plain, texts, typed
from fairsaoml.streams.table.text import TextTable, reading

BATCH_ROWS = 1 << 16  # one batch of a Parquet file
TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")

Batches = Callable[[Sequence[str]], Iterator[Any]]  # columns -> a pass over Arrow tables


@dataclass(frozen=True, kw_only=True)
class Source:
    """Rows that can be passed over, column by column name."""

    name: str
    columns: tuple[str, ...]
    batches: Batches
    finite: bool  # whether it may be passed over once before the stream begins
    path: Path | None = None
    notes: list[str] = field(default_factory=list)  # a pass may add what it met on its way

    @property
    def is_text(self) -> bool:
        """Whether every column comes as text, whatever it holds."""
        return self.path is not None and self.path.name.lower().endswith(TEXT_ENDINGS)

    def first(self, rows: int) -> "Source":
        """This source cut to its first `rows` rows."""

        def batches(columns: Sequence[str]) -> Iterator[Any]:
            left = rows
            for table in self.batches(columns):
                yield table.slice(0, left)
                left -= table.num_rows
                if left <= 0:
                    return

        return replace(self, batches=batches)


def open_source(source: Any) -> Source:
    """The pass over a path, a dataframe, a list, an iterator, or a function giving an iterator."""
    if isinstance(source, Source):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _of_file(Path(source))
    if isinstance(source, (list, tuple)) and source:
        return _of_batches(source, lambda: source, finite=True)
    if isinstance(source, (Iterator, pa.RecordBatchReader)):
        return _of_batches(source, None, finite=False)
    table = _arrow_table(source)
    if table is not None:
        return _of_batches([table], lambda: [table], finite=True)
    if callable(source):
        return _of_batches(source(), source, finite=False)
    raise DataError(
        "expected a path, a dataframe, an iterator of dataframes or a function returning one, "
        f"got {type(source).__name__}; pass for example a pandas, polars or pyarrow table"
    )


def read_table(source: Any, columns: Iterable[str] | None = None, where: str = "the table") -> Any:
    """All rows of a file or dataframe as one Arrow table; CSV columns are text.

    `columns`: those to read, by default all; `where`: what the table is called in an error.

    >>> read_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), ["a"]).to_pydict()
    {'a': [1, 2]}
    """
    opened = open_source(source)
    wanted = opened.columns if columns is None else tuple(columns)
    need(wanted, opened.columns, where)
    return join(
        [*opened.batches(wanted)]
        or [pa.table({name: pa.array([], pa.string()) for name in wanted})]
    )


def need(wanted: Iterable[str], columns: Sequence[str], where: str = "the table") -> None:
    """Refuse a table that lacks a column."""
    for name in wanted:
        if name not in columns:
            hint = closest(name, columns)
            if np.isfinite(numbers(texts(columns)).values).any():
                hint += "; its first line looks like data: does the file have a header?"
            raise DataError(f"expected a column {name!r} in {where}, got none; {hint}")


def to_arrow(frame: Any) -> Any:
    """An Arrow table of any dataframe; a column of mixed Python types becomes text."""
    table = _arrow_table(frame)
    if table is None:
        raise DataError(
            f"expected a dataframe, got {type(frame).__name__}; give pandas, polars or pyarrow"
        )
    return table


def join(tables: Sequence[Any]) -> Any:
    """One table of several; columns whose type changes on the way become text."""
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        names = tables[0].column_names
        changing = [name for name in names if len({table[name].type for table in tables}) > 1]
        return pa.concat_tables([_with_text(table, changing) for table in tables])


def _with_text(table: Any, columns: Iterable[str]) -> Any:
    for name in columns:
        try:
            text = table[name].cast(pa.string())
        except UNTYPED:
            text = texts(table[name].to_pylist())
        table = table.set_column(table.column_names.index(name), name, text)
    return table


# Dataframes


def _arrow_table(frame: Any) -> Any:
    """Any dataframe as an Arrow table, or None where it is no dataframe."""
    if isinstance(frame, pa.RecordBatch | pa.Table):
        names, columns = frame.schema.names, frame.columns
    else:
        try:
            wrapped = nw.from_native(frame)
        except TypeError:
            return None
        except nw.exceptions.DuplicateError as error:
            raise DataError(
                f"expected every column name once, got duplicates ({error}); rename them"
            ) from error
        wrapped = wrapped.collect("pyarrow") if isinstance(wrapped, nw.LazyFrame) else wrapped
        names = [str(name) for name in wrapped.columns]
        columns = [typed(series) for series in wrapped.iter_columns()]
    _require_distinct(names, "the table")
    return plain(pa.table(columns, names=names))


# Iterators


def _of_batches(begun: Any, again: Callable[[], Any] | None, *, finite: bool) -> Source:
    """Batches of a pass that has begun, and a function that starts another where there is one."""
    tables = _tables(begun)
    first = next(tables, None)
    if first is None:
        raise DataError("expected batches of rows, got an iterator without any; give it rows")
    waiting = [chain([first], tables)]  # the pass that was begun to see the columns

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        if not waiting and again is None:
            raise DataError(
                "expected to read an iterator once, got asked for a second pass; "
                "give a function that returns a fresh iterator instead"
            )
        tables = waiting.pop() if again is None or waiting else _tables(again())
        for number, table in enumerate(tables, start=1):
            need(wanted, table.column_names, f"batch {number}")
            table = table.select(list(wanted))
            for low in range(0, max(1, table.num_rows), BATCH_ROWS):
                yield table.slice(low, BATCH_ROWS)

    return Source(name="table", columns=tuple(first.column_names), batches=batches, finite=finite)


def _tables(iterator: Any) -> Iterator[Any]:
    if not isinstance(iterator, (Iterable, pa.RecordBatchReader)):
        raise DataError(
            f"expected a function that returns an iterator, got {type(iterator).__name__} from it; "
            "return an iterator of dataframes"
        )
    return (to_arrow(frame) for frame in iterator)


# Files


def _of_file(path: Path) -> Source:
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        raise DataError(f"expected a file at {path}, got {what}; check the path")
    if path.stat().st_size == 0:
        raise DataError(f"expected rows in {path}, got an empty file; write or download it again")
    name, notes = path.name.lower(), list[str]()
    if name.endswith(PARQUET_ENDINGS):
        columns, batches = _of_parquet(path)
    elif name.endswith(TEXT_ENDINGS):
        text = TextTable(path)
        columns, batches, notes = text.columns, text.batches, text.notes
    else:
        endings = ", ".join((*TEXT_ENDINGS, ".parquet"))
        raise DataError(
            f"expected a file ending in {endings}, got {path.name!r}; rename or convert it"
        )
    _require_distinct(columns, str(path))
    stem = path.name.split(".")[0] or path.name
    return Source(name=stem, columns=columns, batches=batches, finite=True, path=path, notes=notes)


def _of_parquet(path: Path) -> tuple[tuple[str, ...], Batches]:
    with reading(path, "a whole Parquet file"), pq.ParquetFile(path) as parquet:
        names = tuple(parquet.schema_arrow.names)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        with reading(path, "a whole Parquet file"), pq.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
                yield plain(pa.Table.from_batches([batch]).select(list(columns)))

    return names, batches


def _require_distinct(names: Sequence[str], where: str) -> None:
    if len(set(names)) < len(names):
        name, times = Counter(names).most_common(1)[0]
        raise DataError(
            f"expected every column name once in {where}, got {name!r} {times} times; rename or "
            "remove one"
        )
