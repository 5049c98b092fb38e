"""What fairness cost: the decisions as they were, beside those of the same learner without it."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from fairsaoml.evaluate.shares import metric_of, summed
from fairsaoml.evaluate.verdict import judge, mean_counts
from fairsaoml.report.reading import Line, Run
from fairsaoml.report.words import interval_words, listed, notion_title, percent, plain, sentence

__all__ = ["Cost", "cost"]

NOT_MEASURED = (
    "Not measured: this learner cannot tell its decisions without fairness. Run the same with "
    "--set constraints=none, and put both folders into one report."
)


class Cost(NamedTuple):
    """A sentence; and where it was measured, each side's cells, with the titles of the ratios."""

    words: str
    titles: Sequence[str] = ()
    sides: Mapping[str, Sequence[str]] = {}


def cost(run: Run) -> Cost:
    """Return what fairness cost, measured where the journal has the decisions without it."""
    if not run.asked.notions:
        return Cost("It was not asked to be fair.")
    lines = [line for line in run.lines if line.get("plain")]
    if not lines:
        return Cost(NOT_MEASURED)
    attribute = next(iter(run.verdict["attributes"]))
    keys = list(product(run.verdict["attributes"], run.asked.notions))
    titles = [notion_title(key, name) for name, key in keys]
    paid: list[float] = []
    ratios: list[list[str]] = []

    def side(lines: Sequence[Line], verdict: Mapping[str, Any]) -> list[str]:
        total = summed(mean_counts(lines, attribute).values())
        notions = [verdict["attributes"][name]["notions"][key] for name, key in keys]
        paid.append(metric_of(run.measure, total))
        ratios.append([plain(entry["ratio"]) for entry in notions])
        return [
            *(f"{metric_of(name, total):.3f}" for name in ("accuracy", "balanced_accuracy")),
            percent(total.predicted_positive / max(total.rows, 1)),
            *(interval_words(entry, run.asked.ratio) for entry in notions),
        ]

    without = [{**line, "counts": line["plain"]["counts"]} for line in lines]
    sides = {
        "As decided": side(lines, run.verdict),
        "Without fairness": side(without, judge(without, run.asked)),
    }
    gained = [
        f"{title[0].lower()}{title[1:]} of {fair} instead of {unfair}"
        for title, fair, unfair in zip(titles, *ratios, strict=True)
    ]
    changed = sum(line["plain"]["changed"] for line in lines)
    rows = max(sum(line["rows"] for line in lines), 1)
    words = (
        f"{sentence(run.measure.replace('_', ' '))} is {paid[0]:.3f} instead of {paid[1]:.3f}, for "
        f"{listed(gained)}. Fairness changed {percent(changed / rows)} of the decisions."
    )
    return Cost(words, titles, sides)
