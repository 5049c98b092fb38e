"""What fairness cost: the decisions as they were, beside those of the same learner without it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fairsaoml.evaluate.shares import Counts, metric_of, summed
from fairsaoml.evaluate.verdict import judge, mean_counts
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.reading import Run
from fairsaoml.report.tables import head, lined, table
from fairsaoml.report.words import interval_words, listed, notion_title, percent, plain, sentence

__all__ = ["cost"]


class Side(NamedTuple):
    """One way to decide: its counts over all rounds, and the verdict on it."""

    total: Counts
    verdict: Mapping[str, Any]


def cost(run: Run) -> list[Markup]:
    """Return a sentence and a table, measured where the journal has the decisions without it."""
    if not run.asked.notions:
        return [element("p", "It was not asked to be fair.")]
    lines = [line for line in run.lines if line.get("plain")]
    if not lines:
        return [
            element(
                "p",
                "Not measured: this learner cannot tell its decisions without fairness. Run the "
                "same with --set constraints=none, and put both folders into one report.",
            )
        ]
    attribute = next(iter(run.verdict["attributes"]))
    without = [{**line, "counts": line["plain"]["counts"]} for line in lines]
    fair = Side(summed(mean_counts(lines, attribute).values()), run.verdict)
    unfair = Side(summed(mean_counts(without, attribute).values()), judge(without, run.asked))
    keys = [(name, key) for name in run.verdict["attributes"] for key in run.asked.notions]
    ratios = [
        f"{notion_title(key, name)[0].lower()}{notion_title(key, name)[1:]} of "
        f"{plain(_entry(fair, name, key)['ratio'])} instead of "
        f"{plain(_entry(unfair, name, key)['ratio'])}"
        for name, key in keys
    ]
    paid, free = (metric_of(run.measure, side.total) for side in (fair, unfair))
    changed = sum(line["plain"]["changed"] for line in lines)
    rows = max(sum(line["rows"] for line in lines), 1)
    words = (
        f"{sentence(run.measure.replace('_', ' '))} is {paid:.3f} instead of {free:.3f}, for "
        f"{listed(ratios)}. Fairness changed {percent(changed / rows)} of the decisions."
    )
    body = []
    for title, side in (("As decided", fair), ("Without fairness", unfair)):
        cells = [f"{metric_of(name, side.total):.3f}" for name in ("accuracy", "balanced_accuracy")]
        cells.append(percent(side.total.predicted_positive / max(side.total.rows, 1)))
        cells += [interval_words(_entry(side, name, key), run.asked.ratio) for name, key in keys]
        row = [element("td", cell) for cell in cells]
        body.append(element("tr", element("th", title, scope="row"), *row))
    heads = ["Accuracy", "Balanced accuracy", "Positive decisions"]
    heads += [notion_title(key, name) for name, key in keys]
    return [
        element("p", words),
        table(
            "All rounds. Without fairness: the same learner on the same rows, multipliers at 0.",
            [head("Decisions", "words"), *map(head, heads)],
            lined(body),
        ),
    ]


def _entry(side: Side, attribute: str, notion: str) -> Mapping[str, Any]:
    return side.verdict["attributes"][attribute]["notions"][notion]
