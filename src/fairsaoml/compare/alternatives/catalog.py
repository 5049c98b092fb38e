"""The models of other libraries by name: how each is made; in `catalog.json` what it promises.

An alternative decides a task's rows and then learns their labels. Those of scikit-learn are
refitted (logistic regression and boosted trees) or learn by stochastic gradient; those of River
learn row by row, all rows of a task being decided before any is learned. Fairlearn's are reductions
and post-processing over logistic regression, refitted on a window of tasks: the whole past would
hold every domain gone by. Of several protected attributes the first is the one they keep fair. A
group with one class only in the window cannot be held against the others there: its rows are
decided, but not fitted on.
`balanced`: both classes weigh the same, as our learners decide with `decision=balanced`: by weights
of rows or costs of errors, by ThresholdOptimizer's own objective, and for River's forest, which
takes no weights, by each class's chance over how often it was seen.
"""

import json
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier

from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.core.types import Schema, Task

Decisions = NDArray[np.int64]  # (row,) 0 or 1
Decide = Callable[[Any, Any], Decisions]  # of features and group codes
Fit = Callable[[Any, Any, Any], Decide]  # of features, labels of both classes, group codes

NOTHING_LEARNED = 0  # the class of every row before the first labels, as our learners decide
SEEDS = 2**32  # how many seeds NumPy's older generators know


class Alternative(Protocol):
    """A model of another library. Its warnings are recorded in the round's line."""

    def decide(self, x: Any, group: Any) -> Decisions:
        """Return the class of each row, by what was learned so far; class 0 if that is nothing."""

    def learn(self, task: Task) -> None:
        """Learn from a task with at least one row."""


class Refitted:
    """A model that is fitted from scratch on the rows of the last `window` tasks (None: all).

    With `every` > 1 a fit is kept for so many rounds; the first task's labels are used at once. If
    all rows have one class, that class is decided.
    """

    def __init__(self, fit: Fit, *, window: int | None, every: int) -> None:
        self._fit = fit
        self._past: deque[Task] = deque(maxlen=window)
        self._every = every
        self._learned = count()  # rounds
        self.decide = constant(NOTHING_LEARNED)

    def learn(self, task: Task) -> None:
        self._past.append(task)
        if next(self._learned) % self._every:
            return
        tasks = ((past.x, past.y, past.group) for past in self._past)
        x, y, group = map(np.concatenate, zip(*tasks, strict=True))
        labels = np.unique(y).astype(int)
        if len(labels) < 2:
            warnings.warn(
                f"all rows to fit on have y = {labels[0]}: that is what is decided", stacklevel=2
            )
            self.decide = constant(labels[0])
        else:
            self.decide = self._fit(x, y.astype(int), group)


def constant(label: int) -> Decide:
    """Return a function that decides the same class for every row.

    >>> constant(1)([[0.5], [0.7]], [[0], [1]])
    array([1, 1])
    """
    return lambda x, group: np.full(len(x), label)


def logistic_refit(schema: Schema, seed: int, settings: SimpleNamespace) -> Alternative:
    """`LogisticRegression` fitted on all the past; `C` is one over the penalty."""
    return _refitted(_logistic(settings), settings)


def boosted_refit(schema: Schema, seed: int, settings: SimpleNamespace) -> Alternative:
    """`HistGradientBoostingClassifier` fitted on all the past."""
    weights = _class_weight(settings)
    model = HistGradientBoostingClassifier(random_state=seed, class_weight=weights)
    return _refitted(model, settings)


def _logistic(settings: SimpleNamespace) -> LogisticRegression:
    return LogisticRegression(C=settings.C, class_weight=_class_weight(settings))


def _class_weight(settings: SimpleNamespace) -> str | None:
    return "balanced" if settings.balanced else None


def _refitted(model: Any, settings: SimpleNamespace) -> Alternative:
    def fit(x: Any, y: Any, group: Any) -> Decide:
        fitted = clone(model).fit(x, y)
        return lambda x, group: fitted.predict(x)

    return Refitted(fit, window=settings.window, every=settings.every)


class StochasticGradient:
    """`SGDClassifier(loss="log_loss")`: one pass over each task by `partial_fit`.

    `balanced` gives both classes the same weight, by how often each was seen so far.
    """

    def __init__(self, schema: Schema, seed: int, settings: SimpleNamespace) -> None:
        own = vars(settings).copy()
        self._balanced = own.pop("balanced")
        self._seen = np.zeros(2)  # rows by label
        self._model = SGDClassifier(loss="log_loss", random_state=seed, **own)
        self.decide = constant(NOTHING_LEARNED)

    def learn(self, task: Task) -> None:
        y = task.y.astype(int)
        self._seen += np.bincount(y, minlength=2)
        weights = self._seen.sum() / (2 * self._seen[y]) if self._balanced else None
        self._model.partial_fit(task.x, y, classes=[0, 1], sample_weight=weights)
        self.decide = lambda x, group: self._model.predict(x)


def exponentiated_gradient(
    moment: str, schema: Schema, seed: int, settings: SimpleNamespace
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
            LogisticRegression(C=settings.C),
            getattr(reductions, moment)(ratio_bound=settings.ratio),
            objective=reductions.ErrorRate(costs=costs),
            eps=settings.eps,
        ).fit(x, y, sensitive_features=group)
        return lambda x, group: model.predict(x, random_state=_seed(random)).astype(int)

    return _of_first_attribute(fit, schema, settings)


