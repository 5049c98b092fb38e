"""NYPD's yearly stop, question and frisk files, 2003 to 2016, as one typed table.

A box that is not ticked is `N`, `0` or blank, one that is ticked `Y` or `1`; a missing value is
blank, a space, `NA` or asterisks; a date is `1012011`, `01012011`, ` 7012014` or `2011-01-01`,
and the last line may be empty. Here all of that is read into one coding, in order of time
(`nypd_file` reads the bytes).

Also read: the copy of 2011 with few columns (`date`, `time`, `race`, `arstmade`, `borough`,
`pct_geo`). Checked against the real files of 2014 to 2016 and the first 2,000 stops of 2011; the
other years follow the published file specifications and are untested.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import DataError
from fairsaoml.streams.datasets.nypd_file import code_book, columns_read, read_columns

__all__ = ["BOROUGHS", "PRECINCTS", "ROWS", "YEARS", "Stops", "is_full", "read_stops", "rows_of"]

YEARS = range(2003, 2017)  # the 112-column files; 2017 has other columns and other meanings
ROWS = {2011: 685_724, 2014: 45_787, 2015: 22_563, 2016: 12_404}  # stops of a year, where checked

BOROUGHS = {"B": "Brooklyn", "M": "Manhattan", "Q": "Queens", "R": "Bronx", "S": "Staten Island"}
PRECINCTS: Mapping[str, tuple[int, ...]] = {
    "M": (1, 5, 6, 7, 9, 10, 13, 14, 17, 18, 19, 20, 22, 23, 24, 25, 26, 28, 30, 32, 33, 34),
    "R": (*range(40, 51), 52),
    "B": (60, 61, 62, 63, *range(66, 74), *range(75, 80), 81, 83, 84, 88, 90, 94),
    "Q": tuple(range(100, 116)),
    "S": (120, 121, 122, 123),
}
_BOROUGH_OF_PRECINCT = {number: letter for letter, all_ in PRECINCTS.items() for number in all_}

EPOCH = np.datetime64("1970-01-01")  # stands for no date
MOST_BAD_ROWS = 0.01  # rows without date or label are left out; if more than this, the file is bad


class Stops(NamedTuple):
    """A file's stops in order of time, and what a person should know of them."""

    table: Any  # Arrow table: date, timestop, borough, precinct, then columns as published
    counts: Mapping[int, int]  # year -> stops in the file, those left out included
    notes: tuple[str, ...]


def read_stops(path: Path) -> Stops:
    """All stops of a published file that have a date and a borough, in one coding.

    Boxes and questions are `Y` or `N`, codes are texts, ages, heights (inches), weights and minutes
    of observation are numbers, and what is unknown or impossible is null.
    """
    raw = read_columns(path)
    day = _map(_column(raw, "date" if "date" in raw.column_names else "datestop"), _day, EPOCH)
    minute = _map(_column(raw, "timestop"), _minute, -1)
    precinct = _column(raw, "pct")
    borough = _boroughs(_column(raw, "city"), precinct)
    dated = day > EPOCH
    notes = _left_out(path, "without a date of 2003 to 2016", ~dated, at_most=MOST_BAD_ROWS)
    notes += _left_out(path, "without a borough", dated & (borough == ""))
    keep = np.flatnonzero(dated & (borough != ""))
    if not len(keep):
        raise DataError(f"{path.name}: expected stops in the five boroughs, got none")
    order = keep[np.lexsort((minute[keep], day[keep]))]  # stable: else as published
    seconds = 60 * minute[order].astype(np.int32)
    columns: dict[str, Any] = {
        "date": pa.array(day[order]),
        "timestop": pa.array(seconds, mask=seconds < 0).cast(pa.time32("s")),
        "borough": pa.array(borough[order]).dictionary_encode(),
        "precinct": _codes(precinct, order),
    }
    for name in raw.column_names:
        if name in columns_read():
            columns[name] = _READ[code_book()[name].kind](_column(raw, name), order)
    if "ht_feet" in columns:
        feet, inches = columns.pop("ht_feet"), columns.pop("ht_inch")
        columns["height"] = pc.add(pc.multiply(feet, 12.0), inches)
    years, counts = np.unique(
        day[dated].astype("datetime64[Y]").astype(int) + 1970, return_counts=True
    )
    return Stops(pa.table(columns), dict(zip(years.tolist(), counts.tolist(), strict=True)), notes)


def is_full(table: Any) -> bool:
    """Whether the stops have the full record, not only the few columns of the copy of 2011."""
    return "frisked" in table.column_names


def rows_of(table: Any, year: int) -> Any:
    """The stops of one year.

    >>> rows_of(pa.table({"date": [date(2014, 1, 1), date(2015, 5, 1)]}), 2015).num_rows
    1
    """
    return table.filter(pc.equal(pc.year(table["date"]), year))


# What a single text means -------------------------------------------------------------------


def _text(raw: bytes | None) -> str:
    """A value without the blanks and marks that stand for nothing.

    >>> [_text(raw) for raw in (b" BROOKLYN ", b" ", b"NA", b"***", b"(null)", None)]
    ['BROOKLYN', '', '', '', '', '']
    """
    text = (raw or b"").decode("latin-1").strip().upper()
    return "" if text in ("NA", "(NULL)", "NULL") or not text.strip("*") else text


