"""NYPD's files as they are published: what each column is, and how the bytes are read.

The files are a zip of one CSV (to 2014) or a CSV (2015, 2016). Over the years the columns are
spelled in upper, lower and mixed case, 2006 abbreviates nine of them, `forceuse` joins in 2011.
The copy of 2011 with few columns spells some of them in its own way.
"""

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pacsv

from fairsaoml.core.errors import DataError, closest

__all__ = ["FEATURE", "CodeBookEntry", "code_book", "columns_read", "read_columns"]

_SPELLED_IN_COPY = {"borough": "city", "pct_geo": "pct", "time": "timestop"}
_IN_THE_COPY = ("race", "arstmade")
_BROKEN = (pa.ArrowInvalid, EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError)


class CodeBookEntry(NamedTuple):
    """What is known of a published column."""

    in_2006: str  # its abbreviation in that year
    kind: str  # how it is read: answer, code, number or tick; empty if it is not
    values: tuple[str, ...]  # the codes of a feature; a number's range, beyond which are marks
    use: str  # FEATURE, or why it is none


FEATURE = "feature"


@cache
def code_book() -> Mapping[str, CodeBookEntry]:
    """Every column that NYPD publishes, by name; features in their order."""
    text = Path(__file__).with_name("nypd_columns.csv").read_text()
    return {
        row["column"]: CodeBookEntry(
            row["in_2006"], row["kind"], tuple(row["values"].split()), row["use"]
        )
        for row in csv.DictReader(text.splitlines())
    }


def columns_read() -> list[str]:
    return [name for name, column in code_book().items() if column.kind]


def read_columns(path: Path) -> Any:
    """The columns we use as an Arrow table of bytes, in our spelling of their names."""
    header = _header(path)
    kept = columns_read() if "frisked" in header else _IN_THE_COPY
    wanted = ["date" if "date" in header else "datestop", "timestop", "city", "pct", *kept]
    for name in wanted:
        if name not in header:
            raise DataError(
                f"{path.name}: expected a column {name!r}, got none; {closest(name, header)}"
            )
    as_bytes = pa.dictionary(pa.int32(), pa.binary())  # no encoding can be wrong
    with _opened(path) as stream:
        try:
            table = pacsv.read_csv(
                stream,
                # One thread: no slower here, and it holds half as much memory.
                read_options=pacsv.ReadOptions(column_names=header, skip_rows=1, use_threads=False),
                convert_options=pacsv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, as_bytes)
                ),
            )
        except _BROKEN as error:
            raise _damaged(path, error) from error
    if not table.num_rows:
        raise DataError(f"{path.name}: expected stops, got a header without rows")
    return table


def _header(path: Path) -> tuple[str, ...]:
    with _opened(path) as stream:
        try:
            line = stream.readline(1 << 16)
        except _BROKEN as error:
            raise _damaged(path, error) from error
    text = line.decode("latin-1").removeprefix("\xef\xbb\xbf").strip().lower()
    if not text:
        raise DataError(f"{path.name}: expected a CSV file with a header, got an empty file")
    if text.startswith("<"):
        raise DataError(f"{path.name}: expected a CSV file, got an HTML page; download the data")
    names = [name.strip() for name in next(csv.reader([text]))]
    copy = "pct_geo" in names
    in_2006 = {column.in_2006: name for name, column in code_book().items() if column.in_2006}
    spelled = {**in_2006, **(_SPELLED_IN_COPY if copy else {})}
    return tuple(spelled.get(name, name) for name in names)


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path.name} is damaged or cut short ({error}); get it again")


def _opened(path: Path) -> Any:
    """The CSV inside, told by the file's first bytes and not by its name."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4)
        if start[:2] == b"\x1f\x8b":
            return gzip.open(path)
        if start[:2] == b"PK":
            return _only_csv(path)
        return path.open("rb")
    except _BROKEN as error:
        raise _damaged(path, error) from error


def _only_csv(path: Path) -> Any:
    archive = zipfile.ZipFile(path)
    inside = [
        name
        for name in archive.namelist()
        if name.lower().endswith(".csv") and not name.startswith("__MACOSX")
    ]
    if len(inside) != 1:
        raise DataError(f"{path.name}: expected a zip of one CSV file, got {len(inside)} of them")
    return io.BufferedReader(archive.open(inside[0]))
