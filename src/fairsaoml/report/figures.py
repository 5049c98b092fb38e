"""The charts of a report: fairness and accuracy over time, and the learner's state by round."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, product

from fairsaoml.evaluate.flags import count
from fairsaoml.evaluate.metrics import RATES, Counts, compare
from fairsaoml.evaluate.rule import RULE
from fairsaoml.evaluate.verdict import NOTIONS, Groups, compared, mean_counts
from fairsaoml.evaluate.windows import windows_of
from fairsaoml.report import chart
from fairsaoml.report.chart import Bars, Chart, Curve, Layer, Level, Panel, Series, series
from fairsaoml.report.reading import Line, Run, attributes_of, best_of
from fairsaoml.report.svg import extent, tick_words
from fairsaoml.report.words import notion_title, sentence

STYLES = 12  # so many runs have a colour and a dash of their own in chart.css
PARTS = 8  # and so many constraints
RAMP = 8  # steps from the shortest interval's colour to the longest's

TALL, MIDDLE, LOW = 170.0, 130.0, 84.0  # heights of panels, by how much there is to see
WAKE_ROW = 13.0  # the height of a level in the strip of awake levels
HEADROOM = 0.06  # of the values' reach, kept free above and below them

SIZES = (1, 2, 3, 5, 10, 20, 50)  # rounds of a point of the chart over time
TELLING = 10  # positive decisions on each group's rows make a ratio worth drawing
MOSTLY = 0.8  # of the points should be that
FEWEST = 4  # points that still are a curve
BESTS = {"accuracy": "best", "fair_accuracy": "best fair"}  # possible accuracies, and their class
STATE = {  # of the learner, for each constraint
    "dual": ("Dual λ", "the price of each constraint"),
    "violation": ("Violation g", "above 0 the constraint is broken"),
}

Bins = Sequence[Sequence[int]]  # the rounds of each point
Binned = Sequence[Sequence[Groups]]  # of each point the counts of each seed


def style(i: int) -> str:
    """Return the CSS class of the i-th run; after the twelfth they repeat."""
    return f"hue-{i % STYLES}"


def part(i: int) -> str:
    """Return the CSS class of the i-th constraint, so that none looks like a run."""
    return f"part-{i % PARTS}"


def shade(level: int, levels: int) -> str:
    """Return the CSS class of a level, from the shortest intervals (light) to the longest.

    >>> shade(0, 5), shade(4, 5)
    ('level-0', 'level-7')
    """
    return f"level-{round(level * (RAMP - 1) / max(levels - 1, 1))}"


def progress(runs: Sequence[Run]) -> Chart:
    """Return the chart over time, the runs of one stream overlaid: ratios asked for come first.

    There are as many rounds to a point as it takes to say something.
    """
    longest = max(runs, key=lambda run: run.rounds[-1])
    bins = _pooled_bins(runs, longest)
    notions = dict.fromkeys(key for run in runs for key in (*run.asked.judged, "dp", "eo"))
    panels = []
    for attribute in attributes_of(runs):
        counts = [_counts(run, attribute, bins) for run in runs]
        panels += [_ratio_panel(runs, counts, attribute, key, longest.span) for key in notions]
    names = ", ".join(run.name for run in runs)
    return Chart(
        title="Fairness and accuracy over time",
        description=f"Lines for {names}, within bands where they are uncertain. A gap in a line is "
        "where the ratio is undefined. The tables below give the numbers.",
        run=longest,
        bins=bins,
        panels=[*panels, _accuracy_panel(runs, bins, longest)],
        name_ends=len(runs) > 1,
    )


def _ratio_panel(
    runs: Sequence[Run],
    counts: Sequence[Binned],
    attribute: str,
    notion: str,
    span: tuple[float, float],
) -> Panel:
    asked = any(notion in run.asked.notions for run in runs)
    lines = sorted({run.asked.ratio for run in runs if notion in run.asked.judged}) or [RULE]
    goal = " and ".join(f"{value:.2f}" for value in lines)
    return _panel(
        notion_title(notion, attribute),
        [f"asked for: {goal}" if asked else "for information; line: the 80 % rule"],
        TALL if asked or not any(run.asked.notions for run in runs) else LOW,
        [
            Curve(run.name, style(i), _ratios(run, own, attribute, notion, len(runs) == 1))
            for i, (run, own) in enumerate(zip(runs, counts, strict=True))
        ],
        [(value, "rule", *span) for value in lines],
        1.0,
    )


def _accuracy_panel(runs: Sequence[Run], bins: Bins, longest: Run) -> Panel:
    measure = runs[0].measure
    curves = [
        Curve(run.name, style(i), series(run, lambda line: line.get(measure), bins))
        for i, run in enumerate(runs)
    ]
    remarks = []
    plain = series(runs[0], lambda line: (line.get("plain") or {}).get(measure), bins)
    if len(runs) == 1 and extent(plain.mean):
        no_band = plain._replace(low=[None] * len(bins), high=[None] * len(bins))
        curves.append(Curve("without fairness", "part-4", no_band))
        remarks.append("grey: the same learner without fairness")
    best = best_of(runs) if measure == "accuracy" else {}
    levels = [
        (best[domain.name][key], class_, domain.first - 0.5, domain.last + 0.5)
        for domain in longest.domains
        for key, class_ in BESTS.items()
        if key in best.get(domain.name, {})
    ]
    if levels:
        remarks.append("dashed: the best of any rule, dotted: of a fair rule")
    return _panel(sentence(measure.replace("_", " ")), remarks, TALL, curves, levels)


def _panel(
    title: str,
    notes: Sequence[str],
    height: float,
    curves: Sequence[Curve],
    levels: Sequence[Level],
    *also: float,
) -> Panel:
    """A panel of shares: its axis has tenths that hold all curves, all levels and `also`."""
    values = [value for curve in curves for band in curve.values for value in band]
    least, most = extent([*values, *(value for value, *_ in levels), *also]) or (0.5, 1.0)
    low = min(math.floor(least * 10), 8)
    y_range = (low / 10, max(math.ceil(most * 10), low + 2) / 10)
    begins = [f"the axis begins at {y_range[0]:.1f}"] if low > 0 else []
    return Panel(
        title=title,
        note="; ".join([*notes, *begins]),
        height=height,
        y_range=y_range,
        y_ticks=tick_words(*y_range, 4),
        curves=curves,
        levels=levels,
        bands=True,
    )


def _pooled_bins(runs: Sequence[Run], longest: Run) -> Bins:
    """The rounds of each point of a chart: few enough to see changes, enough to tell."""
    rounds = list({line["round"]: line for line in longest.lines}.values())
    sizes = [size for size in SIZES if size == 1 or len(rounds) >= FEWEST * size]
    telling = (size for size in sizes if all(_telling(run, size) for run in runs))
    size = max(next(telling, sizes[-1]), -(-len(rounds) // chart.MOST_POINTS))
    return [[line["round"] for line in window] for window in windows_of(rounds, size)]


def _telling(run: Run, size: int) -> bool:
    """Whether most points of so many rounds would have enough positive decisions."""
    windows = windows_of((line for line in run.lines if line["seed"] == run.seeds[0]), size)
    for attribute, notion in product(run.verdict["attributes"], run.asked.judged):
        each = list(product(_judged(run, attribute, notion), NOTIONS[notion].rates))
        enough = 0
        for counts in (mean_counts(window, attribute) for window in windows):
            shares = [RATES[rate].share(counts.get(group, Counts())) for group, rate in each]
            enough += all(share.part >= TELLING for share in shares)
        if enough < MOSTLY * len(windows):
            return False
    return True


def _counts(run: Run, attribute: str, bins: Bins) -> Binned:
    by_bin = chart.binned_lines(run, bins)
    return [[mean_counts(lines, attribute) for lines in seeds] for seeds in by_bin]


def _ratios(run: Run, counts: Binned, attribute: str, notion: str, intervals: bool) -> Series:
    """The groups' lowest ratio by bin: the mean over the seeds, and the outermost of them.

    Groups are those large enough to be judged. With `intervals`, the ends of a single seed are
    those of its 95 % interval.
    """
    groups = _judged(run, attribute, notion)
    values = chart.over_seeds([[_ratio(own, notion, groups) for own in seeds] for seeds in counts])
    if not intervals or len(run.seeds) > 1:
        return values
    ends = [
        (None, None) if value is None else compared(seeds, notion, groups).interval
        for seeds, value in zip(counts, values.mean, strict=True)
    ]
    return Series(values.mean, low=[low for low, _ in ends], high=[high for _, high in ends])


def _judged(run: Run, attribute: str, notion: str) -> list[str]:
    entry = run.verdict["attributes"].get(attribute)
    return list(entry["notions"][notion]["shares"]) if entry else []


def _ratio(counts: Mapping[str, Counts], notion: str, groups: Sequence[str]) -> float | None:
    """The lowest ratio of any rate that a notion compares; None where one of them has none."""
    lowest = 1.0
    for rate in (RATES[name] for name in NOTIONS[notion].rates):
        ratio, _, _ = compare({g: rate.share(counts.get(g, Counts())) for g in groups}, rate)
        if ratio is None:
            return None
        lowest = min(lowest, ratio)
    return lowest


def insides(runs: Sequence[Run]) -> list[tuple[int, Run, Chart]]:
    """Return the learners of which something is to be seen, each with its place among the runs.

    Of each its weights, awake levels, dual and violation; the axes are the same for all.
    """
    reaches = {key: _reach(runs, key) for key in STATE}
    seen = []
    for i, run in enumerate(runs):
        drawn = _inside(run, reaches)
        # Of other libraries' models nothing is recorded, not even a loss.
        recorded = any(line.get("loss") is not None for line in run.lines)
        if recorded and (drawn.panels or not run.constraints):
            seen.append((i, run, drawn))
    return seen


def _reach(runs: Sequence[Run], key: str) -> tuple[float, float]:
    """An axis that holds the curves of all runs, with some room."""
    curves = [curve for run in runs for curve in _curves(run, key, chart.binned(run.rounds))]
    means = [value for curve in curves for value in curve.values.mean if value is not None]
    low, high = min([0.0, *means]), max([0.0, *means])
    room = (high - low or 1.0) * HEADROOM
    return (low - room if low < 0 else 0.0, high + room)


def _inside(run: Run, reaches: Mapping[str, tuple[float, float]]) -> Chart:
    bins = chart.binned(run.rounds)
    lengths = [run.base**level for level in range(_entries_in(run, "weights"))]
    panels = []
    if len(lengths) > 1:
        panels.append(_weights(run, lengths, bins))
    if any(line.get("awake") for line in run.lines):
        panels.append(_waking(run, lengths))
    for key, (title, note) in STATE.items():
        if curves := _curves(run, key, bins):
            panels.append(
                Panel(
                    title=title,
                    note=note,
                    height=LOW,
                    y_range=reaches[key],
                    y_ticks=tick_words(*reaches[key], 3),
                    curves=curves,
                    levels=[(0.0, "zero", *run.span)],
                )
            )
    return Chart(
        title=f"Inside {run.name}: expert weights, awake levels, dual and violation by round",
        description=f"{len(lengths)} levels with intervals of {', '.join(map(str, lengths))} "
        f"rounds; {len(run.constraints)} constraints.",
        run=run,
        bins=bins,
        panels=panels,
    )


def _weights(run: Run, lengths: Sequence[int], bins: Bins) -> Panel:
    def weight(first: int, last: int) -> Series:
        """The weight of some levels together."""

        def pick(line: Line) -> float | None:
            weights = line.get("weights")
            return sum(weight or 0.0 for weight in weights[first:last]) if weights else None

        return series(run, pick, bins)

    levels = len(lengths)
    curves = [
        Curve(count(length, "round"), shade(level, levels), weight(level, level + 1))
        for level, length in enumerate(lengths)
    ]
    edges = [weight(0, level).mean for level in range(levels + 1)]
    places = chart.middles(bins)
    if len(places) == 1:  # a single round has no width to fill: draw it as wide as a round
        places = [places[0] - 0.5, places[0] + 0.5]
        edges = [edge * 2 for edge in edges]
    return Panel(
        title="Weight of each expert",
        note="by the length of its intervals, in rounds",
        height=MIDDLE,
        y_range=(0, 1),
        y_ticks=[(0, "0"), (0.5, "0.5"), (1, "1")],
        curves=curves,
        layers=[
            Layer(str(length), curve.style, places, below, above)
            for length, curve, (below, above) in zip(lengths, curves, pairwise(edges), strict=True)
        ],
    )


def _waking(run: Run, lengths: Sequence[int]) -> Panel:
    levels = len(lengths)
    rows = [levels - level - 0.5 for level in range(levels)]
    bars: list[Bars] = []
    for level, row in enumerate(rows):
        wakes = {line["round"] for line in run.lines if level in (line.get("awake") or [])}
        if wakes:
            ends = [*sorted(wakes), run.rounds[-1] + 1]
            bars.append((f"interval {shade(level, levels)}", row, list(pairwise(ends))))
            bars.append(("wake", row, [(round, round + 1) for round in ends[:-1]]))
    return Panel(
        title="Awake levels",
        note="a mark where an interval begins",
        height=WAKE_ROW * levels,
        y_range=(0, levels),
        y_ticks=list(zip(rows, map(str, lengths), strict=True)),
        bars=bars,
    )


def _curves(run: Run, key: str, bins: Bins) -> list[Curve]:
    """What the journal says of each constraint under a key."""
    names = dict(enumerate(map(str, run.constraints)))

    def entry(i: int) -> Series:
        return series(run, lambda line: dict(enumerate(line.get(key) or [])).get(i), bins)

    return [
        Curve(names.get(i, f"constraint {i + 1}"), part(i), entry(i))
        for i in range(_entries_in(run, key))
    ]


def _entries_in(run: Run, key: str) -> int:
    return max((len(line.get(key) or []) for line in run.lines), default=0)
