"""What the sentences of a page (`assets/words.html`) are made of."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import PurePath
from typing import Any, NamedTuple

from fairsaoml.evaluate.metrics import Counts, nearly_alike, summed
from fairsaoml.evaluate.verdict import NOTIONS, compared, mean_counts
from fairsaoml.evaluate.windows import windows_of
from fairsaoml.report.reading import Line, Run

EXCLUDED = "exclude each other"  # in the journal's warning


def longest_of(runs: Sequence[Run]) -> Run:
    """Return the run with the most rounds."""
    return max(runs, key=lambda run: len(run.rounds))


def furthest(run: Run, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an attribute's notion that is furthest from what was asked, as its answer is."""
    judged = [entry["notions"][key] for key in run.asked.judged]
    same = [one for one in judged if one["answer"] == entry["answer"]]
    return min(same, key=lambda one: 2.0 if one["ratio"] is None else one["ratio"])


def too_small(run: Run, entry: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the groups that no notion could judge, each with its interval."""
    judged = [entry["notions"][key] for key in run.asked.judged]
    return {group: small for notion in judged for group, small in notion["left_out"].items()}


class Cost(NamedTuple):
    """Decisions as they were, beside those of the same learner without fairness, where known.

    Accuracies and ratios are of the same rounds, those that the verdict rests on.
    """

    rounds: Sequence[int] = ()  # the first and the last
    notions: Sequence[tuple[str, str]] = ()  # with the attribute by which groups are compared
    sides: Sequence[tuple[Counts, Sequence[Mapping[str, Any]]]] = ()  # and the ratio by each notion
    changed: float = 0.0  # the share of decisions that fairness changed


def cost(run: Run) -> Cost:
    """Return what fairness cost, measured where the journal has the decisions without it."""
    notions = [(key, name) for name, key in product(run.verdict["attributes"], run.asked.notions)]
    entries = [run.verdict["attributes"][name]["notions"][key] for key, name in notions]
    judged = [entry["rounds"] for entry in entries if entry["rounds"]]
    if not judged:
        return Cost()
    begin, end = min(first for first, _ in judged), max(last for _, last in judged)
    lines = [line for line in run.lines if line.get("plain") and begin <= line["round"] <= end]
    if not lines:
        return Cost((begin, end))

    def side(lines: Sequence[Line]) -> tuple[Counts, Sequence[Mapping[str, Any]]]:
        ratios = []
        for (key, name), entry in zip(notions, entries, strict=True):
            windows = [mean_counts(window, name) for window in windows_of(lines)]
            one = compared(windows, key, list(entry["shares"]))
            ratios.append({"ratio": one.ratio, **one.interval._asdict()})
        return summed(mean_counts(lines, notions[0][1]).values()), ratios

    unfair = [{**line, "counts": line["plain"]["counts"]} for line in lines]
    changed = sum(line["plain"]["changed"] for line in lines)
    rows = max(sum(line["rows"] for line in lines), 1)
    return Cost((begin, end), notions, [side(lines), side(unfair)], changed / rows)


def rounds_of_exclusion(run: Run) -> int:
    """Return in how many rounds what was asked for excluded itself."""
    warned = ((line["round"], " ".join(line.get("warnings") or [])) for line in run.lines)
    return len({number for number, warnings in warned if EXCLUDED in warnings})


def base_rates(run: Run) -> list[str]:
    """Return each group's share of positive labels, by the first attribute."""
    counts = mean_counts(run.lines, next(iter(run.verdict["attributes"])))
    return [f"{group} {percent(c.y1_rows / c.rows)}" for group, c in counts.items() if c.rows]


def all_alike(run: Run) -> tuple[Sequence[int], Counts] | None:
    """Return decisions that are nearly all alike: of the whole run, or of the rounds at its end."""
    attribute = next(iter(run.verdict["attributes"]), "")  # without one, no row is counted
    last = windows_of(run.lines)[-1]
    for rounds, lines in ((), run.lines), ((last[0]["round"], last[-1]["round"]), last):
        total = summed(mean_counts(lines, attribute).values())
        if nearly_alike(total):
            return rounds, total
    return None


def notion_title(key: str, attribute: str) -> str:
    """Return a title such as "Equalized odds by sex"."""
    return f"{sentence(NOTIONS[key].name)} by {attribute}"


def stream_title(run: Run) -> str:
    """Return a stream's name; of a file, its name without folder and ending.

    >>> from types import SimpleNamespace as Fake
    >>> stream_title(Fake(stream="/data/loans.csv.gz")), stream_title(Fake(stream="synthetic"))
    ('loans', 'synthetic')
    """
    return PurePath(run.stream).name.split(".")[0]


def stream_titles(runs: Sequence[Run]) -> str:
    """Return the titles of all streams, each once."""
    return listed(list(dict.fromkeys(map(stream_title, runs))))


def sentence(words: str) -> str:
    """Return words with a capital at the beginning."""
    return words[:1].upper() + words[1:]


def percent(share: float) -> str:
    """Return a share as people say it.

    >>> percent(0.784), percent(0.0012)
    ('78.4 %', '0.1 %')
    """
    return f"{100 * share:.1f} %"


def plain(value: float | None, digits: int = 2) -> str:
    """Return a number as people read it, or "undefined".

    >>> plain(0.8349), plain(None)
    ('0.83', 'undefined')
    """
    return "undefined" if value is None else f"{value:.{digits}f}"


def listed(words: Sequence[str]) -> str:
    """Return words with commas and an "and".

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
