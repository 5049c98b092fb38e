"""What the estimators of all libraries share: a learner, the coding of its rows, saving.

scikit-learn and River read an estimator's parameters off the signature of its constructor: to
clone it, to print it, to search over it. So every setting of a learner's config is a keyword
parameter of its estimator, with the config's type and default, and its meaning is in the docstring.
The classes are made from the registry: one for each learner.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, fields
from inspect import Parameter, Signature
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError, RunError, closest, warn
from fairsaoml.core.settings import Rule, Settings, integer, setting
from fairsaoml.core.types import Schema
from fairsaoml.estimators.coding import Groups, Scaling, plain
from fairsaoml.learners import registry
from fairsaoml.runs.folder import SPEC
from fairsaoml.serve.export import write_run
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.saving import Saveable, Saved, part, saved_learner
from fairsaoml.streams.table.columns import canonical, typed
from fairsaoml.streams.table.encoder import Encoder, Numeric
from fairsaoml.streams.table.roles import Label, type_of

DEFAULT_CLASS = "AdaptiveFairClassifier"  # of the registry's default learner, whichever that is
# A setting by another name, where an estimator has a method of its own: setting -> parameter.
RENAMED = {"score": "gap_score"}
ANYTHING = Rule(lambda value: True, "anything")


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


class Adapter(Saveable):
    """An estimator around an `OnlineLearner`, which is made when the first task comes.

    A subclass names its learner, `class MyClassifier(OnlineClassifier, learner="my-learner")`, and
    gets its constructor, and its docstring unless it has one, from the registry.
    """

    _learner: ClassVar[str]
    _adapter_settings: ClassVar[type[Settings]]  # never made; its fields are parameters
    _parameter_fields: ClassVar[dict[str, Field]]  # the learner's settings too, by parameter
    _how_to_give_groups: ClassVar[str]  # in this library
    _online: OnlineLearner | None = None
    _groups: Groups = Groups()
    _scaling: Scaling = Scaling.none(0)
    _task_rows: int = 1000  # of the largest task learned last

    def __init_subclass__(cls, *, learner: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if learner is None:
            return
        entry, cls._learner = registry.entry(learner), learner
        hints = {**get_type_hints(entry.config), **get_type_hints(cls._adapter_settings)}
        cls._parameter_fields = {
            RENAMED.get(field.name, field.name): field
            for field in (*fields(cls._adapter_settings), *fields(entry.config))
        }
        cls.__init__ = _constructor(cls.__qualname__, cls._parameter_fields, hints)  # type: ignore[method-assign]
        lines = [(cls.__dict__.get("__doc__") or _description(learner)).rstrip()]
        lines += ["", "    Parameters", "    ----------"]
        for key, field in cls._parameter_fields.items():
            lines += [f"    {key} : default {field.default!r}"]
            lines += [f"        {field.metadata['meaning']}"]
        cls.__doc__ = "\n".join([*lines, "    "])

    def _reset(self) -> None:
        """Set what an estimator needs before its first row."""

    def _config(self) -> LearnerConfig:
        """Return the learner's settings, checked."""
        names = {name: RENAMED.get(name, name) for name in registry.entry(self._learner).settings}
        given = {name: plain(getattr(self, key)) for name, key in names.items()}
        return registry.configure(self._learner, given)

    def _checked(self, name: str) -> Any:
        """Return a parameter of the adapter, or raise ConfigError where its rule does not hold."""
        value, rule = plain(getattr(self, name)), self._parameter_fields[name].metadata["rule"]
        if not rule.holds(value):
            raise ConfigError(f"{name} must be {rule.expected}; got {value!r}")
        return value

    def _parameters(self) -> dict[str, Any]:
        """Return all constructor parameters as they were given."""
        return {name: plain(getattr(self, name)) for name in self._parameter_fields}

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
        schema = Schema(tuple(features), tuple(column.attribute for column in groups.columns))
        self._online = OnlineLearner(schema, self._learner, settings, seed=seed)
        self._groups = groups
        return self._online

    def _require_same_settings(self) -> None:
        """Raise ConfigError where the learner's settings are not those that it learns with."""
        if self._online is None:
            return
        given, learns = self._config().to_dict(), self._online.config.to_dict()
        # A horizon that is not given is known to `fit`.
        changed = [
            RENAMED.get(name, name)
            for name, value in given.items()
            if value != learns[name] and (name, value) != ("horizon", None)
        ]
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
        task_rows = self._task_rows if task_rows is None else plain(task_rows)
        if not (rule := integer(1, 2**31)).holds(task_rows):
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
        columns = tuple(
            Numeric(name=name, center=float(center), scale=float(scale))
            for name, center, scale in zip(features, *self._scaling[:2], strict=True)
        )
        role = Label(column=label, positive=positive, negative=negative).typed(type_of(labels.type))
        encoder = Encoder(columns=columns, label=role, sensitive=self._groups.columns)
        write_run(Path(path), online, encoder, task_rows=task_rows, force=force)

    @abstractmethod
    def _names(self) -> tuple[Sequence[Any], Sequence[str]]:
        """Return the labels, the positive one last, and the features."""

    def _saved(self) -> Saved:
        online = Saved(0, (), {}) if self._online is None else self._online._saved()
        return Saved(
            round=online.round,
            arrays={"online": online.arrays, "scaling": self._scaling},
            manifest={
                "learner": self._learner,
                "parameters": self._parameters(),
                "groups": self._groups.to_json(),
                "task_rows": self._task_rows,
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
        manifest, given = saved.manifest, {}
        for name, value in manifest["parameters"].items():
            is_tuple = isinstance(cls._parameter_fields[name].default, tuple)  # a list in a file
            given[name] = tuple(value) if is_tuple else value
        self = cls(**given)
        if manifest["online"] is not None:
            self._online = OnlineLearner._restored(
                Saved(saved.round, part(saved.arrays, "online"), manifest["online"])
            )
        self._groups = Groups.from_json(manifest["groups"])
        self._task_rows = manifest.get("task_rows", cls._task_rows)
        scaling = part(saved.arrays, "scaling")
        self._scaling = Scaling(*(scaling[f".{name}"] for name in Scaling._fields))
        return self


Adapted = TypeVar("Adapted", bound=Adapter)


def class_names() -> list[str]:
    """Return the names of the classes of this package's learners, and of the default learner's."""
    return [*map(_class_name, registry.BUILTIN), DEFAULT_CLASS]


def class_of(adapter: type[Adapted], module: str, name: str) -> type[Adapted]:
    """Return the class of that name for a registered learner, made once and put into its module.

    Without an `Entry.estimator`, the learner `my-learner` has the class `MyLearnerClassifier`.
    Raises AttributeError where no learner has a class of that name.

    Parameters
    ----------
    adapter
        The base class, which does everything but name a learner.
    module
        The name of the module that holds the classes.
    name
        The name of the class.
    """
    default = name == DEFAULT_CLASS
    learners = [] if name.startswith("_") else registry.LEARNERS.names()
    for learner in [registry.DEFAULT] if default else learners:
        with suppress(ConfigError):  # a package that cannot be imported has no class
            if default or _class_name(learner) == name:
                words = "The default learner. " * default + _description(learner)
                metaclass: Any = type(adapter)
                content = {"__module__": module, "__doc__": words}
                cls = metaclass(name, (adapter,), content, learner=learner)
                setattr(sys.modules[module], name, cls)
                return cls
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def _class_name(learner: str) -> str:
    words = learner.title().replace("-", "")
    return registry.entry(learner).estimator or f"{words}Classifier"


def _description(learner: str) -> str:
    entry = registry.entry(learner)
    summary = entry.summary[:1].upper() + entry.summary[1:]
    return f"{summary}.\n\n    The learner {learner!r}: {entry.reference}."


def _constructor(
    name: str, parameters: Mapping[str, Field], hints: Mapping[str, Any]
) -> Callable[..., None]:
    def __init__(self: Any, **given: Any) -> None:
        for unknown in given.keys() - parameters.keys():
            raise TypeError(
                f"{name}.__init__() got an unexpected keyword argument {unknown!r}; "
                f"{closest(unknown, parameters)}"
            )
        # Kept as they are and checked when rows come, as scikit-learn and River require.
        for key, field in parameters.items():
            setattr(self, key, given.get(key, field.default))
        self._reset()

    keywords = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for key, field in parameters.items()
    ]
    this = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = Signature([this, *keywords])  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{name}.__init__"
    return __init__
