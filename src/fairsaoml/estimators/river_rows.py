"""River's rows, dictionaries or dataframes, as columns of numbers."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from fairsaoml.estimators.coding import plain


@dataclass(kw_only=True)
class Rows:
    """Labelled rows by column: those of a call, or those that wait for their task."""

    features: dict[Any, Any] = field(default_factory=dict)  # NaN where there is no value
    groups: dict[Any, Any] = field(default_factory=dict)  # None where there is no value
    labels: list[Any] = field(default_factory=list)

    def take(self, rows: "Rows", part: slice = slice(None)) -> None:
        """Append a part of other rows; what only some of all these have is unknown of the rest."""
        before, labels = len(self.labels), rows.labels[part]
        for mine, theirs, unknown in (
            (self.features, rows.features, np.nan),
            (self.groups, rows.groups, None),
        ):
            for name, values in theirs.items():
                if name not in mine:
                    mine[name] = [unknown] * before
                mine[name].extend(values[part])
            for name in mine.keys() - theirs.keys():
                mine[name].extend([unknown] * len(labels))
        self.labels.extend(labels)

    def matrix(self, slots: Mapping[Hashable, int], width: int) -> np.ndarray:
        """Return (row, slot), NaN where there is no value, without features that have no slot.

        >>> rows = Rows(features={"b": [1.0, 3.0], "c": [2.0, 4.0]}, labels=[True, False])
        >>> rows.matrix(slots={"a": 0, "b": 1}, width=2)
        array([[nan,  1.],
               [nan,  3.]])
        """
        values = np.full((len(self.labels), width), np.nan)
        for name in self.features.keys() & slots.keys():
            values[:, slots[name]] = self.features[name]
        return np.where(np.isfinite(values), values, np.nan)


def features_of(x: Mapping, sensitive: Sequence) -> dict[Hashable, list[float]]:
    """Return the numbers of a row's features that are not sensitive.

    >>> features_of({"age": 30, "sex": "f"}, sensitive=["sex"])
    {'age': [30.0]}
    """
    return {name: [_number(name, value)] for name, value in x.items() if name not in sensitive}


def columns_of(X: nw.DataFrame, sensitive: Sequence) -> tuple[dict[Any, Any], dict[str, list]]:
    """Return the same for a dataframe's rows, and its sensitive columns by name."""
    # Not X[name]: where names are numbers, that would be a row.
    columns = {name: X.get_column(name) for name in X.columns if name not in sensitive}
    groups = {str(key): values_of(X.get_column(key)) for key in sensitive}
    return {name: _numbers(name, column) for name, column in columns.items()}, groups


def frame_of(X: Any) -> nw.DataFrame:
    """Return a dataframe of any library, wrapped by narwhals."""
    return nw.from_native(X, eager_only=True)


def values_of(y: Any) -> list:
    """Return the values of a series or of any other iterable, None for NaN."""
    wrapped = nw.from_native(y, allow_series=True, pass_through=True)
    values = wrapped.to_list() if isinstance(wrapped, nw.Series) else y
    return [*map(value_or_none, values)]


def _number(name: Hashable, value: Any) -> float:
    try:
        return np.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"could not convert {type(value).__name__} to float: {value!r}, the feature {name!r}; "
            "put preprocessing.OneHotEncoder before, or name it in `sensitive`"
        ) from None


def _numbers(name: Hashable, column: nw.Series) -> Any:
    """Return a column's numbers; of texts and the like one by one, with a message of its own."""
    if column.dtype.is_numeric() or (column.dtype == nw.Boolean and not column.null_count()):
        return np.asarray(column.to_numpy(), np.float64)
    return [_number(name, value) for value in column.to_list()]


def value_or_none(value: Any) -> Any:
    """Return a value as Python's own type; None for NaN."""
    value = plain(value)
    return None if isinstance(value, float) and np.isnan(value) else value
