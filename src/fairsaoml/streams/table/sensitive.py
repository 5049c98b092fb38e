"""Sensitive features in any container (list, array, dataframe, dictionary) as named columns."""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from fairsaoml.core.errors import DataError

UNNAMED = "sensitive_feature_{}"  # as Fairlearn calls them


def sensitive_columns(features: Any) -> dict[str, Any]:
    """Series, arrays or lists by name, their values as they came.

    `features`: a list, an array of one or two dimensions, a series, a dataframe of any kind that
    narwhals knows, or a dictionary of columns.

    >>> sensitive_columns(["f", "m"])
    {'sensitive_feature_0': array(['f', 'm'], dtype=object)}
    >>> sensitive_columns({"sex": ["f", "m"], "age": [1, 2]})
    {'sex': ['f', 'm'], 'age': [1, 2]}
    """
    if isinstance(features, Mapping):
        return _by_name(features)
    if not isinstance(features, np.ndarray | list | tuple):
        frame = nw.from_native(features, allow_series=True, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        if isinstance(frame, nw.DataFrame):
            return _by_name({name: frame.get_column(name) for name in frame.columns})
        if isinstance(frame, nw.Series):
            return {UNNAMED.format(0) if frame.name in (None, "") else str(frame.name): frame}
    # As objects: values of several kinds would all become words.
    rows = features if isinstance(features, np.ndarray) else np.asarray(features, dtype=object)
    if rows.ndim not in (1, 2):
        raise DataError(
            f"expected sensitive features of one or two dimensions, got shape {rows.shape}; "
            "give one value per row and column"
        )
    columns = rows[None] if rows.ndim == 1 else rows.T
    return {UNNAMED.format(place): column for place, column in enumerate(columns)}


def _by_name(columns: Mapping[Any, Any]) -> dict[str, Any]:
    named = {str(name): column for name, column in columns.items()}
    if len(named) < len(columns):
        raise DataError(
            f"expected every sensitive feature by a name of its own, got {[*columns]}; rename them"
        )
    return named
