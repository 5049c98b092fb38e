"""Rows by group, batch after batch, as six counts: batches are added and removed again."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import sub
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import Attribute
from fairsaoml.evaluate.metrics import count
from fairsaoml.evaluate.shares import Counts, summed
from fairsaoml.streams.table.sensitive import sensitive_columns

__all__ = ["Group", "GroupCounts", "in_order", "named"]

Group = tuple[Hashable, ...]  # one value for each sensitive column


class GroupCounts:
    """Counts of every group seen, over all batches or the last `window` of them.

    Labels may be any two values, `pos_label` says which is positive. Several sensitive columns
    make one group of each combination. A group once seen keeps its place, also when none of its
    rows are left.

    >>> seen = GroupCounts(window=1)
    >>> seen.add([1, 0], [1, 1], ["f", "m"])
    >>> seen.add([1], [0], ["m"])
    >>> [counts.rows for counts in seen.by_group.values()]
    [0, 1]
    """

    def __init__(self, *, window: int | None = None, pos_label: Any = 1) -> None:
        if window is not None and (not isinstance(window, int) or window < 1):
            raise ConfigError(
                f"expected a window of 1 batch or more, got {window!r}; use None to count them all"
            )
        self.columns: tuple[str, ...] = ()  # known from the first batch on
        self.by_group: dict[Group, Counts] = {}
        self._pos_label = pos_label
        self._other_labels: frozenset[Any] = frozenset()  # at most one
        self._window = None if window is None else deque[dict[Group, Counts]](maxlen=window)

    def add(self, y_true: Any, y_pred: Any, sensitive_features: Any) -> None:
        """Add a batch; with a window, the oldest batch beyond it is removed."""
        batch = self._count(y_true, y_pred, sensitive_features)
        if self._window is not None:
            if len(self._window) == self._window.maxlen:
                self.by_group = _less(self.by_group, self._window[0])
            self._window.append(batch)
        for group, counts in batch.items():
            self.by_group[group] = summed([self.by_group.get(group, Counts()), counts])

    def remove(self, y_true: Any, y_pred: Any, sensitive_features: Any) -> None:
        """Remove rows that were added: all of them, or none of them and an error."""
        if self._window is not None:
            raise ConfigError(
                "expected no revert where window= is given, which takes batches out by itself; "
                "use window=None to do it by hand"
            )
        self.by_group = _less(self.by_group, self._count(y_true, y_pred, sensitive_features))

    def _count(self, y_true: Any, y_pred: Any, sensitive_features: Any) -> dict[Group, Counts]:
        """A batch's counts by group. Only a batch without fault leaves a trace in `self`."""
        columns = sensitive_columns(sensitive_features)
        names, values = tuple(columns), [_plain(column) for column in columns.values()]
        if self.columns and names != self.columns:
            if sorted(names) != sorted(self.columns):
                raise DataError(
                    f"expected the sensitive columns {', '.join(self.columns)} of the first "
                    f"batch, got {', '.join(names)}; name them alike in every batch"
                )
            values = [values[names.index(name)] for name in self.columns]
        label, decision = np.asarray(y_true).reshape(-1), np.asarray(y_pred).reshape(-1)
        rows = [len(label), len(decision), *map(len, values)]
        if len(set(rows)) > 1:
            raise DataError(
                "expected as many predictions and sensitive features as labels, got "
                f"{rows[0]} labels, {rows[1]} predictions and sensitive features for "
                f"{', '.join(map(str, rows[2:]))} rows; pass one of each per row"
            )
        seen = {*label.tolist(), *decision.tolist()} - {self._pos_label} | self._other_labels
        _refuse_missing(([label] for label in seen), ["labels and predictions"])
        if len(seen) > 1:
            raise DataError(
                f"expected pos_label={self._pos_label!r} and one other label, got "
                f"{', '.join(sorted(map(repr, seen)))} besides it; decide which one is positive"
            )
        codes: dict[Group, int] = {}
        code = [codes.setdefault(group, len(codes)) for group in zip(*values, strict=True)]
        _refuse_missing(codes, self.columns or names)
        one_group_per_code = Attribute(name="group", levels=tuple(map(str, codes.values())))
        counts = count(
            y=_is(label, self._pos_label),
            prediction=_is(decision, self._pos_label),
            group=np.asarray(code, dtype=np.int64).reshape(-1, 1),
            attributes=[one_group_per_code],
        )["group"]
        self.columns = self.columns or names
        self._other_labels = frozenset(seen)
        return {group: counts[str(code)] for group, code in codes.items()}


def in_order(values: Iterable[Any]) -> list[Any]:
    """Values sorted, or sorted by how they are written where they cannot be compared."""
    values = list(values)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def named(group: Group) -> Any:
    """A group as a person names it: its value, or the tuple of several."""
    return group[0] if len(group) == 1 else group


def _less(counts: Mapping[Group, Counts], batch: Mapping[Group, Counts]) -> dict[Group, Counts]:
    """The counts without a batch that is in them."""
    left = dict(counts)
    for group, removed in batch.items():
        rest = Counts(*map(sub, counts.get(group, Counts()), removed))
        # Six counts are four kinds of rows; none of the four can be fewer than none.
        missed, rejected = rest.y1_rows - rest.true_positive, rest.y0_rows - rest.false_positive
        if min(rest.true_positive, missed, rest.false_positive, rejected) < 0:
            raise DataError(
                f"expected only rows that were taken in before, got more of {named(group)!r} than "
                "there are; nothing was taken out: revert what was updated, with the predictions "
                "it was updated with"
            )
        left[group] = rest
    return left


def _refuse_missing(groups: Iterable[Sequence[Any]], columns: Sequence[str]) -> None:
    for group in groups:
        for column, value in zip(columns, group, strict=True):
            if _is_missing(value):
                raise DataError(
                    f"expected a value in every row of {column}, got {value!r}; "
                    "fill it in or leave the row out"
                )


def _is_missing(value: Any) -> bool:
    """None, NaN (which is not itself), or pandas' missing value (which will not say)."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _plain(column: Any) -> list[Any]:
    """A column's values as Python's own."""
    if isinstance(column, nw.Series):
        return column.to_list()
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _is(values: NDArray[Any], what: Any) -> NDArray[np.int64]:
    return np.asarray(values == what).astype(np.int64).reshape(-1)
