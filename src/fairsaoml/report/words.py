"""The page in sentences: the verdict, who is worse off, what fairness cost."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from fairsaoml.evaluate.rule import ratio_words
from fairsaoml.evaluate.verdict import NOTIONS, WARM_UP
from fairsaoml.report.reading import Run

__all__ = [
    "count",
    "headline",
    "interval_words",
    "lead",
    "listed",
    "notion_title",
    "percent",
    "plain",
    "sentence",
    "stream_title",
    "stream_titles",
    "who",
]

STEADY = 1.05  # a ratio of sums that is this much higher hides gaps in opposite directions


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


def lead(runs: Sequence[Run]) -> str:
    """Return what was run, how much of it, and from when to when."""
    longest = max(runs, key=lambda run: len(run.rounds))
    rows = round(sum(line.get("rows") or 0 for line in longest.lines) / len(longest.seeds))
    said = [count(len(longest.rounds), "round"), count(rows, "row")]
    if len(longest.domains) > 1:
        said.append(count(len(longest.domains), "domain"))
    if len(longest.seeds) > 1:
        said.append(count(len(longest.seeds), "seed"))
    days = longest.days(longest.rounds[0], longest.rounds[-1])
    what = runs[0].name if len(runs) == 1 else count(len(runs), "run")
    more = [
        f" {run.name} has not finished: {run.rounds[-1]}"
        + (f" of {run.length}" if run.length else "")
        + " rounds are in."
        for run in runs
        if not run.finished
    ]
    for run in runs:
        name = f"{run.name}: " if len(runs) > 1 and run.left_out else ""
        more += [f" {name}{' '.join(run.left_out)}"] if run.left_out else []
    return f"{what} on {stream_titles(runs)}: {', '.join(said)}{days}.{''.join(more)}"


def who(run: Run) -> dict[str, str]:
    """Return a paragraph for each attribute: who is worse off, by how much, and since when."""
    paragraphs = {}
    for attribute, entry in run.verdict["attributes"].items():
        # The notion that is furthest from what was asked, of those that the answer rests on.
        judged = [entry["notions"][key] for key in run.asked.judged]
        same = [one for one in judged if one["answer"] == entry["answer"]]
        worst = min(same, key=lambda one: 2.0 if one["ratio"] is None else one["ratio"])
        said = [_difference(run, worst), _history(run, worst)]
        for group, small in {g: s for one in judged for g, s in one["left_out"].items()}.items():
            said.append(
                f" {sentence(group)} has too few rows to say ({small['rows']:,}): the ratio to the "
                f"others may be anything from {small['low']:.2f} to {small['high']:.2f}; it is not "
                "judged."
            )
        if entry["unknown_rows"]:
            share = percent(entry["unknown_rows"] / max(entry["rows"], 1))
            said.append(
                f" {count(entry['unknown_rows'], 'row')} ({share}) have no {attribute}, or one "
                "that the first round did not have: they are decided, and compared with nobody."
            )
        paragraphs[attribute] = "".join(said)
    return paragraphs


def _difference(run: Run, entry: Mapping[str, Any]) -> str:
    """The rates of the two groups that differ most, in words."""
    if entry["ratio"] is None:
        return "no two groups have rows that can be compared."
    worse, better = entry["worse_off"], entry["better_off"]
    (a, n), (b, m) = entry["shares"][worse], entry["shares"][better]
    one, other = (part / whole if whole else 0.0 for part, whole in ((a, n), (b, m)))
    begins = {
        "fair": f"nobody by more than {'was asked' if run.asked.notions else 'the rule allows'}.",
        "not fair": f"{worse} is worse off.",
        "too few": "not enough rows to tell.",
    }[entry["answer"]]
    said = (
        f"{begins} Of {worse}{_among(run, entry['rate'])} {percent(one)} are {run.asked.decided} "
        f"({a:,} of {n:,}); of {better} {percent(other)} ({b:,} of {m:,})."
    )
    if min(one, other) > STEADY * entry["ratio"] * max(one, other):
        said += (
            " These are sums: the gap went back and forth, and the ratio does not let it cancel."
        )
    return said


def _among(run: Run, rate: str) -> str:
    """The rows that a rate is taken of, by the label's own name where it has one."""
    if rate == "selection_rate":
        return ""
    kind = "positive" if rate == "true_positive_rate" else "negative"
    label = (run.source.get("encoder") or {}).get("label") or {}
    if label.keys() >= {"column", kind}:
        return f" with {label['column']} = {label[kind]}"
    return f" with a {kind} label"


def _history(run: Run, entry: Mapping[str, Any]) -> str:
    """Which rounds are judged, and since when the answer has held."""
    first, last = entry["rounds"]
    said = f" Judged: rounds {first} to {last}{run.days(first, last)}."
    start = int(run.rounds[-1] * WARM_UP) + 1
    if entry["since"] > start and entry["answer"] != "not fair":
        return f"{said} The rounds just before {run.when(entry['since'])} were not fair."
    if entry["answer"] == "not fair":
        since = run.when(entry["since"]) if entry["since"] > start else "the beginning"
        return f"{said} It has been so since {since}."
    return said


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
