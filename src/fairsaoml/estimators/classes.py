"""Estimator classes made from the registry: one for each learner, one parameter for each setting.

scikit-learn and River read an estimator's parameters off the signature of its constructor: to
clone it, to print it, to search over it. So every setting of a learner's config is a keyword
parameter of its estimator, with the config's type and default, and its meaning is in the docstring.
"""

import sys
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import Field, fields
from inspect import Parameter, Signature
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

import numpy as np

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.core.settings import Rule, Settings
from fairsaoml.learners import registry

DEFAULT_CLASS = "AdaptiveFairClassifier"  # of the registry's default learner, whichever that is
# A setting by another name, where an estimator has a method of its own: setting -> parameter.
RENAMED = {"score": "gap_score"}
ANYTHING = Rule(lambda value: True, "anything")


class Parameters:
    """An object whose constructor parameters are an adapter's settings and those of a learner.

    A subclass names its learner, `class MyClassifier(Adapter, learner="my-learner")`, and gets its
    constructor, and its docstring unless it has one, from the registry.
    """

    _learner: ClassVar[str]
    _adapter_settings: ClassVar[type[Settings]]  # never made; its fields are the parameters
    _parameter_fields: ClassVar[dict[str, Field]]  # by parameter

    def __init_subclass__(cls, *, learner: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if learner is None:
            return
        entry = registry.entry(learner)
        cls._learner = learner
        hints = {**get_type_hints(entry.config), **get_type_hints(cls._adapter_settings)}
        cls._parameter_fields = {
            RENAMED.get(field.name, field.name): field
            for field in (*fields(cls._adapter_settings), *fields(entry.config))
        }
        cls.__init__ = _constructor(cls.__qualname__, cls._parameter_fields, hints)  # type: ignore[method-assign]
        text = cls.__dict__.get("__doc__") or _description(learner)
        cls.__doc__ = "\n".join([text.rstrip(), *_documented(cls._parameter_fields)])

    def _reset(self) -> None:
        """Set what an estimator needs before its first row."""

    def _config(self) -> LearnerConfig:
        """Return the learner's settings, checked."""
        config = registry.entry(self._learner).config
        names = {field.name: RENAMED.get(field.name, field.name) for field in fields(config)}
        return config.from_dict({name: plain(getattr(self, key)) for name, key in names.items()})

    def _checked(self, name: str) -> Any:
        """Return a parameter of the adapter, or raise ConfigError where its rule does not hold."""
        value, rule = plain(getattr(self, name)), self._parameter_fields[name].metadata["rule"]
        if not rule.holds(value):
            raise ConfigError(f"{name} must be {rule.expected}; got {value!r}")
        return value

    def _parameters(self) -> dict[str, Any]:
        """Return all constructor parameters as they were given."""
        return {name: plain(getattr(self, name)) for name in self._parameter_fields}

    @classmethod
    def _from_parameters(cls, saved: Mapping[str, Any]) -> Self:
        """Return an estimator with the parameters of a file, in which a tuple is a list."""
        defaults = {name: field.default for name, field in cls._parameter_fields.items()}
        return cls(
            **{
                name: tuple(value) if isinstance(defaults[name], tuple) else value
                for name, value in saved.items()
            }
        )


Adapted = TypeVar("Adapted", bound=Parameters)


def make_classes(adapter: type[Adapted], module: str) -> dict[str, type[Adapted]]:
    """Return a class for each learner of this package, and one for the default learner.

    Parameters
    ----------
    adapter
        The base class, which does everything but name a learner.
    module
        The name of the module that will hold the classes.

    Returns
    -------
    The classes by name, which is `Entry.estimator`.
    """
    learners = {_class_name(learner): learner for learner in registry.BUILTIN}
    learners[DEFAULT_CLASS] = registry.DEFAULT
    return {name: _make(adapter, module, name, learner) for name, learner in learners.items()}


def plugin_class(adapter: type[Adapted], module: str, name: str) -> type[Adapted]:
    """Return the class of that name for a learner that another package registers, made once.

    Without an `Entry.estimator`, the learner `my-learner` has the class `MyLearnerClassifier`.
    Raises AttributeError where no learner has a class of that name.
    """
    plugins = [] if name.startswith("_") else registry.LEARNERS.names()
    for learner in plugins:
        with suppress(ConfigError):  # a package that cannot be imported has no class
            if _class_name(learner) == name:
                cls = _make(adapter, module, name, learner)
                setattr(sys.modules[module], name, cls)
                return cls
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def _class_name(learner: str) -> str:
    words = learner.title().replace("-", "")
    return registry.entry(learner).estimator or f"{words}Classifier"


def _make(adapter: type[Adapted], module: str, name: str, learner: str) -> type[Adapted]:
    default = "The default learner. " if name == DEFAULT_CLASS else ""
    content = {"__module__": module, "__doc__": default + _description(learner)}
    return types.new_class(
        name, (adapter,), {"learner": learner}, lambda namespace: namespace.update(content)
    )


def _constructor(
    name: str, parameters: Mapping[str, Field], hints: Mapping[str, Any]
) -> Callable[..., None]:
    def __init__(self: Any, **given: Any) -> None:
        unknown = next((key for key in given if key not in parameters), None)
        if unknown is not None:
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


def _description(learner: str) -> str:
    entry = registry.entry(learner)
    summary = entry.summary[:1].upper() + entry.summary[1:]
    return f"{summary}.\n\n    The learner {learner!r}: {entry.reference}."


def _documented(parameters: Mapping[str, Field]) -> list[str]:
    """Return the section `Parameters` of a docstring."""
    lines = ["", "    Parameters", "    ----------"]
    for key, field in parameters.items():
        lines += [f"    {key} : default {field.default!r}", f"        {field.metadata['meaning']}"]
    return [*lines, "    "]


def plain(value: Any) -> Any:
    """Return a NumPy number, as a search over settings gives it, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
