"""What each column of the first task is: a number, a category, a date, or nothing to learn from.

A column whose values vary wildly (kurtosis above 10) is read in logarithms before it is scaled.
Scales are those of the bulk of the values: a few wild cells move them little. Ids, running numbers,
free text and constants say nothing about the next row and are left out. Limits: a first task of a
few rows gives poor scales; an id is recognised by its name and by how many values differ,
so a wrong guess is mended with `kinds`, or by the user with `columns`.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.streams.table import columns as raw
from fairsaoml.streams.table import dates, encoder
from fairsaoml.streams.table.groups import MISSING, in_order_of_size
from fairsaoml.streams.table.reading import need, read_table

MAX_CODES = 8  # whole numbers of so few values are read as categories ...
ROWS_PER_CODE = 10  # ... if the first task shows each of them often enough
CODE_RANGE = 16  # ... and they lie close together: 0, 7688 and 99999 are amounts
HEAVY_TAIL = 10.0  # kurtosis (normal: 3, exponential: 9) from which logarithms are taken
MOSTLY_NUMBERS = 0.9  # a text column with more numbers than this is a column of numbers
ENOUGH_ROWS = 20  # fewer rows say nothing about whether values repeat
MOSTLY_DISTINCT = 0.5  # more distinct values than this share of the rows: an id, a name, free text
TEXT_WORDS, TEXT_LENGTH = 4.0, 40.0  # mean words or letters from which a value is free text
AN_ID = "an id or a name, different in nearly every row"
NOT_UNDERSTOOD = (
    f"{AN_ID} (it begins with digits: if these are numbers, how they are written was not "
    "understood; write 1234.5)"
)
DIGIT_FIRST = r"^\W{0,2}\d"
JOINED = r"\d[-:/]\d"  # as in 17-000003 and 13:157:1, which are no numbers
ID_NAME = re.compile(r"(^|[\W_])(id|uuid|guid|key|index|ssn)$|[a-z]I[dD]$", re.ASCII)
TAIL = 0.05  # on either side; what lies between says how wide a column is
MOSTLY_ONE = 5.0  # how many medians of the others' distances stand for the width, where it is 0
FENCE = 2.0  # values further than so many of these widths beyond it are wild


def fit_encoder(
    frame: Any,
    *,
    kinds: Mapping[str, str] | None = None,
    keep: Collection[str] = (),
    time_format: str | None = None,
) -> encoder.Encoder:
    """An encoder of every column of a table, fitted on all its rows.

    `kinds` says what a column is where the guess would be wrong: column -> "numeric",
    "categorical", "date" or "drop". `keep` names columns that stay even if they look like ids or
    free text. `time_format` is preferred for the dates that it reads.
    """
    table = read_table(frame)
    kinds = dict(kinds or {})
    need(kinds, table.column_names)
    known = (*encoder.KINDS, "drop")
    for kind in kinds.values():
        if kind not in known:
            raise ConfigError(f"expected a kind of column, got {kind!r}; {closest(kind, known)}")
    fitted = {
        name: _fit(name, table[name], kinds.get(name), time_format, keep=name in keep)
        for name in table.column_names
    }
    columns = tuple(column for column in fitted.values() if not isinstance(column, str))
    reasons = {name: reason for name, reason in fitted.items() if isinstance(reason, str)}
    dropped = tuple(encoder.Dropped(name=name, reason=reasons[name]) for name in reasons)
    return encoder.Encoder(columns=columns, dropped=dropped)


def _fit(
    name: str, column: Any, kind: str | None, time_format: str | None, *, keep: bool
) -> encoder.Column | str:
    """One column, of the kind asked for or else the kind it looks like; or why it is left out."""
    if kind == "drop":
        return "as asked"
    if not raw.is_flat(column.type):
        return "not one value per row"
    distinct = raw.factor(column).folded()
    if not len(distinct.values):
        return "empty in the first task"
    if len(distinct.values) == 1 and (distinct.codes >= 0).all():
        return "constant in the first task"
    formats = dates.formats(column, time_format)
    decimal = raw.decimal_of(column)
    read = raw.numbers(column, decimal)
    if kind is None:
        kind = "date" if formats else _guess(name, column, distinct, read)
        if kind not in encoder.KINDS and not keep:
            return kind
        if kind not in encoder.KINDS:
            kind = "categorical" if read.unreadable else "numeric"
    if kind == "categorical":
        return _fit_categorical(name, distinct)
    if kind == "date" and not formats:
        return "no dates that could be read in the first task"
    if kind == "date":
        return _fit_date(name, column, formats[0])
    if np.isnan(read.values).all():
        return "no numbers in the first task"
    return _fit_numeric(name, read.values, decimal)


def _guess(name: str, column: Any, distinct: raw.Factor, read: raw.Numbers) -> str:
    """What a column looks like, if no dates: a kind, or a reason to leave it out."""
    if pa.types.is_boolean(column.type) or len(distinct.values) == 1:
        return "categorical"
    present = int(distinct.counts().sum())
    codes = pc.any(pc.match_substring_regex(distinct.values, r"^0\d")).as_py()  # as in zip codes
    strange = read.unreadable - read.infinite  # an infinity is a number, though of no use
    if strange <= (1 - MOSTLY_NUMBERS) * present and read.infinite < present and not codes:
        return _guess_number(name, read)
    return _guess_text(name, distinct)


def _guess_number(name: str, read: raw.Numbers) -> str:
    values = read.values[~np.isnan(read.values)]
    different = len(np.unique(values))
    if (values != np.round(values)).any():
        return "numeric"
    if ID_NAME.search(name):
        return "categorical" if different <= encoder.MAX_CATEGORIES else AN_ID
    if different == len(values) >= ENOUGH_ROWS:
        steps = np.diff(values)
        if (steps > 0).all() or (steps < 0).all() or np.ptp(values) == different - 1:
            return "a running number"
    often = different == 2 or ROWS_PER_CODE * different <= len(values)
    codes = different <= MAX_CODES and often and np.ptp(values) <= CODE_RANGE
    return "categorical" if codes else "numeric"


def _guess_text(name: str, distinct: raw.Factor) -> str:
    rows, different = int(distinct.counts().sum()), len(distinct.values)
    words = pc.mean(pc.add(pc.count_substring(distinct.values, " "), 1)).as_py()
    letters = pc.mean(pc.utf8_length(distinct.values)).as_py()
    mostly_distinct = different > MOSTLY_DISTINCT * rows
    long = words >= TEXT_WORDS or letters >= TEXT_LENGTH
    if (mostly_distinct or different > encoder.MAX_CATEGORIES) and long:
        return "free text"
    if mostly_distinct and rows >= ENOUGH_ROWS and different > MAX_CODES:
        begins, joined = (
            pc.match_substring_regex(distinct.values, pattern).to_numpy(False)
            for pattern in (DIGIT_FIRST, JOINED)
        )
        figures = (begins & ~joined).mean() > MOSTLY_NUMBERS and not ID_NAME.search(name)
        return NOT_UNDERSTOOD if figures else AN_ID
    if ID_NAME.search(name) and (different > encoder.MAX_CATEGORIES or different == rows):
        return AN_ID
    return "categorical"


def _fit_numeric(name: str, read: np.ndarray, decimal: str) -> encoder.Numeric:
    values = read[~np.isnan(read)]
    unit = None
    if _kurtosis(values) > HEAVY_TAIL:
        unit = float(np.median(np.abs(values[values != 0])))
        values = encoder.logarithm(values, unit)
    center, scale = _location(values)
    flag = len(values) < len(read)
    return encoder.Numeric(
        name=name, center=center, scale=scale, unit=unit, flag=flag, decimal=decimal
    )


def _kurtosis(values: np.ndarray) -> float:
    """The kurtosis of values of any size: they are scaled first, as 1e308**4 overflows."""
    centred = values / np.abs(values).max() if values.any() else values
    centred = centred - centred.mean()
    square = np.mean(centred**2)
    return float(np.mean(centred**4) / square**2) if square > 0 else 0.0


def _location(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of the values within fences: a few wild ones move neither.

    The fences stand two spreads beyond the middle 90 %, at some eight standard deviations of a
    normal column. Of a column that is mostly one value, the spread is that of the others.

    >>> [round(part, 2) for part in _location(np.array([1.0, 2.0, 3.0] * 10 + [1e30]))]
    [2.16, 1.19]
    """
    unit = float(np.abs(values).max()) or 1.0
    if np.ptp(values / unit) == 0:
        return float(values[0]), 1.0
    middle = np.median(values)
    others = values[values != middle]
    # Halves, so that no sum overflows; the inner neighbour, so that one value in twenty is outside.
    low = np.quantile(values / 2, TAIL, method="higher")
    high = np.quantile(values / 2, 1 - TAIL, method="lower")
    spread = high - low
    if spread <= 0:
        spread = MOSTLY_ONE * np.median(np.abs(others / 2 - middle / 2))
    with np.errstate(over="ignore"):
        kept = np.clip(values, 2 * (low - FENCE * spread), 2 * (high + FENCE * spread))
    unit = float(np.abs(kept).max()) or 1.0
    scaled = kept / unit
    return float(scaled.mean() * unit), float(scaled.std() * unit) or 1.0


def _fit_categorical(name: str, distinct: raw.Factor) -> encoder.Categorical:
    rows = dict(zip(distinct.values.to_pylist(), distinct.counts().tolist(), strict=True))
    by_size = sorted(rows, key=lambda text: (-rows[text], text))
    levels = in_order_of_size(by_size[: encoder.MAX_CATEGORIES])
    absent = int((distinct.codes < 0).sum())
    if absent and MISSING not in levels:
        levels.append(MISSING)
    rows[MISSING] = rows.get(MISSING, 0) + absent
    share = rows[levels[-1]] / len(distinct.codes) if len(levels) == 2 else 0.0
    return encoder.Categorical(name=name, levels=tuple(levels), share=share, fold=True)


def _fit_date(name: str, column: Any, format: str) -> encoder.Date:
    read = dates.read(column, format).values
    seconds = read[~np.isnan(read)]
    return encoder.Date(
        name=name,
        format=format,
        center=float(seconds.mean()),
        scale=max(float(seconds.std()), dates.YEAR),
        hours=format == dates.CLOCK or bool((seconds % dates.DAY != 0).any()),
        flag=len(seconds) < len(read),
    )
