"""What a benchmark says: a ratio of two things measured in the same run, beside its goal.

Machines are noisy and differ, so nothing here is an absolute time: contenders take turns, round
after round, and the ratio of their medians is what is kept.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from fairsaoml.core.errors import FairSAOMLError
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.threads import one_thread

__all__ = [
    "STEADY",
    "Goal",
    "Measured",
    "Part",
    "at_least",
    "at_most",
    "measured_here",
    "taking_turns",
]

STEADY = 3  # calls in a row, of which the last is a steady one


class Goal(NamedTuple):
    """A bound that a ratio is held against."""

    bound: float
    above: bool

    def holds(self, ratio: float) -> bool:
        """Whether a ratio is on the right side.

        >>> at_least(2).holds(2.5), at_most(1.1).holds(1.2)
        (True, False)
        """
        return ratio >= self.bound if self.above else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'at least' if self.above else 'at most'} {self.bound:g}"


class Measured(NamedTuple):
    """One row of docs/benchmarks.md."""

    what: str
    ratio: float
    goal: Goal
    detail: str = ""  # the two sides, with their unit

    @property
    def reached(self) -> bool:
        return self.goal.holds(self.ratio)


class Part(NamedTuple):
    """What a module has measured, or why it has not."""

    name: str
    rows: Sequence[Measured]
    seconds: float
    missing: str = ""


def at_least(bound: float) -> Goal:
    """A ratio that should be high."""
    return Goal(bound, above=True)


def at_most(bound: float) -> Goal:
    """A ratio that should be low."""
    return Goal(bound, above=False)


def taking_turns(
    contenders: Mapping[str, Callable[[], object]],
    *,
    turns: int = 20,
    warmup: int = 2,
    steady: int = 1,
) -> dict[str, float]:
    """Median seconds of each contender; they take turns, so that noise meets all alike.

    With `steady` > 1 a turn is so many calls in a row and the last of them counts: what a call
    takes after others of its own kind, not after another's that left caches and threads to it.
    """
    for call in contenders.values():
        for _ in range(warmup):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, call in contenders.items():
            for _ in range(steady):
                begun = time.perf_counter()
                call()
                taken = time.perf_counter() - begun
            seconds[name].append(taken)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def measured_here(name: str, full: bool) -> Part:
    """A module; one whose library is not installed says which."""
    use_cache()
    one_thread()
    begun = time.monotonic()
    rows: Sequence[Measured] = ()
    missing = ""
    try:
        rows = import_module(f"benchmarks.{name}").measure(full)
    except (ModuleNotFoundError, FairSAOMLError) as error:
        missing = str(error)
    return Part(name, rows, time.monotonic() - begun, missing)
