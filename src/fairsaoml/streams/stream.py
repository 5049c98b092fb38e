"""A stream: tasks one after another, with what a learner and a report must know of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Schema, Task

LARGEST_VALUE = 100.0  # learners step on features of about unit size; beyond this they are clipped


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Tasks by seed. A stream of real rows ignores the seed (`seeded=False`)."""

    name: str
    schema: Schema
    tasks: Callable[[int], Iterator[Task]]  # seed -> a fresh pass over the tasks, in order
    length: int | None = None  # number of tasks, None when nobody knows yet
    seeded: bool = False  # whether the rows differ from seed to seed
    settings: Mapping[str, Any] = field(default_factory=dict)  # to build it again: spec.json
    encoder: Mapping[str, Any] | None = None  # how raw columns became features; plain JSON
    fingerprint: Mapping[str, Any] | None = None  # of the raw rows, to know them again
    cut: Mapping[str, Any] | None = None  # how a table's later rows are cut into tasks
    base_rate: float | None = None  # share of positive labels in a table's first task
    best: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # domain -> known truth
    notes: tuple[str, ...] = ()  # what a person should know: dropped columns and the like


def checked(task: Task, schema: Schema, round: int) -> Task:
    """A task fit to be learned from: the right shapes and codes, every number finite.

    Wrong shapes, labels other than 0 and 1, and unknown group codes are errors. Rows with NaN or
    infinity are left out and huge values clipped, each with a warning: one bad row must not end a
    run that has been learning for months.
    """
    where = f"round {round}"
    x = np.asarray(task.x, dtype=np.float32)
    y = np.asarray(task.y)
    group = np.asarray(task.group)
    features, attributes = len(schema.features), len(schema.attributes)
    if x.ndim != 2 or x.shape[1] != features:
        raise DataError(
            f"{where}: expected rows of {features} features, got shape {x.shape}; "
            "every task must have the features of the first"
        )
    if y.shape != (len(x),) or group.shape != (len(x), attributes):
        raise DataError(
            f"{where}: expected {len(x)} labels and {len(x)} x {attributes} group codes, "
            f"got {y.shape} and {group.shape}; give one of each per row"
        )
    if not ((y == 0) | (y == 1)).all():
        raise DataError(
            f"{where}: expected labels 0 and 1, got {_some(np.unique(y))}; "
            "say which value is positive when the stream is made"
        )
    for column, attribute in zip(group.T, schema.attributes, strict=True):
        if not _all_codes(column, len(attribute.levels)):
            raise DataError(
                f"{where}: expected codes 0 to {len(attribute.levels)} for {attribute.name!r} "
                f"(the last is 'not known'), got {_some(np.unique(column))}"
            )
    warnings, left_out = list(task.warnings), task.left_out
    # Most tasks have nothing to leave out or clip: a NaN is the smallest and the largest of all.
    if x.size and not (x.min() >= -LARGEST_VALUE and x.max() <= LARGEST_VALUE):
        whole = np.isfinite(x).all(axis=1)
        if broken := int(np.count_nonzero(~whole)):
            warnings.append(f"{broken} rows with NaN or infinity were left out")
            x, y, group = x[whole], y[whole], group[whole]
            left_out += broken
        huge = np.abs(x) > LARGEST_VALUE
        if huge.any():
            names = [schema.features[column] for column in np.flatnonzero(huge.any(axis=0))]
            warnings.append(
                f"values beyond +-{LARGEST_VALUE:g} were clipped in {_some(names)}; "
                "scale the features"
            )
            x = np.clip(x, -LARGEST_VALUE, LARGEST_VALUE)
    y, group = y.astype(np.float32), group.astype(np.int32)
    return task._replace(x=x, y=y, group=group, warnings=tuple(warnings), left_out=left_out)


def _all_codes(column: np.ndarray, last: int) -> bool:
    """Whether all are whole numbers from 0 to `last`."""
    if column.dtype.kind in "iub" and len(column):
        return column.min() >= 0 and column.max() <= last  # several times as fast as `isin`
    return bool(np.isin(column, np.arange(last + 1)).all())


def _some(values: Any) -> str:
    """A few values for a message."""
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")
