"""Fairness and accuracy over time: the ratios asked for first, the others as information.

There are as many rounds to a point as it takes to say something.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product

from fairsaoml.evaluate.metrics import RATES, Counts
from fairsaoml.evaluate.rule import RULE
from fairsaoml.evaluate.verdict import NOTIONS, compared, mean_counts
from fairsaoml.evaluate.windows import windows_of
from fairsaoml.report.chart import (
    MOST_POINTS,
    Chart,
    Curve,
    Panel,
    Series,
    binned_lines,
    middles,
    over_seeds,
    series,
)
from fairsaoml.report.figures import LOW, TALL, style
from fairsaoml.report.reading import Run, attributes_of, best_of
from fairsaoml.report.svg import extent, tick_words, ticks
from fairsaoml.report.words import notion_title, sentence

SIZES = (1, 2, 3, 5, 10, 20, 50)  # rounds of a point
TELLING = 10  # positive decisions on each group's rows make a ratio worth drawing
MOSTLY = 0.8  # of the points should be that
FEWEST = 4  # points that still are a curve
BESTS = {"accuracy": "best", "fair_accuracy": "best fair"}  # possible accuracies, and their class


def progress(runs: Sequence[Run]) -> Chart:
    """Return the chart of the ratios and of accuracy over time, the runs of one stream overlaid."""
    bins = _pooled_bins(runs)
    xs = middles(bins)
    longest = max(runs, key=lambda run: run.rounds[-1])
    best, measure, alone = best_of(runs), runs[0].measure, len(runs) == 1

    def panel(
        title: str,
        notes: Sequence[str],
        height: float,
        curves: Sequence[Curve],
        levels: Sequence[tuple[float, str, float, float]],
        least: Sequence[float],
    ) -> Panel:
        values = [value for c in curves for band in c.values for value in band]
        low, high = _tenths(extent([*values, *least]) or (0.5, 1.0))
        begins = [f"the axis begins at {low:.1f}"] if low > 0 else []
        return Panel(
            title=title,
            note="; ".join([*notes, *begins]),
            height=height,
            y_range=(low, high),
            y_ticks=tick_words(ticks(low, high, 4)),
            curves=curves,
            levels=levels,
            bands=True,
        )

    def ratio_panel(attribute: str, notion: str) -> Panel:
        asked = any(notion in run.asked.notions for run in runs)
        lines = sorted({run.asked.ratio for run in runs if notion in run.asked.judged}) or [RULE]
        goal = " and ".join(f"{value:.2f}" for value in lines)
        return panel(
            notion_title(notion, attribute),
            [f"asked for: {goal}" if asked else "for information; line: the 80 % rule"],
            TALL if asked or not any(run.asked.notions for run in runs) else LOW,
            [
                Curve(run.name, style(i), _ratios(run, attribute, notion, bins, intervals=alone))
                for i, run in enumerate(runs)
            ],
            [(value, "rule", *longest.span) for value in lines],
            [*lines, 1.0],
        )

    def accuracy_panel() -> Panel:
        curves = [
            Curve(run.name, style(i), series(run, lambda line: line.get(measure), bins))
            for i, run in enumerate(runs)
        ]
        remarks = []
        plain = series(runs[0], lambda line: (line.get("plain") or {}).get(measure), bins)
        if alone and extent(plain.mean):
            plain = plain._replace(low=[None] * len(xs), high=[None] * len(xs))
            curves.append(Curve("without fairness", "part-4", plain))
            remarks.append("grey: the same learner without fairness")
        bests = [
            (best[domain.name][key], class_, domain.first - 0.5, domain.last + 0.5)
            for domain in longest.domains
            for key, class_ in BESTS.items()
            if measure == "accuracy" and key in best.get(domain.name, {})
        ]
        if bests:
            remarks.append("dashed: the best of any rule, dotted: of a fair rule")
        title = sentence(measure.replace("_", " "))
        return panel(title, remarks, TALL, curves, bests, [value for value, *_ in bests])

    notions = dict.fromkeys(key for run in runs for key in (*run.asked.judged, "dp", "eo"))
    names = ", ".join(run.name for run in runs)
    return Chart(
        title="Fairness and accuracy over time",
        description=f"Lines for {names}, within bands where they are uncertain. A gap in a line is "
        "where the ratio is undefined. The tables below give the numbers.",
        run=longest,
        bins=bins,
        panels=[
            *(ratio_panel(*pair) for pair in product(attributes_of(runs), notions)),
            accuracy_panel(),
        ],
        name_ends=not alone,
    )


def _pooled_bins(runs: Sequence[Run]) -> list[list[int]]:
    """The rounds of each point of a chart: few enough to see changes, enough to tell."""
    longest = max(runs, key=lambda run: run.rounds[-1])
    rounds = list({line["round"]: line for line in longest.lines}.values())
    sizes = [size for size in SIZES if size == 1 or len(rounds) >= FEWEST * size]
    telling = (size for size in sizes if all(_telling(run, size) for run in runs))
    size = max(next(telling, sizes[-1]), -(-len(rounds) // MOST_POINTS))
    return [[line["round"] for line in window] for window in windows_of(rounds, size)]


def _telling(run: Run, size: int) -> bool:
    """Whether most points of so many rounds would have enough positive decisions."""
    windows = windows_of((line for line in run.lines if line["seed"] == run.seeds[0]), size)
    for attribute, notion in product(run.verdict["attributes"], run.asked.judged):
        groups = _judged(run, attribute, notion)
        enough = 0
        for window in windows:
            counts = mean_counts(window, attribute)
            enough += all(
                RATES[rate].share(counts.get(group, Counts())).part >= TELLING
                for group, rate in product(groups, NOTIONS[notion].rates)
            )
        if enough < MOSTLY * len(windows):
            return False
    return True


def _ratios(
    run: Run, attribute: str, notion: str, bins: Sequence[Sequence[int]], *, intervals: bool
) -> Series:
    """The groups' lowest ratio by bin: the mean over the seeds, and the outermost of them.

    Groups are those large enough to be judged. With `intervals`, the ends of a single seed are
    those of its 95 % interval.
    """
    groups = _judged(run, attribute, notion)
    counts = [
        [mean_counts(lines, attribute) for lines in seeds] for seeds in binned_lines(run, bins)
    ]
    values = over_seeds([[_ratio(own, notion, groups) for own in seeds] for seeds in counts])
    if not intervals or len(run.seeds) > 1:
        return values
    ends = [
        (None, None) if value is None else compared(seeds, notion, groups).interval
        for seeds, value in zip(counts, values.mean, strict=True)
    ]
    return Series(values.mean, low=[low for low, _ in ends], high=[high for _, high in ends])


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


def _tenths(reach: tuple[float, float]) -> tuple[float, float]:
    """Widened to tenths, at least two of them, within 0 and 1.

    >>> _tenths((0.613, 0.84)), _tenths((0.95, 0.96))
    ((0.6, 0.9), (0.8, 1.0))
    """
    low = min(math.floor(reach[0] * 10), 8)
    return (low / 10, max(math.ceil(reach[1] * 10), low + 2) / 10)
