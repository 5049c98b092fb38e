"""Ratios over time, with as many rounds to a point as it takes to say something."""

from collections.abc import Mapping, Sequence
from itertools import product

from fairsaoml.evaluate.shares import RATES, Counts
from fairsaoml.evaluate.verdict import NOTIONS, compared, mean_counts
from fairsaoml.evaluate.windows import windows_of
from fairsaoml.report.reading import MOST_POINTS, Line, Run, Series

__all__ = ["pooled_bins", "ratios"]

SIZES = (1, 2, 3, 5, 10, 20, 50)  # rounds of a point
TELLING = 10  # positive decisions on each group's rows make a ratio worth drawing
MOSTLY = 0.8  # of the points should be that
FEWEST = 4  # points that still are a curve


def pooled_bins(runs: Sequence[Run]) -> list[list[int]]:
    """Return the rounds of each point of a chart: few enough to see changes, enough to tell."""
    longest = max(runs, key=lambda run: run.rounds[-1])
    rounds = list({line["round"]: line for line in longest.lines}.values())
    chosen = 1
    for size in SIZES:
        if size > 1 and len(rounds) < FEWEST * size:
            break
        chosen = size
        if all(_telling(run, size) for run in runs):
            break
    size = max(chosen, -(-len(rounds) // MOST_POINTS))
    return [[line["round"] for line in window] for window in windows_of(rounds, size)]


def ratios(
    run: Run, attribute: str, notion: str, bins: Sequence[Sequence[int]], intervals: bool
) -> Series:
    """Return the groups' lowest ratio by bin: the mean over the seeds, and the outermost of them.

    Args:
        run: whose decisions are compared.
        attribute, notion: by which; of the groups that are large enough to be judged.
        bins: the rounds of each point.
        intervals: of a single seed, return the ends of the 95 % interval instead.
    """
    place = {round: i for i, rounds in enumerate(bins) for round in rounds}
    lines: list[dict[int, list[Line]]] = [{} for _ in bins]
    for line in run.lines:
        if line["round"] in place:
            lines[place[line["round"]]].setdefault(line["seed"], []).append(line)
    groups = _judged(run, attribute, notion)
    series = Series(mean=[], low=[], high=[])
    for by_seed in lines:
        counts = [mean_counts(own, attribute) for own in by_seed.values()]
        values = [v for one in counts if (v := _ratio(one, notion, groups)) is not None]
        ends = (min(values, default=None), max(values, default=None))
        if intervals and len(run.seeds) == 1 and values:
            ends = compared(counts, notion, groups).interval
        series.mean.append(sum(values) / len(values) if values else None)
        series.low.append(ends[0])
        series.high.append(ends[1])
    return series


def _judged(run: Run, attribute: str, notion: str) -> list[str]:
    entry = run.verdict["attributes"].get(attribute) or {"notions": {}}
    return list((entry["notions"].get(notion) or {"shares": {}})["shares"])


def _ratio(counts: Mapping[str, Counts], notion: str, groups: Sequence[str]) -> float | None:
    """The lowest rate over the highest, of the rate for which that is least."""
    lowest = []
    for rate in NOTIONS[notion].rates:
        shares = [RATES[rate].share(counts.get(group, Counts())) for group in groups]
        rates = [share.rate for share in shares if share.whole]
        if len(rates) < max(len(groups), 2) or not max(rates):
            return None
        lowest.append(min(rates) / max(rates))
    return min(lowest)


def _telling(run: Run, size: int) -> bool:
    """Whether most points of so many rounds would have enough positive decisions."""
    windows = windows_of((line for line in run.lines if line["seed"] == run.seeds[0]), size)
    asked = product(run.verdict["attributes"], run.asked.judged)
    for attribute, notion in asked:
        groups = _judged(run, attribute, notion)
        enough = 0
        for window in windows:
            counts = mean_counts(window, attribute)
            enough += all(
                RATES[rate].share(counts.get(group, Counts())).part >= TELLING
                for group in groups
                for rate in NOTIONS[notion].rates
            )
        if enough < MOSTLY * len(windows):
            return False
    return True
