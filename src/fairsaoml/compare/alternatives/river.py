"""River: models that learn row by row. All rows of a task are decided before any is learned."""

from typing import Any

import numpy as np

from fairsaoml.compare.alternatives.alternative import NOTHING_LEARNED, Alternative, Decisions
from fairsaoml.core.types import Schema, Task

__all__ = ["adaptive_forest", "logistic"]


def logistic(
    schema: Schema,
    seed: int,
    *,
    learning_rate: float = 0.01,
    l2: float = 0.0,
    balanced: bool = False,
) -> Alternative:
    """`StandardScaler | LogisticRegression`: plain stochastic gradient, row by row.

    `balanced` gives both classes the same weight, by how often each was seen so far.
    """
    from river import linear_model, optim, preprocessing

    model = linear_model.LogisticRegression(optimizer=optim.SGD(learning_rate), l2=l2)
    return _RowByRow(preprocessing.StandardScaler() | model, schema, balanced)


def adaptive_forest(
    schema: Schema, seed: int, *, n_models: int = 10, lambda_value: int = 6, grace_period: int = 50
) -> Alternative:
    """`ARFClassifier`: Hoeffding trees that are replaced where drift is detected."""
    from river import forest

    model = forest.ARFClassifier(
        n_models=n_models, lambda_value=lambda_value, grace_period=grace_period, seed=seed
    )
    return _RowByRow(model, schema)


class _RowByRow(Alternative):
    def __init__(self, model: Any, schema: Schema, balanced: bool = False) -> None:
        self._model = model
        self._names = schema.features
        self._seen = [0, 0] if balanced else None  # rows by label

    def decide(self, x: Any, group: Any) -> Decisions:
        labels = [self._model.predict_one(row) for row in self._rows(x)]
        return np.array([NOTHING_LEARNED if label is None else label for label in labels], int)

    def learn(self, task: Task) -> None:
        for row, label in zip(self._rows(task.x), task.y.astype(int).tolist(), strict=True):
            if self._seen is None:
                self._model.learn_one(row, label)
                continue
            self._seen[label] += 1
            self._model.learn_one(row, label, w=sum(self._seen) / (2 * self._seen[label]))

    def _rows(self, x: Any) -> list[dict[str, float]]:
        return [dict(zip(self._names, row, strict=True)) for row in x.tolist()]
