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

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from secrets import randbits
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from fairsaoml.core.errors import ConfigError
from fairsaoml.core.settings import integer, optional, setting
from fairsaoml.core.types import Task
from fairsaoml.estimators.adapter import Adapter, SharedSettings
from fairsaoml.estimators.classes import ANYTHING
from fairsaoml.estimators.coding import (
    Scaling,
    frame_of,
    number,
    numbers,
    sensitive_table,
    value_or_none,
    values_of,
)
from fairsaoml.serve.online import OnlineLearner, one_at_a_time
from fairsaoml.serve.saving import Saved
from fairsaoml.streams.table.sensitive import UNNAMED

try:
    from river import base
    from river.utils.dataframe import to_native_frame, to_native_series
except ImportError as error:
    raise ConfigError("expected river to be installed; pip install 'fairsaoml[river]'") from error

__all__ = ["RiverClassifier"]

BOOLEANS = (False, True)  # River's usual labels, known before they are seen
EVEN = 0.5  # the probability before anything is learned
SEED_BITS = 31

Label = Any  # whatever River is given


class Row(NamedTuple):
    """A row in numbers, its groups, and its label where it waits for its task."""

    x: dict[Hashable, float]  # NaN where there is no value
    groups: dict[str, Any]
    y: Label = None


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
        self._waiting: list[Row] = []
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
        self._take([self._row(x, sensitive_features)], [y])

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
        labels = values_of(y)
        self._take(self._rows(X, sensitive_features, len(labels)), labels)

    def _take(self, rows: Sequence[Row], labels: Sequence[Label]) -> None:
        """Keep rows until a task is full, and learn from it then."""
        labels = [value_or_none(label) for label in labels]
        for label in dict.fromkeys(labels):
            self._add_label(label)
        size = self._checked("task_size")
        for row, label in zip(rows, labels, strict=True):
            self._waiting.append(row._replace(y=label))
            if len(self._waiting) >= size:
                self._learn()

    def _learn(self) -> None:
        """Learn from the rows collected: one round."""
        table, classes = self._table(self._waiting), self._known_classes()
        online = self._online or self._begin(classes, table)
        self._add_features()
        y = np.array([row.y == classes[1] for row in self._waiting])
        x = self._scaling.apply(self._matrix(self._waiting))
        online.learn(Task(x=x, y=y, group=self._groups.codes(table, len(y))))
        self._waiting = []

    def _begin(self, classes: tuple, table: Any) -> OnlineLearner:
        """Fix what the first task decides: features, groups, the learner."""
        if len(classes) < 2:
            raise ValueError(
                f"Classifier can't train on one class only: {classes[0]!r}; "
                "name both in `classes`, the positive one last."
            )
        names = {name for row in self._waiting for name in row.x}
        width = len(names) + self._checked("spare_features")
        seed = self._checked("seed")
        seed = randbits(SEED_BITS) if seed is None else seed
        slots = [f"x{index}" for index in range(width)]
        online = self._start(slots, table, self._config().to_dict(), seed)
        self._scaling = Scaling.none(width)
        return online

    def _add_features(self) -> None:
        """Give new features a place, while there is one, and their mean and scale."""
        new = {name for row in self._waiting for name in row.x if name not in self._slots}
        if not new:
            return
        names = sorted(new, key=lambda name: (type(name).__name__, str(name)))
        room = len(self._scaling.center) - len(self._slots)
        for name in names[:room]:
            self._slots[name] = len(self._slots)
        if names[room:]:
            warnings.warn(
                f"features that the first task did not show are left out: "
                f"{', '.join(map(str, names[room:][:5]))}; spare_features keeps places for them",
                stacklevel=5,
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
        shares = self._shares([self._row(x, **kwargs)])
        return {label: float(share[0]) for label, share in shares.items()}

    def predict_one(self, x: dict, **kwargs: Any) -> Label:
        """Return the label decided; `decision` says from which probability it is the positive one.

        Parameters
        ----------
        x
            A dictionary of features; sensitive ones are ignored.

        """
        return self._decided([self._row(x, **kwargs)])[0]

    def predict_proba_many(self, X: Any) -> Any:
        """Return calibrated probabilities, a dataframe like X with a column per label.

        Parameters
        ----------
        X
            A dataframe of features.

        """
        return to_native_frame(self._shares(self._rows(X)), like=frame_of(X))

    def predict_many(self, X: Any) -> Any:
        """Return the labels decided, as a series of the same library as X.

        Parameters
        ----------
        X
            A dataframe of features.

        """
        return to_native_series(self._decided(self._rows(X)), name=None, like=frame_of(X))

    def _positive(self, rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's probability of the positive label, and which are decided positive."""
        if self._online is None:
            return np.full(len(rows), EVEN), np.zeros(len(rows), bool)
        x = self._scaling.apply(self._matrix(rows))
        aware = getattr(self, "aware", False) and any(row.groups for row in rows)
        group = self._groups.codes(self._table(rows), len(x)) if aware else None
        scores, margins = self._online.scored(x, group)
        return expit(scores), margins > 0

    def _shares(self, rows: Sequence[Row]) -> dict[Label, np.ndarray]:
        """Return each known label's probabilities, (row,); a label known alone has 1."""
        classes, positive = self._known_classes(), self._positive(rows)[0]
        if len(classes) == 1:
            return {classes[0]: np.ones(len(rows))}
        return {classes[0]: 1 - positive, classes[1]: positive}

    def _decided(self, rows: Sequence[Row]) -> list[Label]:
        classes = self._known_classes()
        return [classes[-1] if yes else classes[0] for yes in self._positive(rows)[1]]

    # From River's rows to numbers

    def _row(self, x: Mapping, sensitive_features: Any = None, **others: Any) -> Row:
        keys = self._keys()
        groups = {str(key): value_or_none(x.get(key)) for key in keys}
        if sensitive_features is not None:
            self._require_one_way()
            given = sensitive_features
            if not isinstance(given, Mapping):
                given = {UNNAMED.format(0): given}
            groups = {str(name): value_or_none(value) for name, value in given.items()}
        return Row({n: number(n, value) for n, value in x.items() if n not in keys}, groups)

    def _rows(self, X: Any, sensitive_features: Any = None, labels: int | None = None) -> list[Row]:
        """Return a dataframe's rows; ValueError where there are not as many of each."""
        frame, keys = frame_of(X), self._keys()
        if sensitive_features is None:
            groups = {str(key): [*map(value_or_none, frame[key].to_list())] for key in keys}
        else:
            self._require_one_way()
            groups = sensitive_table(sensitive_features).to_pydict()
        names = [name for name in frame.columns if name not in keys]
        values = numbers(frame.select(names) if keys else frame).tolist()
        by_row = list(zip(*groups.values(), strict=True)) or [()] * len(values)
        lengths = [len(values), len(values) if labels is None else labels, len(by_row)]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {lengths}"
            )
        return [
            Row(dict(zip(names, x, strict=True)), dict(zip(groups, group, strict=True)))
            for x, group in zip(values, by_row, strict=True)
        ]

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

    def _require_one_way(self) -> None:
        if self._keys():
            raise ValueError(
                "expected sensitive features in x, by the keys named in `sensitive`, or beside "
                "it, in `sensitive_features`; got both"
            )

    def _table(self, rows: Sequence[Row]) -> Any:
        """Return the groups of rows by column, the known ones first; None: nothing is sensitive."""
        known = [column.column for column in self._groups.columns]
        names = dict.fromkeys([*known, *(name for row in rows for name in row.groups)])
        columns = {name: [row.groups.get(name) for row in rows] for name in names}
        return sensitive_table(columns or None)

    def _matrix(self, rows: Sequence[Row]) -> np.ndarray:
        """Return rows as (row, slot), NaN where there is no finite value."""
        x = np.full((len(rows), len(self._scaling.center)), np.nan)
        values = [[row.x.get(name, np.nan) for name in self._slots] for row in rows]
        x[:, : len(self._slots)] = np.reshape(values, (len(rows), len(self._slots)))
        return np.where(np.isfinite(x), x, np.nan)

    # Saving

    def _names(self) -> tuple[Sequence[Any], Sequence[str]]:
        return self._known_classes(), [str(name) for name in self._slots]

    def _library_saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        for name in (*self._slots, *(name for row in self._waiting for name in row.x)):
            if not isinstance(name, str | int):
                raise ConfigError(
                    f"expected feature names that are text or whole numbers, got {name!r}; "
                    "other names cannot be saved"
                )
        # Rows with the same names together; their numbers are arrays, as JSON has no NaN.
        parts = [
            list(same)
            for _, same in groupby(self._waiting, key=lambda row: [list(row.x), list(row.groups)])
        ]
        return {"waiting": [np.array([[*row.x.values()] for row in part]) for part in parts]}, {
            "labels": self._labels,
            "features": list(self._slots),
            "waiting": [
                {
                    "names": [*part[0].x],
                    "sensitive": [*part[0].groups],
                    "y": [row.y for row in part],
                    "groups": [[*row.groups.values()] for row in part],
                }
                for part in parts
            ],
        }

    def _restore_library(self, saved: Saved) -> None:
        manifest = saved.manifest
        self._labels = manifest["labels"]
        self._slots = {name: place for place, name in enumerate(manifest["features"])}
        self._waiting = [
            Row(
                x=dict(zip(part["names"], x, strict=True)),
                groups=dict(zip(part["sensitive"], group, strict=True)),
                y=y,
            )
            for place, part in enumerate(manifest["waiting"])
            for x, y, group in zip(
                saved.arrays[f"['waiting'][{place}]"].tolist(),
                part["y"],
                part["groups"],
                strict=True,
            )
        ]
