"""What a learner's raised flags mean, in words, and what a run has left out."""

import shlex
from collections.abc import Mapping
from typing import Any

MOST_GROUPS = 5  # that are named

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
    >>> why = {"rows": {"without a label": 2400}, "columns": {"as asked": 1, "free text": 2}}
    >>> left_out_words({"left_out": {"rows": 2400, "columns": 3, "reasons": why}, "rounds": 9})
    ... # doctest: +NORMALIZE_WHITESPACE
    ['2,400 rows without a label were left out.',
     '3 columns were left out: as asked (1); free text (2).']
    """
    counts = summary.get("left_out") or {}  # summaries of earlier versions have none
    reasons = counts.get("reasons") or {}  # those that are known
    rows, columns = reasons.get("rows") or {}, reasons.get("columns") or {}
    said = []
    if number := counts.get("rounds"):
        said.append(f"Nothing could be learned in {number} of {summary['rounds']} rounds.")
    if number := counts.get("updates"):
        said.append(f"{_were(number, 'update')} refused, as not finite.")
    unexplained = counts.get("rows", 0) - sum(rows.values())
    for why, number in [*((f" {why}", number) for why, number in rows.items()), ("", unexplained)]:
        if number > 0:
            said.append(f"{_were(number, 'row', why)} left out.")
    if number := counts.get("columns"):
        each = [why if len(columns) == 1 else f"{why} ({n})" for why, n in columns.items()]
        why = f": {'; '.join(each)}" if each else ""
        said.append(f"{_were(number, 'column')} left out{why}.")
    return said


def new_groups_words(verdict: Mapping[str, Any]) -> list[str]:
    """Which groups came after the first task, and what to do, by attribute.

    >>> came = {"new": {"rows": 1200, "since": 15}}
    >>> new_groups_words({"attributes": {"origin": {"new_groups": came}, "sex": {}}})
    ... # doctest: +NORMALIZE_WHITESPACE
    ["Of origin the first task did not have 'new' (1,200 rows since round 15): compared with
     nobody. To compare it from then on, run again with --known-groups origin=new."]
    """
    said = []
    for attribute, entry in verdict.get("attributes", {}).items():
        came = entry.get("new_groups") or {}  # summaries of earlier versions have none
        if not came:
            continue
        named = [*came][:MOST_GROUPS]
        listed = [
            f"{value!r} ({count(came[value]['rows'], 'row')} since round {came[value]['since']})"
            for value in named
        ]
        more = f" and {len(came) - MOST_GROUPS} more" if len(came) > MOST_GROUPS else ""
        crossed = "*" in attribute or any("," in value for value in named)
        option = "COLUMN=VALUE" if crossed else shlex.quote(f"{attribute}={','.join(named)}")
        said.append(
            f"Of {attribute} the first task did not have {', '.join(listed)}{more}: compared with "
            f"nobody. To compare {'it' if len(came) == 1 else 'them'} from then on, run again with "
            f"--known-groups {option}."
        )
    return said


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "seed"), count(1200, "round")
    ('1 seed', '1,200 rounds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _were(number: int, what: str, which: str = "") -> str:
    return count(number, what) + which + (" was" if number == 1 else " were")
