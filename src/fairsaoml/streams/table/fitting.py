"""What is fitted on a stream's first task: the encoder with its roles, and notes on its limits."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Task
from fairsaoml.streams.table.clock import Clock
from fairsaoml.streams.table.columns import factor
from fairsaoml.streams.table.encoder import Date, Encoder, fit_encoder
from fairsaoml.streams.table.roles import Roles, fit_label, fit_sensitive
from fairsaoml.streams.table.survey import MONTH_OR_DAY, ambiguous

__all__ = ["fit_first_task", "restatements"]

SMALL_START = 30  # a first task of fewer rows is worth a note
FEW_IN_GROUP = 10  # fewer rows of a group in the first task say little of it
RESTATES = 0.99  # correlation from which a feature says the same as label or group


def fit_first_task(first: Any, roles: Roles, positive: Any) -> tuple[Encoder, tuple[str, ...]]:
    """The encoder, label and groups included, from the first task's labelled rows; and notes.

    Raises:
        DataError: The label has not two values, an attribute not two groups, or no column is
            left to be an input.
    """
    label, notes = fit_label(roles.label, first[roles.label], positive)
    table = first.filter(pa.array(label.codes(first[roles.label]) >= 0))
    sensitive = tuple(fit_sensitive(spec, first.column_names, table) for spec in roles.sensitive)
    encoder = fit_encoder(
        table.select(list(roles.inputs)), keep=roles.inputs if roles.named else ()
    )
    notes = (*notes, *encoder.notes())
    if not encoder.columns:
        raise DataError(
            f"expected inputs besides label and groups, got none ({'; '.join(notes)}); "
            "name the columns to use"
        )
    encoder = replace(encoder, label=label, sensitive=sensitive)
    return encoder, (*notes, *_doubts(table, encoder))


def _doubts(table: Any, encoder: Encoder) -> Iterator[str]:
    """Notes on a first task that is a weak base for what is fitted on it."""
    label = encoder.label
    if table.num_rows < SMALL_START:
        yield f"the first task has only {table.num_rows} rows, on which categories and scales rest"
    if label is not None and len(factor(table[label.column]).values) == 1:
        pair = f"{label.negative!r} and {label.positive!r}"
        yield f"the first task has one label only; {pair} are taken to be the two"
    for role in encoder.sensitive:
        rows = np.bincount(role.codes(table[role.column])[0], minlength=len(role.levels) + 1)
        few = [level for code, level in enumerate(role.levels) if rows[code] < FEW_IN_GROUP]
        if few:
            yield (
                f"{role.attribute.name}: fewer than {FEW_IN_GROUP} rows of the first task in "
                f"{', '.join(few)}"
            )
    for name in (column.name for column in encoder.columns if isinstance(column, Date)):
        if set(Clock.candidates(table[name])) >= MONTH_OR_DAY:
            yield ambiguous(name)


def restatements(first: Task, encoder: Encoder) -> tuple[str, ...]:
    """Notes on features that say in the first task what the label or a group says."""
    if len(first.y) < SMALL_START:
        return ()
    targets = {"the label": first.y > 0}
    for place, role in enumerate(encoder.sensitive):
        for code, level in enumerate(role.levels):
            targets[f"{role.attribute.name} ({level})"] = first.group[:, place] == code
    features, notes = _standard(first.x), []
    for target, values in targets.items():
        if values.sum() < FEW_IN_GROUP:
            continue
        correlation = np.abs(_standard(values[:, None]).T @ features)[0]
        same = [encoder.features[place] for place in np.flatnonzero(correlation > RESTATES)]
        if same:
            notes.append(
                f"restates {target} in the first task, think of dropping it: {', '.join(same)}"
            )
    return tuple(notes)


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns of length one around zero; constant columns are zero."""
    centred = values.astype(np.float64) - values.mean(axis=0, dtype=np.float64)
    length = np.sqrt((centred**2).sum(axis=0))
    return centred / np.where(length > 0, length, 1.0)
