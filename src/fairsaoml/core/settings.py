"""Settings as data: a frozen dataclass, validated, JSON in and out.

A field says with its default what values it takes and what it means, so that the check, the error
message and the listing of `fairsaoml learners` come from one line.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self

from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.core.registry import Registry

__all__ = [
    "Registered",
    "Rule",
    "Settings",
    "integer",
    "number",
    "one_of",
    "optional",
    "setting",
    "widths",
    "yes_or_no",
]


LARGEST = 1e6  # beyond this a setting is a slip of the keyboard
SHOWN = 80  # letters of a wrong value
DEEPEST, WIDEST = 16, 4096  # hidden layers, and their units


class Rule(NamedTuple):
    """Which values a setting takes, as a test and in words."""

    holds: Callable[[Any], bool]
    expected: str


class Registered(NamedTuple):
    """A rule: a registered name, or several joined by `joined`, in any order, or one of `also`.

    Of `kind`, if not any will do. No other package is imported to know a name; what it is of is
    only known when it is.
    """

    registry: Registry
    joined: str = ""
    also: tuple[str, ...] = ()
    kind: type = object

    def holds(self, value: Any) -> bool:
        """Whether a value is such a name."""
        if not isinstance(value, str) or value in self.also:
            return isinstance(value, str)
        names = value.split(self.joined) if self.joined else [value]
        registered = set(names) <= set(self.registry.names()) and len(set(names)) == len(names)
        return registered and all(map(self._fits, names))

    @property
    def expected(self) -> str:
        """The names there are, in words."""
        several = f", or several joined by {self.joined}" if self.joined else ""
        names = self.registry.names()
        fit = [name for name in names if self._fits(name)]
        others = ", ".join(name for name in names if name not in fit)
        elsewhere = f"; {others}: only with other learners" if others else ""
        return f"one of {', '.join([*self.also, *fit])}{several}{elsewhere}"

    def _fits(self, name: str) -> bool:
        try:
            return self.kind is object or isinstance(self.registry.get(name), self.kind)
        except ConfigError:
            return True  # its package cannot be imported: whoever uses it is told


def number(low: float = -LARGEST, high: float = LARGEST, why: str = "") -> Rule:
    """A number from `low` to `high`."""
    return Rule(
        lambda value: _is_number(value) and low <= value <= high,
        f"a number >= {low:g} and <= {high:g}" + (f"; {why}" if why else ""),
    )


def integer(low: int, high: int = int(LARGEST)) -> Rule:
    """A whole number from `low` to `high`."""
    return Rule(
        lambda value: type(value) is int and low <= value <= high,
        f"a whole number >= {low} and <= {high}",
    )


def yes_or_no() -> Rule:
    """True or false."""
    return Rule(lambda value: isinstance(value, bool), "true or false")


def one_of(*names: str, or_: Rule | None = None) -> Rule:
    """One of some words, or whatever `or_` takes."""
    words = ", ".join(names)
    return Rule(
        lambda value: (
            (isinstance(value, str) and value in names) or (or_ is not None and or_.holds(value))
        ),
        f"one of {words}" + (f", or {or_.expected}" if or_ else ""),
    )


def optional(rule: Rule) -> Rule:
    """`None`, or what the rule takes."""
    return Rule(lambda value: value is None or rule.holds(value), f"none, or {rule.expected}")


def widths() -> Rule:
    """Widths of hidden layers."""
    width = integer(1, WIDEST)
    return Rule(
        lambda value: (
            isinstance(value, tuple) and len(value) <= DEEPEST and all(map(width.holds, value))
        ),
        f"a list of at most {DEEPEST} whole numbers >= 1 and <= {WIDEST}, such as [40, 40]",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def setting(default: Any, rule: "Rule | Registered", meaning: str) -> Any:
    """A dataclass field that knows its rule and its meaning."""
    return field(default=default, metadata={"rule": rule, "meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of everything a person can set: checked when made, exact when written and read again."""

    # Settings of older versions that did nothing: read and left out.
    retired: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, list):
                value = tuple(value)
            if isinstance(item.default, float) and type(value) is int and _is_number(value):
                value = float(value)
            rule = item.metadata["rule"]
            if value is None and not rule.holds(None):
                value = "none"  # typed as a word, read as nothing
            object.__setattr__(self, item.name, value)
            if not rule.holds(value):
                raise ConfigError(f"{item.name} must be {rule.expected}; got {repr(value)[:SHOWN]}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, saved: bool = False) -> Self:
        """Settings from plain data; an unknown key is an error that says which one was meant.

        Those that were `saved` may be of an older version: what is retired is left out.

        >>> @dataclass(frozen=True, kw_only=True)
        ... class Speed(Settings):
        ...     step: float = setting(0.1, number(0), "how far")
        >>> Speed.from_dict({"stepp": 0.1})
        Traceback (most recent call last):
        fairsaoml.core.errors.ConfigError: unknown setting 'stepp'; did you mean 'step'?
        """
        known = [item.name for item in fields(cls)]
        if saved:
            values = {name: value for name, value in values.items() if name not in cls.retired}
        for name in values:
            if name not in known:
                raise ConfigError(f"unknown setting {name!r}; {closest(name, known)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` turns into an equal object."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
