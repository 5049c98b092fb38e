"""What fairness cost a run, and what to do next, in sentences.

The cost is the decisions as they were, beside those of the same learner without fairness.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from fairsaoml.evaluate.rule import RULE
from fairsaoml.evaluate.shares import RATES, Counts, metric_of, summed
from fairsaoml.evaluate.verdict import NOTIONS, judge, mean_counts
from fairsaoml.evaluate.windows import windows_of
from fairsaoml.report.reading import Line, Run
from fairsaoml.report.words import interval_words, listed, notion_title, percent, plain, sentence

__all__ = ["Cost", "advice", "changes", "cost"]

NOT_MEASURED = (
    "Not measured: this learner cannot tell its decisions without fairness. Run the same with "
    "--set constraints=none, and put both folders into one report."
)

CERTAIN = 4.0  # standard errors between two windows that chance does not explain
MOST_CHANGES = 3
ONE_SIDED = 0.02  # decisions nearly all alike say little
MANY_UNKNOWN = 0.05  # of the rows
EXCLUDED = "exclude each other"  # in the journal's warning
LEAKS = ("likely leak", "restate")  # in the notes of a table


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


def advice(run: Run) -> list[str]:
    """Return sentences, the most pressing first."""
    said = [*_excluded(run), *_by_answer(run), *_one_sided(run), *changes(run)]
    notes = run.source.get("notes") or []
    said += [f"{sentence(note)}." for note in notes if any(word in note for word in LEAKS)]
    for attribute, entry in run.verdict["attributes"].items():
        share = entry["unknown_rows"] / max(entry["rows"], 1)
        if share > MANY_UNKNOWN:
            said.append(
                f"{percent(share)} of the rows have no known {attribute}. Nobody can say how they "
                "are treated as a group: fill the column where you can."
            )
    return said or ["Nothing. Give it the next rows, and look again."]


def changes(run: Run) -> list[str]:
    """Return the likely changes of the world: windows that differ by more than chance."""
    seed = [line for line in run.lines if line["seed"] == run.seeds[0] and line["counts"]]
    windows = windows_of(seed)
    seen = []
    for before, after in pairwise(windows):
        totals = [
            summed(mean_counts(window, next(iter(window[0]["counts"]))).values())
            for window in (before, after)
        ]
        labels = [(total.y1_rows, total.rows) for total in totals]
        right = [RATES["accuracy"].share(total) for total in totals]
        for what, pair, matters in (
            ("the share of positive labels", labels, abs),
            ("accuracy", right, lambda size: -size),
        ):
            size = matters(_errors_apart(*pair))
            if size > CERTAIN:
                old, new = (part / whole for part, whole in pair)
                verb = "fell" if new < old else "rose"
                where = f"around {run.when(after[0]['round'])}"
                seen.append((size, f"{where} {what} {verb} from {old:.2f} to {new:.2f}"))
    if not seen:
        return []
    most = sorted(seen, reverse=True)[:MOST_CHANGES]
    return [
        f"The world has likely changed: {listed([words for _, words in most])}. The learner "
        "follows by itself; ask what happened then."
    ]


def _errors_apart(before: Sequence[float], after: Sequence[float]) -> float:
    """The second share minus the first, in standard errors of equal ones."""
    (a, n), (b, m) = before, after
    if not (n and m):
        return 0.0
    both = (a + b) / (n + m)
    error = math.sqrt(both * (1 - both) * (1 / n + 1 / m))
    return (b / m - a / n) / error if error else 0.0


def _by_answer(run: Run) -> list[str]:
    said = []
    for attribute, entry in run.verdict["attributes"].items():
        for key in run.asked.judged:
            notion = entry["notions"][key]
            where = f"{NOTIONS[key].name} by {attribute}"
            if notion["answer"] == "too few":
                said.append(_more_rows(run, where, notion))
            elif notion["answer"] == "not fair" and not run.asked.notions:
                said.append(
                    f"This run was not asked to be fair, and {where} misses the 80 % rule. The "
                    "default learner keeps to a ratio: fairsaoml run ... --ratio 0.9"
                )
            elif notion["answer"] == "not fair":
                worse = notion["worse_off"]
                said.append(
                    f"{where[0].upper()}{where[1:]} is surely below {run.asked.ratio:.2f}. Look at "
                    f"the rows of {worse} since {run.when(notion['since'])}: a column that says "
                    "what they differ in helps most. A higher --ratio leaves more room."
                )
    return said


def _more_rows(run: Run, where: str, notion: Mapping[str, Any]) -> str:
    """How many rows would be enough to decide, if the ratio stays as it is."""
    ratio, low, high, asked = notion["ratio"], notion["low"], notion["high"], run.asked.ratio
    if not ratio or not low:
        return f"Collect more rows: too few positive decisions to judge {where}."
    times = math.inf
    if ratio > (rule := min(asked, RULE)):  # until it is surely no lower than the rule
        times = (math.log(ratio / low) / math.log(ratio / rule)) ** 2
    if ratio < asked:  # until it is surely below what was asked for
        times = min(times, (math.log(high / ratio) / math.log(asked / ratio)) ** 2)
    many = f"about {max(times, 1.2):.2g} times as many rows" if times < 20 else "far more rows"
    return f"Collect more rows: if it stays as it is, {many} would be enough to decide {where}."


def _excluded(run: Run) -> list[str]:
    rounds = {
        line["round"]
        for line in run.lines
        if any(EXCLUDED in warning for warning in line.get("warnings") or [])
    }
    if not rounds:
        return []
    attribute = next(iter(run.verdict["attributes"]))
    counts = mean_counts(run.lines, attribute)
    rates = [
        f"{group} {percent(own.y1_rows / own.rows)}" for group, own in counts.items() if own.rows
    ]
    return [
        f"What was asked for excludes itself here: base rates differ ({listed(rates)}), so no rule "
        f"that looks at the row has all of it. In {len(rounds)} rounds the first notion was kept. "
        "Ask for one notion alone: --set constraints=eo"
    ]


def _one_sided(run: Run) -> list[str]:
    attribute = next(iter(run.verdict["attributes"]), None)
    if attribute is None:
        return []
    total: Counts = summed(mean_counts(run.lines, attribute).values())
    rate = total.predicted_positive / max(total.rows, 1)
    if ONE_SIDED < rate < 1 - ONE_SIDED:
        return []
    return [
        f"It says {'yes' if rate > 0.5 else 'no'} to nearly everyone ({percent(rate)} positive), "
        "so its ratios say little: --decision balanced puts the threshold at the base rate."
    ]
