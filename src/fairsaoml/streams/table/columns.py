"""A raw column, whatever its type, as distinct texts or as numbers.

Work is done on the distinct values, of which there are few, and then spread over the rows.
Text and typed columns meet here: `1`, `1.0` and the text " 1" are the same value, so a model
fitted on a CSV file also reads a dataframe.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.core.errors import DataError

SHOWN = 5  # values named in a message
SHORT, KEPT = 1024, 1024  # bytes of distinct texts that are remembered, and how many such
# What Arrow raises where it has no type for values, or none to cast them to.
UNTYPED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)

PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.float16(): pa.float32()}
MISSING_MARKS = (
    *("", "?", ".", "NA", "N/A", "n/a", "na", "#N/A", "<NA>", "NaN", "nan", "NaT"),
    *("null", "NULL", "Null", "(null)", "None"),
)
_DASHES = ("-", "--")  # no number, but as a text it may be a value: the labels "+" and "-"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"^(?i)[+-]?inf(inity)?$"
_CURRENCY = (
    r"(?:[$€£¥]|R\$|kr[.,]?|zł|Kč|Ft|Fr[.,]?|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK"
    r"|PLN|CZK|HUF|RON|BRL|MXN|ZAR|TRY)"
)
_GAP = r"[ \x{a0}\x{2009}\x{202f}]"  # an ordinary, a fixed, a thin space
_QUOTE, _MINUS = r"['\x{2019}]", r"[-\x{2212}]"
# What people write around a number, in the order in which it is taken away.
_AROUND = (
    (r"^\((.*)\)$", r"-\1"),  # (796.42)
    (rf"^(.*\d)\s?{_MINUS}$", r"-\1"),  # 796.42-
    (rf"^{_MINUS}", "-"),
    (rf"^([+-]?){_CURRENCY}?{_GAP}?([+-]?\d.*)$", r"\1\2"),
    (rf"^(.*\d[kKM]?){_GAP}?(?:{_CURRENCY}|%)$", r"\1"),
    (rf"^(.*\d){_GAP}?[kK]$", r"\1e3"),
    (rf"^(.*\d){_GAP}?M$", r"\1e6"),
)
_THOUSANDS = (
    r"^[+-]?[1-9]\d{0,2}"
    rf"(?:(?:,\d{{3}})+|(?:{_QUOTE}\d{{3}})+|(?:{_GAP}\d{{3}})+)(?:\.\d+)?(?:e\d)?$"
)
_BETWEEN_THOUSANDS = rf",|{_QUOTE}|{_GAP}"
POINT, COMMA = ".", ","  # before decimals


class Numbers(NamedTuple):
    """A column as numbers."""

    values: np.ndarray  # (row,) float64, NaN where missing or unreadable
    unreadable: int  # rows that hold something, but no finite number
    example: str = ""  # one of them
    infinite: int = 0  # how many of these are an infinity


class Factor(NamedTuple):
    """A column as codes into its distinct texts."""

    codes: np.ndarray  # (row,) position in `values`, -1 where missing
    values: Any  # Arrow array of distinct texts, in order of appearance

    def counts(self) -> np.ndarray:
        """How many rows hold each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    def folded(self) -> "Factor":
        """Values that differ in case only as one: the spelling that most rows have.

        >>> factor(pa.array(["Cook", "cook", "cook", "smith"])).folded().values.to_pylist()
        ['cook', 'smith']
        """
        lower = pc.utf8_lower(self.values).dictionary_encode()
        if len(lower.dictionary) == len(self.values):
            return self
        same = lower.indices.to_numpy(zero_copy_only=False)
        by_rows = np.argsort(-self.counts(), kind="stable")
        _, first = np.unique(same[by_rows], return_index=True)
        return Factor(np.append(same, -1)[self.codes], self.values.take(pa.array(by_rows[first])))

    def spread(self, per_value: np.ndarray, missing: Any) -> np.ndarray:
        """Each row's entry of `per_value`; `missing` where the row has no value."""
        return np.append(per_value, np.asarray(missing, dtype=per_value.dtype))[self.codes]

    def numbers(self, per_value: np.ndarray, unreadable: np.ndarray) -> Numbers:
        """Each row's number, given each value's and which values are none."""
        example = self.values[int(np.argmax(unreadable))].as_py() if unreadable.any() else ""
        rows = int(self.counts()[unreadable].sum())
        return Numbers(self.spread(per_value, np.nan), rows, example)


