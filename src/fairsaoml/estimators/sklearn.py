"""scikit-learn estimators: one class per learner, all through one adapter.

`fit` plays its rows in order, cut into tasks, as a stream; `partial_fit` is one round. The keyword
`sensitive_features` is requested by default, so that with metadata routing enabled it reaches the
estimator through pipelines, searches and cross-validation without another word.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from fairsaoml.core.intervals import level_count
from fairsaoml.core.types import RoundInfo, Task
from fairsaoml.estimators.adapter import SHARED, Adapter
from fairsaoml.estimators.coding import Scaling, sensitive_table
from fairsaoml.estimators.parameters import Own
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.saving import Saved

__all__ = [
    "AODClassifier",
    "CBCEClassifier",
    "FairAOGDClassifier",
    "FairFMLClassifier",
    "FairGLCClassifier",
    "FairSAOMLClassifier",
    "MaskFTMLClassifier",
    "NewtonFairSAOMLClassifier",
    "OnlineClassifier",
    "PaperFairSAOMLClassifier",
]

SEEDS = 2**31 - 1  # as many as there are to draw from
FEWEST, MOST = 100, 1000  # rows of a task where nobody says
TASKS = 20  # of so many rows, if that is neither too few nor too many


class OnlineClassifier(Adapter, ClassifierMixin, BaseEstimator):
    """The adapter: a learner's own class names it, `class Mine(OnlineClassifier, learner="mine")`.

    Attributes once fitted: `classes_` (the second one is the positive), `n_features_in_`,
    `feature_names_in_`, `n_rounds_`, `groups_` (sensitive column -> its known groups),
    `constraints_` (their names), `dual_` (the price on each), `weights_` (of the experts present in
    the last round), `notes_` (what a person should know of the last round).
    """

    # What `set_fit_request(sensitive_features=True)` would say.
    __metadata_request__fit: ClassVar[dict] = {"sensitive_features": True}
    __metadata_request__partial_fit: ClassVar[dict] = {"sensitive_features": True}

    task_size: int | None
    random_state: Any

    _home = "sklearn"
    _how = "pass sensitive_features=..."
    _own: ClassVar[dict[str, Own]] = {
        "task_size": Own(
            None,
            "rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a "
            "twentieth of the rows, from 100 to 1,000",
        ),
        **SHARED,
        "random_state": Own(None, "seed of all that is random; an int gives the same every time"),
    }

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Forget everything and learn from rows in their order, task by task.

        The number of tasks is known, so it is the horizon unless `horizon` is set.
        """
        X, y = self._checked_rows(X, y, reset=True)
        _require_binary(y)
        table = self._checked_groups(X, sensitive_features)
        tasks = max(1, round(len(y) / self._rows_of_a_task(len(y))))
        parts = np.array_split(np.arange(len(y)), tasks)
        self._begin(X[parts[0]], _two(unique_labels(y)), table, horizon=tasks)
        return self._learn(X, y, table, parts)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sensitive_features: Any = None
    ) -> Self:
        """One round: learn from these rows as one task.

        The first call settles the classes, the groups and the scale of the features.
        """
        first = not hasattr(self, "classes_")
        X, y = self._checked_rows(X, y, reset=first)
        table = self._checked_groups(X, sensitive_features)
        if first:
            _require_binary(y)
            known = _two(unique_labels(y if classes is None else classes))
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(known, unique_labels(classes)):
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, "
                    f"was: {known!r}"
                )
        if not ((y == known[0]) | (y == known[1])).all():
            _require_binary(y)
            strange = np.setdiff1d(y, known).tolist()
            raise ValueError(f"y contains previously unseen labels: {strange}")
        if first:
            self._begin(X, known, table, horizon=None)
        return self._learn(X, y, table, [np.arange(len(y))])

    def decision_function(self, X: Any) -> np.ndarray:
        """How far each row is from being decided otherwise; above 0 is `classes_[1]`."""
        return self._scored(X)[1]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities, (row, class); `decision` says from which on it is a yes."""
        positive = expit(self._scored(X)[0])
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class decided for each row; what is sensitive is never looked at."""
        decided = self.decision_function(X) > 0
        return self.classes_[decided.astype(int)]

    @property
    def n_rounds_(self) -> int:
        """Rounds learned from."""
        return self._learned.round

    @property
    def groups_(self) -> dict[str, tuple[str, ...]]:
        """The known groups of each sensitive column, as texts."""
        return dict(self._learned.schema.attributes)

    @property
    def constraints_(self) -> tuple[str, ...]:
        """The constraints kept, such as 'dp[sex=m]'; `dual_` is in their order."""
        return self._learned.constraints

    @property
    def dual_(self) -> np.ndarray:
        """The price on each constraint's violation; 0 where it costs nothing."""
        return np.asarray(self._info.dual)

    @property
    def weights_(self) -> np.ndarray:
        """The weights by which the experts present decided in the last round."""
        return np.asarray(self._info.weights)[np.asarray(self._info.present)]

    @property
    def notes_(self) -> tuple[str, ...]:
        """What a person should know of the last round."""
        return self._learned.notes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # From a user's rows to tasks

    def _checked_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        return validate_data(self, X, y, reset=reset, dtype=[np.float64, np.float32])

    def _checked_groups(self, X: np.ndarray, sensitive_features: Any) -> Any:
        table = sensitive_table(sensitive_features)
        if table is not None:
            check_consistent_length(X, table)
        return table

    def _begin(self, first: np.ndarray, classes: np.ndarray, table: Any, horizon: Any) -> None:
        """Settle what never changes again; nothing is set before all of it is sound."""
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{i}" for i in range(first.shape[1])] if names is None else names
        self._settle(list(map(str, names)), table, self._settings(horizon), self._seed())
        self._scaling = Scaling.of(first) if self.standardize else Scaling.none(first.shape[1])
        self.classes_ = classes

    def _learn(self, X: np.ndarray, y: np.ndarray, table: Any, parts: Sequence[np.ndarray]) -> Self:
        """A round for each part of the rows."""
        positive, codes = y == self.classes_[1], self._groups.codes(table, len(y))
        for rows in parts:
            x = self._scaling.apply(X[rows])
            self._learned.learn(Task(x=x, y=positive[rows], group=codes[rows]))
        return self

    def _rows_of_a_task(self, rows: int) -> int:
        if self.task_size is None:
            return min(max(rows // TASKS, FEWEST), MOST)
        return self._whole("task_size")

    def _settings(self, tasks: int | None) -> dict[str, Any]:
        """The learner's settings; `fit` knows how many tasks there are (D16)."""
        settings = self._config().to_dict()
        if tasks is not None and settings.get("horizon", tasks) is None:
            # Only the number of levels matters: the least horizon that has as many, so that all
            # fits that share it share a compiled program.
            base = settings.get("base")
            settings["horizon"] = base ** level_count(tasks, base) if base else tasks
        return settings

    def _seed(self) -> int:
        random = check_random_state(self.random_state)
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(random.randint(SEEDS))

    # What has been learned

    @property
    def _learned(self) -> OnlineLearner:
        if self._online is None:
            raise AttributeError(f"{type(self).__name__!r} has not learned from a row yet")
        return self._online

    @property
    def _info(self) -> RoundInfo:
        """Diagnostics of the last round."""
        info = self._learned.info
        assert info is not None  # there is no learner before its first round
        return info

    def _scored(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return self._learned.scored(self._scaling.apply(X))

    def save(self, path: str | PathLike) -> None:
        """Write what was learned into a folder of its own; one saved there before is replaced."""
        check_is_fitted(self)
        super().save(path)

    def _parameters(self) -> dict[str, Any]:
        given = super()._parameters()
        seeded = isinstance(given["random_state"], int)
        return given if seeded else {**given, "random_state": None}  # drawn from already

    def _further(self) -> tuple[dict[str, Any], dict[str, Any]]:
        names = getattr(self, "feature_names_in_", None)
        return {}, {
            "classes": {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()},
            "feature_names": None if names is None else list(names),
        }

    def _take_back(self, saved: Saved) -> None:
        classes, names = saved.about["classes"], saved.about["feature_names"]
        self.classes_ = np.array(classes["labels"], dtype=classes["dtype"])
        self.n_features_in_ = len(self._learned.schema.features)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)


def _require_binary(y: np.ndarray) -> None:
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        check_classification_targets(y)  # has its own word for numbers that are no classes
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )


def _two(classes: np.ndarray) -> np.ndarray:
    """Both classes; one or many are refused."""
    if len(classes) == 1:
        raise ValueError(
            f"Classifier can't train on one class only: {classes!r}; "
            "partial_fit takes both in `classes`."
        )
    if len(classes) > 2:
        raise ValueError(f"Only binary classification is supported. Got the classes {classes!r}.")
    return classes


class FairSAOMLClassifier(OnlineClassifier, learner="fairsaoml-live"):
    """Accurate and fair while the world changes: experts on geometric intervals of time.

    Each expert keeps learning from its own interval's rows, by primal-dual steps that price
    unfairness; weights that move to whoever fits the present mix their decisions. The learner
    `fairsaoml-live`.

    >>> X = np.linspace(-1, 1, 400)[:, None] % 0.31
    >>> y = np.where(X[:, 0] > 0.15, "yes", "no")
    >>> sex = np.where(np.arange(400) % 3 > 0, "f", "m")
    >>> model = FairSAOMLClassifier(model="logistic", constraints="dp", random_state=0)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> model.predict([[0.0], [0.3]]).tolist(), model.n_rounds_, model.constraints_
    (['no', 'yes'], 4, ('dp[sensitive_feature_0=m]',))
    """


class NewtonFairSAOMLClassifier(OnlineClassifier, learner="fairsaoml-newton"): ...


class PaperFairSAOMLClassifier(OnlineClassifier, learner="fairsaoml"): ...


class MaskFTMLClassifier(OnlineClassifier, learner="mask-ftml"): ...


class FairFMLClassifier(OnlineClassifier, learner="fair-fml"): ...


class FairAOGDClassifier(OnlineClassifier, learner="fair-aogd"): ...


class FairGLCClassifier(OnlineClassifier, learner="fair-glc"): ...


class AODClassifier(OnlineClassifier, learner="aod"): ...


class CBCEClassifier(OnlineClassifier, learner="cbce"): ...
