"""Metrics that are shares of a group's rows: what each counts, of what, and by which conventions.

The conventions are Fairlearn's and scikit-learn's: a rate of no rows is 0, of a group without rows
NaN. `lacks` says where one of them was needed.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fairsaoml.evaluate.confidence import Share

__all__ = [
    "APART",
    "METRICS",
    "ODDS",
    "RATES",
    "UNSEEN",
    "Counts",
    "GroupCounts",
    "Rate",
    "incomparable",
    "lacks",
    "metric_of",
    "pooled",
    "summed",
]

UNSEEN = "not known"  # where rows of no group, or of one never declared, are counted
APART = (UNSEEN, "unseen")  # the same in journals of older runs


class Counts(NamedTuple):
    """Six counts of a group's rows, from which every metric here is computed."""

    rows: int = 0
    predicted_positive: int = 0
    y1_rows: int = 0
    true_positive: int = 0
    y0_rows: int = 0
    false_positive: int = 0


GroupCounts = Mapping[str, Mapping[str, Counts]]  # attribute -> level -> counts


def summed(counts: Iterable[Counts]) -> Counts:
    """The sum of several groups' counts."""
    return Counts(*map(sum, zip(Counts(), *counts, strict=True)))


def pooled(lines: Iterable[Mapping[str, Any]], only: str | None = None) -> GroupCounts:
    """The counts of lines of a journal added up, level by level; `only` of one attribute.

    >>> line = {"counts": {"sex": {"f": Counts(rows=3)._asdict()}}}
    >>> pooled([line, line])["sex"]["f"].rows
    6
    """
    found: dict[str, dict[str, list[Counts]]] = {}
    for line in lines:
        for attribute, levels in line["counts"].items():
            if only in (None, attribute):
                by_level = found.setdefault(attribute, {})
                for level, six in (levels or {}).items():
                    by_level.setdefault(level, []).append(Counts(**six))
    return {
        attribute: {level: summed(counts) for level, counts in by_level.items()}
        for attribute, by_level in found.items()
    }


ROWS = {  # one of the rows that a count counts, in words
    "rows": "row",
    "y1_rows": "row with y = 1",
    "y0_rows": "row with y = 0",
    "predicted_positive": "row decided positive",
}


class Rate(NamedTuple):
    """A metric that is a share: so many hits of so many rows."""

    part: Callable[[Counts], int]
    whole: str  # the count that it is a share of
    hits: str  # what the part counts, in words

    def share(self, counts: Counts) -> Share:
        """The share of a group's rows."""
        return Share(self.part(counts), getattr(counts, self.whole))

    @property
    def row(self) -> str:
        """One of the whole, in words."""
        return ROWS[self.whole]


RATES = {
    "accuracy": Rate(
        lambda c: c.true_positive + c.y0_rows - c.false_positive, "rows", "right decisions"
    ),
    "selection_rate": Rate(lambda c: c.predicted_positive, "rows", "positives"),
    "true_positive_rate": Rate(lambda c: c.true_positive, "y1_rows", "positives"),
    "false_positive_rate": Rate(lambda c: c.false_positive, "y0_rows", "positives"),
    "true_negative_rate": Rate(lambda c: c.y0_rows - c.false_positive, "y0_rows", "negatives"),
    "false_negative_rate": Rate(lambda c: c.y1_rows - c.true_positive, "y1_rows", "negatives"),
    "precision": Rate(lambda c: c.true_positive, "predicted_positive", "right positives"),
}
RECALLS = ("true_positive_rate", "true_negative_rate")  # balanced accuracy is their mean
ODDS = ("true_positive_rate", "false_positive_rate")  # equalized odds compares both
METRICS = (*RATES, "balanced_accuracy", "count")


def incomparable(shares: Mapping[Any, Share], rate: Rate) -> str:
    """Why groups' shares cannot be compared; empty where they can.

    >>> incomparable({"f": Share(1, 2), "m": Share(0, 0)}, RATES["selection_rate"])
    "no row in 'm'"
    """
    if len(shares) < 2:
        return "one group alone cannot be compared"
    empty = [repr(group) for group, share in shares.items() if not share.whole]
    return f"no {rate.row} in {', '.join(empty)}" if empty else ""


def metric_of(name: str, counts: Counts) -> float:
    """A metric of a group by Fairlearn's and scikit-learn's conventions.

    >>> nobody_repaid = Counts(rows=4, predicted_positive=1, y0_rows=4, false_positive=1)
    >>> metric_of("selection_rate", nobody_repaid)
    0.25
    """
    if not counts.rows:
        return math.nan
    if name == "count":
        return counts.rows
    if name == "balanced_accuracy":  # the mean over those classes that are there
        recalls = [RATES[recall].share(counts) for recall in RECALLS]
        rates = [share.rate for share in recalls if share.whole]
        return sum(rates) / len(rates)
    share = RATES[name].share(counts)
    return share.rate if share.whole else 0.0


def lacks(name: str, counts: Counts) -> str:
    """Which rows a metric has none of; empty where it is defined.

    >>> nobody_repaid = Counts(rows=4, predicted_positive=1, y0_rows=4, false_positive=1)
    >>> lacks("true_positive_rate", nobody_repaid)
    'no row with y = 1'
    """
    needed = {"count": ("accuracy",), "balanced_accuracy": RECALLS}.get(name, (name,))
    if not counts.rows:
        return "no row"
    none = [RATES[rate].row for rate in needed if not RATES[rate].share(counts).whole]
    return f"no {' and no '.join(none)}" if none else ""