def plain(table: Any) -> Any:
    """A table without the types that Arrow cannot compute on: views, extensions, run lengths.

    >>> plain(pa.table({"a": pa.array(["x"], pa.string_view())})).schema.types
    [DataType(string)]
    """
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)
        kind = getattr(column.type, "storage_type", column.type)  # of an extension
        kind = PLAIN.get(kind, kind)
        if kind != field.type:
            table = table.set_column(place, field.name, column.cast(kind))
    return table


def typed(values: Any) -> Any:
    """Python values, an array or a series of them as a column; several types as their texts."""
    values = values if isinstance(values, np.ndarray | nw.Series) else list(values)
    try:
        if isinstance(values, nw.Series):
            return values.to_arrow()
        return pa.array(values, from_pandas=True)
    except UNTYPED:
        return texts(values)


def texts(values: Iterable[Any], write: Callable[[Any], str] = str) -> Any:
    """Values as Python prints them; None stays missing.

    >>> texts([1, "a", None]).to_pylist()
    ['1', 'a', None]
    """
    return pa.array([None if value is None else write(value) for value in values], pa.string())


def array(column: Any) -> Any:
    """One contiguous array; durations as seconds."""
    if pa.types.is_dictionary(column.type):
        # A categorical's dictionary also lists values of other rows, future ones among them.
        column = column.cast(column.type.value_type)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # too long for one array of its type
            column = pa.concat_arrays(column.cast(pa.large_string()).chunks)
    if pa.types.is_duration(column.type):
        column = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
        column = pc.divide(column.cast(pa.float64()), 1e6)
    return column


def filled(values: Any, missing: Any) -> np.ndarray:
    """An Arrow array as a NumPy array, with `missing` where it is null.

    >>> filled(pa.array([1, None]), 0)
    array([1, 0])
    """
    known = pc.fill_null(values, missing) if values.null_count else values
    return known.to_numpy(zero_copy_only=False)


def factor(column: Any) -> Factor:
    """Distinct canonical texts of a column and each row's code.

    >>> codes, values = factor(pa.array([" a", "a", "?", None, "b"]))
    >>> codes.tolist(), values.to_pylist()
    ([0, 0, -1, -1, 1], ['a', 'b'])
    >>> factor(pa.array([1.0, None, 2.5])).values.to_pylist()
    ['1', '2.5']
    """
    column = array(column).dictionary_encode()
    raw, found = filled(column.indices, -1), column.dictionary
    distinct = _cleaned_texts(tuple(found.to_pylist())) if _is_short(found) else _cleaned(found)
    return Factor(np.append(distinct.codes, -1)[raw], distinct.values)


def _is_short(values: Any) -> bool:
    return values.type == pa.string() and values.nbytes <= SHORT


def _cleaned(found: Any) -> Factor:
    """Two texts may be one value (" a" and "a"): what is left after cleaning is encoded again."""
    clean = canonical(found).dictionary_encode()
    return Factor(filled(clean.indices, -1).astype(np.int64), clean.dictionary)


@lru_cache(KEPT)
def _cleaned_texts(found: tuple[str, ...]) -> Factor:
    """The same few texts come in every task, and cleaning them takes longer than encoding rows."""
    return _cleaned(pa.array(found, pa.string()))


