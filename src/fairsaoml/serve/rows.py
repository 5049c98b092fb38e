"""Rows as plain data and back: how a journal keeps arrays and dataframes.

A task is assembled from rows of many calls, perhaps by another process than took them. So rows are
plain values, exact to the last digit, and a layout says what they were.
"""

import math
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from fairsaoml.core.errors import DataError

Layout = list[Any]  # kind (numbers, objects, frame, series, columns), names, the frame's library
NUMBERS: Layout = ["numbers", [], ""]


def to_rows(values: Any) -> tuple[Layout, list[Any]]:
    """Return the layout and the rows of an array, a list, a dict of columns or a dataframe.

    Raises:
        DataError: not a table, or infinite numbers.

    >>> to_rows(np.array([[1.5, 2.0], [np.nan, 4.0]]))
    (['numbers', [], ''], [[1.5, 2.0], [None, 4.0]])
    >>> to_rows({"sex": ["f", "m"], "age": [30, 40]})[1]
    [['f', 30], ['m', 40]]
    """
    table = nw.from_native(values, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(table, nw.DataFrame):
        layout = ["frame", table.columns, table.implementation.value]
        return layout, [_plain(list(row)) for row in table.rows()]
    if isinstance(table, nw.Series) and isinstance(table.name, str):
        return ["series", [table.name], table.implementation.value], _plain(table.to_list())
    if isinstance(values, Mapping):
        columns = [np.asarray(column).tolist() for column in values.values()]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return ["columns", [*map(str, values)], ""], _plain(rows)
    array = np.asarray(values)
    if array.ndim not in (1, 2):
        raise DataError(f"expected a table of rows, got shape {array.shape}; one row per decision")
    if array.dtype.kind in "biuf":
        return NUMBERS, _plain(array.tolist())
    # Again as objects: NumPy makes strings of values of several kinds.
    return ["objects", [], ""], _plain(np.asarray(values, dtype=object).tolist())


def from_rows(layout: Layout, rows: list[Any]) -> Any:
    """Return what `to_rows` was given; numbers come back in 64 bits.

    >>> from_rows(*to_rows(np.array([[1.5, 2.0], [np.nan, 4.0]])))
    array([[1.5, 2. ],
           [nan, 4. ]])
    """
    kind, names, backend = layout
    if kind == "numbers":
        array = np.asarray(rows)
        return array if array.dtype != object else array.astype(np.float64)  # None is NaN again
    if kind == "objects":
        return np.asarray(rows, dtype=object)
    if kind == "series":
        return nw.new_series(names[0], rows, backend=backend).to_native()
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return columns if kind == "columns" else nw.from_dict(columns, backend=backend).to_native()


def _plain(value: Any) -> Any:
    """Values as JSON has them: NaN is None, infinity is an error."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise DataError("expected finite numbers, got infinity; fill it in or leave the row out")
    return value
