"""Rows as a client sends them: checked one by one, encoded all together.

What an encoder would read as a missing value in a table is an error here, with the row's number and
its column: who sends a row can still mend it. An unknown category and null stay what they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import DataError
from fairsaoml.serve.model import RunModel, rows_table
from fairsaoml.serve.wire import PLAIN, is_text
from fairsaoml.streams.table.columns import numbers
from fairsaoml.streams.table.encoder import Encoder, Numeric
from fairsaoml.streams.table.row_encoder import NUMBERS, RowEncoder

__all__ = ["BadValue", "Reader", "bad_id"]

LONGEST_ID = 200


class BadValue(NamedTuple):
    """Why a row cannot be taken."""

    column: str
    message: str


class Reader:
    """Reads rows, labels and groups as a run's model needs them."""

    def __init__(self, model: RunModel) -> None:
        self.model = model
        saved = model.stream.encoder
        encoder = None if saved is None else Encoder.from_json(saved)
        self._encoder = None if encoder is None else RowEncoder(encoder)
        columns = () if encoder is None else encoder.columns
        self.columns = tuple(c.name for c in columns) or model.stream.schema.features
        kinds = {column.name: isinstance(column, Numeric) for column in columns}
        self._numeric = tuple(name for name in self.columns if kinds.get(name, encoder is None))
        self._needed = frozenset(self.columns)
        self._aware = bool(getattr(model.online.config, "aware", False))
        protected = [name for role in model.sensitive for name in role.columns]
        self.attributes = tuple(dict.fromkeys(protected))
        self.words = (model.label.negative, model.label.positive)

    def bad_rows(self, rows: Sequence[Mapping[str, Any]]) -> dict[int, BadValue]:
        """Return what is wrong, by the row's place."""
        bad = {}
        for place, row in enumerate(rows):
            if not self._needed <= row.keys():
                name = next(name for name in self.columns if name not in row)
                bad[place] = BadValue(
                    name, "expected a value, got none; send null where it is not known"
                )
        for name in self._numeric:
            if not NUMBERS.issuperset([type(row.get(name)) for row in rows]):
                for place, row in enumerate(rows):
                    if place not in bad and _is_no_number(value := row[name]):
                        message = f"expected a number, got {value!r}; mend it, or send null"
                        bad[place] = BadValue(name, message)
        return bad

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return checked rows as the learner sees them, (row, feature)."""
        if self._encoder is not None:
            return self._encoder.encode(rows)
        return self.model.encode(_table(rows, self.columns))

    def codes(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return each row's groups, (row, attribute)."""
        table = _table(rows, self.attributes)
        codes = [role.codes(table).codes for role in self.model.sensitive]
        return np.stack(codes, axis=1) if codes else np.zeros((len(rows), 0), np.int32)

    def seen(self, rows: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray | None]:
        """Return what may decide rows: their features, and their groups if the learner looks."""
        return self.encode(rows), self.codes(rows) if self._aware else None

    def groups(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the groups that came with a row."""
        return {name: row[name] for name in self.attributes if row.get(name) is not None}

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
            try:
                [code] = self.model.label.codes(pa.array([value]))
                if code >= 0:
                    return int(code)
            except (DataError, pa.ArrowException, OverflowError, UnicodeEncodeError):
                pass
        raise DataError(f"expected {self.words[0]!r} or {self.words[1]!r}, got {value!r}")


def _table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Any:
    return rows_table({name: [row.get(name) for row in rows] for name in names})


def _is_no_number(value: Any) -> bool:
    return type(value) not in NUMBERS and numbers(pa.array([str(value)])).unreadable > 0


def bad_id(id: Any) -> str:
    """Return what is wrong with an id, empty if nothing is."""
    if type(id) is int or (type(id) is str and id.isascii() and len(id) <= LONGEST_ID):
        return ""
    if type(id) is not str or len(id) > LONGEST_ID or not is_text(id):
        return f"expected an id of at most {LONGEST_ID} letters, or a whole number"
    return ""