def threshold_optimizer(schema: Schema, seed: int, settings: SimpleNamespace) -> Alternative:
    """`ThresholdOptimizer`: one threshold per group, so it must know each row's group.

    `balanced`: the thresholds are the best for balanced accuracy, in place of accuracy.
    """
    from fairlearn.postprocessing import ThresholdOptimizer

    random = np.random.default_rng(seed)
    objective = "balanced_accuracy_score" if settings.balanced else "accuracy_score"

    def fit(x: Any, y: Any, group: Any) -> Decide:
        model = ThresholdOptimizer(estimator=_logistic(settings), objective=objective)
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


def _of_first_attribute(fit: Fit, schema: Schema, settings: SimpleNamespace) -> Alternative:
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


def _seed(random: np.random.Generator) -> int:
    return int(random.integers(SEEDS))


def river_logistic(schema: Schema, seed: int, settings: SimpleNamespace) -> Alternative:
    """`StandardScaler | LogisticRegression`: plain stochastic gradient, row by row.

    `balanced` gives both classes the same weight, by how often each was seen so far.
    """
    from river import linear_model, optim, preprocessing

    optimizer = optim.SGD(settings.learning_rate)
    model = linear_model.LogisticRegression(optimizer=optimizer, l2=settings.l2)
    return _RowByRow(preprocessing.StandardScaler() | model, schema, settings.balanced)


def river_forest(schema: Schema, seed: int, settings: SimpleNamespace) -> Alternative:
    """`ARFClassifier`: Hoeffding trees that are replaced where drift is detected.

    It takes no weights. With `balanced` it decides the class whose chance is the highest, measured
    by how often the class was seen so far.
    """
    from river import forest

    own = vars(settings).copy()
    rows = _RowsByChance if own.pop("balanced") else _RowByRow
    return rows(forest.ARFClassifier(seed=seed, **own), schema)


class _RowByRow:
    def __init__(self, model: Any, schema: Schema, balanced: bool = False) -> None:
        self._model = model
        self._names = schema.features
        self._balanced = balanced
        self._seen = [0, 0]  # rows by label

    def decide(self, x: Any, group: Any) -> Decisions:
        labels = [self._label(row) for row in self._rows(x)]
        return np.array([NOTHING_LEARNED if label is None else label for label in labels], int)

    def learn(self, task: Task) -> None:
        for row, label in zip(self._rows(task.x), task.y.astype(int).tolist(), strict=True):
            self._seen[label] += 1
            weight = sum(self._seen) / (2 * self._seen[label])
            self._model.learn_one(row, label, **({"w": weight} if self._balanced else {}))

    def _label(self, row: dict[str, float]) -> int | None:
        return self._model.predict_one(row)

    def _rows(self, x: Any) -> list[dict[str, float]]:
        return [dict(zip(self._names, row, strict=True)) for row in x.tolist()]


class _RowsByChance(_RowByRow):
    def _label(self, row: dict[str, float]) -> int | None:
        chances = self._model.predict_proba_one(row)
        return max(chances, key=lambda label: chances[label] / self._seen[label], default=None)


class Listing(NamedTuple):
    """How an alternative is made, and what a reader of its row must know."""

    factory: Callable[[Schema, int, SimpleNamespace], Alternative]
    package: str  # the library's; also the extra of fairsaoml that installs it
    words: str
    settings: Mapping[str, Any]  # with its library's defaults
    constraints: str  # what is kept fair, in our words
    random: bool  # whether seeds differ though the rows do not


FACTORIES: dict[str, Any] = {
    "logistic-refit": logistic_refit,
    "boosted-refit": boosted_refit,
    "sgd": StochasticGradient,
    "expgrad": partial(exponentiated_gradient, "DemographicParity"),
    "expgrad-eo": partial(exponentiated_gradient, "EqualizedOdds"),
    "threshold": threshold_optimizer,
    "river-logistic": river_logistic,
    "river-forest": river_forest,
}
CATALOG = {
    name: Listing(FACTORIES[name], **facts)
    for name, facts in json.loads(Path(__file__).with_suffix(".json").read_text()).items()
}


def listing(name: str) -> Listing:
    """Return an alternative by name; ConfigError if it is unknown or not installed."""
    if name not in CATALOG:
        raise ConfigError(f"unknown alternative {name!r}; {closest(name, CATALOG)}")
    listing = CATALOG[name]
    try:
        version(listing.package)
    except PackageNotFoundError:
        raise ConfigError(
            f"expected {listing.package} to be installed for {name!r}; "
            f"pip install 'fairsaoml[{listing.package}]', or leave it out with --alternatives"
        ) from None
    return listing


def defaults(name: str) -> dict[str, Any]:
    """Return the settings an alternative takes, with its library's defaults.

    >>> defaults("logistic-refit")
    {'window': None, 'every': 1, 'balanced': False, 'C': 1.0}
    """
    return dict(CATALOG[name].settings)


def words(name: str, settings: Mapping[str, Any], schema: Schema) -> str:
    """Return what a reader of an alternative's row must know."""
    parts = [CATALOG[name].words]
    chosen = {**defaults(name), **settings}
    if "window" in chosen:
        window, every = chosen["window"], chosen["every"]
        often = "each round" if every == 1 else f"every {every} rounds"
        past = "all the past" if window is None else f"the last {window} tasks"
        parts.append(f"refitted {often} on {past}")
    if chosen["balanced"]:
        parts.append("both classes weigh the same")
    first, *others = schema.attributes
    if others and CATALOG[name].constraints != "none":
        parts.append(f"fair by {first.name}, whatever the other attributes")
    return "; ".join(parts)


def make(name: str, schema: Schema, seed: int, settings: Mapping[str, Any]) -> Alternative:
    """Return an alternative that has learned nothing yet."""
    return CATALOG[name].factory(schema, seed, SimpleNamespace(**{**defaults(name), **settings}))
