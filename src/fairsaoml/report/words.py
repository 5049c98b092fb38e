"""The words of a page: the verdict, and what its sentences (`assets/words.html`) are made of."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from fairsaoml.evaluate.rule import ratio_words
from fairsaoml.evaluate.verdict import NOTIONS
from fairsaoml.report.reading import Run

__all__ = [
    "among",
    "count",
    "furthest",
    "headline",
    "interval_words",
    "listed",
    "longest_of",
    "notion_title",
    "percent",
    "plain",
    "rates_of",
    "sentence",
    "stream_title",
    "stream_titles",
    "too_small",
]


def headline(runs: Sequence[Run]) -> str:
    """Return the verdict in a sentence: of one run by attribute, of several by how many are fair.

    >>> from types import SimpleNamespace as Fake
    >>> headline([Fake(verdict={"answer": answer}) for answer in ("fair", "fair", "too few")])
    '2 of 3 runs are fair; for 1 there are not enough rows to tell'
    """
    if len(runs) == 1:
        return str(runs[0].verdict["sentence"])
    answers = [run.verdict["answer"] for run in runs]
    fair, unfair, unclear = (answers.count(key) for key in ("fair", "not fair", "too few"))
    said = [f"{fair or 'None'} of {len(runs)} runs {'is' if fair < 2 else 'are'} fair"]
    if unclear and unfair:
        said.append(f"{unfair} {'is' if unfair == 1 else 'are'} not")
    if unclear:
        said.append(f"for {unclear} there are not enough rows to tell")
    return "; ".join(said)


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


def rates_of(notion: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Return the group that is worse off and the better one: the name, how many, of how many."""
    return [
        (group, *notion["shares"][group]) for group in (notion["worse_off"], notion["better_off"])
    ]


def among(run: Run, rate: str) -> str:
    """Return the rows that a rate is taken of, by the label's own name where it has one."""
    if rate == "selection_rate":
        return ""
    kind = "positive" if rate == "true_positive_rate" else "negative"
    label = (run.source.get("encoder") or {}).get("label") or {}
    if label.keys() >= {"column", kind}:
        return f" with {label['column']} = {label[kind]}"
    return f" with a {kind} label"


def interval_words(entry: Mapping[str, Any], asked: float) -> str:
    """Return a ratio with its interval."""
    if entry["ratio"] is None:
        return "undefined"
    value = ratio_words(entry["ratio"], asked)
    return f"{value} ({entry['low']:.2f} to {entry['high']:.2f})"


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


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "seed"), count(1200, "round")
    ('1 seed', '1,200 rounds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """Return words with commas and an "and".

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
