"""Fairness and accuracy over time: the ratios asked for first, the others as information."""

import math
from collections.abc import Callable, Mapping, Sequence

from fairsaoml.evaluate.rule import RULE
from fairsaoml.evaluate.verdict import NOTIONS
from fairsaoml.report.chart import Chart, Curve, Panel
from fairsaoml.report.figures import LOW, TALL, position_label, style
from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.pooling import pooled_bins, ratios
from fairsaoml.report.reading import Domain, Run, attributes_of, day, series
from fairsaoml.report.svg import Frame, band, extent, hline, line, tick_words, ticks
from fairsaoml.report.words import sentence

__all__ = ["progress"]


def progress(runs: Sequence[Run], best: Mapping[str, Mapping[str, float]]) -> Chart:
    """Return the chart of the ratios and of accuracy over time, the runs overlaid.

    Args:
        runs: of one stream.
        best: the best possible figures by domain, where they are known.
    """
    bins = pooled_bins(runs)
    xs = [sum(rounds) / len(rounds) for rounds in bins]
    longest = max(runs, key=lambda run: run.rounds[-1])
    alone = len(runs) == 1

    def overlaid(frame: Frame, curves: Sequence[Curve]) -> Markup:
        bands = [band(frame, xs, c.values.low, c.values.high, f"band {c.style}") for c in curves]
        return join(*bands, *(line(frame, xs, c.values.mean, c.style) for c in curves))

    def panel(
        title: str,
        notes: Sequence[str],
        height: float,
        curves: Sequence[Curve],
        more: Callable[[Frame], Markup],
        least: Sequence[float] = (),
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
            marks=lambda frame: join(more(frame), overlaid(frame, curves)),
            curves=curves,
        )

    def ratio_panel(attribute: str, notion: str) -> Panel:
        asking = {run.asked.ratio for run in runs if notion in run.asked.judged}
        asked = any(notion in run.asked.notions for run in runs)
        curves = [
            Curve(run.name, style(i), ratios(run, attribute, notion, bins, alone))
            for i, run in enumerate(runs)
        ]
        lines = sorted(asking) or [RULE]
        goal = " and ".join(f"{value:.2f}" for value in lines)
        note = f"asked for: {goal}" if asked else "for information; line: the 80 % rule"
        return panel(
            f"{sentence(NOTIONS[notion].name)} by {attribute}",
            [note],
            TALL if asked or not any(run.asked.notions for run in runs) else LOW,
            curves,
            lambda frame: join(*(hline(frame, value, "rule") for value in lines)),
            [*lines, 1.0],
        )

    measure = runs[0].measure
    accuracy = [
        Curve(run.name, style(i), series(run, lambda line: line.get(measure), bins))
        for i, run in enumerate(runs)
    ]
    remarks = []
    plain = series(runs[0], lambda line: (line.get("plain") or {}).get(measure), bins)
    if alone and extent(plain.mean):
        plain = plain._replace(low=[None] * len(xs), high=[None] * len(xs))
        accuracy.append(Curve("without fairness", "part-4", plain))
        remarks.append("grey: the same learner without fairness")
    known = [best[domain.name] for domain in longest.domains if domain.name in best]
    bests = [entry[key] for entry in known for key in ("accuracy", "fair_accuracy") if key in entry]
    if known and measure == "accuracy":
        remarks.append("dashed: the best of any rule, dotted: of a fair rule")
    shown = bests if measure == "accuracy" else []
    notions = list(dict.fromkeys(key for run in runs for key in (*run.asked.judged, "dp", "eo")))
    return Chart(
        title="Fairness and accuracy over time",
        description=_spoken(runs),
        xs=xs,
        labels=[position_label(longest, rounds) for rounds in bins],
        days={number: day(period[0]) for number, period in longest.periods.items()},
        domains=longest.domains,
        panels=[
            *(ratio_panel(a, n) for a in attributes_of(runs) for n in notions),
            panel(
                sentence(measure.replace("_", " ")),
                remarks,
                TALL,
                accuracy,
                lambda frame: _best(longest.domains, best, frame) if shown else Markup(),
                shown,
            ),
        ],
        name_ends=not alone,
    )


def _best(
    domains: Sequence[Domain], best: Mapping[str, Mapping[str, float]], frame: Frame
) -> Markup:
    """Lines at the best possible accuracy of each domain."""
    lines = []
    for domain in domains:
        for key, class_ in (("accuracy", "best"), ("fair_accuracy", "best fair")):
            value = best.get(domain.name, {}).get(key)
            if value is not None:
                y = frame.y(value)
                x1, x2 = frame.x(domain.first - 0.5), frame.x(domain.last + 0.5)
                lines.append(element("line", x1=x1, x2=x2, y1=y, y2=y, class_=class_))
    return join(*lines)


def _tenths(reach: tuple[float, float]) -> tuple[float, float]:
    """Widened to tenths, at least two of them, within 0 and 1.

    >>> _tenths((0.613, 0.84)), _tenths((0.95, 0.96))
    ((0.6, 0.9), (0.8, 1.0))
    """
    low = min(math.floor(reach[0] * 10), 8)
    return (low / 10, max(math.ceil(reach[1] * 10), low + 2) / 10)


def _spoken(runs: Sequence[Run]) -> str:
    names = ", ".join(run.name for run in runs)
    return (
        f"Lines for {names}, within bands where they are uncertain. A gap in a line is where the "
        "ratio is undefined. The tables below give the numbers."
    )
