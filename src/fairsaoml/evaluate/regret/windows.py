"""Windows of rounds: which lengths are looked at, and which one has the largest sum."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Worst", "doubling", "worst"]


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
