"""The geometric cover of time: which intervals exist, which start now. Pure integers.

Level k of the adaptive geometric cover (AGC, Eq. 5) cuts time into blocks of length base^k,
starting at round 1. Levels are keyed by their number, never by their length. The `is_...` functions
take plain integers and arrays alike.
"""

from typing import Any

LARGEST_ROUND = 2**31 - 1  # rounds are 32-bit integers inside compiled programs


def level_count(horizon: int, base: int) -> int:
    """Number of levels for a known horizon: floor(log_base T), at least one (Eq. 5).

    Integer arithmetic, because log(243) / log(3) is 4.999... in floating point.

    >>> [level_count(18, 2), level_count(96, 2), level_count(90, 3), level_count(243, 3)]
    [4, 6, 4, 5]
    >>> level_count(1, 2)
    1
    """
    levels = 0
    while base ** (levels + 1) <= horizon:
        levels += 1
    return max(levels, 1)


def interval(round: int, level: int, base: int, horizon: int | None = None) -> tuple[int, int]:
    """First and last round of the block of `level` that contains `round` (Eq. 5).

    >>> interval(5, 2, base=2), interval(17, 3, base=2, horizon=18)
    ((5, 8), (17, 18))
    """
    length = base**level
    first = (round - 1) // length * length + 1
    last = first + length - 1
    return first, last if horizon is None else min(last, horizon)


def cover(horizon: int, base: int) -> list[list[tuple[int, int]]]:
    """All intervals up to the horizon, level by level.

    >>> cover(5, 2)
    [[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)], [(1, 2), (3, 4), (5, 5)]]
    """
    return [
        [interval(first, level, base, horizon) for first in range(1, horizon + 1, base**level)]
        for level in range(level_count(horizon, base))
    ]


def lengths(levels: int, base: int) -> list[int]:
    """Length of a block, level by level.

    >>> lengths(4, base=2)
    [1, 2, 4, 8]
    """
    return [min(base**level, LARGEST_ROUND) for level in range(levels)]


def is_start(round: Any, length: Any) -> Any:
    """Whether a block of this length starts at this round (Eq. 6)."""
    return (round - 1) % length == 0


def starts(round: int, base: int, levels: int) -> list[int]:
    """The levels whose interval starts at `round`: the target set C_t, always a prefix (Eq. 6).

    >>> starts(round=5, base=2, levels=4)
    [0, 1, 2]
    """
    return [level for level, size in enumerate(lengths(levels, base)) if is_start(round, size)]


def is_present(round: Any, length: Any) -> Any:
    """Whether a level takes part at this round when the horizon is unknown (D16).

    Level 0 is there from round 1; level k joins at round base^k + 1, when its block starts.

    >>> [is_present(t, 4) for t in (1, 4, 5, 6)], is_present(1, 1)
    ([False, False, True, True], True)
    """
    return (round > length) | (length == 1)


def levels_needed(round: int, base: int) -> int:
    """Levels present at `round` when storage is no limit.

    >>> levels_needed(256, base=2), levels_needed(257, base=2)
    (8, 9)
    """
    levels = 1
    while round > base**levels:
        levels += 1
    return levels
