"""Rows as dictionaries, encoded without a table: for a service that decides one at a time.

What is not a number is encoded by its column, value by value, and remembered. So a row's features
are those that a table of rows like it would get, bit by bit, whoever else is in the batch.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

from fairsaoml.streams.table.columns import numbers
from fairsaoml.streams.table.encoder import CLIP, Categorical, Date, Encoder, Numeric, logarithm

MOST_REMEMBERED = 10_000  # values of a column
NUMBERS = frozenset({int, float, type(None)})


class RowEncoder:
    """Encodes dictionaries as an encoder does a table.

    >>> from fairsaoml.streams.table.kinds import fit_encoder
    >>> table = pa.table({"age": [20, 30, 40], "job": ["cook", "nurse", "smith"]})
    >>> encoder = RowEncoder(fit_encoder(table))
    >>> encoder.encode([{"age": 30, "job": " nurse"}, {"age": None, "job": "pilot"}]).tolist()
    [[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """

    def __init__(self, encoder: Encoder) -> None:
        *places, self._width = accumulate((len(c.features) for c in encoder.columns), initial=0)
        begins = dict(zip(encoder.columns, places, strict=True))
        numeric = [column for column in encoder.columns if isinstance(column, Numeric)]
        self._numeric = [column.name for column in numeric]
        self._decimals = [column.decimal for column in numeric]
        self._place = [begins[column] for column in numeric]
        self._flagged = [place for place, column in enumerate(numeric) if column.flag]
        self._logged = [place for place, column in enumerate(numeric) if column.unit is not None]
        self._units = np.array([numeric[place].unit for place in self._logged])
        self._center = np.array([column.center for column in numeric])
        self._scale = np.array([column.scale for column in numeric])
        self._others = [
            (begins[column], _Remembered(column))
            for column in encoder.columns
            if not isinstance(column, Numeric)
        ]

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(row, feature) float32 of rows that have every column."""
        values = [[row[name] for name in self._numeric] for row in rows]
        if not _are_numbers(values):
            values = [[*map(_number, row, self._decimals)] for row in values]
        return self._encoded(values, rows)

    def quick(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """The same of rows with all columns and plain numbers; None where some are not."""
        try:
            values = [[row[name] for name in self._numeric] for row in rows]
            return self._encoded(values, rows) if _are_numbers(values) else None
        except KeyError:
            return None

    def _encoded(self, numeric: list[list[Any]], rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        x = np.empty((len(rows), self._width), np.float32)
        if not rows:
            return x
        if self._numeric:
            values = np.array(numeric, np.float64)
            absent = np.isnan(values)
            with np.errstate(over="ignore"):  # beyond float64 is beyond the clip
                if self._logged:
                    values[:, self._logged] = logarithm(values[:, self._logged], self._units)
                scaled = (values - self._center) / self._scale
            x[:, self._place] = np.where(absent, 0.0, np.clip(scaled, -CLIP, CLIP))
            for place in self._flagged:
                x[:, self._place[place] + 1] = absent[:, place]
        for begin, column in self._others:
            part = column.encode([row[column.name] for row in rows])
            x[:, begin : begin + part.shape[1]] = part
        return x


def _are_numbers(rows: list[list[Any]]) -> bool:
    return NUMBERS.issuperset(map(type, chain.from_iterable(rows)))


def _number(value: Any, decimal: str) -> Any:
    """A value as a table's column reads it."""
    return value if type(value) in NUMBERS else numbers(pa.array([value]), decimal).values[0]


class _Remembered:
    """A column's features of each value that came.

    Threads may encode at once: what is remembered is replaced whole, so nobody sees the half of it.
    """

    def __init__(self, column: Categorical | Date) -> None:
        self.name, self._column = column.name, column
        self._known: dict[Any, np.ndarray] = {}

    def encode(self, values: list[Any]) -> np.ndarray:
        # 1, 1.0 and True are one key of a dictionary, and not one text.
        keys = [value if type(value) is str else (type(value), value) for value in values]
        known = self._known
        if not known.keys() >= set(keys):
            kept = known if len(known) + len(keys) <= MOST_REMEMBERED else {}
            known = self._known = kept | self._new(dict(zip(keys, values, strict=True)))
        return np.stack([known[key] for key in keys])

    def _new(self, values: dict[Any, Any]) -> dict[Any, np.ndarray]:
        features: dict[Any, np.ndarray] = {}
        for kind in set(map(type, values.values())):  # a column of several would be read as text
            same = {key: value for key, value in values.items() if type(value) is kind}
            features |= zip(same, self._column.encode(pa.array(same.values())).x, strict=True)
        return features
