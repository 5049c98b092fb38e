"""What an alternative must do, decide a task's rows and then learn their labels; and what there is.

Those of scikit-learn are refitted (logistic regression and boosted trees) or learn by stochastic
gradient; those of River learn row by row, all rows of a task being decided before any is learned.
Fairlearn's are reductions and post-processing over logistic regression, refitted on a window. Of
several protected attributes the first is the one they keep fair. A group with one class only in the
window cannot be held against the others there: its rows are decided, but not fitted on.
`balanced`: both classes weigh the same, as our learners decide with `decision=balanced`.
"""

import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace as Settings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsaoml.core.types import Schema, Task

Decisions = NDArray[np.int64]  # (row,) 0 or 1
Decide = Callable[[Any, Any], Decisions]  # of features and group codes
Fit = Callable[[Any, Any, Any], Decide]  # of features, labels of both classes, group codes

NOTHING_LEARNED = 0  # the class of every row before the first labels, as our learners decide
SEEDS = 2**32  # how many seeds NumPy's older generators know


class Alternative(ABC):
    """A model of another library. Its warnings are recorded in the round's line."""

    @abstractmethod
    def decide(self, x: Any, group: Any) -> Decisions:
        """Return the class of each row, by what was learned so far; class 0 if that is nothing."""

    @abstractmethod
    def learn(self, task: Task) -> None:
        """Learn from a task with at least one row."""


class Refitted(Alternative):
    """A model that is fitted from scratch on the rows of the last `window` tasks (None: all).

    With `every` > 1 a fit is kept for so many rounds; the first task's labels are used at once. If
    all rows have one class, that class is decided.
    """

    def __init__(self, fit: Fit, *, window: int | None, every: int) -> None:
        self._fit = fit
        self._past: deque[Task] = deque(maxlen=window)
        self._every = every
        self._learned = 0
        self._decide = constant(NOTHING_LEARNED)

    def decide(self, x: Any, group: Any) -> Decisions:
        return self._decide(x, group)

    def learn(self, task: Task) -> None:
        self._past.append(task)
        self._learned += 1
        if (self._learned - 1) % self._every:
            return
        x, y, group = (
            np.concatenate([getattr(past, name) for past in self._past])
            for name in ("x", "y", "group")
        )
        labels = np.unique(y).astype(int)
        if len(labels) < 2:
            warnings.warn(
                f"all rows to fit on have y = {labels[0]}: that is what is decided", stacklevel=2
            )
            self._decide = constant(labels[0])
        else:
            self._decide = self._fit(x, y.astype(int), group)


def constant(label: int) -> Decide:
    """Return a function that decides the same class for every row.

    >>> constant(1)([[0.5], [0.7]], [[0], [1]])
    array([1, 1])
    """
    return lambda x, group: np.full(len(x), label)


def logistic_refit(schema: Schema, seed: int, settings: Settings) -> Alternative:
    """`LogisticRegression` fitted on all the past; `C` is one over the penalty."""
    from sklearn.linear_model import LogisticRegression

    return _refitted(LogisticRegression(C=settings.C, class_weight=_weight(settings)), settings)


def boosted_refit(schema: Schema, seed: int, settings: Settings) -> Alternative:
    """`HistGradientBoostingClassifier` fitted on all the past."""
    from sklearn.ensemble import HistGradientBoostingClassifier as Boosted

    return _refitted(Boosted(class_weight=_weight(settings), random_state=seed), settings)


def _weight(settings: Settings) -> str | None:
    return "balanced" if settings.balanced else None


def _refitted(model: Any, settings: Settings) -> Alternative:
    from sklearn.base import clone

    def fit(x: Any, y: Any, group: Any) -> Decide:
        fitted = clone(model).fit(x, y)
        return lambda x, group: fitted.predict(x)

    return Refitted(fit, window=settings.window, every=settings.every)


def sgd(schema: Schema, seed: int, settings: Settings) -> Alternative:
    """`SGDClassifier(loss="log_loss")`: one pass over each task by `partial_fit`."""
    from sklearn.linear_model import SGDClassifier

    return _Partial(SGDClassifier(loss="log_loss", random_state=seed, **vars(settings)))


