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
from fairsaoml.streams.table.columns import numbers
from fairsaoml.streams.table.encoder import Encoder, Numeric

__all__ = ["BadValue", "Reader", "bad_id"]

PLAIN = {str, int, float, bool, type(None)}
LARGEST_INTEGER = 2**63 - 1


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
        columns = () if saved is None else Encoder.from_json(saved).columns
        names = [column.name for column in columns] or list(model.stream.schema.features)
        self.columns = tuple(names)
        self._numeric = (
            {column.name for column in columns if isinstance(column, Numeric)}
            if saved is not None
            else set(names)
        )
        self._needed = frozenset(names)
        self._aware = bool(getattr(model.online.config, "aware", False))
        protected = [name for role in model.sensitive for name in role.columns]
        self.attributes = tuple(dict.fromkeys(protected))
        self.words = (model.label.negative, model.label.positive)

    def bad_rows(self, rows: Sequence[Any]) -> dict[int, BadValue]:
        """Return what is wrong, by the row's place."""
        bad = {}
        for place, row in enumerate(rows):
            if not self._needed <= row.keys():
                name = next(name for name in self.columns if name not in row)
                bad[place] = BadValue(
                    name, "expected a value, got none; send null where it is not known"
                )
        for name in self.columns:
            values = [row.get(name) for row in rows]
            kinds = set(map(type, values))
            plain = kinds <= {int, float, type(None)} or (
                name not in self._numeric and kinds <= PLAIN
            )
            odd = (int in kinds and any(map(_is_large, values))) or (
                str in kinds and not _is_text("".join(filter(None, map(_words, values))))
            )
            if plain and not odd:
                continue
            for place, value in enumerate(values):
                if place not in bad and (message := self._problem(name, value)):
                    bad[place] = BadValue(name, message)
        return bad

    def _problem(self, name: str, value: Any) -> str:
        if isinstance(value, str) and not _is_text(value):
            return "expected text, got half a character; mend it"
        if _is_large(value):
            return "expected a number of 64 bits, got a larger one; mend it, or send null"
        if name in self._numeric and isinstance(value, str | bool):
            read = numbers(pa.array([str(value)]))
            if read.unreadable:
                return f"expected a number, got {value!r}; mend it, or send null"
        return ""

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray | None]:
        """Return checked rows as the learner sees them, (row, feature), and groups if it looks."""
        names = self.columns
        if self._aware:
            names = tuple(dict.fromkeys((*names, *self.attributes)))
        table = rows_table({name: [row.get(name) for row in rows] for name in names})
        x = self.model.encode(table)
        if not self._aware:
            return x, None
        return x, np.stack([role.codes(table).codes for role in self.model.sensitive], axis=1)

    def groups(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the groups that came with a row."""
        return {name: row[name] for name in self.attributes if row.get(name) is not None}

    def group_given(self, group: Any) -> dict[str, Any]:
        """Return the groups that came with a label: one value, or an object by column.

        Raises:
            DataError: several columns and one value, or a name that is no sensitive column.
        """
        if group is None:
            return {}
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
            except (DataError, pa.ArrowException, OverflowError):
                pass
        raise DataError(f"expected {self.words[0]!r} or {self.words[1]!r}, got {value!r}")


def _is_large(value: Any) -> bool:
    """Whether a value is an integer beyond 64 bits."""
    return isinstance(value, int) and abs(value) > LARGEST_INTEGER


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_text(value: str) -> bool:
    """Whether a string is whole: JSON can hold half a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def bad_id(id: Any) -> str:
    """Return what is wrong with an id, empty if nothing is."""
    if isinstance(id, bool) or not isinstance(id, int | str) or len(str(id)) > LONGEST_ID:
        return f"expected an id of at most {LONGEST_ID} letters, or a whole number"
    return ""