def _day(text: str) -> np.datetime64 | None:
    """A date in any of the spellings of fourteen years; None if it is none of those years.

    >>> [str(_day(text)) for text in ("1012011", "01012011", "2011-01-01", "1/1/2011")]
    ['2011-01-01', '2011-01-01', '2011-01-01', '2011-01-01']
    >>> _day("12311900"), _day("13012011"), _day("")
    (None, None, None)
    """
    if match := re.fullmatch(r"(\d{4})-(\d\d?)-(\d\d?)", text):
        year, month, day = match.groups()
    elif match := re.fullmatch(r"(\d\d?)/?(\d\d)/?(\d{4})|(\d\d?)/(\d\d?)/(\d{4})", text):
        month, day, year = (group for group in match.groups() if group is not None)
    else:
        return None
    try:
        known = date(int(year), int(month), int(day))
    except ValueError:
        return None
    return np.datetime64(known) if known.year in YEARS else None


def _minute(text: str) -> int | None:
    """Minutes since midnight.

    >>> [_minute(text) for text in ("5", "130", "2359", "21:30", "9:05:00", "2460", "")]
    [5, 90, 1439, 1290, 545, None, None]
    """
    match = re.fullmatch(r"(\d{0,2}?)(\d{1,2})|(\d\d?):(\d\d)(?::\d\d)?", text)
    if match is None:
        return None
    hour, minute = (int(group or 0) for group in (match[1] or match[3], match[2] or match[4]))
    return 60 * hour + minute if hour < 24 and minute < 60 else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _code(text: str) -> str:
    """A code; numeric ones without leading zeros or a decimal point.

    >>> [_code(text) for text in ("M", "020", "20.0", "")]
    ['M', '20', '20', '']
    """
    return str(int(text.split(".")[0])) if re.fullmatch(r"\d+(\.0*)?", text) else text


_ANSWERS = {"Y": "Y", "1": "Y", "N": "N", "0": "N", "": None}


def _borough(city: str, precinct: str) -> str:
    """The borough's letter, from the city as written or else from the precinct.

    >>> _borough("STATEN IS", ""), _borough("", "75"), _borough("", "")
    ('S', 'B', '')
    """
    for letter, name in BOROUGHS.items():
        if city and city[:6] == name.upper()[:6]:
            return letter
    return _BOROUGH_OF_PRECINCT.get(int(_number(precinct) or 0), "")


# Whole columns ------------------------------------------------------------------------------


class _Column(NamedTuple):
    """A column as codes into its distinct texts: each of them is looked at once."""

    name: str
    codes: np.ndarray  # (row,)
    texts: tuple[str, ...]


def _map(column: _Column, meaning: Callable[[str], Any], missing: Any) -> np.ndarray:
    known = [meaning(text) for text in column.texts]
    return np.array([missing if value is None else value for value in known])[column.codes]


def _boroughs(city: _Column, precinct: _Column) -> np.ndarray:
    letters = [[_borough(name, number) for number in precinct.texts] for name in city.texts]
    return np.array(letters, "U1")[city.codes, precinct.codes]


def _numbers(column: _Column, order: np.ndarray) -> Any:
    low, high = map(float, code_book()[column.name].values)
    values = _map(column, _number, np.nan).astype(np.float32)[order]
    return pa.array(values, mask=~((values >= low) & (values <= high)))  # out of range: unknown


def _codes(column: _Column, order: np.ndarray) -> Any:
    return _texts(column, [_code(text) or None for text in column.texts], order)


def _answers(column: _Column, order: np.ndarray) -> Any:
    strange = set(column.texts) - set(_ANSWERS)
    if strange:
        raise DataError(
            f"{column.name}: expected Y, N, 1, 0 or blank, got {min(strange)!r}; "
            "is this a stop-and-frisk file of 2003 to 2016?"
        )
    return _texts(column, [_ANSWERS[text] for text in column.texts], order)


def _ticks(column: _Column, order: np.ndarray) -> Any:
    return pc.fill_null(_answers(column, order), "N")  # in part of 2014 an empty box is blank


def _texts(column: _Column, meanings: list[str | None], order: np.ndarray) -> Any:
    distinct = pa.array(meanings, pa.string()).dictionary_encode()
    return distinct.take(pa.array(column.codes[order]))


_READ: Mapping[str, Callable[[_Column, np.ndarray], Any]] = {
    "answer": _answers,
    "code": _codes,
    "number": _numbers,
    "tick": _ticks,
}


def _column(table: Any, name: str) -> _Column:
    array = table[name].unify_dictionaries().combine_chunks()
    texts = [_text(raw) for raw in array.dictionary.to_pylist()]
    codes = pc.fill_null(array.indices, len(texts)).to_numpy(zero_copy_only=False)
    return _Column(name, codes, (*texts, ""))


def _left_out(path: Path, why: str, rows: np.ndarray, at_most: float = 1.0) -> tuple[str, ...]:
    count = int(rows.sum())
    if count > max(1, at_most * len(rows)):  # one is the empty last line
        raise DataError(
            f"{path.name}: expected a stop-and-frisk file, got {count:,} of {len(rows):,} rows "
            f"{why}; take the file as NYPD publishes it"
        )
    return (f"{path.name}: {count:,} rows {why} left out",) if count else ()
