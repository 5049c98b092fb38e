"""What the estimators of all libraries share: a learner, the coding of its rows, saving."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

from fairsaoml.core.errors import ConfigError, RunError, warn
from fairsaoml.core.settings import Settings, integer, setting
from fairsaoml.core.types import Schema
from fairsaoml.estimators.classes import ANYTHING, RENAMED, Parameters, plain
from fairsaoml.estimators.coding import Groups, Scaling
from fairsaoml.runs.folder import SPEC
from fairsaoml.serve.export import write_run
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.saving import Saveable, Saved, part, saved_learner
from fairsaoml.streams.table.columns import canonical, typed
from fairsaoml.streams.table.encoder import Encoder, Numeric
from fairsaoml.streams.table.roles import Label, type_of


@dataclass(frozen=True, kw_only=True)
class SharedSettings(Settings):
    """Parameters of the estimators of every library, besides those of the learner."""

    task_size: Any
    standardize: bool = setting(
        True,
        ANYTHING,
        "whether features are centred and scaled by the first task's rows, and cut at five "
        "standard deviations; without it they should be of about unit size",
    )
    known_groups: Collection[Any] | None = setting(
        None,
        ANYTHING,
        "groups that may turn up after the first task: a list, or {column: list}; any other that "
        "turns up later is counted as 'unseen' and is in no constraint",
    )


class Adapter(Parameters, Saveable):
    """An estimator around an `OnlineLearner`, which is made when the first task comes."""

    _how_to_give_groups: ClassVar[str]  # in this library
    _online: OnlineLearner | None = None
    _groups: Groups = Groups()
    _scaling: Scaling = Scaling.none(0)
    _task_rows: int = 1000  # of the largest task learned last

    def _start(
        self, features: Sequence[str], table: Any, settings: dict[str, Any], seed: int
    ) -> OnlineLearner:
        """Make the learner of these features and of the groups in a table."""
        groups = Groups.of(table, self._checked("known_groups"))
        if table is None and settings["constraints"] != "none":
            warn(
                f"{type(self).__name__} learns without fairness: {self._how_to_give_groups}, "
                "or say constraints='none'",
            )
        schema = Schema(
            features=tuple(features),
            attributes=tuple(column.attribute for column in groups.columns),
        )
        online = OnlineLearner(schema, self._learner, settings, seed=seed)
        self._online, self._groups = online, groups
        return online

    def _require_same_settings(self) -> None:
        """Raise ConfigError where the learner's settings are not those that it learns with."""
        if self._online is None:
            return
        given, learns = self._config().to_dict(), self._online.config.to_dict()
        # A horizon that is not given is known to `fit`.
        same = {
            name: learns[name] if name == "horizon" and v is None else v
            for name, v in given.items()
        }
        changed = [RENAMED.get(name, name) for name in same if same[name] != learns[name]]
        if changed:
            raise ConfigError(
                f"settings cannot change after the first round, got another {', '.join(changed)}; "
                "fit anew, or clone the estimator"
            )

    def save_run(
        self,
        path: str | PathLike,
        *,
        label: str = "label",
        task_rows: int | None = None,
        force: bool = False,
    ) -> None:
        """Write what was learned as a run's folder: for `fairsaoml predict`, `learn` and `serve`.

        Its journal, and so its report, begins with the first round that is learned there.

        Parameters
        ----------
        path
            A new folder.
        label
            The label's column in the tables that are to come.
        task_rows
            Rows of a task, where `learn` cuts a table; by default as many as it learned from.
        force
            Whether a run in the folder is replaced.

        Raises
        ------
        ConfigError
            With `standardize=False`, as a run's columns are standardised; with spare features;
            with a label that is another column's name, or labels that a table cannot tell apart.
        RunError
            Where nothing was learned yet, or the folder holds a run or other files. scikit-learn's
            classes raise NotFittedError for the former.
        """
        (classes, features), online = self._names(), self._online
        if online is None or len(classes) < 2:
            raise RunError("expected a model that has learned a task, got none; teach it first")
        for name, needed in (("standardize", True), ("spare_features", 0)):
            if getattr(self, name, needed) != needed:
                raise ConfigError(f"{name} must be {needed} to save a run; got another")
        task_rows = self._task_rows if task_rows is None else task_rows
        if not (rule := integer(1, 2**31)).holds(plain(task_rows)):
            raise ConfigError(f"task_rows must be {rule.expected}; got {task_rows!r}")
        taken = {*features, *(column.column for column in self._groups.columns)}
        if not isinstance(label, str) or not label or label in taken:
            raise ConfigError(
                f"label must be the name of a column of its own; got {label!r}, beside the "
                f"columns {', '.join(sorted(taken))}"
            )
        if not force and (Path(path) / SPEC).exists():
            raise RunError(
                f"{path} already holds a run; replace it with force=True, or give another folder"
            )
        labels = typed(classes)
        negative, positive = canonical(labels).to_pylist()
        if None in (negative, positive) or negative.lower() == positive.lower():
            raise ConfigError(
                f"expected labels that a table tells apart, got {classes[0]!r} and {classes[1]!r}; "
                "rename them before the model learns"
            )
        center, scale, _ = self._scaling
        columns = tuple(
            Numeric(name=name, center=float(middle), scale=float(spread))
            for name, middle, spread in zip(features, center, scale, strict=True)
        )
        encoder = Encoder(
            columns=columns,
            label=Label(column=label, positive=positive, negative=negative).typed(
                type_of(labels.type)
            ),
            sensitive=self._groups.columns,
        )
        write_run(Path(path), online, encoder, task_rows=plain(task_rows), force=force)

    @abstractmethod
    def _names(self) -> tuple[Sequence[Any], Sequence[str]]:
        """Return the labels, the positive one last, and the features."""

    def _saved(self) -> Saved:
        online = Saved(0, (), {}) if self._online is None else self._online._saved()
        arrays, facts = self._library_saved()
        return Saved(
            round=online.round,
            arrays={"online": online.arrays, "scaling": self._scaling, **arrays},
            manifest={
                "learner": self._learner,
                "parameters": self._parameters(),
                "groups": self._groups.to_json(),
                "task_rows": self._task_rows,
                **facts,
                "online": online.manifest or None,
            },
        )

    @classmethod
    def _reads(cls, manifest: Mapping[str, Any]) -> bool:
        """Whether the folder holds this library's estimator of this class's learner."""
        learner, home = saved_learner(manifest), manifest["kind"].partition(".")[0]
        if learner is None:
            return super()._reads(manifest)
        return home == cls._home and learner == getattr(cls, "_learner", None)

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        manifest = saved.manifest
        self = cls._from_parameters(manifest["parameters"])
        if manifest["online"] is not None:
            self._online = OnlineLearner._restored(
                Saved(saved.round, part(saved.arrays, "online"), manifest["online"])
            )
        self._groups = Groups.from_json(manifest["groups"])
        self._task_rows = manifest.get("task_rows", cls._task_rows)
        scaling = part(saved.arrays, "scaling")
        self._scaling = Scaling(*(scaling[f".{name}"] for name in Scaling._fields))
        self._restore_library(saved)
        return self

    @abstractmethod
    def _library_saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what else this library needs saved: arrays by name, plain JSON by name."""

    @abstractmethod
    def _restore_library(self, saved: Saved) -> None:
        """Set what `_library_saved` returned."""
