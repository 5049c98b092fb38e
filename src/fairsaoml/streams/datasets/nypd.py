"""NYPD's yearly stop, question and frisk files, 2003 to 2016, as one typed table.

The files are a zip of one CSV (to 2014) or a CSV (2015, 2016). Over the years the columns are
spelled in upper, lower and mixed case, 2006 abbreviates nine of them, `forceuse` joins in 2011.
A box that is not ticked is `N`, `0` or blank, one that is ticked `Y` or `1`; a missing value is
blank, a space, `NA` or asterisks; a date is `1012011`, `01012011`, ` 7012014` or `2011-01-01`,
and the last line may be empty. Here all of that is read into one coding, in order of time.

Also read: the copy of 2011 with few columns (`date`, `time`, `race`, `arstmade`, `borough`,
`pct_geo`). Checked against the real files of 2014 to 2016 and the first 2,000 stops of 2011; the
other years follow the published file specifications and are untested.
"""

import csv
import gzip
import io
import re
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from fairsaoml.core.errors import DataError, closest

YEARS = range(2003, 2017)  # the 112-column files; 2017 has other columns and other meanings
ROWS = {2011: 685_724, 2014: 45_787, 2015: 22_563, 2016: 12_404}  # stops of a year, where checked

_PLACES = tomllib.loads(Path(__file__).with_name("boroughs.toml").read_text())
BOROUGHS: dict[str, str] = _PLACES["names"]
PRECINCTS = {str(one): letter for letter, many in _PLACES["precincts"].items() for one in many}
_LETTERS = {name.upper()[:6]: letter for letter, name in BOROUGHS.items()}  # "STATEN IS" is written

FEATURE = "feature"
MOST_BAD_ROWS = 0.01  # rows without a date are left out; if more than this, the file is bad
_SPELLED_IN_COPY = {"borough": "city", "pct_geo": "pct", "time": "timestop"}
_IN_THE_COPY = ("race", "arstmade")
_BROKEN = (pa.ArrowInvalid, EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError)


class CodeBookEntry(NamedTuple):
    """What is known of a published column."""

    in_2006: str  # its abbreviation in that year
    kind: str  # how it is read: answer, code, number or tick; empty if it is not
    values: tuple[str, ...]  # the codes of a feature; a number's range, beyond which are marks
    use: str  # FEATURE, or why it is none


class Stops(NamedTuple):
    """A file's stops in order of time, and what a person should know of them."""

    table: Any  # Arrow table: date, timestop, borough, precinct, then columns as published
    counts: Mapping[int, int]  # year -> stops in the file, those left out included
    notes: tuple[str, ...]

    @property
    def full(self) -> bool:
        """Whether they have the full record, not only the few columns of the copy of 2011."""
        return "frisked" in self.table.column_names


@cache
def code_book() -> Mapping[str, CodeBookEntry]:
    """Every column that NYPD publishes, by name; features in their order."""
    text = Path(__file__).with_name("nypd_columns.csv").read_text()
    _, *rows = csv.reader(text.splitlines())
    return {
        name: CodeBookEntry(in_2006, kind, tuple(values.split()), use)
        for name, in_2006, kind, values, use in rows
    }


