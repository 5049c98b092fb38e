"""What a trial is judged by: accuracy, and the worst of the DP and the EO ratio.

Of one stream, with counts pooled over the seeds:

- **accuracy** over all rounds: to be back soon after a change is part of being accurate;
- **ratio**: the lower of DP and EO, pooled within each domain from its sixth round on, of the worst
  domain. Within, because opposite gaps cancel in a pool over domains; from the sixth round on,
  because five rounds are what a learner may take to find out about a change (`compare` too).

A ratio that is undefined counts as 0, with a note. So does the ratio of decisions that tell the
classes no better apart than a balanced accuracy of .51: whoever answers "yes" to everybody has
DP = EO = 1 and nothing else to say for himself, and on a stream of two thirds positives he is not
even inaccurate. Accuracy itself stays the plain one, since that is what is compared later; balanced
accuracy stands beside it.

Of several streams: the mean of the accuracies, and the mean of the ratios.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from statistics import fmean
from typing import Any, NamedTuple

from fairsaoml.compare.compare import EARLY_ROUNDS
from fairsaoml.core.errors import DataError
from fairsaoml.evaluate.metrics import GroupCounts, add, counts_from_json, figures

__all__ = ["CHANCE", "Measured", "Scores", "measured", "scores_of"]

CHANCE = 0.51  # a balanced accuracy up to this is a constant answer, for all that can be seen

Line = Mapping[str, Any]  # at least round, domain and counts, as in rounds.jsonl


class Measured(NamedTuple):
    """Settings on one stream."""

    accuracy: float
    balanced_accuracy: float | None
    dp_ratio: float | None  # of the worst domain, like the next; None if any is undefined
    eo_ratio: float | None
    ratio: float  # what counts: the lower of them, 0 where there is none worth the name
    notes: tuple[str, ...] = ()


class Scores(NamedTuple):
    """Settings on all streams they were tried on."""

    accuracy: float
    ratio: float
    streams: Mapping[str, Measured] = {}


def scores_of(rounds: Mapping[str, Iterable[Line]]) -> Scores:
    """The scores of the lines (rounds and seeds) that were played of each stream.

    >>> counts = {"rows": 4, "predicted_positive": 2, "y1_rows": 2, "true_positive": 2,
    ...           "y0_rows": 2, "false_positive": 0}
    >>> line = {"round": 1, "domain": "", "counts": {"sex": {"f": counts, "m": counts}}}
    >>> worse = counts | {"predicted_positive": 1, "true_positive": 1}
    >>> unfair = line | {"counts": {"sex": {"f": counts, "m": worse}}}
    >>> found = scores_of({"one": [line], "two": [unfair]})
    >>> found.accuracy, found.ratio, found.streams["two"].notes  # nobody's FPR is above 0: 0 / 0
    (0.9375, 0.0, ('the EO ratio is undefined and counts as 0',))
    """
    streams = {name: measured(lines) for name, lines in rounds.items()}
    return Scores(
        accuracy=fmean(found.accuracy for found in streams.values()),
        ratio=fmean(found.ratio for found in streams.values()),
        streams=streams,
    )


def measured(lines: Iterable[Line]) -> Measured:
    """The figures of one stream's lines; rounds may come in any order, seeds too."""
    ordered = sorted(lines, key=lambda line: line["round"])
    whole = figures(_pool(ordered))
    if whole["accuracy"] is None:
        raise DataError("expected rounds with rows to judge by, got none; tune on another stream")
    settled = [
        figures(_pool(_settled(list(stretch))))
        for _, stretch in groupby(ordered, key=lambda line: line["domain"])
    ]
    dp = [found["dp_ratio"] for found in settled]
    eo = [found["eo_ratio"] for found in settled]
    notes = [
        f"the {word} ratio is undefined and counts as 0"
        for word, ratios in (("DP", dp), ("EO", eo))
        if None in ratios
    ]
    if any((found["balanced_accuracy"] or 0.0) <= CHANCE for found in settled):
        notes.append(
            f"a balanced accuracy of {CHANCE} or less: nearly everybody gets the same answer, "
            "and the ratio counts as 0"
        )
    return Measured(
        accuracy=whole["accuracy"],
        balanced_accuracy=whole["balanced_accuracy"],
        dp_ratio=None if None in dp else min(dp),
        eo_ratio=None if None in eo else min(eo),
        ratio=0.0 if notes else min(*dp, *eo),
        notes=tuple(notes),
    )


def _settled(domain: Sequence[Line]) -> Sequence[Line]:
    """A domain without its first rounds; all of one that has no others."""
    first = domain[0]["round"]
    return [line for line in domain if line["round"] - first >= EARLY_ROUNDS] or domain


def _pool(lines: Sequence[Line]) -> GroupCounts:
    nothing: GroupCounts = {}
    return reduce(add, (counts_from_json(line["counts"]) for line in lines), nothing)
