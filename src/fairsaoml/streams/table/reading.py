"""Any table as a pass over Arrow batches: a file, a dataframe, an iterator of dataframes.

CSV is read as text and Parquet by row groups, block after block: what a column means is decided
later, from the first task (`encoder`), so a text that turns up in a column of numbers is a value
to be judged there and not a broken file. Nothing is held that was not asked for.
"""

import codecs
import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import narwhals as nw
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from fairsaoml.core.errors import DataError, closest

__all__ = ["Source", "join", "look_through", "need", "open_source", "read_table", "to_arrow"]

BLOCK_BYTES = 1 << 20  # one block of CSV text; Arrow reads some twenty ahead
HEAD_BYTES = 1 << 16  # of a text file, from which header, separator and encoding are told
BATCH_ROWS = 1 << 16  # one batch of a Parquet file
TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
# What a file begins with when it is not what its name says.
SIGNATURES = (
    (b"par1", "a Parquet file", "rename it to end in .parquet"),
    (b"\x1f\x8b", "a gzip file", "rename it to end in .csv.gz"),
    (b"pk\x03\x04", "a zip file or spreadsheet", "unpack it, or export the sheet as CSV"),
    (b"<!doctype", "an HTML page", "download the data itself"),
    (b"<html", "an HTML page", "download the data itself"),
    (b"{", "JSON", "convert it to CSV or Parquet"),
)
UNREADABLE = (pa.ArrowException, OSError, EOFError, zlib.error)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Rows that can be passed over, column by column name."""

    name: str
    columns: tuple[str, ...]
    batches: Callable[[Sequence[str]], Iterator[Any]]  # columns -> a pass over Arrow tables
    finite: bool  # whether it may be passed over once before the stream begins
    path: Path | None = None
    notes: tuple[str, ...] = ()

    def holding(self, table: Any) -> "Source":
        """The same source, its rows held in memory."""
        return replace(self, batches=partial(_slices, table))


def open_source(source: Any) -> Source:
    """The pass over a path, a dataframe, a list, an iterator, or a function giving an iterator."""
    if isinstance(source, (str, os.PathLike)):
        return _of_file(Path(source))
    if isinstance(source, (list, tuple)) and source:
        return _of_batches(lambda: iter(source), finite=True)
    if isinstance(source, (Iterator, pa.RecordBatchReader)):
        return _of_batches(_once(iter(source)), finite=False)
    table = _arrow_table(source)
    if table is not None:
        return Source(
            name="table",
            columns=tuple(table.column_names),
            batches=partial(_slices, table),
            finite=True,
        )
    if callable(source):
        return _of_batches(source, finite=False)
    raise DataError(
        "expected a path, a dataframe, an iterator of dataframes or a function returning one, "
        f"got {type(source).__name__}; pass for example a pandas, polars or pyarrow table"
    )


def read_table(source: Any, columns: Sequence[str] | None = None) -> Any:
    """All rows of a file or dataframe as one Arrow table; CSV columns are text.

    >>> read_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), ["a"]).to_pydict()
    {'a': [1, 2]}
    """
    opened = open_source(source)
    wanted = opened.columns if columns is None else tuple(columns)
    need(wanted, opened.columns)
    tables = look_through(opened, lambda readable: list(readable.batches(wanted)))
    return join(tables or [pa.table({name: pa.array([], pa.string()) for name in wanted})])


def look_through(source: Source, look: Callable[[Source], T]) -> T:
    """`look(source)`; a text that proves on the way not to be UTF-8 is begun again as Latin-1."""
    try:
        return look(source)
    except NotUTF8 as error:
        return look(_of_text(error.path, stray_byte=error.byte))


def need(wanted: Iterable[str], columns: Sequence[str], where: str = "the table") -> None:
    """Refuse a table that lacks a column."""
    for name in wanted:
        if name not in columns:
            hint = closest(name, columns)
            if any(_is_number(column) for column in columns):
                hint += "; its first line looks like data: does the file have a header?"
            raise DataError(f"expected a column {name!r} in {where}, got none; {hint}")


def to_arrow(frame: Any) -> Any:
    """An Arrow table of any dataframe; a column of mixed Python types becomes text."""
    table = _arrow_table(frame)
    if table is None:
        raise DataError(
            f"expected a dataframe, got {type(frame).__name__}; "
            "give pandas, polars or pyarrow tables"
        )
    return table


def join(tables: Sequence[Any]) -> Any:
    """One table of several; columns whose type changes on the way become text."""
    first = tables[0]
    if all(table.schema.equals(first.schema) for table in tables[1:]):
        return pa.concat_tables(tables)
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        types = [dict(zip(table.column_names, table.schema.types, strict=True)) for table in tables]
        changing = {name for name in first.column_names if len({t[name] for t in types}) > 1}
        return pa.concat_tables([_with_text(table, changing) for table in tables])


def _with_text(table: Any, columns: Iterable[str]) -> Any:
    for name in columns:
        try:
            text = table[name].cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            text = _texts(table[name].to_pylist())
        table = table.set_column(table.column_names.index(name), name, text)
    return table


def _texts(values: Iterable[Any]) -> Any:
    return pa.array([None if value is None else str(value) for value in values], pa.string())


# Dataframes


def _arrow_table(frame: Any) -> Any:
    """Any dataframe as an Arrow table, or None where it is no dataframe."""
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if not isinstance(frame, pa.Table):
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
        _require_distinct(names, "the table")
        columns = [_arrow_column(wrapped[name]) for name in wrapped.columns]
        frame = pa.table(dict(zip(names, columns, strict=True)))
    _require_distinct(frame.column_names, "the table")
    return frame


def _arrow_column(series: Any) -> Any:
    try:
        return series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return _texts(series.to_list())


def _slices(table: Any, columns: Sequence[str]) -> Iterator[Any]:
    table = table.select(list(columns))
    return (table.slice(low, BATCH_ROWS) for low in range(0, max(1, table.num_rows), BATCH_ROWS))


# Iterators


def _of_batches(start: Callable[[], Any], *, finite: bool) -> Source:
    """Batches from a function that starts a pass over them."""
    begun = _tables(start())
    first = next(begun, None)
    if first is None:
        raise DataError("expected batches of rows, got an iterator without any; give it rows")
    waiting = [chain([first], begun)]  # the pass that was begun to see the columns

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        return _narrow(waiting.pop() if waiting else _tables(start()), wanted)

    return Source(name="table", columns=tuple(first.column_names), batches=batches, finite=finite)


def _once(iterator: Iterator[Any]) -> Callable[[], Iterator[Any]]:
    waiting = [iterator]

    def start() -> Iterator[Any]:
        if not waiting:
            raise DataError(
                "expected to read an iterator once, got asked for a second pass; "
                "give a function that returns a fresh iterator instead"
            )
        return waiting.pop()

    return start


def _tables(iterator: Any) -> Iterator[Any]:
    if not isinstance(iterator, (Iterable, pa.RecordBatchReader)):
        raise DataError(
            f"expected a function that returns an iterator, got {type(iterator).__name__} from it; "
            "return an iterator of dataframes"
        )
    return (to_arrow(frame) for frame in iterator)


def _narrow(tables: Iterator[Any], wanted: Sequence[str]) -> Iterator[Any]:
    for number, table in enumerate(tables, start=1):
        need(wanted, table.column_names, f"batch {number}")
        yield table.select(list(wanted))


# Files


def _of_file(path: Path) -> Source:
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        raise DataError(f"expected a file at {path}, got {what}; check the path")
    if path.stat().st_size == 0:
        raise DataError(f"expected rows in {path}, got an empty file; write or download it again")
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        return _of_parquet(path)
    if name.endswith(TEXT_ENDINGS):
        return _of_text(path)
    raise DataError(
        f"expected a file ending in {', '.join((*TEXT_ENDINGS, '.parquet'))}, got {path.name!r}; "
        "rename it to what it is, or convert it"
    )


def _of_parquet(path: Path) -> Source:
    with path.open("rb") as file:
        begins = file.read(4)
    if begins != b"PAR1":
        raise DataError(
            f"expected Parquet in {path}, got a file that begins with {begins!r}; "
            "rename it to what it is, or download it again"
        )
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
    except UNREADABLE as error:
        raise _damaged(path, "a whole Parquet file", error) from error

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
                    yield pa.Table.from_batches([batch]).select(list(columns))
        except UNREADABLE as error:
            raise _damaged(path, "a whole Parquet file", error) from error

    return _file_source(path, names, batches)


def _of_text(path: Path, *, stray_byte: int | None = None) -> Source:
    """A CSV file; `stray_byte` is one that an earlier pass met and that is not UTF-8."""
    text, encoding, stray = _head(path)
    if stray_byte is not None:
        encoding, stray = "latin-1", stray_byte
    names, lines, delimiter = _header(path, text)
    notes = []
    if encoding == "utf-16":
        notes.append(f"{path.name}: read as UTF-16")
    if encoding == "latin-1":
        notes.append(
            f"{path.name}: not UTF-8 (byte 0x{stray:02x}), so read as Latin-1; "
            "save it as UTF-8 if names look wrong"
        )
    if delimiter not in ",\t":
        notes.append(f"{path.name}: columns are separated by {delimiter!r}")

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            with _bytes(path) as file:
                reader = pacsv.open_csv(
                    _UTF8(path, file) if encoding == "utf8" else file,
                    read_options=pacsv.ReadOptions(
                        column_names=names,
                        skip_rows_after_names=lines,
                        block_size=BLOCK_BYTES,
                        use_threads=False,  # no slower here, and half the memory
                        encoding=encoding,
                    ),
                    parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                    convert_options=pacsv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        include_columns=list(columns),
                    ),
                )
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        except UNREADABLE as error:
            raise _damaged(path, f"rows of {len(names)} values", error) from error

    return _file_source(path, names, batches, tuple(notes))


def _file_source(
    path: Path,
    names: Sequence[str],
    batches: Callable[[Sequence[str]], Iterator[Any]],
    notes: tuple[str, ...] = (),
) -> Source:
    _require_distinct(names, str(path))
    return Source(
        name=path.name.split(".")[0] or path.name,
        columns=tuple(names),
        batches=batches,
        finite=True,
        path=path,
        notes=notes,
    )


def _damaged(path: Path, expected: str, error: BaseException) -> DataError:
    got = str(error).splitlines()[0][:200]
    return DataError(f"expected {expected} in {path}, got: {got}; mend it or download it again")


def _bytes(path: Path) -> BinaryIO:
    zipped = path.name.lower().endswith(".gz")
    return cast(BinaryIO, gzip.open(path, "rb")) if zipped else path.open("rb")


class NotUTF8(DataError):
    """A byte that no UTF-8 text has, in a file that had looked like one."""

    def __init__(self, path: Path, byte: int) -> None:
        super().__init__(f"expected UTF-8 in {path}, got byte 0x{byte:02x}; save it as UTF-8")
        self.path, self.byte = path, byte


class _UTF8(io.RawIOBase):
    """A file on its way to the reader, all its bytes checked: also those of columns not asked for.

    The first pass over a file finds a stray byte, so that it does not end a run half-way.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self.file.read(size)
        try:
            self.decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise NotUTF8(self.path, error.object[error.start]) from None
        return block


