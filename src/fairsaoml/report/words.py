"""The conclusion in plain words: which runs stay fair, how accurate they are, what is possible."""

from collections.abc import Sequence
from typing import NamedTuple

from fairsaoml.evaluate.rule import RULE, Verdict, ratio_words, worst
from fairsaoml.evaluate.rule import verdict as rule_verdict
from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.reading import Run

__all__ = ["DomainEnd", "conclusion", "count", "domain_ends", "headline", "last_rounds", "plain"]

ONE_SIDED = 0.02  # ratios say little of decisions that are nearly all positive or all negative


class DomainEnd(NamedTuple):
    """The last rounds of one domain, pooled over rounds and seeds."""

    domain: str
    rounds: int
    dp: float | None
    eo: float | None
    accuracy: float | None
    positive_rate: float | None
    few: bool  # whether a ratio rests on few cases
    best: float | None  # accuracy of any rule
    best_fair: float | None  # accuracy of any fair rule

    @property
    def verdict(self) -> Verdict:
        """Whether both ratios meet the 80 % rule."""
        return worst([rule_verdict(self.dp), rule_verdict(self.eo)])


def domain_ends(run: Run) -> list[DomainEnd]:
    """Return the end of each domain, in the order of the stream."""
    return [
        DomainEnd(
            domain=block.domain or "",
            rounds=block.last - block.first + 1,
            dp=block.figures.pooled.get("dp_ratio"),
            eo=block.figures.pooled.get("eo_ratio"),
            accuracy=block.figures.pooled.get("accuracy"),
            positive_rate=block.figures.pooled.get("positive_rate"),
            few=bool(block.figures.pooled.get("insufficient")),
            best=block.best.get("accuracy"),
            best_fair=block.best.get("fair_accuracy"),
        )
        for block in run.blocks
        if block.end
    ]


def headline(runs: Sequence[Run]) -> str:
    """Return one line that answers: does it stay fair?"""
    streams = sorted({run.stream for run in runs if run.stream})
    where = f" on {' and '.join(streams)}" if streams else ""
    verdicts = [_verdict(domain_ends(run)) for run in runs]
    if len(runs) == 1:
        answer, _ = ANSWERS[verdicts[0]]
        return f"{runs[0].name} {answer}{where}"
    fair = verdicts.count("met")
    many = "None" if fair == 0 else "All" if fair == len(runs) else str(fair)
    return f"{many} of {len(runs)} runs {'stays' if fair == 1 else 'stay'} fair{where}"


def _verdict(ends: Sequence[DomainEnd]) -> Verdict:
    return worst([end.verdict for end in ends] or ["undefined"])


ANSWERS = {  # the words, and their class in page.css
    "met": ("stays fair", "good"),
    "missed": ("does not stay fair", "bad"),
    "undefined": ("cannot be judged", "unknown"),
}


def conclusion(run: Run) -> Markup:
    """Return a paragraph about one run."""
    ends = domain_ends(run)
    answer, class_ = ANSWERS[_verdict(ends)]
    sentences: list[str] = [_reason(ends)]
    accuracies = [end.accuracy for end in ends if end.accuracy is not None]
    if accuracies:
        where = "there" if len(ends) == 1 else "at the domains' ends"
        sentences.append(f" Its accuracy {where} is {_span(accuracies)}{_distance(ends)}.")
    for end in ends:
        rate = end.positive_rate
        if rate is not None and not ONE_SIDED < rate < 1 - ONE_SIDED:
            sentences.append(
                f" In {end.domain} it says {'yes' if rate > 0.5 else 'no'} to nearly "
                f"everyone (positive rate {plain(rate)}): its ratios say little."
            )
    if few := [end.domain for end in ends if end.few]:
        sentences.append(f" A ratio rests on few cases in {_list(few)}.")
    if not run.finished:
        of = f" of {run.length}" if run.length else ""
        sentences.append(f" The run has not finished: {run.rounds[-1]}{of} rounds are in.")
    return join(
        element("strong", run.name), " ", element("span", answer, class_=class_), *sentences
    )


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


def _reason(ends: Sequence[DomainEnd]) -> str:
    """What the answer rests on: which ratios, where, and how low they are."""
    if not ends:
        return ": it has no rounds to judge."
    one, rounds = len(ends) == 1, _rounds(ends)
    everywhere = "the stream" if one else "every domain"
    verdict = _verdict(ends)
    if verdict == "undefined":
        unclear = _list([end.domain for end in ends if end.verdict == "undefined"])
        return f": in the last {rounds} of {everywhere}, DP or EO is undefined ({unclear})."
    values = {
        "DP": [(end.dp, end.domain) for end in ends if end.dp is not None],
        "EO": [(end.eo, end.domain) for end in ends if end.eo is not None],
    }
    lowest = "; ".join(
        f"lowest {name} {ratio_words(min(pairs)[0])}" + ("" if one else f" in {min(pairs)[1]}")
        for name, pairs in values.items()
        if pairs
    )
    if verdict == "met":
        subject, where = f"DP and EO are both at least {RULE:.2f}", everywhere
    else:
        failing = [end for end in ends if end.verdict == "missed"]
        missed = [
            ("DP", [rule_verdict(end.dp) == "missed" for end in failing]),
            ("EO", [rule_verdict(end.eo) == "missed" for end in failing]),
        ]
        names = [name for name, misses in missed if any(misses)]
        always = all(all(misses) for _, misses in missed)
        which = f"{' and '.join(names)} are" if always else f"{' or '.join(names)} is"
        subject, where = f"{which} below {RULE:.2f}", f"{len(failing)} of {len(ends)} domains"
        if len(failing) == len(ends):
            where = everywhere
        elif len(failing) == 1:
            where = failing[0].domain
    return f": {subject} in the last {rounds} of {where} ({lowest})."


def _distance(ends: Sequence[DomainEnd]) -> str:
    """How far from the best of a fair rule and from the best of any, where they are known."""
    bests = {
        "the best of a fair rule": [(end.best_fair, end.accuracy) for end in ends],
        "the best of any rule": [(end.best, end.accuracy) for end in ends],
    }
    parts = []
    for what, pairs in bests.items():
        short = [best - got for best, got in pairs if best is not None and got is not None]
        if short:
            parts.append(f"{_gap(short)} {what}")
    return f", {' and '.join(parts)}" if parts else ""


def _gap(short: Sequence[float]) -> str:
    """What is missing to the best, smallest to largest, in words.

    >>> _gap([0.031, 0.012]), _gap([-0.02]), _gap([0.001]), _gap([-0.02, 0.03])
    ('0.01 to 0.03 below', '0.02 above', 'level with', 'between 0.02 above and 0.03 below')
    """
    low, high = min(short), max(short)
    if plain(abs(low)) == plain(abs(high)) == plain(0.0):
        return "level with"
    if low >= 0 or high <= 0:
        return f"{_span([abs(low), abs(high)])} {'below' if low >= 0 else 'above'}"
    return f"between {plain(-low)} above and {plain(high)} below"


def last_rounds(runs: Sequence[Run]) -> str:
    """Return the head of a column about the domains' ends, such as "Last ten rounds"."""
    return f"Last {_rounds([end for run in runs for end in domain_ends(run)])}"


def _rounds(ends: Sequence[DomainEnd]) -> str:
    most = max((end.rounds for end in ends), default=0)
    return {1: "round", 10: "ten rounds"}.get(most, f"{most} rounds")


def _span(values: Sequence[float]) -> str:
    low, high = plain(min(values)), plain(max(values))
    return low if low == high else f"{low} to {high}"


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