def read_stops(path: Path) -> Stops:
    """All stops of a published file that have a date and a borough, in one coding.

    Boxes and questions are `Y` or `N`, codes are texts, ages, heights (inches), weights and minutes
    of observation are numbers, and what is unknown or impossible is null.
    """
    raw = _columns(path)
    dates = _mapped(raw["date" if "date" in raw.column_names else "datestop"], _day, pa.date32())
    boroughs = pc.coalesce(
        _mapped(raw["city"], lambda city: _LETTERS.get(city[:6]), pa.string()),
        _mapped(raw["pct"], lambda precinct: PRECINCTS.get(_code(precinct) or ""), pa.string()),
    )
    columns: dict[str, Any] = {
        "date": dates,
        "timestop": _mapped(raw["timestop"], _moment, pa.time32("s")),
        "borough": boroughs.dictionary_encode(),
        "precinct": _typed(raw["pct"], "precinct", "code"),
    }
    for name, column in code_book().items():
        if column.kind and name in raw.column_names:
            columns[name] = _typed(raw[name], name, column.kind)
    if "ht_feet" in columns:
        feet, inches = columns.pop("ht_feet"), columns.pop("ht_inch")
        columns["height"] = pc.add(pc.multiply(feet, 12.0), inches)
    dated = dates.is_valid()
    placed = pc.and_(dated, boroughs.is_valid())
    notes = _left_out(path, "without a date of 2003 to 2016", pc.invert(dated), MOST_BAD_ROWS)
    notes += _left_out(path, "without a borough", pc.and_not(dated, placed))
    table = pa.table(columns).filter(placed)
    if not table.num_rows:
        raise DataError(f"{path.name}: expected stops in the five boroughs, got none")
    day, moment = (table[name].cast(pa.int32()) for name in ("date", "timestop"))
    order = np.lexsort((pc.fill_null(moment, -1), day))  # stable: else as published
    counts = Counter(sorted(pc.year(dates.drop_null()).to_pylist()))
    return Stops(table.take(order).combine_chunks(), counts, notes)


# What a single text means -------------------------------------------------------------------


def _text(raw: bytes) -> str:
    """A value without the blanks and marks that stand for nothing.

    >>> [_text(raw) for raw in (b" BROOKLYN ", b" ", b"NA", b"***", b"(null)")]
    ['BROOKLYN', '', '', '', '']
    """
    text = raw.decode("latin-1").strip().upper()
    return "" if text in ("NA", "(NULL)", "NULL") or not text.strip("*") else text


def _day(text: str) -> date | None:
    """A date in any of the spellings of fourteen years; None if it is none of those years.

    >>> [str(_day(text)) for text in ("1012011", "01012011", "2011-01-01", "1/1/2011")]
    ['2011-01-01', '2011-01-01', '2011-01-01', '2011-01-01']
    >>> _day("12311900"), _day("13012011"), _day("")
    (None, None, None)
    """
    when = _when(text.zfill(8), "%m%d%Y", "%Y-%m-%d", "%m/%d/%Y")
    return when.date() if when and when.year in YEARS else None


def _moment(text: str) -> time | None:
    """A time of day.

    >>> [str(_moment(text)) for text in ("5", "130", "21:30", "9:05:00", "2460", "")]
    ['00:05:00', '01:30:00', '21:30:00', '09:05:00', 'None', 'None']
    """
    when = _when(text.zfill(4), "%H%M", "%H:%M", "%H:%M:%S") if text else None
    return when.time().replace(second=0) if when else None


def _when(text: str, *formats: str) -> datetime | None:
    """The moment that a text means in the first of the formats that it has."""
    for format in formats:
        with suppress(ValueError):
            return datetime.strptime(text, format)
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _code(text: str) -> str | None:
    """A code; numeric ones without leading zeros or a decimal point.

    >>> [_code(text) for text in ("M", "020", "20.0", "")]
    ['M', '20', '20', None]
    """
    return str(int(text.split(".")[0])) if re.fullmatch(r"\d+(\.0*)?", text) else text or None


_ANSWERS = {"Y": "Y", "1": "Y", "N": "N", "0": "N", "": None}


# Whole columns ------------------------------------------------------------------------------


def _mapped(column: Any, meaning: Callable[[str], Any], kind: Any) -> Any:
    """What each row's text means; each distinct text is looked at once."""
    column = column.unify_dictionaries().combine_chunks()
    meanings = [meaning(_text(raw)) for raw in column.dictionary.to_pylist()]
    return pa.array(meanings, kind).take(column.indices)


