"""Constructor parameters from a learner's settings: one list, kept in one place.

scikit-learn and River read an estimator's parameters off the signature of its constructor: to
clone it, to print it, to search over it. So every setting of a learner's config is a keyword
parameter of its estimator, with the config's default, and its meaning stands in the docstring.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.learners import registry

__all__ = ["Own", "Parameters", "plain"]

# A setting by another name, where an estimator has a method of its own: setting -> parameter.
RENAMED = {"score": "gap_score"}


class Own(NamedTuple):
    """A parameter of the adapter itself."""

    default: Any
    meaning: str


class Parameters:
    """Base of the estimators: `class MyClassifier(Adapter, learner="my-learner")`.

    A class without a docstring is described by the registry.
    """

    _learner: ClassVar[str]
    _own: ClassVar[dict[str, Own]] = {}
    _names: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, *, learner: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if learner is None:
            return
        cls._learner, entry = learner, registry.entry(learner)
        settings = {
            RENAMED.get(item.name, item.name): Own(item.default, item.metadata["meaning"])
            for item in fields(entry.config)
        }
        known = {**cls._own, **settings}
        cls._names = tuple(known)
        cls.__init__ = _constructor(cls.__qualname__, known)  # type: ignore[method-assign]
        summary = entry.summary[:1].upper() + entry.summary[1:]
        about = cls.__dict__.get("__doc__") or f"{summary}.\n\n    {learner!r}: {entry.reference}."
        cls.__doc__ = "\n".join([about.rstrip(), *_documented(known)])

    def _start(self) -> None:
        """What an estimator needs before its first row."""

    def _config(self, **changes: Any) -> LearnerConfig:
        """The learner's settings, checked."""
        config = registry.entry(self._learner).config
        names = [item.name for item in fields(config)]
        given = {name: plain(getattr(self, RENAMED.get(name, name))) for name in names}
        return config.from_dict({**given, **changes})

    def _parameters(self) -> dict[str, Any]:
        """All constructor parameters as they were given."""
        return {name: plain(getattr(self, name)) for name in self._names}

    @classmethod
    def _given(cls, saved: Mapping[str, Any]) -> Self:
        """An estimator with the parameters of a file, in which a tuple is a list."""
        defaults = signature(cls).parameters
        return cls(
            **{
                name: tuple(value) if isinstance(defaults[name].default, tuple) else value
                for name, value in saved.items()
            }
        )

    def _whole(self, name: str, least: int = 1) -> int:
        """A parameter of the adapter that is a whole number."""
        value = plain(getattr(self, name))
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{name} must be a whole number >= {least}; got {value!r}")
        return value


def _constructor(name: str, known: dict[str, Own]) -> Callable[..., None]:
    def __init__(self: Any, **given: Any) -> None:
        strange = next((key for key in given if key not in known), None)
        if strange is not None:
            raise TypeError(
                f"{name}.__init__() got an unexpected keyword argument {strange!r}; "
                f"{closest(strange, known)}"
            )
        # Kept as they are and checked when rows come: so scikit-learn and River ask of everyone.
        for key, own in known.items():
            setattr(self, key, given.get(key, own.default))
        self._start()

    keywords = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=own.default) for key, own in known.items()
    ]
    this = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = Signature([this, *keywords])  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{name}.__init__"
    return __init__


def _documented(known: dict[str, Own]) -> list[str]:
    """The section `Parameters` of a docstring."""
    lines = ["", "    Parameters", "    ----------"]
    for key, own in known.items():
        lines += [f"    {key} : default {own.default!r}", f"        {own.meaning}"]
    return [*lines, "    "]


def plain(value: Any) -> Any:
    """A number of NumPy, as searches hand them out, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
