"""What fairness cost a run, and what the advice about it rests on.

The cost is the decisions as they were, beside those of the same learner without fairness.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from fairsaoml.evaluate.metrics import metric_of, nearly_alike, summed
from fairsaoml.evaluate.verdict import compared, mean_counts
from fairsaoml.evaluate.windows import windows_of
from fairsaoml.report.reading import Line, Run
from fairsaoml.report.words import interval_words, listed, notion_title, percent, plain

__all__ = [
    "Alike",
    "Cost",
    "all_alike",
    "base_rates",
    "cost",
    "rounds_of_exclusion",
]

NOT_MEASURED = (
    "Not measured: this learner cannot tell its decisions without fairness. Run the same with "
    "--set constraints=none, and put both folders into one report."
)

EXCLUDED = "exclude each other"  # in the journal's warning


class Cost(NamedTuple):
    """A sentence; and where it was measured, in which rounds, each side's cells, ratios' titles."""

    words: str
    rounds: Sequence[int] = ()  # the first and the last
    titles: Sequence[str] = ()
    sides: Mapping[str, Sequence[str]] = {}


def cost(run: Run) -> Cost:
    """Return what fairness cost, measured where the journal has the decisions without it.

    Accuracies and ratios are of the same rounds, those that the verdict rests on.
    """
    if not run.asked.notions:
        asked = " and ".join(run.asked.unmeasured)
        missing = f"Not measured: what {asked} compares is known to its learner alone."
        return Cost(missing if asked else "It was not asked to be fair.")
    keys = list(product(run.verdict["attributes"], run.asked.notions))
    entries = [run.verdict["attributes"][name]["notions"][key] for name, key in keys]
    judged = [entry["rounds"] for entry in entries if entry["rounds"]]
    if not judged:
        return Cost("Not measured: no round is judged.")
    begin, end = min(first for first, _ in judged), max(last for _, last in judged)
    lines = [line for line in run.lines if line.get("plain") and begin <= line["round"] <= end]
    if not lines:
        return Cost(NOT_MEASURED)
    titles = [notion_title(key, name) for name, key in keys]
    paid: list[float] = []
    ratios: list[list[str]] = []

    def side(lines: Sequence[Line]) -> list[str]:
        windows = windows_of(lines)
        total = summed(mean_counts(lines, keys[0][0]).values())
        notions = [
            compared([mean_counts(window, name) for window in windows], key, list(entry["shares"]))
            for (name, key), entry in zip(keys, entries, strict=True)
        ]
        paid.append(metric_of(run.measure, total))
        ratios.append([plain(one.ratio) for one in notions])
        return [
            *(f"{metric_of(name, total):.3f}" for name in ("accuracy", "balanced_accuracy")),
            percent(total.predicted_positive / max(total.rows, 1)),
            *(
                interval_words({"ratio": one.ratio, **one.interval._asdict()}, run.asked.ratio)
                for one in notions
            ),
        ]

    sides = {
        "As decided": side(lines),
        "Without fairness": side([{**line, "counts": line["plain"]["counts"]} for line in lines]),
    }
    gained = [
        f"{title[0].lower()}{title[1:]} of {fair} instead of {unfair}"
        for title, fair, unfair in zip(titles, *ratios, strict=True)
    ]
    changed = sum(line["plain"]["changed"] for line in lines)
    rows = max(sum(line["rows"] for line in lines), 1)
    words = (
        f"In rounds {begin} to {end}, which are judged, {run.measure.replace('_', ' ')} is "
        f"{paid[0]:.3f} instead of {paid[1]:.3f}, for {listed(gained)}. Fairness changed "
        f"{percent(changed / rows)} of the decisions."
    )
    return Cost(words, (begin, end), titles, sides)


def rounds_of_exclusion(run: Run) -> int:
    """Return in how many rounds what was asked for excluded itself."""
    warned = {
        line["round"]
        for line in run.lines
        if any(EXCLUDED in warning for warning in line.get("warnings") or [])
    }
    return len(warned)


def base_rates(run: Run) -> list[str]:
    """Return each group's share of positive labels, by the first attribute."""
    counts = mean_counts(run.lines, next(iter(run.verdict["attributes"])))
    return [f"{group} {percent(c.y1_rows / c.rows)}" for group, c in counts.items() if c.rows]


class Alike(NamedTuple):
    """Decisions that are nearly all alike: their rounds, the shares positive of them and labels."""

    rounds: Sequence[int]  # the first and the last; none: all of them
    decided: float
    labels: float


def all_alike(run: Run) -> Alike | None:
    """Return the decisions where nearly all are alike, over the whole run or at its end."""
    attribute = next(iter(run.verdict["attributes"]), "")  # without one, no row is counted
    last = windows_of(run.lines)[-1]
    for rounds, lines in ((), run.lines), ((last[0]["round"], last[-1]["round"]), last):
        total = summed(mean_counts(lines, attribute).values())
        if nearly_alike(total):
            return Alike(rounds, total.predicted_positive / total.rows, total.y1_rows / total.rows)
    return None
