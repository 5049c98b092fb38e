"""When the world has likely changed, as the labels show it, and the accuracy of the decisions.

Every round is a candidate: the rounds before it are compared with those after it, over stretches of
two rounds, four, eight and so on, for a learner may follow within a few. The candidate whose
stretches differ most is a change, if they differ by more than chance and more than rounds differ
anyway; then the rounds on both sides of it are searched again (binary segmentation).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import NormalDist, mean, median
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.evaluate.confidence import Share
from fairsaoml.evaluate.metrics import RATES, RECALLS, Counts, summed
from fairsaoml.evaluate.verdict import mean_counts
from fairsaoml.report.reading import Run
from fairsaoml.report.words import listed

# Standard errors between two stretches that chance does not explain, though thousands are compared.
CERTAIN = 5.0
FEWEST = 2  # rounds of a stretch: one may be odd by itself
MOST_CHANGES = 3
LABELS = "the share of positive labels"
MEDIAN = NormalDist().inv_cdf(0.75) ** 2  # of the square of a standard normal variable

Measure = Sequence[Callable[[Counts], Share]]  # the mean of these shares


class Split(NamedTuple):
    """Two stretches of rounds beside one another; `at` is the first round of the second."""

    begin: int
    at: int
    end: int


def changes(run: Run) -> list[str]:
    """Return the likely changes in words, in order of time: those of labels, and falls of accuracy.

    Accuracy is the one that the run aims at: where the threshold is the base rate, plain accuracy
    would follow the threshold. A rise of it is what was learned.
    """
    lines = [line for line in run.lines if line["seed"] == run.seeds[0] and line["counts"]]
    lines = [line for line in lines if line["round"] > 1]  # decided before anything was learned
    recalls = RECALLS if run.measure == "balanced_accuracy" else (run.measure,)
    series = Series(
        [summed(mean_counts([line], next(iter(line["counts"]))).values()) for line in lines],
        {
            LABELS: [lambda counts: Share(counts.y1_rows, counts.rows)],
            run.measure.replace("_", " "): [RATES[rate].share for rate in recalls],
        },
    )
    found = [
        (series.size(split), split.at, f"at about {run.when(lines[split.at]['round'])} {words}")
        for split in series.splits()
        if (words := listed(series.words(split)))
    ]
    largest = sorted(found, reverse=True)[:MOST_CHANGES]
    return [words for _, _, words in sorted(largest, key=lambda change: change[1])]


class Series:
    """The counts of rounds in order, and what is measured of them."""

    def __init__(self, rounds: Sequence[Counts], measures: Mapping[str, Measure]) -> None:
        self.measures = measures
        self.rounds = len(rounds)
        self.until = np.cumsum([Counts(), *rounds], axis=0)
        # How far neighbouring rounds are from each other: 1 by chance, more where they swing. A
        # median, so that changes do not hide themselves.
        self.noise = dict.fromkeys(measures, 1.0)
        for what in measures if self.rounds > 1 else ():
            steps = self.apart(what, [Split(i - 1, i, i + 1) for i in range(1, self.rounds)]) ** 2
            self.noise[what] = math.sqrt(max(median(steps.tolist()) / MEDIAN, 1.0))

    def splits(self) -> list[Split]:
        """Return the changes, in order of time, each located between its neighbours."""
        found = self._splits(0, self.rounds)
        places = [0, *(split.at for split in found), self.rounds]
        # The largest first: a smaller one beside it must not be taken for it.
        for i in sorted(range(len(found)), key=lambda i: -self.size(found[i])):
            found[i] = self._furthest(places[i], places[i + 2])
            places[i + 1] = found[i].at
        return found

    def size(self, splits: Split | Sequence[Split]) -> Any:
        """Return how far apart two stretches are, by whatever they differ most in."""
        return np.max([self.apart(what, splits) for what in self.measures], axis=0)

    def apart(self, what: str, splits: Split | Sequence[Split]) -> Any:
        """Return how far apart two stretches are: in labels either way, in accuracy for worse.

        It is the difference of means in standard errors of equal ones; of several splits an array.
        """
        before, after = self._sides(splits)
        rise: Any = 0.0
        variance: Any = 0.0
        known: Any = True
        with np.errstate(divide="ignore", invalid="ignore"):  # of no rows
            for share in self.measures[what]:
                (a, n), (b, m) = share(before), share(after)
                known &= (n > 0) & (m > 0)
                both = (a + b) / (n + m)
                rise += b / m - a / n
                variance += both * (1 - both) * (1 / n + 1 / m)
            size = (abs(rise) if what == LABELS else -rise) / np.sqrt(variance) / self.noise[what]
        return np.where(known & (variance > 0), size, 0.0)

    def words(self, split: Split) -> list[str]:
        """Return what rose or fell, from what to what."""
        said = []
        for what, shares in self.measures.items():
            if self.apart(what, split) >= CERTAIN:
                sides = self._sides(split)
                was, became = (mean(share(side).rate for share in shares) for side in sides)
                verb = "fell" if became < was else "rose"
                said.append(f"{what} {verb} from {was:.2f} to {became:.2f}")
        return said

    def _sides(self, splits: Split | Sequence[Split]) -> list[Counts]:
        """The counts of the first stretch, and those of the second."""
        begin, at, end = self.until[np.array(splits).T]
        return [Counts(*(at - begin).T), Counts(*(end - at).T)]

    def _splits(self, begin: int, end: int) -> list[Split]:
        split = self._furthest(begin, end)
        if split.at == begin or self.size(split) < CERTAIN:
            return []
        # The world may change within a round, so that the rounds beside are like neither side.
        earlier, later = self._splits(begin, split.at - 1), self._splits(split.at + 1, end)
        return [*earlier, split, *later]

    def _furthest(self, begin: int, end: int) -> Split:
        """The two stretches that differ most; without a second one where rounds are too few."""
        candidates = [*_candidates(begin, end)] or [Split(begin, begin, end)]
        return candidates[self.size(candidates).argmax()]


def _candidates(begin: int, end: int) -> Iterator[Split]:
    """Every place in some rounds, with stretches of all lengths on both sides.

    >>> [tuple(split) for split in _candidates(0, 6)]
    [(0, 2, 4), (0, 2, 6), (1, 3, 5), (0, 3, 6), (2, 4, 6), (0, 4, 6)]
    """
    for at in range(begin + FEWEST, end - FEWEST + 1):
        length = FEWEST
        while length < 2 * max(at - begin, end - at):
            yield Split(max(begin, at - length), at, min(end, at + length))
            length *= 2
