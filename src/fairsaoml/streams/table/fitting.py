"""What is fitted on a stream's first task: the encoder with its roles, and notes on its limits."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Task
from fairsaoml.streams.table import dates
from fairsaoml.streams.table.columns import SHOWN, dressed, factor, require_flat, some
from fairsaoml.streams.table.encoder import Date, Encoder, Numeric
from fairsaoml.streams.table.groups import fit_sensitive
from fairsaoml.streams.table.guess import may_be_protected
from fairsaoml.streams.table.kinds import fit_encoder
from fairsaoml.streams.table.roles import Roles, fit_label
from fairsaoml.streams.table.survey import MONTH_OR_DAY, day_or_month

SMALL_START = 30  # a first task of fewer rows is worth a note
FEW_IN_GROUP = 10  # fewer rows of a group in the first task say little of it
LABEL = ""  # beside the names of groups
GIVES_AWAY = 0.98  # area under the curve from which one column says what label or group says


def fit_first_task(
    first: Any, roles: Roles, positive: Any, time_format: str | None, known: Mapping[str, list[str]]
) -> tuple[Encoder, tuple[str, ...]]:
    """The encoder, label and groups included, from the first task's labelled rows; and notes.

    Raises:
        DataError: The label has not two values, an attribute not two groups, or no column is
            left to be an input.
    """
    require_flat(first, roles.flat)
    label, notes = fit_label(roles.label, first[roles.label], positive)
    table = first.filter(pa.array(label.codes(first[roles.label]) >= 0))
    sensitive = tuple(
        fit_sensitive(spec, first.column_names, table, known) for spec in roles.sensitive
    )
    encoder = fit_encoder(table.select(roles.inputs), keep=roles.named, time_format=time_format)
    notes = (*notes, *encoder.notes())
    if not encoder.columns:
        raise DataError(
            f"expected inputs besides label and groups, got none ({'; '.join(notes)}); name some"
        )
    encoder = replace(encoder, label=label, sensitive=sensitive)
    return encoder, (*notes, *_doubts(table, encoder, time_format))


def _doubts(table: Any, encoder: Encoder, time_format: str | None) -> Iterator[str]:
    """Notes on a first task that is a weak base for what is fitted on it."""
    label = encoder.label
    if table.num_rows < SMALL_START:
        yield f"the first task has only {table.num_rows} rows, on which categories and scales rest"
    if label is not None and len(factor(table[label.column]).values) == 1:
        pair = f"{label.negative!r} and {label.positive!r}"
        yield f"the first task has one label only; {pair} are taken to be the two"
    for role in encoder.sensitive:
        name, grouped = role.attribute.name, role.codes(table)
        rows = np.bincount(grouped.codes, minlength=len(role.levels) + 1)
        few = [level for code, level in enumerate(role.levels) if rows[code] < FEW_IN_GROUP]
        if few:
            yield f"{name}: fewer than {FEW_IN_GROUP} rows of the first task in {', '.join(few)}"
        if grouped.missing:
            yield (
                f"{name}: {grouped.missing} of {table.num_rows} rows of the first task have no "
                "value; such rows are counted apart and are in no constraint"
            )
    numeric = [column for column in encoder.columns if isinstance(column, Numeric)]
    examples = [(column.name, dressed(table[column.name], column.decimal)) for column in numeric]
    if read := [f"{name} ({one[0]!r} as {one[1]:.12g})" for name, one in examples if one]:
        more = f" and {len(read) - SHOWN} more columns" if len(read) > SHOWN else ""
        yield f"read as numbers: {', '.join(read[:SHOWN])}{more}"
    names = [column.name for column in encoder.columns]
    if protected := [name for name in names if may_be_protected(name)]:
        yield (
            f"used as inputs, though they may be protected: {', '.join(protected)}; "
            "--sensitive keeps the decisions fair by one, --drop leaves it out"
        )
    for name in (*names, *(column for role in encoder.sensitive for column in role.columns)):
        distinct = factor(table[name])
        if len(folded := distinct.folded().values) < len(distinct.values):
            others = sorted({*distinct.values.to_pylist()} - {*folded.to_pylist()})
            yield f"column {name!r}: values that differ in case only are one: {some(others)}"
    for name in (column.name for column in encoder.columns if isinstance(column, Date)):
        if time_format is None and set(dates.formats(table[name])) >= MONTH_OR_DAY:
            yield day_or_month(name)


def leaks(encoder: Encoder, first: Task, last: Task | None = None) -> Iterator[str]:
    """Notes on columns that alone say what the label or a group says in the first task.

    And on those that say the label in the `last` rows only, where these are known.
    """
    told = _telling(first, encoder)
    for group, areas in told.items():
        if areas and group:
            yield f"appears to restate {group}, think of --drop: {_listed(areas)}"
        elif areas:
            yield (
                "likely leak, tells the label apart on its own in the first task; --drop it unless "
                f"it is known before the decision: {_listed(areas)}"
            )
    later = {} if last is None else _telling(last, encoder).get(LABEL, {})
    if later := {name: later[name] for name in later if name not in told.get(LABEL, {})}:
        yield (
            "likely leak, tells the label apart on its own in the table's last rows, and did not "
            "in the first task; --drop it unless it is known before the decision: "
            f"{_listed(later)}"
        )


def _listed(areas: Mapping[str, float]) -> str:
    return ", ".join(f"{name} (AUC {area:.3f})" for name, area in areas.items())


def _telling(task: Task, encoder: Encoder) -> dict[str, dict[str, float]]:
    """For the label, and each group, the columns that tell it apart, and the area of each."""
    ends = np.cumsum([len(column.features) for column in encoder.columns])
    names = (column.name for column in encoder.columns)
    parts = dict(zip(names, np.split(task.x, ends[:-1], axis=1), strict=True))
    targets = {LABEL: task.y > 0}
    for place, role in enumerate(encoder.sensitive):
        for code, level in enumerate(role.levels[len(role.levels) == 2 :], len(role.levels) == 2):
            targets[f"{role.attribute.name} ({level})"] = task.group[:, place] == code
    told: dict[str, dict[str, float]] = {}
    for group, target in targets.items():
        if min(target.sum(), (~target).sum()) < FEW_IN_GROUP:
            continue
        areas = {name: max(_area(_scores(part, target), target)) for name, part in parts.items()}
        told[group] = {name: area for name, area in areas.items() if area > GIVES_AWAY}
    return told


def _scores(features: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Each feature, and the target's share among rows with the same features, from other rows."""
    _, kind = np.unique(features, axis=0, return_inverse=True)
    half = np.arange(len(target)) % 2 == 0
    shares = np.zeros(len(target))
    for known in (half, ~half):
        rows = np.bincount(kind[known], minlength=kind.max() + 1)
        hits = np.bincount(kind[known], weights=target[known], minlength=kind.max() + 1)
        share = np.where(rows > 0, hits / np.maximum(rows, 1), target.mean())
        shares[~known] = share[kind[~known]]
    return np.column_stack([features, shares])


def _area(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The area under the curve of each column of scores, whichever way it points.

    >>> _area(np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([True, False])).tolist()
    [1.0, 0.5]
    """
    ranks = np.apply_along_axis(_ranks, 0, scores)
    ones, zeros = target.sum(), (~target).sum()
    area = (ranks[target].sum(axis=0) - ones * (ones + 1) / 2) / (ones * zeros)
    return np.maximum(area, 1 - area)


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Ranks from 1, equal ones sharing theirs; SciPy's would take a second to import.

    >>> _ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]