def _head(path: Path) -> tuple[str, str, int]:
    """The beginning of a text file, its encoding as far as that tells, and the byte that told.

    UTF-8, UTF-16 with its mark, or else Latin-1.
    """
    try:
        with _bytes(path) as file:
            block = file.read(HEAD_BYTES)
    except UNREADABLE as error:
        raise _damaged(path, "a whole gzip file", error) from error
    for signature, what, remedy in SIGNATURES:
        if block.lower().startswith(signature):
            raise DataError(f"expected CSV text in {path}, got {what}; {remedy}")
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")().decode(block), "utf-16", 0
    if b"\0" in block:
        raise DataError(f"expected text in {path}, got binary data; rename it to what it is")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(block), "utf8", 0
    except UnicodeDecodeError as error:
        return block.decode("latin-1"), "latin-1", error.object[error.start]


def _header(path: Path, head: str) -> tuple[tuple[str, ...], int, str]:
    """Column names, the number of rows they end at, and what separates them."""
    if not head.strip():
        raise DataError(f"expected rows in {path}, got blank lines; write or download it again")
    delimiter = "\t" if ".tsv" in path.name.lower() else _delimiter(head)
    rows = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    for number, row in enumerate(rows, start=1):
        if any(value.strip() for value in row):
            names = (value.strip() or f"column_{place}" for place, value in enumerate(row, 1))
            return tuple(names), number, delimiter
    raise DataError(f"expected a line of column names in {path}, got none; add a header")


def _delimiter(head: str) -> str:
    line = next(line for line in head.splitlines() if line.strip())
    outside_quotes = "".join(line.split('"')[::2])
    return max(",;\t|", key=outside_quotes.count)  # the comma where none occurs


def _require_distinct(names: Sequence[str], where: str) -> None:
    name, times = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        raise DataError(
            f"expected every column name once in {where}, got {name!r} {times} times; "
            "rename or remove one"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
