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
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from fairsaoml.core.errors import DataError, closest

__all__ = ["Source", "need", "open_source", "read_table", "to_arrow"]

BLOCK_BYTES = 1 << 20  # one block of CSV text; Arrow reads some twenty ahead
BATCH_ROWS = 1 << 16  # one batch of a Parquet file
TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
# What a file begins with when it is not what its name says.
SIGNATURES = (
    (b"PAR1", "a Parquet file", "rename it to end in .parquet"),
    (b"\x1f\x8b", "a gzip file", "rename it to end in .csv.gz"),
    (b"PK\x03\x04", "a zip file or spreadsheet", "unpack it, or export the sheet as CSV"),
    (b"<!doctype", "an HTML page", "download the data itself"),
    (b"<html", "an HTML page", "download the data itself"),
    (b"{", "JSON", "convert it to CSV or Parquet"),
)


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
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return _of_table(to_arrow(source))
    if isinstance(source, (list, tuple)) and source:
        return _of_function(lambda: iter(source), finite=True)
    if isinstance(source, (Iterator, pa.RecordBatchReader)):
        return _of_iterator(iter(source))
    frame = _frame(source)
    if frame is not None:
        return _of_table(_arrow(frame))
    if callable(source):
        return _of_function(source, finite=False)
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
    empty = pa.table({name: pa.array([], pa.string()) for name in wanted})
    return join(list(opened.batches(wanted)) or [empty])


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
    if isinstance(frame, pa.Table):
        return _checked(frame)
    if isinstance(frame, pa.RecordBatch):
        return _checked(pa.Table.from_batches([frame]))
    wrapped = _frame(frame)
    if wrapped is None:
        raise DataError(
            f"expected a dataframe, got {type(frame).__name__}; "
            "give pandas, polars or pyarrow tables"
        )
    return _arrow(wrapped)


