"""The doubling cover of time (Daniely et al. 2015): level k has blocks of 2^k rounds.

They start at its multiples, the first one at round 2^k. All functions but `levels_at` take plain
integers and arrays alike.
"""

from typing import Any


def start_of(round: Any, length: Any) -> Any:
    """First round of the block [i 2^k, (i+1) 2^k - 1], i >= 1, that contains `round`.

    >>> [start_of(5, length) for length in (1, 2, 4)]
    [5, 4, 4]
    """
    return round // length * length


def is_start(round: Any, length: Any) -> Any:
    """Whether a block of this length starts at this round."""
    return round % length == 0


def is_present(round: Any, length: Any) -> Any:
    """Whether a level has a block at this round: from 2^k on."""
    return round >= length


def levels_at(round: int) -> int:
    """Levels that have a block at `round`: floor(log2 t) + 1.

    >>> [levels_at(round) for round in (1, 3, 4, 256)]
    [1, 2, 3, 9]
    """
    return round.bit_length()
