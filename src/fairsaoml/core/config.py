"""What learners' settings have in common; each learner adds its own in its own file."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fairsaoml.core.problem import ProblemConfig, notions, scored
from fairsaoml.core.settings import integer, number, one_of, optional, setting, yes_or_no

__all__ = [
    "DrawingConfig",
    "IntervalConfig",
    "LearnerConfig",
    "damping",
    "integer",
    "no_notions",
    "notions",
    "number",
    "one_of",
    "optional",
    "scored",
    "setting",
    "yes_or_no",
]


@dataclass(frozen=True, kw_only=True)
class LearnerConfig(ProblemConfig):
    """The problem that is posed, and what every learner can be told besides (D26)."""

    gap: ClassVar[str] = "deployed"
    prior_discount: float = setting(
        0.7, number(0, 1), "memory of the class prior from task to task"
    )
    radius: float | None = setting(
        None, optional(number(1e-6)), "l2 ball the parameters are projected onto"
    )


@dataclass(frozen=True, kw_only=True)
class DrawingConfig(LearnerConfig):
    """Settings of learners that take steps on draws of rows."""

    gap: str = setting(  # type: ignore[misc]
        "deployed",
        one_of("deployed", "drawn"),
        "smooth gaps of decisions as deployed, or of the model's output on rows as drawn (Eq. 1)",
    )
    meta_iterations: int = setting(20, integer(1), "gradient samples taken from each round")
    support: int = setting(100, integer(1), "rows per class of a support draw")
    capacity: int = setting(1000, integer(2), "rows per class an interval's sample holds")


@dataclass(frozen=True, kw_only=True)
class IntervalConfig(LearnerConfig):
    """Settings of learners with experts on geometric intervals."""

    base: int = setting(2, integer(2), "interval lengths are its powers")
    horizon: int | None = setting(
        None, optional(integer(1, 10**9)), "number of rounds, if it is known"
    )


def damping() -> Any:
    """The setting `dual_damping` of learners that move a dual by steps."""
    return setting(
        0.001, number(0), "delta: keeps the dual from growing; too much switches fairness off"
    )


def no_notions() -> Any:
    """The setting `constraints` of learners without fairness."""
    return setting("none", one_of("none"), "it knows no fairness")
