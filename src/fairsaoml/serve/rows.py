"""Rows in plain data and back: what a journal keeps of an array or a dataframe.

A task is put together from rows of many calls, perhaps by another process than took them. So rows
are plain values, exact to the last digit, and their layout says what they were.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fairsaoml.core.errors import DataError

__all__ = ["Layout", "put_together", "taken_apart"]


class Layout(NamedTuple):
    """What rows were: `numbers` or `objects` in an array, a `frame`, a `series`, or `columns`."""

    kind: str
    names: tuple[str, ...] = ()
    backend: Any = ""  # of a frame or series: pandas, polars, pyarrow

    @classmethod
    def from_json(cls, plain: list[Any]) -> "Layout":
        """A layout as it stands in a journal."""
        kind, names, backend = plain
        return cls(kind=kind, names=tuple(names), backend=backend)


def taken_apart(values: Any) -> tuple[Layout, list[Any]]:
    """An array, a list, a dictionary of columns, a series or a dataframe as a list of rows.

    >>> taken_apart(np.array([[1.5, 2.0], [np.nan, 4.0]]))
    (Layout(kind='numbers', names=(), backend=''), [[1.5, 2.0], [None, 4.0]])
    >>> taken_apart({"sex": ["f", "m"], "age": [30, 40]})[1]
    [['f', 30], ['m', 40]]
    """
    found = nw.from_native(values, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(found, nw.DataFrame):
        layout = Layout("frame", tuple(found.columns), found.implementation.value)
        return layout, [_plain(list(row)) for row in found.rows()]
    if isinstance(found, nw.Series) and isinstance(found.name, str):
        return Layout("series", (found.name,), found.implementation.value), _plain(found.to_list())
    if isinstance(values, Mapping):
        columns = [np.asarray(column).tolist() for column in values.values()]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return Layout("columns", tuple(map(str, values))), _plain(rows)
    array = np.asarray(values)
    if array.ndim not in (1, 2):
        raise DataError(f"expected a table of rows, got shape {array.shape}; one row per decision")
    if array.dtype.kind in "biuf":
        return Layout("numbers"), _plain(array.tolist())
    # Once more as objects: values of several kinds have all become words.
    return Layout("objects"), _plain(np.asarray(values, dtype=object).tolist())


def put_together(layout: Layout, rows: list[Any]) -> Any:
    """What `taken_apart` took apart; numbers come back as 64-bit ones.

    >>> put_together(*taken_apart(np.array([[1.5, 2.0], [np.nan, 4.0]])))
    array([[1.5, 2. ],
           [nan, 4. ]])
    """
    if layout.kind == "numbers":
        array = np.asarray(rows)
        return array if array.dtype != object else array.astype(np.float64)  # None is NaN again
    if layout.kind == "objects":
        return np.asarray(rows, dtype=object)
    if layout.kind == "series":
        return nw.new_series(layout.names[0], rows, backend=layout.backend).to_native()
    columns = {name: [row[place] for row in rows] for place, name in enumerate(layout.names)}
    if layout.kind == "columns":
        return columns
    return nw.from_dict(columns, backend=layout.backend).to_native()


def _plain(value: Any) -> Any:
    """Values as JSON has them: NaN is None, infinity is refused."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise DataError("expected finite numbers, got infinity; fill it in or leave the row out")
    return value
