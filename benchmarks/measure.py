"""What a benchmark says: a ratio of two things measured in the same run, beside its goal.

Machines are noisy and differ, so nothing here is an absolute time: contenders take turns, round
after round, and the ratio of their medians is what is kept.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["Goal", "Measured", "at_least", "at_most", "taking_turns"]


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


def at_least(bound: float) -> Goal:
    """A ratio that should be high."""
    return Goal(bound, above=True)


def at_most(bound: float) -> Goal:
    """A ratio that should be low."""
    return Goal(bound, above=False)


def taking_turns(
    contenders: Mapping[str, Callable[[], object]], *, turns: int = 20, warmup: int = 2
) -> dict[str, float]:
    """Median seconds of each contender; they take turns, so that noise meets all alike."""
    for call in contenders.values():
        for _ in range(warmup):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, call in contenders.items():
            begun = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - begun)
    return {name: statistics.median(taken) for name, taken in seconds.items()}
