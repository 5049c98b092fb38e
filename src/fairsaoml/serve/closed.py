"""A closed task as a model learns it: its rows again in the layout in which they were given."""

import json
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.serve.rows import Layout, from_rows
from fairsaoml.serve.tasks import Tasks

__all__ = ["ClosedTask", "Id", "Layouts", "read_closed"]

Id = int | str
Layouts = list[Layout | None]  # of the features, and of the sensitive features if there are any


class ClosedTask(NamedTuple):
    """A task's labelled rows in the order of issue, each with its prediction as issued."""

    number: int  # 1, 2, 3, ...
    round: int | None  # None where no label came: nothing was learned
    ids: list[Id]
    X: Any
    y: np.ndarray
    sensitive_features: Any
    prediction: np.ndarray
    probability: np.ndarray | None
    late: int  # rows of earlier tasks among these
    unlabelled: int  # predictions of this task without a label when it closed
    why: str  # complete, time, room, asked


def read_closed(tasks: Tasks, number: int, layouts: Layouts) -> ClosedTask:
    """Return a closed task of a store."""
    rows = tasks.taken(number)
    [(round, late, unlabelled, why)] = tasks.store.query(
        "SELECT round, late, unlabelled, why FROM tasks WHERE number = ?", [number]
    )
    layout, sensitive = layouts
    decided = [json.loads(row.answer) for row in rows]
    chances = [chance for _, chance in decided]
    return ClosedTask(
        number=number,
        round=round,
        ids=[json.loads(row.id) for row in rows],
        X=from_rows(layout or Layout("numbers"), [json.loads(row.content) for row in rows]),
        y=np.asarray([json.loads(row.label) for row in rows]),
        sensitive_features=sensitive
        and from_rows(sensitive, [json.loads(row.groups or "null") for row in rows]),
        prediction=np.asarray([prediction for prediction, _ in decided]),
        probability=np.asarray(chances) if rows and chances[0] is not None else None,
        late=late,
        unlabelled=unlabelled,
        why=why,
    )
