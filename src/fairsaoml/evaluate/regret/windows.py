"""Sums over windows of rounds, as they come: what a live run can say of its own violation.

The constraint of Eq. 4 is max over windows [s, s + tau - 1] of sum_t g_i,t. Told one round at a
time, it costs O(1) for every length tau that is followed, and the lengths are powers of two: all
of them together cost O(log T) a round.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Worst", "WorstWindows", "doubling", "worst"]

LONGEST = 1024  # rounds; the memory of a live run is bounded by it


class Worst(NamedTuple):
    """The window of a length with the largest sum; rounds count from 1, both ends inside."""

    total: float
    first: int
    last: int


def doubling(most: int) -> list[int]:
    """1, 2, 4, ... up to `most`.

    >>> doubling(10)
    [1, 2, 4, 8]
    """
    return [1 << power for power in range(most.bit_length())] if most > 0 else []


class WorstWindows:
    """The largest sum over windows of 1, 2, 4, ... rounds so far, one per constraint.

    >>> seen = WorstWindows()
    >>> for violation in (0.1, -0.3, 0.2, 0.3):
    ...     seen.add([violation])
    >>> {length: windows[0].total for length, windows in seen.worst().items()}
    {1: 0.3, 2: 0.5, 4: 0.3}
    >>> seen.worst()[2][0].first
    3
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._lengths = doubling(longest)
        # Sums of the last rounds' values from the start on: a window's sum is a difference of two.
        self._sums: deque[tuple[float, ...]] = deque(maxlen=longest + 1)
        self._rounds = 0
        self._worst: dict[int, list[Worst]] = {}

    def add(self, violation: Sequence[float]) -> None:
        """One more round's violations, one per constraint."""
        if not self._sums:
            self._sums.append((0.0,) * len(violation))
        self._rounds += 1
        now = tuple(s + v for s, v in zip(self._sums[-1], violation, strict=True))
        self._sums.append(now)
        for length in self._lengths:
            if length > self._rounds:
                break
            before = self._sums[-1 - length]
            here = [
                Worst(end - start, self._rounds - length + 1, self._rounds)
                for end, start in zip(now, before, strict=True)
            ]
            old = self._worst.get(length, here)
            self._worst[length] = [
                max(a, b, key=lambda w: w.total) for a, b in zip(old, here, strict=True)
            ]

    def worst(self) -> dict[int, list[Worst]]:
        """By length: the worst window of each constraint, the first one if several are."""
        return {
            length: [w._replace(total=round(w.total, 12)) for w in windows]
            for length, windows in self._worst.items()
        }


def worst(values: Sequence[float], length: int) -> Worst:
    """The largest sum over the windows of one length of a whole series.

    >>> worst([0.1, -0.3, 0.2, 0.3], 2)
    Worst(total=0.5, first=3, last=4)
    """
    total = sum(values[:length])
    largest = Worst(total, 1, length)
    for last in range(length, len(values)):
        total += values[last] - values[last - length]
        if total > largest.total:
            largest = Worst(total, last - length + 2, last + 1)
    return largest
