"""What fairness cost: the decisions as they were, beside those of the same learner without it."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from fairsaoml.evaluate.metrics import Counts, metric_of, summed
from fairsaoml.evaluate.verdict import judge, mean_counts
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.reading import Line, Run
from fairsaoml.report.tables import head, lined, table
from fairsaoml.report.words import interval_words, listed, notion_title, percent, plain, sentence

__all__ = ["cost"]


class Side(NamedTuple):
    """One way to decide: its counts over all rounds, and the verdict on each notion asked for."""

    total: Counts
    notions: Sequence[Mapping[str, Any]]


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
    keys = list(product(run.verdict["attributes"], run.asked.notions))
    titles = [notion_title(key, name) for name, key in keys]

    def side(lines: Sequence[Line], verdict: Mapping[str, Any]) -> Side:
        notions = [verdict["attributes"][name]["notions"][key] for name, key in keys]
        return Side(summed(mean_counts(lines, attribute).values()), notions)

    fair, unfair = side(lines, run.verdict), side(without, judge(without, run.asked))
    ratios = [
        f"{title[0].lower()}{title[1:]} of {plain(one['ratio'])} instead of {plain(other['ratio'])}"
        for title, one, other in zip(titles, fair.notions, unfair.notions, strict=True)
    ]
    paid, free = (metric_of(run.measure, total) for total, _ in (fair, unfair))
    changed = sum(line["plain"]["changed"] for line in lines)
    rows = max(sum(line["rows"] for line in lines), 1)
    words = (
        f"{sentence(run.measure.replace('_', ' '))} is {paid:.3f} instead of {free:.3f}, for "
        f"{listed(ratios)}. Fairness changed {percent(changed / rows)} of the decisions."
    )
    body = []
    for title, (total, notions) in (("As decided", fair), ("Without fairness", unfair)):
        cells = [f"{metric_of(name, total):.3f}" for name in ("accuracy", "balanced_accuracy")]
        cells.append(percent(total.predicted_positive / max(total.rows, 1)))
        cells += [interval_words(entry, run.asked.ratio) for entry in notions]
        row = [element("td", cell) for cell in cells]
        body.append(element("tr", element("th", title, scope="row"), *row))
    heads = ["Accuracy", "Balanced accuracy", "Positive decisions", *titles]
    return [
        element("p", words),
        table(
            "All rounds. Without fairness: the same learner on the same rows, multipliers at 0.",
            [head("Decisions", "words"), *map(head, heads)],
            lined(body),
        ),
    ]
