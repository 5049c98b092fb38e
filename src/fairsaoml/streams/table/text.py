"""CSV and TSV files as a pass over Arrow tables of text, whatever their encoding and separator.

What is UTF-8 is read as UTF-8; a byte that cannot be is read as Latin-1, by itself, so that a stray
byte in the last row changes nothing before it. UTF-16 is known by its mark.
"""

import atexit
import codecs
import csv
import gzip
import io
import time
import traceback
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast
from weakref import WeakSet, WeakValueDictionary

import pyarrow as pa
import pyarrow.csv as pacsv

from fairsaoml.core.errors import DataError

BLOCK_BYTES = 1 << 20  # one block of CSV text; Arrow reads some twenty ahead
HEAD_BYTES = 1 << 16  # of a text file, from which header and separator are told
MOST_HEAD_BYTES = 1 << 22  # a header that is longer is none
PATIENCE = 0.5  # seconds, at the end of a pass, for Arrow's threads to let go of the file
BLANK = "column_{}"  # the name of a column that has none
UTF_8 = "utf-8-sig"  # with or without its mark
LATIN_1 = {0xDC00 + byte: byte for byte in range(0x80, 0x100)}  # of what `surrogateescape` makes
# What a file begins with when it is not what its name says.
SIGNATURES = (
    (b"par1", "a Parquet file", "rename it to end in .parquet"),
    (b"\x1f\x8b", "a gzip file", "rename it to end in .csv.gz"),
    (b"pk\x03\x04", "a zip file or spreadsheet", "unpack it, or export the sheet as CSV"),
    ((b"<!doctype", b"<html"), "an HTML page", "download the data itself"),
    (b"{", "JSON", "convert it to CSV or Parquet"),
)
UNREADABLE = (pa.ArrowException, OSError, EOFError, zlib.error, csv.Error)


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Turn what a damaged file raises into a DataError that says what was expected in it."""
    try:
        yield
    except UNREADABLE as error:
        got = " ".join(str(error).split())[:200]
        raise DataError(
            f"expected {expected} in {path}, got: {got}; mend it or download it again"
        ) from error


class TextTable:
    """A text file: its columns, and passes over its rows as text."""

    def __init__(self, path: Path) -> None:
        self.path, self.notes = path, list[str]()
        head = self._head()
        self.columns, self.lines, self.delimiter = _header(path, head)
        if self.delimiter not in ",\t":
            self.note(f"columns are separated by {self.delimiter!r}")

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """One pass over the rows; raises DataError where the file is damaged."""
        rows = self._rows(columns)
        _passes.add(rows)
        return rows

    def _rows(self, columns: Sequence[str]) -> Generator[Any]:
        expected = f"rows of {len(self.columns)} values"
        with reading(self.path, expected), _bytes(self.path) as file:
            text = _Decoded(self, file)
            lent = text.lent
            try:
                for batch in self._reader(text, columns):
                    yield pa.Table.from_batches([batch])
            except UNREADABLE as error:
                traceback.clear_frames(error.__traceback__)  # they hold the text as well
                raise
            finally:
                text.stopped = True
                del text
                _wait_until_empty(lent)

    def _reader(self, text: "_Decoded", columns: Sequence[str]) -> Any:
        return pacsv.open_csv(
            text,
            read_options=pacsv.ReadOptions(
                column_names=self.columns,
                skip_rows_after_names=self.lines,
                block_size=BLOCK_BYTES,
                use_threads=False,  # no slower here, and half the memory
            ),
            parse_options=pacsv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(self.columns, pa.string()),
                include_columns=list(columns),
            ),
        )

    def note(self, words: str) -> None:
        """Remember something odd about the file, once."""
        if (note := f"{self.path.name}: {words}") not in self.notes:
            self.notes.append(note)

    def _head(self) -> str:
        """The beginning of the file, at least to the end of its header."""
        block, size = b"", HEAD_BYTES
        with reading(self.path, "a whole gzip file"), _bytes(self.path) as file:
            while size <= MOST_HEAD_BYTES:
                block += file.read(size - len(block))
                self.encoding = self._encoding(block)
                text = _Decoded(self, io.BytesIO(block)).utf_8().decode()
                if len(block) < size or _has_two_rows(text):
                    return text
                size *= 2
        raise DataError(
            f"expected a line of column names in {self.path}, got a first line of more than "
            f"{MOST_HEAD_BYTES >> 20} MiB; write one row per line"
        )

    def _encoding(self, block: bytes) -> str:
        for signature, what, remedy in SIGNATURES:
            if block.lower().startswith(signature):
                raise DataError(f"expected CSV text in {self.path}, got {what}; {remedy}")
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self.note("read as UTF-16")
            return "utf-16"
        if b"\0" in block:
            raise DataError(f"expected text in {self.path}, got binary data; rename or convert it")
        return UTF_8


class _Decoded:
    """A file re-encoded while it is read: as UTF-8, whatever it was.

    Threads of Arrow's read ahead in it, and go on for a moment when a pass ends early. One that
    still needs Python when Python has ended, if only to give a block back, aborts the process or
    has it wait for ever. So a pass waits for them, and ends before Python does.
    """

    closed = False  # Arrow asks

    def __init__(self, table: TextTable, file: BinaryIO) -> None:
        self.table, self.file, self.stopped = table, file, False
        errors = "surrogateescape" if table.encoding == UTF_8 else "replace"
        self.decoder = codecs.getincrementaldecoder(table.encoding)(errors=errors)
        self.lent = WeakValueDictionary[int, Any]({id(self): self})  # what Arrow may still hold

    def read(self, size: int) -> memoryview:
        """The next block, for Arrow."""
        block = memoryview(b"" if self.stopped else self.utf_8(size))
        self.lent[id(block)] = block
        return block

    def utf_8(self, size: int = -1) -> bytes:
        text, ended = "", False
        while not text and not ended:  # a block may be the first byte of a letter alone
            block = self.file.read(size)
            ended = not block
            text = self.decoder.decode(block, final=ended)
        try:
            return text.encode()
        except UnicodeEncodeError as error:  # a byte that was not UTF-8 is a lone surrogate
            self.table.note(
                f"has bytes that are not UTF-8, the first is 0x{ord(text[error.start]) & 0xFF:02x}:"
                " they are read as Latin-1; save it as UTF-8 if names look wrong"
            )
            return text.translate(LATIN_1).encode()


_passes = WeakSet[Generator[Any]]()  # those that may not have ended


@atexit.register
def _close_passes() -> None:
    for rows in [*_passes]:
        with suppress(ValueError):  # another thread is in it
            rows.close()


def _wait_until_empty(lent: WeakValueDictionary[int, Any]) -> None:
    ends = time.monotonic() + PATIENCE
    while lent and time.monotonic() < ends:
        time.sleep(0.0001)


def _bytes(path: Path) -> BinaryIO:
    zipped = path.name.lower().endswith(".gz")
    return cast(BinaryIO, gzip.open(path, "rb")) if zipped else path.open("rb")


def _has_two_rows(head: str) -> bool:
    with suppress(csv.Error):  # `_header` says what is wrong
        return len([*filter(any, csv.reader(io.StringIO(head, newline="")))]) > 1
    return True


def _header(path: Path, head: str) -> tuple[tuple[str, ...], int, str]:
    """Column names, the number of rows they end at, and what separates them."""
    first = next((line for line in head.splitlines() if line.strip()), "")
    outside_quotes = "".join(first.split('"')[::2])
    delimiter = max(",;\t|", key=outside_quotes.count)  # the comma where none occurs
    if ".tsv" in path.name.lower():
        delimiter = "\t"
    rows = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    with reading(path, "a line of column names"):
        for number, row in enumerate(rows, start=1):
            if any(value.strip() for value in row):
                names = (value.strip() or BLANK.format(at) for at, value in enumerate(row, 1))
                return tuple(names), number, delimiter
    raise DataError(f"expected a line of column names in {path}, got blank lines; add a header")