class _Partial(Alternative):
    def __init__(self, model: Any) -> None:
        self._model = model
        self._begun = False

    def decide(self, x: Any, group: Any) -> Decisions:
        return self._model.predict(x) if self._begun else np.zeros(len(x), int)

    def learn(self, task: Task) -> None:
        self._model.partial_fit(task.x, task.y.astype(int), classes=[0, 1])
        self._begun = True


def river_logistic(schema: Schema, seed: int, settings: Settings) -> Alternative:
    """`StandardScaler | LogisticRegression`: plain stochastic gradient, row by row.

    `balanced` gives both classes the same weight, by how often each was seen so far.
    """
    from river import linear_model, optim, preprocessing

    optimizer = optim.SGD(settings.learning_rate)
    model = linear_model.LogisticRegression(optimizer=optimizer, l2=settings.l2)
    return _RowByRow(preprocessing.StandardScaler() | model, schema, settings.balanced)


def river_forest(schema: Schema, seed: int, settings: Settings) -> Alternative:
    """`ARFClassifier`: Hoeffding trees that are replaced where drift is detected."""
    from river import forest

    return _RowByRow(forest.ARFClassifier(seed=seed, **vars(settings)), schema)


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


def exponentiated_gradient(
    moment: str, schema: Schema, seed: int, settings: Settings
) -> Alternative:
    """`ExponentiatedGradient`: each row is decided by one of several classifiers, at random.

    `ratio` is asked for instead of Fairlearn's default, a difference of .01; with `balanced` both
    classes weigh the same in its error.
    """
    from fairlearn import reductions

    random = np.random.default_rng(seed)

    def fit(x: Any, y: Any, group: Any) -> Decide:
        positive = float(np.mean(y))
        costs = {"fp": 0.5 / (1 - positive), "fn": 0.5 / positive} if settings.balanced else None
        model = reductions.ExponentiatedGradient(
            _logistic(settings),
            getattr(reductions, moment)(ratio_bound=settings.ratio),
            objective=reductions.ErrorRate(costs=costs),
            eps=settings.eps,
        ).fit(x, y, sensitive_features=group)
        return lambda x, group: model.predict(x, random_state=_seed(random)).astype(int)

    return _of_first_attribute(fit, schema, settings)


def threshold_optimizer(schema: Schema, seed: int, settings: Settings) -> Alternative:
    """`ThresholdOptimizer`: one threshold per group, so it must know each row's group."""
    from fairlearn.postprocessing import ThresholdOptimizer

    random = np.random.default_rng(seed)

    def fit(x: Any, y: Any, group: Any) -> Decide:
        model = ThresholdOptimizer(estimator=_logistic(settings))
        model.fit(x, y, sensitive_features=group)
        known = np.unique(group)

        def decide(x: Any, group: Any) -> Decisions:
            decisions = np.asarray(
                model.predict(x, sensitive_features=group, random_state=_seed(random)), int
            )
            strangers = ~np.isin(group, known)
            if strangers.any():
                warnings.warn(
                    f"{np.count_nonzero(strangers)} rows of groups with no threshold: "
                    "decided by the plain classifier",
                    stacklevel=2,
                )
                decisions[strangers] = model.estimator_.predict(x[strangers])
            return decisions

        return decide

    return _of_first_attribute(fit, schema, settings)


def _of_first_attribute(fit: Fit, schema: Schema, settings: Settings) -> Alternative:
    """Refit on groups that have both classes, and without groups where fewer than two do."""
    levels = schema.attributes[0].levels

    def fit_comparable(x: Any, y: Any, group: Any) -> Decide:
        first = group[:, 0]
        comparable = [code for code in range(len(levels)) if len(np.unique(y[first == code])) == 2]
        if len(comparable) < 2:
            warnings.warn("no two groups have both classes: the fit is a plain one", stacklevel=2)
            plain = _logistic(settings).fit(x, y)
            return lambda x, group: plain.predict(x)
        kept = np.isin(first, comparable)
        if not kept.all():
            warnings.warn(
                f"{np.count_nonzero(~kept)} rows of groups with one class were not fitted on",
                stacklevel=2,
            )
        # Doubles: Fairlearn writes them into a pandas Series of the scores' type, and pandas 3
        # refuses to round them.
        decide = fit(x[kept].astype(float), y[kept], first[kept])
        return lambda x, group: decide(x.astype(float), group[:, 0])

    return Refitted(fit_comparable, window=settings.window, every=settings.every)


def _logistic(settings: Settings) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=settings.C)


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(SEEDS))
