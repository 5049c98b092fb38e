"""The 80 % rule: a ratio of two groups' rates counts as fair from 0.8 on. Stated here only."""

from collections.abc import Iterable, Mapping
from typing import Any

RULE = 0.8

Verdict = str  # a key of MARKS
MARKS = {"missed": "✗", "undefined": "-", "too few": "?", "met": "✓"}  # the worst first
MOST_DIGITS = 7


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several domains together: one that misses the rule is a miss.

    >>> worst(["met", "missed", "too few"]), worst(["met", "too few"])
    ('missed', 'too few')
    """
    return min(verdicts, key=list(MARKS).index)


def worst_judged(judged: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the one of which the verdict, `rule`, and then the `ratio` is worst.

    >>> worst_judged([{"rule": "met", "ratio": 0.8}, {"rule": "too few", "ratio": 0.9}])["ratio"]
    0.9
    """
    return min(judged, key=lambda one: (list(MARKS).index(one["rule"]), one["ratio"] or 0.0))


def ratio_words(value: float | None, line: float = RULE) -> str:
    """Return a ratio to two digits, or to as many as it takes not to round it up to the line.

    >>> ratio_words(0.834), ratio_words(0.7961), ratio_words(0.79996), ratio_words(0.8)
    ('0.83', '0.796', '0.79996', '0.80')
    """
    if value is None:
        return "undefined"
    digits = 2
    while value < line <= float(f"{value:.{digits}f}") and digits < MOST_DIGITS:
        digits += 1
    return f"{value:.{digits}f}"
