"""scikit-learn: logistic regression and boosted trees refitted, and stochastic gradient.

`balanced`: both classes weigh the same, as our learners decide with `decision=balanced`.
"""

from typing import Any

import numpy as np

from fairsaoml.compare.alternatives.alternative import Alternative, Decide, Decisions, Refitted
from fairsaoml.core.types import Schema, Task

__all__ = ["boosted_refit", "logistic_refit", "sgd"]


def logistic_refit(
    schema: Schema,
    seed: int,
    *,
    window: int | None = None,
    every: int = 1,
    balanced: bool = False,
    C: float = 1.0,
) -> Alternative:
    """`LogisticRegression` fitted on all the past; `C` is one over the penalty."""
    from sklearn.linear_model import LogisticRegression

    return _refitted(LogisticRegression(C=C, class_weight=_weight(balanced)), window, every)


def boosted_refit(
    schema: Schema,
    seed: int,
    *,
    window: int | None = None,
    every: int = 1,
    balanced: bool = False,
) -> Alternative:
    """`HistGradientBoostingClassifier` fitted on all the past."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(class_weight=_weight(balanced), random_state=seed)
    return _refitted(model, window, every)


def _weight(balanced: bool) -> str | None:
    return "balanced" if balanced else None


def _refitted(model: Any, window: int | None, every: int) -> Alternative:
    from sklearn.base import clone

    def fit(x: Any, y: Any, group: Any) -> Decide:
        fitted = clone(model).fit(x, y)
        return lambda x, group: fitted.predict(x)

    return Refitted(fit, window=window, every=every)


def sgd(
    schema: Schema,
    seed: int,
    *,
    alpha: float = 1e-4,
    average: bool = False,
    learning_rate: str = "optimal",
    eta0: float = 0.01,
) -> Alternative:
    """`SGDClassifier(loss="log_loss")`: one pass over each task by `partial_fit`."""
    from sklearn.linear_model import SGDClassifier

    return _Partial(
        SGDClassifier(
            loss="log_loss",
            alpha=alpha,
            average=average,
            learning_rate=learning_rate,
            eta0=eta0,
            random_state=seed,
        )
    )


class _Partial(Alternative):
    def __init__(self, model: Any) -> None:
        self._model = model
        self._begun = False

    def decide(self, x: Any, group: Any) -> Decisions:
        return self._model.predict(x) if self._begun else np.zeros(len(x), int)

    def learn(self, task: Task) -> None:
        self._model.partial_fit(task.x, task.y.astype(int), classes=[0, 1])
        self._begun = True
