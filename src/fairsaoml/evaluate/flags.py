"""What a learner's raised flags mean, in words, and what a run has left out."""

from collections.abc import Mapping
from typing import Any

__all__ = ["WARNINGS", "left_out_words"]

WARNINGS = {  # they stand among a round's warnings
    "empty": "the task is empty: nothing learned, figures are null",
    "one_class": "the task has one class only",
    "one_group": "the task lacks a group: its constraint was switched off",
    "dual_pinned": "the dual has been 0 under a positive violation for many rounds: "
    "lower dual_damping or raise the dual steps",
    "excluded": "the notions asked for exclude each other here: the first is kept, the others are "
    "shown; look at the base rates by group",
    "small_group": "a group has too few rows to be kept at the ratio asked for: it is shown, "
    "not judged",
    "not_finite": "the update was not finite and was not made; scale the features or step smaller",
}


def left_out_words(summary: Mapping[str, Any]) -> list[str]:
    """What a run has not learned from, in words.

    >>> left_out_words({"left_out": {"rounds": 1, "updates": 0, "rows": 20}, "rounds": 9})
    ['Nothing could be learned in 1 of 9 rounds.', '20 rows were left out.']
    """
    counts = summary.get("left_out") or {}  # summaries of earlier versions have none
    said = []
    if number := counts.get("rounds"):
        said.append(f"Nothing could be learned in {number} of {summary['rounds']} rounds.")
    if number := counts.get("updates"):
        said.append(f"{_were(number, 'update')} refused, as not finite.")
    for what in ("row", "column"):
        if number := counts.get(f"{what}s"):
            said.append(f"{_were(number, what)} left out.")
    return said


def _were(number: int, what: str) -> str:
    return f"{number} {what} was" if number == 1 else f"{number} {what}s were"
