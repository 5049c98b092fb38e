"""Settings as data: one frozen dataclass per learner, validated, JSON in and out.

A field says with its default what values it takes and what it means, so that the check, the error
message and the listing of `fairsaoml learners` come from one line.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from typing import Any, NamedTuple, Self

from fairsaoml.core.errors import ConfigError, closest

__all__ = [
    "DrawingConfig",
    "IntervalConfig",
    "LearnerConfig",
    "Settings",
    "damping",
    "integer",
    "number",
    "one_of",
    "optional",
    "setting",
]


class Rule(NamedTuple):
    """Which values a setting takes, as a test and in words."""

    holds: Callable[[Any], bool]
    expected: str


def number(low: float = float("-inf"), high: float = float("inf"), why: str = "") -> Rule:
    """A finite number from `low` to `high`."""
    bounds = [f">= {low}"] * (low != float("-inf")) + [f"<= {high}"] * (high != float("inf"))
    return Rule(
        lambda value: _is_number(value) and low <= value <= high,
        f"a number {' and '.join(bounds)}".rstrip() + (f"; {why}" if why else ""),
    )


def integer(low: int) -> Rule:
    """A whole number, at least `low`."""
    return Rule(
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low,
        f"a whole number >= {low}",
    )


def one_of(*names: str, or_: Rule | None = None) -> Rule:
    """One of some words, or whatever `or_` takes."""
    words = ", ".join(names)
    return Rule(
        lambda value: value in names or (or_ is not None and or_.holds(value)),
        f"one of {words}" + (f", or {or_.expected}" if or_ else ""),
    )


def optional(rule: Rule) -> Rule:
    """`None`, or what the rule takes."""
    return Rule(lambda value: value is None or rule.holds(value), f"none, or {rule.expected}")


def widths() -> Rule:
    """Widths of hidden layers."""
    return Rule(
        lambda value: isinstance(value, tuple) and all(integer(1).holds(width) for width in value),
        "a list of whole numbers >= 1, such as [40, 40]",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def setting(default: Any, rule: Rule, meaning: str) -> Any:
    """A dataclass field that knows its rule and its meaning."""
    return field(default=default, metadata={"rule": rule, "meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of everything a person can set: checked when made, exact when written and read again."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, list):
                value = tuple(value)
            if isinstance(item.default, float) and type(value) is int:  # True is no number
                value = float(value)
            rule = item.metadata["rule"]
            if value is None and not rule.holds(None):
                value = "none"  # typed as a word, read as nothing
            object.__setattr__(self, item.name, value)
            if not rule.holds(value):
                raise ConfigError(f"{item.name} must be {rule.expected}; got {value!r}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Settings from plain data; an unknown key is an error that says which one was meant.

        >>> LearnerConfig.from_dict({"tolerence": 0.1})
        Traceback (most recent call last):
        fairsaoml.core.errors.ConfigError: unknown setting 'tolerence'; did you mean 'tolerance'?
        """
        known = [item.name for item in fields(cls)]
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


def damping() -> Any:
    """The setting `dual_damping` of those who move a dual by steps."""
    return setting(
        0.001, number(0), "delta: keeps the dual from growing; too much switches fairness off"
    )


DECISIONS = ("accuracy", "balanced")
SCORES = ("probability", "decision", "logit")
NOTIONS = ("none", "dp", "eop", "eo", "dp+eo")


@dataclass(frozen=True, kw_only=True)
class LearnerConfig(Settings):
    """What every learner shares: the problem it solves (D26)."""

    model: str = setting("mlp", one_of("mlp", "logistic"), "the scoring function")
    hidden: tuple[int, ...] = setting((40, 40), widths(), "widths of the mlp's hidden layers")
    constraints: str = setting(
        "dp", one_of(*NOTIONS), "fairness asked for: demographic parity, equal opportunity, odds"
    )
    tolerance: float = setting(
        0.02, number(0, why="use 0 for exact parity"), "gap between groups that is fair enough"
    )
    score: str = setting("probability", one_of(*SCORES), "what the smooth gap is taken of")
    decision: str | float = setting(
        "accuracy",
        one_of(*DECISIONS, or_=number(0.001, 0.999)),
        "when a row is positive: calibrated probability over 0.5, over the base rate, or a number",
    )
    prior_discount: float = setting(
        0.7, number(0, 1), "memory of the class prior from task to task"
    )
    radius: float | None = setting(
        None, optional(number(1e-6)), "l2 ball the parameters are projected onto"
    )


@dataclass(frozen=True, kw_only=True)
class DrawingConfig(LearnerConfig):
    """What learners that take steps on draws of rows share."""

    meta_iterations: int = setting(20, integer(1), "gradient samples taken from each round")
    support: int = setting(100, integer(1), "rows per class of a support draw")
    capacity: int = setting(1000, integer(2), "rows per class an interval's sample holds")


@dataclass(frozen=True, kw_only=True)
class IntervalConfig(LearnerConfig):
    """What learners with experts on geometric intervals share."""

    base: int = setting(2, integer(2), "interval lengths are its powers")
    horizon: int | None = setting(None, optional(integer(1)), "number of rounds, if it is known")
