"""River's rows, dictionaries or dataframes, turned into names and numbers."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from fairsaoml.estimators.coding import plain


class Rows(NamedTuple):
    """Labelled rows with the same features and sensitive features, waiting for their task."""

    names: tuple[Hashable, ...]
    sensitive: tuple[str, ...]
    x: list[list[float]]  # NaN where there is no value
    y: list[Any]
    groups: list[tuple]

    def part(self, first: int, last: int) -> "Rows":
        """Return some of the rows, one after another."""
        return self._replace(
            x=self.x[first:last], y=self.y[first:last], groups=self.groups[first:last]
        )


def add(waiting: list[Rows], rows: Rows) -> None:
    """Append rows to those that wait, to the last ones where the names are the same."""
    last = waiting[-1] if waiting else None
    if last is None or (last.names, last.sensitive) != (rows.names, rows.sensitive):
        waiting.append(rows)
    else:
        last.x.extend(rows.x)
        last.y.extend(rows.y)
        last.groups.extend(rows.groups)


def groups_by_column(collected: Sequence[Rows], known: Sequence[str]) -> dict[str, list]:
    """Return the rows' groups by sensitive column, the known columns first; None where unknown."""
    names = dict.fromkeys([*known, *(name for rows in collected for name in rows.sensitive)])
    columns: dict[str, list] = {name: [] for name in names}
    for rows in collected:
        given = dict(zip(rows.sensitive, zip(*rows.groups, strict=True), strict=True))
        for name, values in columns.items():
            values.extend(given.get(name, [None] * len(rows.x)))
    return columns


def features_of(x: Mapping, sensitive: Sequence) -> tuple[tuple, list[float]]:
    """Return the names and numbers of the features that are not sensitive.

    >>> features_of({"age": 30, "sex": "f"}, sensitive=["sex"])
    (('age',), [30.0])
    """
    if sensitive:
        x = {name: value for name, value in x.items() if name not in sensitive}
    try:
        return tuple(x), [*map(float, x.values())]
    except (TypeError, ValueError):
        return tuple(x), [_number(name, value) for name, value in x.items()]


def columns_of(X: Any, sensitive: Sequence) -> tuple[tuple, list[list[float]], dict[str, list]]:
    """Return the same for a dataframe's rows, and its sensitive columns by name."""
    frame = frame_of(X)
    names = tuple(name for name in frame.columns if name not in sensitive)
    values = _numbers(frame.select(nw.col(*names)) if sensitive else frame).tolist()
    groups = {str(key): [*map(value_or_none, frame[key].to_list())] for key in sensitive}
    return names, values, groups


def matrix(waiting: Sequence[Rows], slots: Mapping[Hashable, int], width: int) -> np.ndarray:
    """Return rows as (row, slot), NaN where there is no value, without features that have no slot.

    >>> matrix([Rows(("b", "c"), (), [[1.0, 2.0]], [], [])], slots={"a": 0, "b": 1}, width=2)
    array([[nan,  1.]])
    """
    values = np.full((sum(len(rows.x) for rows in waiting), width), np.nan)
    first = 0
    for rows in waiting:
        last = first + len(rows.x)
        kept = [place for place, name in enumerate(rows.names) if name in slots]
        if kept:
            into = [slots[rows.names[place]] for place in kept]
            values[first:last, into] = np.array(rows.x)[:, kept]
        first = last
    return np.where(np.isfinite(values), values, np.nan)


def frame_of(X: Any) -> nw.DataFrame:
    """Return a dataframe of any library, wrapped by narwhals."""
    return nw.from_native(X, eager_only=True)


def values_of(y: Any) -> list:
    """Return the values of a series or of any other iterable."""
    wrapped = nw.from_native(y, allow_series=True, pass_through=True)
    return wrapped.to_list() if isinstance(wrapped, nw.Series) else list(y)


def _number(name: Hashable, value: Any) -> float:
    try:
        return np.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"could not convert {type(value).__name__} to float: {value!r}, the feature {name!r}; "
            "put preprocessing.OneHotEncoder before, or name it in `sensitive`"
        ) from None


def _numbers(frame: nw.DataFrame) -> np.ndarray:
    """Return (row, column) numbers; column by column where a value needs a message of its own."""
    try:
        return np.asarray(frame.to_numpy(), np.float64).reshape(frame.shape)
    except (TypeError, ValueError):
        columns = [
            [_number(name, value) for value in frame[name].to_list()] for name in frame.columns
        ]
        return np.array(columns, np.float64).T


def value_or_none(value: Any) -> Any:
    """Return a value as Python's own type; None for NaN."""
    value = plain(value)
    return None if isinstance(value, float) and np.isnan(value) else value
