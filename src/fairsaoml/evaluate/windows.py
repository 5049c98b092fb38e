"""Ten rounds at a time: short enough that a gap seldom changes sign, long enough to say something.

Pooled over a whole stream, gaps in opposite directions cancel. So figures are taken of windows of
ten rounds of one domain, and then averaged.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

WINDOW = 10  # rounds

Line = Mapping[str, Any]  # one line of rounds.jsonl: a round of a seed


def windows_of(lines: Iterable[Line], size: int = WINDOW) -> list[list[Line]]:
    """Return the lines of each window, in order of time.

    A domain is cut from its end, so that its last window is whole and its first may be shorter.

    >>> lines = [{"round": r, "seed": 0, "domain": "a" if r <= 3 else "b"} for r in range(1, 16)]
    >>> [(w[0]["round"], w[-1]["round"]) for w in windows_of(lines)]
    [(1, 3), (4, 5), (6, 15)]
    """
    by_round: dict[int, list[Line]] = {}
    for line in lines:
        by_round.setdefault(line["round"], []).append(line)
    rounds = [by_round[number] for number in sorted(by_round)]
    windows = []
    for _, domain in groupby(rounds, key=lambda of_seeds: of_seeds[0]["domain"]):
        own = list(domain)
        for end in range(len(own) % size or size, len(own) + 1, size):
            windows.append([line for one in own[max(end - size, 0) : end] for line in one])
    return windows
