"""What fairness cost: the decisions as they were, beside those of the same learner without it."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from fairsaoml.evaluate.metrics import Counts, metric_of, summed
from fairsaoml.evaluate.verdict import Comparison, compared, mean_counts
from fairsaoml.evaluate.windows import windows_of
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.reading import Line, Run
from fairsaoml.report.tables import head, lined, table
from fairsaoml.report.words import interval_words, listed, notion_title, percent, plain

__all__ = ["cost"]


class Side(NamedTuple):
    """One way to decide: its counts over some rounds, and what each notion asked for is there."""

    total: Counts
    notions: Sequence[Comparison]


def cost(run: Run) -> list[Markup]:
    """Return a sentence and a table, measured where the journal has the decisions without it.

    Accuracies and ratios are of the same rounds, those that the verdict rests on.
    """
    if not run.asked.notions:
        return [element("p", "It was not asked to be fair.")]
    keys = list(product(run.verdict["attributes"], run.asked.notions))
    entries = [run.verdict["attributes"][name]["notions"][key] for name, key in keys]
    judged = [entry["rounds"] for entry in entries if entry["rounds"]]
    if not judged:
        return [element("p", "Not measured: no round is judged.")]
    begin, end = min(first for first, _ in judged), max(last for _, last in judged)
    lines = [line for line in run.lines if line.get("plain") and begin <= line["round"] <= end]
    if not lines:
        return [
            element(
                "p",
                "Not measured: this learner cannot tell its decisions without fairness. Run the "
                "same with --set constraints=none, and put both folders into one report.",
            )
        ]
    without = [{**line, "counts": line["plain"]["counts"]} for line in lines]
    titles = [notion_title(key, name) for name, key in keys]

    def side(lines: Sequence[Line]) -> Side:
        windows = windows_of(lines)
        return Side(
            total=summed(mean_counts(lines, keys[0][0]).values()),
            notions=[
                compared([mean_counts(window, name) for window in windows], key, [*entry["shares"]])
                for (name, key), entry in zip(keys, entries, strict=True)
            ],
        )

    fair, unfair = side(lines), side(without)
    ratios = [
        f"{title[0].lower()}{title[1:]} of {plain(one.ratio)} instead of {plain(other.ratio)}"
        for title, one, other in zip(titles, fair.notions, unfair.notions, strict=True)
    ]
    paid, free = (metric_of(run.measure, total) for total, _ in (fair, unfair))
    changed = sum(line["plain"]["changed"] for line in lines)
    rows = max(sum(line["rows"] for line in lines), 1)
    words = (
        f"In rounds {begin} to {end}, which are judged, {run.measure.replace('_', ' ')} is "
        f"{paid:.3f} instead of {free:.3f}, for {listed(ratios)}. Fairness changed "
        f"{percent(changed / rows)} of the decisions."
    )
    body = []
    for title, (total, notions) in (("As decided", fair), ("Without fairness", unfair)):
        cells = [f"{metric_of(name, total):.3f}" for name in ("accuracy", "balanced_accuracy")]
        cells.append(percent(total.predicted_positive / max(total.rows, 1)))
        cells += [
            interval_words({"ratio": one.ratio, **one.interval._asdict()}, run.asked.ratio)
            for one in notions
        ]
        row = [element("td", cell) for cell in cells]
        body.append(element("tr", element("th", title, scope="row"), *row))
    heads = ["Accuracy", "Balanced accuracy", "Positive decisions", *titles]
    return [
        element("p", words),
        table(
            f"Rounds {begin} to {end}. Without fairness: the same learner on the same rows, "
            "multipliers at 0.",
            [head("Decisions", "words"), *map(head, heads)],
            lined(body),
        ),
    ]
