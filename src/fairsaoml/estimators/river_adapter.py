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
from typing import Any, Self

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
        self._waiting = Rows()
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
        self._take(self._row(x, sensitive_features, label=value_or_none(y)))

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
        self._take(self._rows(X, sensitive_features, labels=river_rows.values_of(y)))

    def _take(self, rows: Rows) -> None:
        """Keep rows until a task is full, and learn from it then."""
        for label in dict.fromkeys(rows.labels):
            self._add_label(label)
        taken = 0
        while taken < len(rows.labels):
            until = taken + self._checked("task_size") - len(self._waiting.labels)
            self._waiting.take(rows, slice(taken, until))
            taken = until
            if taken <= len(rows.labels):
                self._learn()

    def _learn(self) -> None:
        """Learn from the rows collected: one round."""
        self._require_same_settings()
        rows, classes = self._waiting, self._known_classes()
        table = self._table(rows)
        online = self._online or self._begin(classes, table)
        self._add_features()
        y = np.array([label == classes[1] for label in rows.labels])
        x = self._scaling.apply(self._matrix(rows))
        online.learn(Task(x=x, y=y, group=self._groups.codes(table, len(y))))
        self._task_rows, self._waiting = len(y), Rows()

    def _begin(self, classes: tuple, table: Any) -> OnlineLearner:
        """Fix what the first task decides: features, groups, the learner."""
        if len(classes) < 2:
            raise ValueError(
                f"Classifier can't train on one class only: {classes[0]!r}; "
                "name both in `classes`, the positive one last."
            )
        if not self._waiting.features:
            raise ValueError("expected rows with features, got none in the whole task; give some")
        width = len(self._waiting.features) + self._checked("spare_features")
        seed = self._checked("seed")
        seed = randbits(SEED_BITS) if seed is None else seed
        slots = [f"x{index}" for index in range(width)]
        online = self._start(slots, table, self._config().to_dict(), seed)
        self._scaling = Scaling.none(width)
        return online

    def _add_features(self) -> None:
        """Give new features a place, while there is one, and their mean and scale."""
        new = self._waiting.features.keys() - self._slots.keys()
        if not new:
            return
        names = sorted(new, key=lambda name: (type(name).__name__, str(name)))
        fresh = range(len(self._slots), len(self._scaling.center))[: len(names)]
        self._slots |= zip(names, fresh, strict=False)
        if left_out := names[len(fresh) :]:
            warn(
                f"features that the first task did not show are left out: "
                f"{', '.join(map(str, left_out[:5]))}; spare_features keeps places for them",
            )
        if self._checked("standardize"):
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

    def _row(
        self, x: Mapping, sensitive_features: Any = None, label: Any = None, **others: Any
    ) -> Rows:
        keys = self._keys()
        groups: Mapping = {key: x.get(key) for key in keys}
        if sensitive_features is not None:
            self._require_one_way(groups)
            several = isinstance(sensitive_features, Mapping)
            groups = sensitive_features if several else {UNNAMED.format(0): sensitive_features}
        return Rows(
            features=river_rows.features_of(x, keys),
            groups={str(name): [value_or_none(value)] for name, value in groups.items()},
            labels=[label],
        )

    def _rows(self, X: Any, sensitive_features: Any = None, labels: Any = None) -> Rows:
        frame = river_rows.frame_of(X)
        features, groups = river_rows.columns_of(frame, self._keys())
        if sensitive_features is not None:
            self._require_one_way(groups)
            table = sensitive_table(sensitive_features)
            groups = {name: table[name].to_pylist() for name in table.column_names}
        labels = [None] * len(frame) if labels is None else labels
        lengths = [len(frame), len(labels), *map(len, groups.values())]
        if len({*lengths}) > 1:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {lengths}"
            )
        return Rows(features=features, groups=groups, labels=labels)

    def _positive(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's probability of the positive label, and which are decided positive."""
        if self._online is None:
            return np.full(len(rows.labels), EVEN), np.zeros(len(rows.labels), bool)
        x = self._scaling.apply(self._matrix(rows))
        aware = getattr(self, "aware", False) and rows.groups
        group = self._groups.codes(self._table(rows), len(x)) if aware else None
        scores, margins = self._online.scored(x, group)
        return expit(scores), margins > 0

    def _shares(self, rows: Rows) -> dict[Label, np.ndarray]:
        """Return each known label's probabilities, (row,); a label known alone has 1."""
        classes, positive = self._known_classes(), self._positive(rows)[0]
        if len(classes) == 1:
            return {classes[0]: np.ones(len(positive))}
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

    def _require_one_way(self, inside: Mapping) -> None:
        if inside:
            raise ValueError(
                "expected sensitive features in x, by the keys named in `sensitive`, or beside "
                "it, in `sensitive_features`; got both"
            )

    def _table(self, rows: Rows) -> Any:
        """Return the groups of rows, by column, the known columns first; None where none is."""
        known = {column.column: [None] * len(rows.labels) for column in self._groups.columns}
        return sensitive_table({**known, **rows.groups} or None)

    def _matrix(self, rows: Rows) -> np.ndarray:
        return rows.matrix(self._slots, len(self._scaling.center))

    # Saving

    def _names(self) -> tuple[Sequence[Any], Sequence[str]]:
        return self._known_classes(), [str(name) for name in self._slots]

    def _saved(self) -> Saved:
        waiting = self._waiting
        features, groups = waiting.features, waiting.groups
        for name in (*self._slots, *features):
            if not isinstance(name, str | int):
                raise ConfigError(
                    f"expected feature names that are text or whole numbers, got {name!r}; "
                    "other names cannot be saved"
                )
        saved = super()._saved()
        # The rows' numbers are an array, as JSON has no NaN.
        places = {name: place for place, name in enumerate(features)}
        saved.arrays["waiting"] = [waiting.matrix(places, len(places))]
        by_row = [*zip(*groups.values(), strict=True)]
        rows = {"names": [*features], "sensitive": [*groups], "y": waiting.labels, "groups": by_row}
        saved.manifest.update(labels=self._labels, features=list(self._slots), waiting=[rows])
        return saved

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        self, manifest = super()._restored(saved), saved.manifest
        self._labels = manifest["labels"]
        self._slots = {name: place for place, name in enumerate(manifest["features"])}
        for place, rows in enumerate(manifest["waiting"]):
            columns = saved.arrays[f"['waiting'][{place}]"].T.tolist()
            features = dict(zip(rows["names"], columns, strict=True))
            columns = map(list, zip(*rows["groups"], strict=True))
            groups = dict(zip(rows["sensitive"], columns, strict=True))
            self._waiting.take(Rows(features=features, groups=groups, labels=rows["y"]))
        return self
