"""Accuracy and fairness of hard decisions, from six counts per group (D19).

Counts add up over rounds and seeds and every figure follows from them, so a figure of one round
and of a thousand pooled ones is the same function. What cannot be said is None with its reason:
an all-negative classifier has no demographic-parity ratio, and certainly not 1.0.

Metrics that are shares of a group's rows have their conventions from Fairlearn and scikit-learn: a
rate of no rows is 0, of a group without rows NaN. `lacks` says where one of them was needed.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Attribute
from fairsaoml.evaluate.confidence import Share

ALIKE = 0.02  # a share of decisions below this is nearly none
SELDOM = 0.1  # and so is one below this part of the share of such labels
MINIMUM_COUNT = 10  # a ratio with fewer positive decisions than this in some group is marked

# What stands in every round, mean and pool. Ratios: 1 is fair; dp_difference: 0 is fair.
TOTALS = ("accuracy", "balanced_accuracy", "positive_rate")
PARITIES = ("dp_ratio", "dp_difference", "eo_ratio", "eo_ratio_tpr", "eo_ratio_fpr")
FIGURES = (*TOTALS, *PARITIES)

Figure = float | None
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

    @classmethod
    def of_kinds(cls, true_no: int, false_yes: int, false_no: int, true_yes: int) -> "Counts":
        """The counts of four kinds of rows: by label, and by decision within it."""
        return cls(
            rows=true_no + false_yes + false_no + true_yes,
            predicted_positive=false_yes + true_yes,
            y1_rows=false_no + true_yes,
            true_positive=true_yes,
            y0_rows=true_no + false_yes,
            false_positive=false_yes,
        )


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
    found: dict[str, dict[str, list[Counts]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        for attribute, levels in line["counts"].items():
            if only in (None, attribute):
                by_level = found[attribute]
                for level, six in (levels or {}).items():
                    by_level[level].append(Counts(**six))
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
METRICS: Mapping[str, Sequence[str]] = {  # the rates that each is the mean of
    **{name: (name,) for name in RATES},
    "balanced_accuracy": RECALLS,
    "count": (),
}


def compare(shares: Mapping[Any, Share], rate: Rate) -> tuple[Figure, Figure, str]:
    """Groups' lowest rate over the highest, the highest minus the lowest, and what is missing.

    The ratio is None where all rates are 0; both are where groups cannot be compared, and why
    they cannot is the third.

    >>> compare({"f": Share(1, 2), "m": Share(1, 4)}, RATES["selection_rate"])
    (0.5, 0.25, '')
    >>> compare({"f": Share(1, 2), "m": Share(0, 0)}, RATES["selection_rate"])
    (None, None, "no row in 'm'")
    """
    if len(shares) < 2:
        return None, None, "one group alone cannot be compared"
    if empty := [repr(group) for group, share in shares.items() if not share.whole]:
        return None, None, f"no {rate.row} in {', '.join(empty)}"
    rates = [share.rate for share in shares.values()]
    low, high = min(rates), max(rates)
    return low / high if high else None, high - low, ""


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
    shares = [RATES[rate].share(counts) for rate in METRICS[name]]
    rates = [share.rate for share in shares if share.whole]  # of the classes that are there
    return sum(rates) / len(rates) if rates else 0.0


def nearly_alike(counts: Counts) -> bool:
    """Whether decisions are nearly all alike, so that their ratios say little.

    >>> third = Counts(rows=1000, y1_rows=330, y0_rows=670)
    >>> [nearly_alike(third._replace(predicted_positive=n)) for n in (26, 100, 985)]
    [True, False, True]
    """
    sides = (
        (counts.predicted_positive, counts.y1_rows),
        (counts.rows - counts.predicted_positive, counts.y0_rows),
    )
    return any(decided < max(ALIKE * counts.rows, SELDOM * labels) for decided, labels in sides)


def lacks(name: str, counts: Counts) -> str:
    """Which rows a metric has none of; empty where it is defined.

    >>> nobody_repaid = Counts(rows=4, predicted_positive=1, y0_rows=4, false_positive=1)
    >>> lacks("true_positive_rate", nobody_repaid)
    'no row with y = 1'
    """
    if not counts.rows:
        return "no row"
    none = [RATES[rate].row for rate in METRICS[name] if not RATES[rate].share(counts).whole]
    return f"no {' and no '.join(none)}" if none else ""


# The rates that fairness compares between groups, by the figure that each becomes.
_RATIOS = {
    "dp_ratio": RATES["selection_rate"],
    "eo_ratio_tpr": RATES["true_positive_rate"],
    "eo_ratio_fpr": RATES["false_positive_rate"],
}


def count(
    y: ArrayLike, prediction: ArrayLike, group: ArrayLike, attributes: Sequence[Attribute]
) -> GroupCounts:
    """Six counts for every level of every attribute; rows of no known group are apart.

    Labels and group codes are those of a checked task.

    >>> sex = Attribute(name="sex", levels=("f", "m"))
    >>> counts = count(y=[1, 0, 1], prediction=[1, 1, 0], group=[[0], [0], [1]], attributes=[sex])
    >>> counts["sex"]["f"]  # doctest: +NORMALIZE_WHITESPACE
    Counts(rows=2, predicted_positive=2, y1_rows=1, true_positive=1, y0_rows=1, false_positive=1)
    >>> counts["sex"]["m"].true_positive
    0
    """
    label, decision = np.asarray(y, np.int64), np.asarray(prediction).reshape(-1)
    known = decision.dtype == bool or np.isin(decision, (0, 1)).all()
    if len(decision) != len(label) or not known:
        raise DataError(
            "expected one prediction per label, every prediction to be 0 or 1, got "
            f"{len(decision)} for {len(label)} labels, such as {np.unique(decision)[:5]}; encode "
            "them, and pass the rows that were scored, all of them"
        )
    code, kind = np.asarray(group, np.int64), 2 * label + decision.astype(np.int64)
    counts = {}
    for column, attribute in enumerate(attributes):
        if UNSEEN in attribute.levels:
            raise DataError(
                f"expected no level of {attribute.name!r} to be called {UNSEEN!r}, which names the "
                "groups never declared; rename it"
            )
        levels = (*attribute.levels, UNSEEN)
        table = np.bincount(4 * code[:, column] + kind, minlength=4 * len(levels)).reshape(-1, 4)
        by_level = zip(levels, starmap(Counts.of_kinds, table.tolist()), strict=True)
        counts[attribute.name] = {name: six for name, six in by_level if name != UNSEEN or six.rows}
    return counts


def figures(counts: GroupCounts, *, minimum_count: int = MINIMUM_COUNT) -> dict[str, Any]:
    """Every name in `FIGURES`, and `attributes`, `undefined` and `insufficient`.

    A ratio is the lowest group's rate over the highest group's: 1 is fair, .8 the "80 % rule".
    `dp_ratio` compares positive rates, `eo_ratio_tpr` and `eo_ratio_fpr` those among rows with
    y = 1 and y = 0, `eo_ratio` is the lower of these two; `dp_difference` is highest minus lowest
    positive rate. Rows of no known group count towards accuracy and towards no ratio.

    The headline is the worst attribute's; each attribute stands under `attributes`. A figure is
    None when it would need a rate of no rows, 0 / 0, or another figure that is None: the worst of
    some unknown is unknown. `undefined` says why. `insufficient` names the ratios for which some
    group has fewer than `minimum_count` positive decisions.

    >>> half, all_of_them = Counts(4, 2, 2, 2, 2, 0), Counts(4, 4, 2, 2, 2, 2)
    >>> round = figures({"sex": {"f": half, "m": all_of_them}}, minimum_count=1)
    >>> round["accuracy"], round["dp_ratio"], round["eo_ratio_tpr"], round["eo_ratio"]
    (0.75, 0.5, 1.0, 0.0)
    >>> round = figures({"sex": {"f": Counts(2, 0, 1, 0, 1, 0), "m": Counts(2, 0, 1, 0, 1, 0)}})
    >>> print(round["dp_ratio"], "-", round["undefined"][0])
    None - dp_ratio of sex: 0/0, no positive decision on any row
    """
    total = _total(counts)
    undefined = [] if total.rows else ["accuracy, positive_rate: no row"]
    undefined += [] if total.y1_rows else ["balanced_accuracy: no row with y = 1"]
    undefined += [] if total.y0_rows else ["balanced_accuracy: no row with y = 0"]
    insufficient: list[str] = []
    parities = {}
    for attribute, levels in counts.items():
        known = {level: six for level, six in levels.items() if level not in APART}
        parities[attribute], reasons, few = _parity(known, minimum_count)
        undefined += [f"{name} of {attribute}: {reason}" for name, reason in reasons.items()]
        insufficient += [f"{name} of {attribute}: {reason}" for name, reason in few.items()]
    headline = totals(counts)
    for name in PARITIES:
        worst = max if name == "dp_difference" else min
        headline[name] = _worst([parity[name] for parity in parities.values()], worst)
    return headline | {
        "attributes": parities,
        "undefined": undefined,
        "insufficient": insufficient,
    }


def totals(counts: GroupCounts) -> dict[str, Figure]:
    """Every name in `TOTALS`: what needs no comparison of groups."""
    total = _total(counts)
    shares = (RATES[name].share(total) for name in ("accuracy", "selection_rate", *ODDS))
    accuracy, positive_rate, hit, alarm = (s.rate if s.whole else None for s in shares)
    balanced = None if hit is None or alarm is None else (hit + 1 - alarm) / 2
    return dict(zip(TOTALS, (accuracy, balanced, positive_rate), strict=True))


def _total(counts: GroupCounts) -> Counts:
    """All rows: every attribute counts the same ones, so any of them knows."""
    return summed(next(iter(counts.values()), {}).values())


def counts_to_json(counts: GroupCounts) -> dict[str, Any]:
    """Counts as they stand in `rounds.jsonl`: plain dictionaries."""
    return {
        attribute: {level: six._asdict() for level, six in levels.items()}
        for attribute, levels in counts.items()
    }


def with_counts(counts: GroupCounts) -> dict[str, Any]:
    """Every figure, and the counts behind them, as plain data."""
    return {**figures(counts), "counts": counts_to_json(counts)}


def _parity(
    levels: Mapping[str, Counts], minimum_count: int
) -> tuple[dict[str, Figure], dict[str, str], dict[str, str]]:
    """One attribute's figures, why some are None, and which rest on too few."""
    parity: dict[str, Figure] = {}
    differences: dict[str, Figure] = {}
    reasons, insufficient = {}, {}
    for name, rate in _RATIOS.items():
        shares = {level: rate.share(counts) for level, counts in levels.items()}
        parity[name], differences[name], missing = compare(shares, rate)
        few = [repr(level) for level, share in shares.items() if share.part < minimum_count]
        if parity[name] is None:
            reasons[name] = missing or f"0/0, no positive decision on any {rate.row}"
        elif few:
            insufficient[name] = f"fewer than {minimum_count} positives in {', '.join(few)}"
    parity["dp_difference"] = differences["dp_ratio"]
    if parity["dp_difference"] is None:
        reasons["dp_difference"] = reasons["dp_ratio"]
    parity["eo_ratio"] = _worst([parity["eo_ratio_tpr"], parity["eo_ratio_fpr"]], min)
    return parity, reasons, insufficient


def _worst(values: Sequence[Figure], worst: Callable[..., float]) -> Figure:
    """The minimum or the maximum, None if any is: the worst of some unknown is unknown."""
    return worst(values) if values and None not in values else None
