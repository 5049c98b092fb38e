"""The scikit-learn adapter: all that the classes of `estimators.sklearn` do.

`fit` cuts its rows in order into tasks and learns from one after the other; `partial_fit` is one
round. The keyword `sensitive_features` is requested by default: with metadata routing enabled it
reaches the estimator through pipelines, searches and cross-validation without further settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from fairsaoml.core.errors import DataError, warn
from fairsaoml.core.intervals import level_count
from fairsaoml.core.settings import integer, optional, setting
from fairsaoml.core.types import Task
from fairsaoml.estimators.adapter import ANYTHING, Adapter, SharedSettings
from fairsaoml.estimators.coding import Scaling, sensitive_table
from fairsaoml.serve.online import LearnerAttributes, OnlineLearner, one_at_a_time
from fairsaoml.serve.saving import Saved

SEEDS = 2**31 - 1  # drawn from, where random_state is no number
FEWEST_ROWS, MOST_ROWS = 100, 1000  # of a task, unless task_size is set
TASKS = 20  # of so many rows, within these limits
RARE = 0.1  # of the first rows: hardly any row has a label so rare more likely than not


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(SharedSettings):
    """Parameters of the scikit-learn classifiers, besides those of the learner."""

    task_size: int | None = setting(
        None,
        optional(integer(1)),
        "rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a "
        "twentieth of the rows, from 100 to 1,000",
    )
    random_state: Any = setting(
        None, ANYTHING, "seed of all that is random; an int gives the same result every time"
    )


class OnlineClassifier(Adapter, LearnerAttributes, ClassifierMixin, BaseEstimator):
    """Base of the scikit-learn classifiers, and of one of your own.

    `class MyClassifier(OnlineClassifier, learner="my-learner")` is all that a registered learner
    needs. The classes of `fairsaoml.estimators.sklearn` are made so.

    Attributes
    ----------
    classes_
        The two labels; the second one is the positive.
    n_features_in_, feature_names_in_
        The features of the first call; the names where it had some.
    """

    # What `set_fit_request(sensitive_features=True)` would say, and those of the other methods.
    __metadata_request__fit: ClassVar[dict] = {"sensitive_features": True}
    __metadata_request__partial_fit: ClassVar[dict] = {"sensitive_features": True}
    __metadata_request__predict: ClassVar[dict] = {"sensitive_features": True}
    __metadata_request__decision_function: ClassVar[dict] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict] = {"sensitive_features": True}

    _home = "sklearn"
    _how_to_give_groups = "pass sensitive_features=..."
    _adapter_settings = ClassifierSettings

    @one_at_a_time
    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Forget everything and learn from rows in their order, task by task.

        The number of tasks is known, so it is the horizon unless `horizon` is set.

        Parameters
        ----------
        X
            Rows of numbers, an array or a dataframe, the oldest first.
        y
            Their labels, of two classes.
        sensitive_features
            Their groups: a list, an array, a series, a dataframe or a dictionary of columns.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        ConfigError
            Where a parameter is wrong; it is a ValueError.
        ValueError
            Where rows, labels or groups cannot be learned from.
        """
        X, y = self._checked_rows(X, y, reset=True)
        _require_binary(y)
        table = self._checked_groups(X, sensitive_features)
        size = self._checked("task_size") or min(max(len(y) // TASKS, FEWEST_ROWS), MOST_ROWS)
        tasks = max(1, round(len(y) / size))
        parts = np.array_split(np.arange(len(y)), tasks)
        self._begin(X[parts[0]], y[parts[0]], _two(unique_labels(y)), table, horizon=tasks)
        return self._learn(X, y, table, parts)

    @one_at_a_time
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sensitive_features: Any = None
    ) -> Self:
        """Learn from these rows as one task: one round.

        The first call fixes the classes, the groups and the scale of the features.

        Parameters
        ----------
        X, y, sensitive_features
            As in `fit`.
        classes
            Both labels, where the first call's rows may have only one of them.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        ConfigError
            Where a parameter is wrong; it is a ValueError.
        ValueError
            Where rows, labels or groups cannot be learned from, or do not fit the first call's.
        """
        known: Any = getattr(self, "classes_", None)
        first = known is None
        self._require_same_settings()
        X, y = self._checked_rows(X, y, reset=first)
        table = self._checked_groups(X, sensitive_features)
        if first:
            _require_binary(y)
            known = _two(unique_labels(y if classes is None else classes))
        elif classes is not None and not np.array_equal(known, unique_labels(classes)):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, "
                f"was: {known!r}"
            )
        if not ((y == known[0]) | (y == known[1])).all():
            _require_binary(y)
            unseen = np.setdiff1d(y, known).tolist()
            raise ValueError(
                f"y contains previously unseen labels: {unseen}; the classes are {known.tolist()}"
                + ("" if classes is None else " (groups are given as sensitive_features=...)")
            )
        if first:
            self._begin(X, y, known, table, horizon=None)
        return self._learn(X, y, table, [np.arange(len(y))])

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return how far each row is from the other decision; above 0 is `classes_[1]`.

        The rows' groups matter only to a learner that was asked to be `aware`; without them rows
        are decided as if nobody knew their group. Raises NotFittedError before the first fit.
        """
        return self._scored(X, sensitive_features)[1]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return calibrated probabilities, (row, class).

        `decision` says from which probability a row is positive. Raises NotFittedError before the
        first fit.
        """
        positive = expit(self._scored(X)[0])
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the class decided for each row.

        Sensitive features are looked at by a learner that was asked to be `aware`, and by no other.
        Raises NotFittedError before the first fit.
        """
        decided = self.decision_function(X, sensitive_features=sensitive_features) > 0
        return self.classes_[decided.astype(int)]

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Return the share of rows that are decided as their labels say.

        Sensitive features are looked at as in `predict`; an `aware` learner warns without them.
        """
        if getattr(self, "aware", False) and sensitive_features is None:
            warn(
                "score was given no sensitive_features: rows are decided as if nobody knew their "
                "group; in cross-validation and searches enable metadata routing"
            )
        decided = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, decided, sample_weight=sample_weight))

    def check_groups(self, X: Any, sensitive_features: Any) -> None:
        """Raise ValueError where `partial_fit` would refuse these groups of rows."""
        check_is_fitted(self)
        self._groups.checked(self._checked_groups(X, sensitive_features))

    @property
    def notes_(self) -> tuple[str, ...]:
        """Warnings about the last round, in words."""
        return self._learned.notes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # From a user's rows to tasks

    def _checked_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        try:
            return validate_data(self, X, y, reset=reset, dtype=[np.float64, np.float32])
        except ValueError as problem:
            if "could not convert" not in str(problem):
                raise
            raise DataError(
                f"{problem}{_words_in(X)}; encode words first (OneHotEncoder in a pipeline), or "
                "use `fairsaoml run` and `fairsaoml.load`, which take such rows"
            ) from None

    def _checked_groups(self, X: np.ndarray, sensitive_features: Any) -> Any:
        table = sensitive_table(sensitive_features)
        if table is not None:
            check_consistent_length(X, table)
        return table

    def _begin(
        self, first: np.ndarray, y: np.ndarray, classes: np.ndarray, table: Any, horizon: Any
    ) -> None:
        """Fix what never changes again; nothing is set before all of it is checked."""
        width = first.shape[1]
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(width)])
        state = self._checked("random_state")
        drawn = check_random_state(state)
        seed = state if isinstance(state, int) else int(drawn.randint(SEEDS))
        self._start(list(map(str, names)), table, self._settings(horizon), seed)
        self._scaling = Scaling.of(first) if self._checked("standardize") else Scaling.none(width)
        self.classes_ = classes
        share = float(np.mean(y == classes[1]))
        if self._learned.config.decision == "accuracy" and 0 < min(share, 1 - share) < RARE:
            warn(
                f"{100 * share:.1f} % of the first rows are {classes.tolist()[1]!r}, and rows are "
                "decided at probability 0.5, so nearly all may get the same decision; "
                "decision='balanced' decides at the base rate, decision=0.5 keeps one half"
            )

    def _learn(self, X: np.ndarray, y: np.ndarray, table: Any, parts: Sequence[np.ndarray]) -> Self:
        """Learn from each part of the rows, a round each."""
        positive, codes = y == self.classes_[1], self._groups.codes(table, len(y))
        for rows in parts:
            x = self._scaling.apply(X[rows])
            self._learned.learn(Task(x=x, y=positive[rows], group=codes[rows]))
        self._task_rows = max(map(len, parts))
        return self

    def _settings(self, tasks: int | None) -> dict[str, Any]:
        """Return the learner's settings; `fit` knows how many tasks there are (D16)."""
        settings = self._config().to_dict()
        if tasks is not None and settings.get("horizon", tasks) is None:
            # Only the number of levels matters: the least horizon that has as many, so that all
            # fits that share it share a compiled program.
            base = settings.get("base")
            settings["horizon"] = base ** level_count(tasks, base) if base else tasks
        return settings

    # What has been learned

    @property
    def _learned(self) -> OnlineLearner:
        if self._online is None:
            raise AttributeError(f"{type(self).__name__!r} has not learned from a row yet")
        return self._online

    def _scored(self, X: Any, sensitive_features: Any = None) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        table = self._checked_groups(X, sensitive_features)
        group = None if table is None else self._groups.codes(table, len(X))
        return self._learned.scored(self._scaling.apply(X), group)

    def _names(self) -> tuple[Sequence[Any], Sequence[str]]:
        check_is_fitted(self)
        return self.classes_.tolist(), self._learned.schema.features

    def _parameters(self) -> dict[str, Any]:
        given = super()._parameters()
        seeded = isinstance(given["random_state"], int)
        return given if seeded else {**given, "random_state": None}  # drawn from already

    def _saved(self) -> Saved:
        check_is_fitted(self)
        saved, names = super()._saved(), getattr(self, "feature_names_in_", None)
        classes = {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()}
        names = None if names is None else list(names)
        saved.manifest.update(classes=classes, feature_names=names)
        return saved

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        self = super()._restored(saved)
        classes, names = saved.manifest["classes"], saved.manifest["feature_names"]
        self.classes_ = np.array(classes["labels"], dtype=classes["dtype"])
        self.n_features_in_ = len(self._learned.schema.features)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        return self


def _require_binary(y: np.ndarray) -> None:
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        check_classification_targets(y)  # has a message of its own for continuous numbers
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )


def _two(classes: np.ndarray) -> np.ndarray:
    """Return the classes if there are two, else raise ValueError."""
    if len(classes) != 2:
        raise ValueError(
            "Classifier can't train on one class only, nor on more than two: got "
            f"{classes!r}; partial_fit takes both in `classes`."
        )
    if classes.dtype.kind in "mM" or not all(
        isinstance(label, str | int | float) for label in classes.tolist()
    ):
        raise DataError(f"expected labels that are words, numbers or booleans, got {classes!r}")
    return classes


def _words_in(X: Any) -> str:
    """Name a dataframe's columns that hold no numbers, for a message."""
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame):
        return ""
    words = [str(name) for name, kind in frame.schema.items() if not kind.is_numeric()]
    return f", in the columns {', '.join(words[:5])}"