def positions(values: Any, known: Sequence[str], *, fold: bool = False) -> np.ndarray:
    """Place of each distinct text among the known ones, -1 for none; `fold`: whatever the case.

    >>> positions(pa.array(["b", "A", "c"]), ["a", "b"], fold=True)
    array([ 1,  0, -1])
    """
    if _is_short(values):
        return _positions_of_texts(tuple(values.to_pylist()), tuple(known), fold)
    return _positions(values, known, fold)


def _positions(values: Any, known: Sequence[str], fold: bool) -> np.ndarray:
    texts = pa.array(known, pa.string())
    if fold:
        values, texts = pc.utf8_lower(values.cast(pa.string())), pc.utf8_lower(texts)
    return filled(pc.index_in(values, value_set=texts), -1).astype(np.int64)


@lru_cache(KEPT)
def _positions_of_texts(values: tuple[str, ...], known: tuple[str, ...], fold: bool) -> np.ndarray:
    """As of `_cleaned_texts`: what is asked of every task, and of the same texts."""
    return _positions(pa.array(values, pa.string()), known, fold)


def some(values: Sequence[str]) -> str:
    """A few values for a message.

    >>> some(["a", "b"])
    "'a', 'b'"
    """
    shown = ", ".join(repr(value) for value in values[:SHOWN])
    return shown + (f" and {len(values) - SHOWN} more" if len(values) > SHOWN else "")


def checksum(table: Any) -> str:
    """A checksum of a table's values, whatever file and types they came in.

    >>> checksum(pa.table({"a": [1.0, None]})) == checksum(pa.table({"a": ["1", "?"]}))
    True
    """
    seen = hashlib.sha256()
    for name in table.column_names:
        if is_flat(table.schema.field(name).type):
            distinct = factor(table[name])
            seen.update(json.dumps([name, distinct.values.to_pylist()]).encode())
            seen.update(distinct.codes.astype("<i8").tobytes())
    return seen.hexdigest()


def canonical(values: Any) -> Any:
    """Texts of an Arrow array of any flat type; null where missing.

    >>> canonical(pa.array([" x ", "2.00", "n/a"])).to_pylist()
    ['x', '2', None]
    >>> canonical(pa.array([True, None])).to_pylist()
    ['True', None]
    """
    if pa.types.is_boolean(values.type):
        return pc.if_else(values, "True", "False")
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        values = pc.local_timestamp(values)
    text = pc.utf8_trim_whitespace(values.cast(pa.string()))
    # A table with a hole holds 2 as 2.0.
    return _unmarked(pc.replace_substring_regex(text, r"^([+-]?\d+)\.0*$", r"\1"))


def numbers(column: Any, decimal: str = POINT) -> Numbers:
    """A column as float64; typed numbers as they are, texts as far as they are numbers.

    `decimal`: what stands before decimals in a text; the other one may separate thousands.

    >>> numbers(pa.array([" 1", "?", "$1,200", "ten"]))[:3]
    (array([1.0e+00,     nan, 1.2e+03,     nan]), 1, 'ten')
    >>> numbers(pa.array(["50.796,5 €", "(0,8)", "1.200", "1.2"]), decimal=",")[:3]
    (array([ 5.07965e+04, -8.00000e-01,  1.20000e+03,          nan]), 1, '1.2')
    """
    column = array(column)
    if decimal == COMMA and _is_text(column.type):
        read = numbers(_swapped(column))
        return read._replace(example=read.example.translate(_SWAP))
    plain = _plain_numbers(column)
    if plain is not None:
        values = plain.to_numpy(zero_copy_only=False)
        infinite = np.isinf(values)
        rows = int(infinite.sum())
        return Numbers(np.where(infinite, np.nan, values), rows, "inf" if rows else "", rows)
    distinct = factor(column)
    parsed = _parse(distinct.values)
    dash = filled(pc.is_in(distinct.values, value_set=pa.array(_DASHES)), False)
    endless = filled(pc.match_substring_regex(distinct.values, _INFINITE), False)
    read = distinct.numbers(parsed, np.isnan(parsed) & ~dash)
    return read._replace(infinite=int(distinct.counts()[endless].sum()))