def _typed(column: Any, name: str, kind: str) -> Any:
    """A column as the code book reads it."""
    if kind == "number":
        low, high = map(float, code_book()[name].values)
        values = _mapped(column, _number, pa.float32())
        known = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        return pc.if_else(known, values, None)  # out of range: unknown
    if kind == "code":
        return _mapped(column, _code, pa.string()).dictionary_encode()

    def answer(text: str) -> str | None:
        if text not in _ANSWERS:
            raise DataError(
                f"{name}: expected Y, N, 1, 0 or blank, got {text!r}; "
                "is this a stop-and-frisk file of 2003 to 2016?"
            )
        return _ANSWERS[text]

    answers = _mapped(column, answer, pa.string())
    if kind == "tick":
        answers = pc.fill_null(answers, "N")  # in part of 2014 an empty box is blank
    return answers.dictionary_encode()


def _left_out(path: Path, why: str, rows: Any, at_most: float = 1.0) -> tuple[str, ...]:
    count = pc.sum(rows).as_py()
    if count > max(1, at_most * len(rows)):  # one is the empty last line
        raise DataError(
            f"{path.name}: expected a stop-and-frisk file, got {count:,} of {len(rows):,} rows "
            f"{why}; take the file as NYPD publishes it"
        )
    return (f"{path.name}: {count:,} rows {why} left out",) if count else ()


# The bytes ----------------------------------------------------------------------------------


def _columns(path: Path) -> Any:
    """The columns we use as an Arrow table of bytes, in our spelling of their names."""
    try:
        with _opened(path) as stream:
            header = _header(path, stream.readline(1 << 16))
            full = [name for name, column in code_book().items() if column.kind]
            kept = full if "frisked" in header else _IN_THE_COPY
            wanted = ["date" if "date" in header else "datestop", "timestop", "city", "pct", *kept]
            for name in wanted:
                if name not in header:
                    raise DataError(
                        f"{path.name}: expected a column {name!r}, got none; "
                        f"{closest(name, header)}"
                    )
            stream.seek(0)
            # One thread: no slower here, and it holds half as much memory.
            read = pacsv.ReadOptions(column_names=header, skip_rows=1, use_threads=False)
            # As bytes: no encoding can be wrong.
            types = dict.fromkeys(wanted, pa.dictionary(pa.int32(), pa.binary()))
            convert = pacsv.ConvertOptions(include_columns=wanted, column_types=types)
            table = pacsv.read_csv(stream, read, convert_options=convert)
    except _BROKEN as error:
        raise DataError(f"{path.name} is damaged or cut short ({error}); get it again") from error
    if not table.num_rows:
        raise DataError(f"{path.name}: expected stops, got a header without rows")
    return table


def _header(path: Path, line: bytes) -> list[str]:
    text = line.decode("latin-1").removeprefix("\xef\xbb\xbf").strip().lower()
    if not text:
        raise DataError(f"{path.name}: expected a CSV file with a header, got an empty file")
    if text.startswith("<"):
        raise DataError(f"{path.name}: expected a CSV file, got an HTML page; download the data")
    names = [name.strip() for name in next(csv.reader([text]))]
    spelled = {column.in_2006: name for name, column in code_book().items() if column.in_2006}
    if "pct_geo" in names:
        spelled |= _SPELLED_IN_COPY
    return [spelled.get(name, name) for name in names]


def _opened(path: Path) -> Any:
    """The CSV inside, told by the file's first bytes and not by its name."""
    with path.open("rb") as stream:
        start = stream.read(2)
    if start == b"\x1f\x8b":
        return gzip.open(path)
    if start != b"PK":
        return path.open("rb")
    archive = zipfile.ZipFile(path)
    names = [name for name in archive.namelist() if not name.startswith("__MACOSX")]
    inside = [name for name in names if name.lower().endswith(".csv")]
    if len(inside) != 1:
        raise DataError(f"{path.name}: expected a zip of one CSV file, got {len(inside)} of them")
    return io.BufferedReader(archive.open(inside[0]))