def join(pieces: Sequence[Any]) -> Any:
    """One table of several; columns whose type changes on the way become text."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    if all(piece.schema.equals(first.schema) for piece in pieces[1:]):
        return pa.concat_tables(pieces)
    try:
        return pa.concat_tables(pieces, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.concat_tables([_alike(piece, pieces) for piece in pieces])


def _alike(piece: Any, pieces: Sequence[Any]) -> Any:
    columns = {}
    for name in piece.column_names:
        same = len({other.schema.field(name).type for other in pieces}) == 1
        columns[name] = piece[name] if same else _as_text(piece[name])
    return pa.table(columns)


def _as_text(column: Any) -> Any:
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in column.to_pylist()])


# Dataframes


def _frame(source: Any) -> Any:
    """The dataframe wrapped by narwhals, or None."""
    try:
        wrapped = nw.from_native(source)
    except TypeError:
        return None
    except nw.exceptions.DuplicateError as error:
        raise DataError(
            f"expected every column name once, got duplicates ({error}); rename them"
        ) from error
    return wrapped.collect("pyarrow") if isinstance(wrapped, nw.LazyFrame) else wrapped


def _arrow(frame: Any) -> Any:
    columns: dict[str, Any] = {}
    _once([str(name) for name in frame.columns], "the table")
    for name in frame.columns:
        series = frame[name]
        try:
            column = series.to_arrow()
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            column = pa.array(
                [None if value is None else str(value) for value in series.to_list()], pa.string()
            )
        columns[str(name)] = column
    return pa.table(columns)


def _checked(table: Any) -> Any:
    _once(table.column_names, "the table")
    return table


def _of_table(table: Any) -> Source:
    return Source(
        name="table",
        columns=tuple(table.column_names),
        batches=partial(_slices, table),
        finite=True,
    )


def _slices(table: Any, columns: Sequence[str]) -> Iterator[Any]:
    table = table.select(list(columns))
    return (table.slice(low, BATCH_ROWS) for low in range(0, max(1, table.num_rows), BATCH_ROWS))


# Iterators


def _of_function(function: Callable[[], Any], *, finite: bool) -> Source:
    first = next(_frames(function()), None)
    if first is None:
        raise DataError("expected batches of rows, got an iterator without any; give it rows")
    columns = tuple(first.column_names)
    return Source(
        name="table",
        columns=columns,
        batches=lambda wanted: _narrow(_frames(function()), wanted),
        finite=finite,
    )


def _of_iterator(iterator: Iterator[Any]) -> Source:
    again = _Once(_frames(iterator))
    return Source(
        name="table",
        columns=again.columns,
        batches=lambda wanted: _narrow(again.batches(), wanted),
        finite=False,
    )


class _Once:
    """An iterator whose beginning is read twice: to fit on the first task, then to learn from.

    Only the batches of the first reading are held, and let go one by one in the second.
    """

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._held = deque(islice(iterator, 1))
        self._readings = 0
        if not self._held:
            raise DataError("expected batches of rows, got an iterator without any; give it rows")
        self.columns = tuple(self._held[0].column_names)

    def batches(self) -> Iterator[Any]:
        self._readings += 1
        if self._readings > 2:
            raise DataError(
                "expected to read an iterator once, got asked for a second pass; "
                "give a function that returns a fresh iterator instead"
            )
        return self._first() if self._readings == 1 else self._second()

    def _first(self) -> Iterator[Any]:
        yield from list(self._held)
        for batch in self._iterator:
            self._held.append(batch)
            yield batch

    def _second(self) -> Iterator[Any]:
        while self._held:
            yield self._held.popleft()
        yield from self._iterator


def _frames(iterator: Any) -> Iterator[Any]:
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


def _stem(path: Path) -> str:
    return path.name.split(".")[0] or path.name


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
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "a whole Parquet file", error) from error
    _once(names, str(path))

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
                    yield pa.Table.from_batches([batch]).select(list(columns))
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, "a whole Parquet file", error) from error

    return Source(name=_stem(path), columns=tuple(names), batches=batches, finite=True, path=path)


def _of_text(path: Path) -> Source:
    encoding, notes = _encoding(path)
    names, lines, delimiter = _header(path, encoding)
    if delimiter not in ",\t":
        notes = (*notes, f"{path.name}: columns are separated by {delimiter!r}")
    _once(names, str(path))

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        try:
            with pa.input_stream(str(path), compression=_compression(path)) as file:
                reader = pacsv.open_csv(
                    file,
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
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, f"rows of {len(names)} values", error) from error

    return Source(
        name=_stem(path), columns=names, batches=batches, finite=True, path=path, notes=notes
    )


def _damaged(path: Path, expected: str, error: Exception) -> DataError:
    got = str(error).splitlines()[0][:200]
    return DataError(f"expected {expected} in {path}, got: {got}; mend it or download it again")


def _compression(path: Path) -> str | None:
    return "gzip" if path.name.lower().endswith(".gz") else None


def _bytes(path: Path) -> Any:
    return gzip.open(path, "rb") if _compression(path) else path.open("rb")


def _encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """How the text is encoded: UTF-8, UTF-16 with its mark, or else Latin-1, with a note.

    The whole file is decoded once, so that a stray byte does not end a run half-way.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with _bytes(path) as file:
            begins = file.read(16)
            _is_text(path, begins)
            if begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16", (f"{path.name}: read as UTF-16",)
            block = begins
            while block:
                if b"\0" in block:
                    raise DataError(
                        f"expected text in {path}, got binary data; rename it to what it is"
                    )
                decoder.decode(block)
                block = file.read(BLOCK_BYTES)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        return "latin-1", (
            f"{path.name}: not UTF-8 (byte 0x{bad:02x}), so read as Latin-1; "
            "save it as UTF-8 if names look wrong",
        )
    except (EOFError, OSError) as error:
        raise _damaged(path, "a whole gzip file", error) from error
    return "utf8", ()


def _is_text(path: Path, begins: bytes) -> None:
    for signature, what, remedy in SIGNATURES:
        if begins.lower().startswith(signature.lower()):
            raise DataError(f"expected CSV text in {path}, got {what}; {remedy}")


def _header(path: Path, encoding: str) -> tuple[tuple[str, ...], int, str]:
    """Column names, the number of rows they end at, and what separates them."""
    encoding = "utf-8-sig" if encoding == "utf8" else encoding
    with _bytes(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        start = text.read(1 << 16)
    if not start.strip():
        raise DataError(f"expected rows in {path}, got blank lines; write or download it again")
    delimiter = _delimiter(path, start)
    for number, row in enumerate(csv.reader(io.StringIO(start), delimiter=delimiter), start=1):
        if any(value.strip() for value in row):
            names = (value.strip() or f"column_{place}" for place, value in enumerate(row, 1))
            return tuple(names), number, delimiter
    raise DataError(f"expected a line of column names in {path}, got none; add a header")


def _delimiter(path: Path, start: str) -> str:
    if ".tsv" in path.name.lower():
        return "\t"
    line = next(line for line in start.splitlines() if line.strip())
    outside_quotes = "".join(line.split('"')[::2])
    counts = {mark: outside_quotes.count(mark) for mark in ",;\t|"}
    return max(counts, key=counts.__getitem__)  # the comma where none occurs


def _once(names: Sequence[str], where: str) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(
            f"expected every column name once in {where}, got {twice[0]!r} "
            f"{Counter(names)[twice[0]]} times; rename or remove one"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