def decimal_of(column: Any) -> str:
    """What stands before decimals: the comma where more values are numbers that way.

    >>> decimal_of(pa.array(["0,80", "1.234"])), decimal_of(pa.array(["1,234", "5"]))
    (',', '.')
    """
    column = array(column)
    unread = numbers(column).unreadable if _is_text(column.type) else 0
    return COMMA if unread and numbers(column, COMMA).unreadable < unread else POINT


def dressed(column: Any, decimal: str = POINT) -> tuple[str, float] | None:
    """The first text that is a number but not simply written as one, and that number.

    >>> dressed(pa.array(["", "3", "n/a", "$1,200"]))
    ('$1,200', 1200.0)
    >>> dressed(pa.array(["", "3", "n/a"]))
    """
    column = array(column)
    if not _is_text(column.type):
        return None
    texts = pc.utf8_trim_whitespace(column).unique()
    values = numbers(texts, decimal).values
    simple = filled(pc.match_substring_regex(texts, _NUMBER), True)
    odd = np.flatnonzero(~np.isnan(values) & ~simple)
    return (texts[odd[0]].as_py(), float(values[odd[0]])) if len(odd) else None


def _is_text(kind: Any) -> bool:
    return kind in (pa.string(), pa.large_string())


_SWAP = str.maketrans(POINT + COMMA, COMMA + POINT)


def _swapped(texts: Any) -> Any:
    """Texts with commas for points and points for commas, where there are digits."""
    commas = pc.replace_substring(texts, POINT, "\0")
    commas = pc.replace_substring(pc.replace_substring(commas, COMMA, POINT), "\0", COMMA)
    return pc.if_else(pc.match_substring_regex(texts, r"\d"), commas, texts)


def _plain_numbers(column: Any) -> Any:
    """Numbers as they are, or a text of nothing but plain numbers and gaps; else None."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64(), safe=False)
    if _is_text(kind):
        if _is_bare(column):  # in half of the time
            with suppress(pa.ArrowInvalid):
                return column.cast(pa.float64())
        with suppress(pa.ArrowInvalid):
            return _unmarked(pc.utf8_trim_whitespace(column)).cast(pa.float64())
    return None


def _is_bare(texts: Any) -> bool:
    """Whether texts are made of digits, signs and points alone, and none is empty or missing."""
    if texts.type != pa.string() or not len(texts):
        return False
    _, ends, letters = texts.buffers()
    ends = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if not np.diff(ends).all():
        return False
    codes = np.frombuffer(letters, np.uint8)[ends[0] : ends[-1]]
    return bool((codes >= ord("+")).all() and (codes <= ord("9")).all())


def is_flat(kind: Any) -> bool:
    """Whether a column of this Arrow type holds one readable value per row."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind) or "binary" in str(kind))


def require_flat(table: Any, names: Iterable[str]) -> None:
    """Refuse columns of which a row has no readable value, or several."""
    for name in names:
        if not is_flat(kind := table.schema.field(name).type):
            raise DataError(
                f"expected texts, numbers or dates in the column {name!r}, got {kind}; "
                "make it one value per row"
            )


def _unmarked(text: Any) -> Any:
    marks = pc.is_in(text, value_set=pa.array(MISSING_MARKS, text.type))
    return pc.if_else(marks, None, text) if marks.true_count else text


def _parse(texts: Any) -> np.ndarray:
    bare = texts
    for pattern, kept in _AROUND:
        bare = pc.replace_substring_regex(bare, pattern, kept)
    whole = pc.replace_substring_regex(bare, _BETWEEN_THOUSANDS, "")
    bare = pc.if_else(pc.match_substring_regex(bare, _THOUSANDS), whole, bare)
    plain = pc.if_else(pc.match_substring_regex(bare, _NUMBER), bare, None)
    values = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.where(np.isinf(values), np.nan, values)  # 1e999
