"""AGC intervals and target sets, written as the sets of Eq. 5 and Eq. 6.

A horizon of None is D16's endless stream: level k >= 1 joins when its first block is over. A
horizon that proves too short has said how many levels there are; their blocks go on past it.
"""

__all__ = ["Interval", "agc", "awake_levels", "blocks", "level_count", "present_levels", "targets"]

Interval = tuple[int, int]  # first and last round, both inside


def level_count(horizon: int, base: int) -> int:
    """floor(log_base T), counted on the fingers (D15), and at least 1.

    >>> level_count(18, 2), level_count(96, 2), level_count(90, 3), level_count(243, 3)
    (4, 6, 4, 5)
    """
    count = 0
    while base ** (count + 1) <= horizon:
        count += 1
    return max(1, count)


def blocks(level: int, horizon: int, base: int) -> set[Interval]:
    """I_k = { [(i-1) base^k + 1, min(T, i base^k)] : i = 1, 2, ... }, inside [1, T].

    >>> sorted(blocks(3, 18, 2))
    [(1, 8), (9, 16), (17, 18)]
    """
    length = base**level
    numbers = range(1, horizon + 1)  # more than enough: the surplus starts after T
    covers = {((i - 1) * length + 1, min(horizon, i * length)) for i in numbers}
    return {(first, last) for first, last in covers if first <= horizon}


def agc(horizon: int, base: int) -> dict[int, set[Interval]]:
    """I, the union of I_k over k = 0 .. floor(log_base T) - 1 (Eq. 5), by level."""
    return {k: blocks(k, horizon, base) for k in range(level_count(horizon, base))}


def targets(intervals: dict[int, set[Interval]], t: int) -> dict[int, set[Interval]]:
    """C_t = { I : t in I, t-1 not in I } (Eq. 6), by level.

    >>> targets(agc(18, 2), 5)
    {0: {(5, 5)}, 1: {(5, 6)}, 2: {(5, 8)}}
    """
    chosen = {
        level: {i for i in family if t in rounds(i) and t - 1 not in rounds(i)}
        for level, family in intervals.items()
    }
    return {level: family for level, family in chosen.items() if family}


def rounds(interval: Interval) -> range:
    first, last = interval
    return range(first, last + 1)


def present_levels(t: int, horizon: int | None, base: int) -> list[int]:
    """The levels that have an expert in round t; round 0 is the state before anything came.

    >>> [present_levels(t, None, 2) for t in (0, 1, 2, 3, 4, 5)]
    [[0], [0], [0], [0, 1], [0, 1], [0, 1, 2]]
    """
    if horizon is not None:
        return list(range(level_count(horizon, base)))
    # base^k <= t for every k that has come, so no more than t of them
    return [0] + [k for k in range(1, t + 1) if t >= base**k + 1]


def awake_levels(t: int, horizon: int | None, base: int) -> list[int]:
    """The present levels with an interval in C_t.

    >>> [awake_levels(t, None, 2) for t in (1, 2, 3, 4, 5)]
    [[0], [0], [0, 1], [0], [0, 1, 2]]
    >>> [awake_levels(t, 4, 2) for t in (3, 4, 5, 6)]
    [[0, 1], [0], [0, 1], [0]]
    """
    present = present_levels(t, horizon, base)
    end = t if horizon is None else max(t, horizon)  # what starts at t knows no later round
    return sorted(targets({k: blocks(k, end, base) for k in present}, t))
