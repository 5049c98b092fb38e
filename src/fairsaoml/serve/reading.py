"""What clients send: JSON; rows, labels and ids in it, checked one by one, encoded all together.

What an encoder would read as a missing value in a table is an error here, with the row's number and
its column: who sends a row can still mend it. An unknown category and null stay what they are. JSON
is quick where it is plain, and precise about what cannot be read.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from fairsaoml.core.errors import DataError
from fairsaoml.serve.model import RunModel, rows_table
from fairsaoml.streams.table.columns import POINT, numbers
from fairsaoml.streams.table.encoder import Numeric
from fairsaoml.streams.table.row_encoder import NUMBERS, RowEncoder

LONGEST_ID = 200
LINE = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS
PLAIN = frozenset({str, int, float, bool, type(None)})  # what a row may hold


class BadValue(DataError):
    """Why a row cannot be taken."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


class Reader:
    """Reads rows, labels and groups as a run's model needs them."""

    def __init__(self, model: RunModel) -> None:
        self.model = model
        encoder = model.encoder
        self._encoder = None if encoder is None else RowEncoder(encoder)
        columns = () if encoder is None else encoder.columns
        self.columns = tuple(c.name for c in columns) or model.stream.schema.features
        # Of columns of numbers: what stands before decimals.
        self._decimals = {c.name: c.decimal for c in columns if isinstance(c, Numeric)}
        if encoder is None:
            self._decimals = dict.fromkeys(self.columns, POINT)
        self._aware = bool(getattr(model.online.config, "aware", False))
        self.attributes = model.sensitive_columns
        self.words = (model.label.negative, model.label.positive)

    def bad_value(self, row: Mapping[str, Any]) -> BadValue | None:
        """Return what is wrong with a row, if something is."""
        for name in self.columns:
            if name not in row:
                return BadValue(name, "expected a value, got none; send null where it is not known")
            value, decimal = row[name], self._decimals.get(name)
            if decimal is None or type(value) in NUMBERS:
                continue
            if numbers(pa.array([str(value)]), decimal).unreadable:
                return BadValue(name, f"expected a number, got {value!r}; mend it, or send null")
        return None

    def quick(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """Return rows as the learner sees them, at once where all of them are plain; else None."""
        return None if self._encoder is None else self._encoder.quick(rows)

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return checked rows as the learner sees them, (row, feature)."""
        if self._encoder is not None:
            return self._encoder.encode(rows)
        return self.model.encode(_table(rows, self.columns))

    def groups_seen(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """Return each row's groups if the learner may look at them."""
        return self.codes(rows) if self._aware else None

    def codes(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return each row's groups, (row, attribute)."""
        return self.model.codes(_table(rows, self.attributes))

    def groups(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return the groups that came with each row, as text."""
        if not any(name in row for name in self.attributes for row in rows):
            return ["{}"] * len(rows)
        groups = ({n: row[n] for n in self.attributes if row.get(n) is not None} for row in rows)
        return [to_line(group) for group in groups]

    def levels(self, groups: Sequence[Mapping[str, Any]]) -> dict[str, list[str | None]]:
        """Return which known group each row belongs to, by attribute; None where to none."""
        attributes = self.model.online.schema.attributes
        return {
            name: [(*levels, None)[code] for code in column]
            for (name, levels), column in zip(attributes, self.codes(groups).T, strict=True)
        }

    def group_given(self, group: Any) -> dict[str, Any]:
        """Return the groups that came with a label: one value, or an object by column.

        Raises:
            DataError: several columns and one value, or a name that is no sensitive column.
        """
        if not isinstance(group, dict) and len(self.attributes) == 1:
            group = {self.attributes[0]: group}
        if not isinstance(group, dict) or not group.keys() <= set(self.attributes):
            names = ", ".join(map(repr, self.attributes))
            raise DataError(f"expected a group by its column ({names}), got {group!r}")
        if any(type(value) not in PLAIN for value in group.values()):
            raise DataError(f"expected a number or a word as group, got {group!r}")
        return group

    def label(self, value: Any) -> int:
        """Return 1 for the positive label, 0 for the negative.

        Raises:
            DataError: it is neither of the two.
        """
        if type(value) in PLAIN and value is not None:
            with suppress(DataError, pa.ArrowException, OverflowError, UnicodeEncodeError):
                [code] = self.model.label.codes(pa.array([value]))
                if code >= 0:
                    return int(code)
        raise DataError(f"expected {self.words[0]!r} or {self.words[1]!r}, got {value!r}")


def _table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Any:
    return rows_table({name: [row.get(name) for row in rows] for name in names})


def id_text(id: Any) -> str:
    """Return an id as text, in which 1 and "1" are two.

    Raises:
        BadValue: it is no id.

    >>> id_text("a-17"), id_text(17), id_text("é")
    ('"a-17"', '17', '"é"')
    >>> id_text("two\\nlines")
    Traceback (most recent call last):
    fairsaoml.serve.reading.BadValue: expected an id of 1 to 200 letters in one line, or a whole \
number, got 'two\\nlines'
    """
    is_word = type(id) is str and 0 < len(id) <= LONGEST_ID
    # Not everything that is not printable breaks a line or an address.
    if type(id) is int or (is_word and (id.isprintable() or (min(id) >= " " and is_text(id)))):
        return to_line(id)
    wanted = f"1 to {LONGEST_ID} letters in one line, or a whole number"
    raise BadValue("id", f"expected an id of {wanted}, got {str(id)[:50]!r}")


class Unreadable(str):
    """A number that no float can hold, as it was written."""


def parse(text: bytes) -> Any:
    """Return what JSON says; whole numbers beyond 64 bits are floats.

    Raises:
        ValueError: it is no JSON, or says NaN.
        RecursionError: lists in lists without end.

    >>> parse(b'{"a": [1, 1e400]}')
    {'a': [1, '1e400']}
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # perhaps of one value alone: the other rows shall be answered
        return json.loads(text, parse_constant=_no_number, parse_float=_float, parse_int=_int)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON; send null")


def _float(text: str) -> float | Unreadable:
    value = float(text)
    return value if math.isfinite(value) else Unreadable(text)


def _int(text: str) -> Any:
    return int(text) if len(text) < 19 else _float(text)


def is_text(value: Any) -> bool:
    """Whether a string is whole: JSON can hold half a surrogate pair."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def to_json(value: Any) -> bytes:
    """Return plain data as JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a name that holds half a character
        return json.dumps(value).encode()


def to_line(value: Any) -> str:
    """Return plain data as text that is the same in whatever order its names come.

    Raises:
        TypeError: it holds half a character, or an `Unreadable`.

    >>> to_line({"b": 1, "a": "é"})
    '{"a":"é","b":1}'
    """
    return orjson.dumps(value, option=LINE).decode()
