"""The scores of a trial: accuracy, and the worst of the DP and the EO ratio.

On one stream, with counts pooled over the seeds:

- **accuracy** over all rounds: a quick recovery after a change is part of being accurate;
- **ratio**: the lower of DP and EO in the worst domain, pooled from the domain's sixth round on.
  Domain by domain, because opposite gaps cancel in a pool over domains. From the sixth round on,
  because a learner may take five rounds to notice a change (as in `compare`).

An undefined ratio counts as 0, with a note. So does the ratio of decisions with a balanced accuracy
of .51 or less: a model that says yes to everybody has DP = EO = 1, and on a stream of two thirds
positives it is not even inaccurate. Accuracy itself stays the plain one, which is compared later;
balanced accuracy stands beside it.

On several streams: the mean of the accuracies, and the mean of the ratios.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any, NamedTuple

from fairsaoml.compare.compare import EARLY_ROUNDS
from fairsaoml.core.errors import DataError
from fairsaoml.evaluate.metrics import figures, pooled

__all__ = ["CHANCE", "Scores", "StreamScores", "score_stream", "scores_of"]

CHANCE = 0.51  # a balanced accuracy up to this cannot be told from a constant answer

Line = Mapping[str, Any]  # at least round, domain and counts, as in rounds.jsonl


class StreamScores(NamedTuple):
    """How settings did on one stream."""

    accuracy: float
    balanced_accuracy: float | None
    dp_ratio: float | None  # of the worst domain, like the next; None if any is undefined
    eo_ratio: float | None
    ratio: float  # the lower of the two; 0 where the notes say so
    notes: tuple[str, ...] = ()


class Scores(NamedTuple):
    """How settings did on all streams they were tried on."""

    accuracy: float
    ratio: float
    streams: Mapping[str, StreamScores] = {}


def scores_of(rounds: Mapping[str, Iterable[Line]]) -> Scores:
    """Return the scores of the lines (rounds and seeds) of each stream.

    >>> counts = {"rows": 4, "predicted_positive": 2, "y1_rows": 2, "true_positive": 2,
    ...           "y0_rows": 2, "false_positive": 0}
    >>> line = {"round": 1, "domain": "", "counts": {"sex": {"f": counts, "m": counts}}}
    >>> worse = counts | {"predicted_positive": 1, "true_positive": 1}
    >>> unfair = line | {"counts": {"sex": {"f": counts, "m": worse}}}
    >>> scores = scores_of({"one": [line], "two": [unfair]})
    >>> scores.accuracy, scores.ratio, scores.streams["two"].notes  # every FPR is 0: 0 / 0
    (0.9375, 0.0, ('the EO ratio is undefined and counts as 0',))
    """
    streams = {name: score_stream(lines) for name, lines in rounds.items()}
    return Scores(
        accuracy=fmean(scores.accuracy for scores in streams.values()),
        ratio=fmean(scores.ratio for scores in streams.values()),
        streams=streams,
    )


def score_stream(lines: Iterable[Line]) -> StreamScores:
    """Return the scores of one stream's lines, in any order; DataError if no line has rows."""
    ordered = sorted(lines, key=lambda line: line["round"])
    whole = figures(pooled(ordered))
    if whole["accuracy"] is None:
        raise DataError("expected rounds with rows, got none; tune on another stream")
    domains = [
        figures(pooled(_without_start(list(domain))))
        for _, domain in groupby(ordered, key=lambda line: line["domain"])
    ]
    dp = [domain["dp_ratio"] for domain in domains]
    eo = [domain["eo_ratio"] for domain in domains]
    notes = [
        f"the {word} ratio is undefined and counts as 0"
        for word, ratios in (("DP", dp), ("EO", eo))
        if None in ratios
    ]
    if any((domain["balanced_accuracy"] or 0.0) <= CHANCE for domain in domains):
        notes.append(
            f"a balanced accuracy of {CHANCE} or less: nearly everybody gets the same answer, "
            "and the ratio counts as 0"
        )
    return StreamScores(
        accuracy=whole["accuracy"],
        balanced_accuracy=whole["balanced_accuracy"],
        dp_ratio=None if None in dp else min(dp),
        eo_ratio=None if None in eo else min(eo),
        ratio=0.0 if notes else min(*dp, *eo),
        notes=tuple(notes),
    )


def _without_start(domain: Sequence[Line]) -> Sequence[Line]:
    """A domain without its first rounds; all of one that has no others."""
    first = domain[0]["round"]
    return [line for line in domain if line["round"] - first >= EARLY_ROUNDS] or domain
