"""A digest of a table's rows: to recognise a table, and one that has only grown.

It does not depend on how the rows come in batches, so the first rows of a longer table have the
digest of the shorter one.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairsaoml.streams.table.columns import UNTYPED, array

__all__ = ["Fingerprint", "known_beginning", "unknown_from"]


class Fingerprint:
    """Of rows, batch after batch: their number, their columns with types, their digest.

    >>> whole, parts = Fingerprint(), Fingerprint()
    >>> table = pa.table({"age": [30, None, 41], "sex": ["f", "m", ""]})
    >>> whole.add(table)
    >>> for row in range(3):
    ...     parts.add(table.slice(row, 1))
    >>> whole.to_json() == parts.to_json()
    True
    """

    def __init__(self) -> None:
        self.rows = 0
        self._types: dict[str, str] = {}
        self._columns: dict[str, tuple[Any, Any]] = {}  # what each holds, and how long it is

    def add(self, table: Any) -> None:
        """Add the next rows."""
        self.rows += table.num_rows
        for name in table.column_names:
            self._types.setdefault(name, str(table.schema.field(name).type))
            content, lengths = self._columns.setdefault(name, (hashlib.sha256(), hashlib.sha256()))
            texts = _texts(table[name])
            lengths.update(pc.fill_null(pc.binary_length(texts), -1).to_numpy(False).tobytes())
            texts = pc.fill_null(texts, "")
            if len(texts):
                offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :]
                data = texts.buffers()[2] or b""
                content.update(memoryview(data)[offsets[0] : offsets[len(texts)]])

    def to_json(self) -> dict[str, Any]:
        """Plain data, of the rows so far."""
        digest = hashlib.sha256()
        for name, parts in self._columns.items():
            digest.update(name.encode() + b"\0" + b"".join(part.digest() for part in parts))
        return {"rows": self.rows, "columns": dict(self._types), "digest": digest.hexdigest()}


def known_beginning(table: Any, known: Iterable[Mapping[str, Any]]) -> int:
    """How many rows at the beginning of a table have a known fingerprint: were read before."""
    digests = {(entry["rows"], entry["digest"]) for entry in known}
    seen, begins = Fingerprint(), 0
    for rows in sorted({rows for rows, _ in digests if 0 < rows <= table.num_rows}):
        seen.add(table.slice(seen.rows, rows - seen.rows))
        if (rows, seen.to_json()["digest"]) in digests:
            begins = rows
    return begins


def unknown_from(table: Any, known: Collection[Mapping[str, Any]]) -> int:
    """The place of the first row after those that were read before, one table after another.

    >>> first, second = Fingerprint(), Fingerprint()
    >>> table = pa.table({"age": [30, 41, 25, 67]})
    >>> first.add(table.slice(0, 2)), second.add(table.slice(2, 1))
    (None, None)
    >>> unknown_from(table, [second.to_json(), first.to_json()])
    3
    """
    place, known_rows = 0, -1
    while known_rows:
        known_rows = known_beginning(table.slice(place), known)
        place += known_rows
    return place


def _texts(column: Any) -> Any:
    """A column as texts in one array; of a type that has none, as Python writes it."""
    try:
        return array(column).cast(pa.large_string())
    except UNTYPED:
        values = column.to_pylist()
        return pa.array([None if value is None else repr(value) for value in values]).cast(
            pa.large_string()
        )
