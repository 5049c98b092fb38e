"""The River adapter: rows come one by one and are learned from when a task is full.

Sensitive features are given in one of River's own ways:

- beside the row, as the keyword `sensitive_features` of `learn_one`: an item of a stream is
  `(x, y, {"sensitive_features": "f"})`, which `progressive_val_score` passes on and a
  `compose.Pipeline` routes to the step that declares it. A value, or {name: value} for several;
- or in the row: `sensitive=("sex",)` names the keys that are taken out of `x` and are never an
  input. Steps before must leave those keys alone:
  `(compose.Discard("sex") | preprocessing.StandardScaler()) + compose.Select("sex") | model`.

The first task fixes the features, in the order of their names, and each one's mean and scale. A
feature that is missing from a row is taken to be at its mean. One that turns up later is left out,
unless `spare_features` has kept a place for it: then its mean and scale are those of the task that
brings it.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from secrets import randbits
from typing import Any

import numpy as np
from scipy.special import expit

from fairsaoml.core.errors import ConfigError, warn
from fairsaoml.core.settings import integer, optional, setting
from fairsaoml.core.types import Task
from fairsaoml.estimators import river_rows
from fairsaoml.estimators.adapter import ANYTHING, Adapter, SharedSettings
from fairsaoml.estimators.coding import Scaling, sensitive_table
from fairsaoml.estimators.river_rows import Rows, value_or_none
from fairsaoml.serve.online import OnlineLearner, one_at_a_time
from fairsaoml.serve.saving import Saved
from fairsaoml.streams.table.sensitive import UNNAMED

try:
    from river import base
    from river.utils.dataframe import to_native_frame, to_native_series
except ImportError as error:
    raise ConfigError("expected river to be installed; pip install 'fairsaoml[river]'") from error

BOOLEANS = (False, True)  # River's usual labels, known before they are seen
EVEN = 0.5  # the probability before anything is learned
SEED_BITS = 31

Label = Any  # whatever River is given


@dataclass(frozen=True, kw_only=True)
class RiverSettings(SharedSettings):
    """Parameters of the River classifiers, besides those of the learner."""

    task_size: int = setting(300, integer(1), "rows that are collected and then learned from")
    sensitive: str | Sequence[Any] | None = setting(
        None,
        ANYTHING,
        "the sensitive key of x, or several: they are taken out of it and are never an input",
    )
    classes: Sequence[Any] | None = setting(
        None, ANYTHING, "the two labels, the positive one last; booleans need not be named"
    )
    spare_features: int = setting(
        0, integer(0), "places kept for features that turn up after the first task"
    )
    seed: int | None = setting(
        None,
        optional(integer(0)),
        "seed of all that is random; an int gives the same result every time",
    )


class RiverClassifier(Adapter, base.MiniBatchClassifier):
    """Base of the River classifiers, and of one of your own.

    `class MyClassifier(RiverClassifier, learner="my-learner")` is all that a registered learner
    needs. The classes of `fairsaoml.estimators.river` are made so.

    Every `task_size` rows are one round of the learner. Until the first task is full, both classes
    are equally probable.
    """

    classes: Sequence[Any] | None

    _home = "river"
    _how_to_give_groups = "name the `sensitive` keys of x, pass sensitive_features to learn_one"
    _adapter_settings = RiverSettings

    def _reset(self) -> None:
        self._waiting: list[Rows] = []
        self._labels: list[Label] = []  # seen so far, two at most
        self._slots: dict[Hashable, int] = {}  # feature -> column

    # Learning

    @one_at_a_time
    def learn_one(self, x: dict, y: Label, *, sensitive_features: Any = None) -> None:
        """Take a row; once a task is full, learn from it.

        Parameters
        ----------
        x
            A dictionary of features.
        y
            A label.
        sensitive_features
            The row's group: a value, or a dictionary of values by name.

        Raises
        ------
        ConfigError
            Where a parameter is wrong; it is a ValueError.
        ValueError
            Where a feature is no number, a label is a third one, or groups do not fit the first
            task's.

        """
        rows = self._row(x, sensitive_features)
        self._take(rows._replace(y=[value_or_none(y)]))

    @one_at_a_time
    def learn_many(self, X: Any, y: Any, *, sensitive_features: Any = None) -> None:
        """Take the rows of a dataframe, exactly as `learn_one` would take each.

        Parameters
        ----------
        X
            A dataframe of features.
        y
            A series of labels.
        sensitive_features
            The rows' groups: a list, an array, a series, a dataframe or a dictionary of columns.

        Raises
        ------
        ConfigError, ValueError
            As `learn_one`, and where the lengths differ.

        """
        rows = self._rows(X, sensitive_features)
        labels = [value_or_none(label) for label in river_rows.values_of(y)]
        if not len(rows.x) == len(labels) == len(rows.groups):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{[len(rows.x), len(labels), len(rows.groups)]}"
            )
        self._take(rows._replace(y=labels))

    def _take(self, rows: Rows) -> None:
        """Keep rows until a task is full, and learn from it then."""
        for label in dict.fromkeys(rows.y):
            self._add_label(label)
        taken = 0
        while taken < len(rows.y):
            waiting = sum(len(some.y) for some in self._waiting)
            until = taken + self._checked("task_size") - waiting
            river_rows.add(self._waiting, rows.part(taken, until))
            taken = until
            if taken <= len(rows.y):
                self._learn()

    def _learn(self) -> None:
        """Learn from the rows collected: one round."""
        self._require_same_settings()
        table, classes = self._table(self._waiting), self._known_classes()
        online = self._online or self._begin(classes, table)
        self._add_features()
        y = np.array([label == classes[1] for rows in self._waiting for label in rows.y])
        x = self._scaling.apply(self._matrix(self._waiting))
        online.learn(Task(x=x, y=y, group=self._groups.codes(table, len(y))))
        self._task_rows, self._waiting = len(y), []

    def _begin(self, classes: tuple, table: Any) -> OnlineLearner:
        """Fix what the first task decides: features, groups, the learner."""
        if len(classes) < 2:
            raise ValueError(
                f"Classifier can't train on one class only: {classes[0]!r}; "
                "name both in `classes`, the positive one last."
            )
        names = {name for rows in self._waiting for name in rows.names}
        if not names:
            raise ValueError("expected rows with features, got none in the whole task; give some")
        width = len(names) + self._checked("spare_features")
        seed = self._checked("seed")
        seed = randbits(SEED_BITS) if seed is None else seed
        slots = [f"x{index}" for index in range(width)]
        online = self._start(slots, table, self._config().to_dict(), seed)
        self._scaling = Scaling.none(width)
        return online

    def _add_features(self) -> None:
        """Give new features a place, while there is one, and their mean and scale."""
        new = {name for rows in self._waiting for name in rows.names if name not in self._slots}
        if not new:
            return
        names = sorted(new, key=lambda name: (type(name).__name__, str(name)))
        room = len(self._scaling.center) - len(self._slots)
        for name in names[:room]:
            self._slots[name] = len(self._slots)
        if names[room:]:
            warn(
                f"features that the first task did not show are left out: "
                f"{', '.join(map(str, names[room:][:5]))}; spare_features keeps places for them",
            )
        if self._checked("standardize"):
            fresh = [self._slots[name] for name in names[:room]]
            fitted = Scaling.of(self._matrix(self._waiting)[:, fresh])
            center, scale = self._scaling.center.copy(), self._scaling.scale.copy()
            center[fresh], scale[fresh] = fitted.center, fitted.scale
            self._scaling = Scaling(center, scale, fitted.limit)

    # Deciding

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict[Label, float]:
        """Return calibrated probabilities of the labels known so far.

        Parameters
        ----------
        x
            A dictionary of features; sensitive ones are ignored.

        """
        shares = self._shares(self._row(x, **kwargs))
        return {label: float(share[0]) for label, share in shares.items()}

    def predict_one(self, x: dict, **kwargs: Any) -> Label:
        """Return the label decided; `decision` says from which probability it is the positive one.

        Parameters
        ----------
        x
            A dictionary of features; sensitive ones are ignored.

        """
        return self._decided(self._row(x, **kwargs))[0]

    def predict_proba_many(self, X: Any) -> Any:
        """Return calibrated probabilities, a dataframe like X with a column per label.

        Parameters
        ----------
        X
            A dataframe of features.

        """
        return to_native_frame(self._shares(self._rows(X)), like=river_rows.frame_of(X))

    def predict_many(self, X: Any) -> Any:
        """Return the labels decided, as a series of the same library as X.

        Parameters
        ----------
        X
            A dataframe of features.

        """
        return to_native_series(
            self._decided(self._rows(X)), name=None, like=river_rows.frame_of(X)
        )

    def _row(self, x: Mapping, sensitive_features: Any = None, **others: Any) -> Rows:
        names, values = river_rows.features_of(x, self._keys())
        groups = self._groups_of(x, sensitive_features)
        return Rows(names, tuple(groups), [values], [], [tuple(groups.values())])

    def _rows(self, X: Any, sensitive_features: Any = None) -> Rows:
        names, values, columns = river_rows.columns_of(X, self._keys())
        if sensitive_features is not None:
            self._require_one_way(columns)
            table = sensitive_table(sensitive_features)
            columns = {name: table[name].to_pylist() for name in table.column_names}
        groups = list(zip(*columns.values(), strict=True)) or [()] * len(values)
        return Rows(names, tuple(columns), values, [], groups)

    def _positive(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's probability of the positive label, and which are decided positive."""
        if self._online is None:
            return np.full(len(rows.x), EVEN), np.zeros(len(rows.x), bool)
        x = self._scaling.apply(self._matrix([rows]))
        aware = getattr(self, "aware", False) and rows.sensitive
        group = self._groups.codes(self._table([rows]), len(x)) if aware else None
        scores, margins = self._online.scored(x, group)
        return expit(scores), margins > 0

    def _shares(self, rows: Rows) -> dict[Label, np.ndarray]:
        """Return each known label's probabilities, (row,); a label known alone has 1."""
        classes, positive = self._known_classes(), self._positive(rows)[0]
        if len(classes) == 1:
            return {classes[0]: np.ones(len(rows.x))}
        return {classes[0]: 1 - positive, classes[1]: positive}

    def _decided(self, rows: Rows) -> list[Label]:
        classes = self._known_classes()
        return [classes[-1] if yes else classes[0] for yes in self._positive(rows)[1]]

    # From River's rows to numbers

    def _add_label(self, y: Label) -> None:
        """Remember a label; raise ValueError for a third one."""
        known = self._labels if self.classes is None else self.classes
        if y not in known and len(known) == 2:
            raise ValueError(
                "Only binary classification is supported. "
                f"Expected one of the labels {known[0]!r} and {known[1]!r}, got {y!r}."
            )
        if y not in self._labels:
            self._labels.append(y)

    def _known_classes(self) -> tuple:
        """Return the labels, the positive one last; only one while the other is not known yet."""
        if self.classes is not None:
            return tuple(self.classes)
        if all(label in BOOLEANS for label in self._labels):
            return BOOLEANS
        return tuple(sorted(self._labels, key=lambda label: (type(label).__name__, label)))

    def _keys(self) -> tuple:
        """Return the keys of x that are sensitive."""
        keys = self._checked("sensitive")
        return (keys,) if isinstance(keys, str) else tuple(keys or ())

    def _groups_of(self, x: Mapping, sensitive_features: Any) -> dict[str, Any]:
        """Return a row's groups by name, from `sensitive_features` or from x."""
        inside = {str(key): value_or_none(x.get(key)) for key in self._keys()}
        if sensitive_features is None:
            return inside
        self._require_one_way(inside)
        if isinstance(sensitive_features, Mapping):
            return {str(name): value_or_none(value) for name, value in sensitive_features.items()}
        return {UNNAMED.format(0): value_or_none(sensitive_features)}

    def _require_one_way(self, inside: Mapping) -> None:
        if inside:
            raise ValueError(
                "expected sensitive features in x, by the keys named in `sensitive`, or beside "
                "it, in `sensitive_features`; got both"
            )

    def _table(self, collected: Sequence[Rows]) -> Any:
        """Return the groups of rows, by column; None where nothing is sensitive."""
        known = [column.column for column in self._groups.columns]
        return sensitive_table(river_rows.groups_by_column(collected, known) or None)

    def _matrix(self, rows: Sequence[Rows]) -> np.ndarray:
        return river_rows.matrix(rows, self._slots, len(self._scaling.center))

    # Saving

    def _names(self) -> tuple[Sequence[Any], Sequence[str]]:
        return self._known_classes(), [str(name) for name in self._slots]

    def _library_saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        for name in (*self._slots, *(name for rows in self._waiting for name in rows.names)):
            if not isinstance(name, str | int):
                raise ConfigError(
                    f"expected feature names that are text or whole numbers, got {name!r}; "
                    "other names cannot be saved"
                )
        # The rows' numbers are arrays, as JSON has no NaN.
        return {"waiting": [np.array(rows.x, np.float64) for rows in self._waiting]}, {
            "labels": self._labels,
            "features": list(self._slots),
            "waiting": [rows._replace(x=[])._asdict() for rows in self._waiting],
        }

    def _restore_library(self, saved: Saved) -> None:
        manifest = saved.manifest
        self._labels = manifest["labels"]
        self._slots = {name: place for place, name in enumerate(manifest["features"])}
        self._waiting = [
            Rows(
                names=tuple(rows["names"]),
                sensitive=tuple(rows["sensitive"]),
                x=saved.arrays[f"['waiting'][{place}]"].tolist(),
                y=rows["y"],
                groups=[*map(tuple, rows["groups"])],
            )
            for place, rows in enumerate(manifest["waiting"])
        ]
