"""The verdict in plain words: who stays fair, at what accuracy, how far from what is possible."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairsaoml.report.figures import FAIR
from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.reading import Run

__all__ = ["Judgement", "count", "ends", "headline", "judge", "plain", "verdict"]

ONE_SIDED = 0.02  # a rule that says yes, or no, this rarely has ratios that say little


class Judgement(NamedTuple):
    """The last rounds of one domain, pooled over rounds and seeds."""

    domain: str
    rounds: int
    dp: float | None
    eo: float | None
    accuracy: float | None
    positive_rate: float | None
    few: bool  # whether a ratio rests on few cases
    best: float | None  # of any rule
    best_fair: float | None  # of any rule that is fair

    @property
    def fair(self) -> bool | None:
        """None when it cannot be told: a ratio is undefined and the other does not fail."""
        met = [None if ratio is None else ratio >= FAIR for ratio in (self.dp, self.eo)]
        return False if False in met else None if None in met else True


def judge(run: Run) -> list[Judgement]:
    """One judgement per domain, in the order of the stream."""
    return [
        Judgement(
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
    """One line that answers: does it stay fair?"""
    streams = sorted({run.stream for run in runs if run.stream})
    where = f" on {' and '.join(streams)}" if streams else ""
    if len(runs) == 1:
        return runs[0].name + ANSWER[stays_fair(judge(runs[0]))] + where
    fair = sum(stays_fair(judge(run)) is True for run in runs)
    many = "None" if fair == 0 else "All" if fair == len(runs) else str(fair)
    return f"{many} of {len(runs)} runs {'stays' if fair == 1 else 'stay'} fair{where}"


def stays_fair(judgements: Sequence[Judgement]) -> bool | None:
    """Fair in every domain; unfair if in any; else it cannot be told."""
    each = [judgement.fair for judgement in judgements]
    return False if False in each else None if None in each or not each else True


ANSWER = {
    True: " stays fair",
    False: " does not stay fair",
    None: ": no verdict",
}


def verdict(run: Run) -> Markup:
    """A paragraph about one run."""
    judgements = judge(run)
    answer = stays_fair(judgements)
    class_ = {True: "good", False: "bad", None: "unknown"}[answer]
    said = {True: "stays fair", False: "does not stay fair", None: "cannot be judged"}[answer]
    sentences: list[str] = [_reason(judgements, answer)]
    accuracies = [j.accuracy for j in judgements if j.accuracy is not None]
    if accuracies:
        sentences.append(
            f" Its accuracy there is {_span(accuracies)}{_distance(judgements, answer)}."
        )
    for j in judgements:
        rate = j.positive_rate
        if rate is not None and not ONE_SIDED < rate < 1 - ONE_SIDED:
            sentences.append(
                f" In {j.domain} it says {'yes' if rate > 0.5 else 'no'} to nearly "
                f"everyone (positive rate {plain(rate)}): its ratios say little."
            )
    if few := [j.domain for j in judgements if j.few]:
        sentences.append(f" A ratio rests on few cases in {_list(few)}.")
    if not run.finished:
        of = f" of {run.length}" if run.length else ""
        sentences.append(f" The run has not finished: {run.rounds[-1]}{of} rounds are in.")
    return join(element("strong", run.name), " ", element("span", said, class_=class_), *sentences)


def plain(value: float | None, digits: int = 2) -> str:
    """A number as people read it; what is undefined is called so.

    >>> plain(0.8349), plain(None)
    ('0.83', 'undefined')
    """
    return "undefined" if value is None else f"{value:.{digits}f}"


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "seed"), count(1200, "round")
    ('1 seed', '1,200 rounds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _reason(judgements: Sequence[Judgement], answer: bool | None) -> str:
    if not judgements:
        return ": it has no rounds to judge."
    window = f"the last {_rounds(judgements)} of {_everywhere(judgements)}"
    if answer is None:
        unclear = [j.domain for j in judgements if j.fair is None]
        return f": in {window}, DP or EO is undefined ({_list(unclear)})."
    lowest = "; ".join(
        f"lowest {name} {plain(value)}{_in(domain, judgements)}"
        for name, (value, domain) in (
            ("DP", _lowest((j.dp, j.domain) for j in judgements)),
            ("EO", _lowest((j.eo, j.domain) for j in judgements)),
        )
        if value is not None
    )
    if answer:
        both = "DP and EO are both at least 0.80"
        return f": {both} in {window} ({lowest})."
    failing = [j for j in judgements if j.fair is False]
    missed = [("DP", [_misses(j.dp) for j in failing]), ("EO", [_misses(j.eo) for j in failing])]
    names = [name for name, misses in missed if any(misses)]
    always = all(all(misses) for _, misses in missed)
    which = f"{' and '.join(names)} are" if always else f"{' or '.join(names)} is"
    some = len(failing) < len(judgements)
    where = f"{len(failing)} of {len(judgements)} domains" if some else _everywhere(judgements)
    return f": {which} below 0.80 in the last {_rounds(judgements)} of {where} ({lowest})."


def _distance(judgements: Sequence[Judgement], answer: bool | None) -> str:
    """A fair run is held against the best fair rule, any other against the best rule."""
    fair = answer is True and all(j.best_fair is not None for j in judgements)
    pairs = [(j.best_fair if fair else j.best, j.accuracy) for j in judgements]
    short = [best - got for best, got in pairs if best is not None and got is not None]
    if not short:
        return ""
    what = "the best that a fair rule can reach" if fair else "the best that any rule can reach"
    if max(short) < 0.005:
        return f", level with {what}"
    low, high = max(min(short), 0.0), max(short)
    amount = plain(high) if plain(low) == plain(high) else f"{plain(low)} to {plain(high)}"
    return f", {amount} below {what}"


def ends(runs: Sequence[Run]) -> str:
    """What is judged, as the head of a column."""
    return f"Last {_rounds([j for run in runs for j in judge(run)])}"


def _misses(ratio: float | None) -> bool:
    return ratio is not None and ratio < FAIR


def _everywhere(judgements: Sequence[Judgement]) -> str:
    return "the stream" if len(judgements) == 1 else "every domain"


def _rounds(judgements: Sequence[Judgement]) -> str:
    most = max((j.rounds for j in judgements), default=0)
    return {1: "round", 10: "ten rounds"}.get(most, f"{most} rounds")


def _lowest(pairs: Iterable[tuple[float | None, str]]) -> tuple[float | None, str]:
    known = [(value, domain) for value, domain in pairs if value is not None]
    return min(known, default=(None, ""))


def _in(domain: str, judgements: Sequence[Judgement]) -> str:
    return f" in {domain}" if len(judgements) > 1 else ""


def _span(values: Sequence[float]) -> str:
    low, high = plain(min(values)), plain(max(values))
    return low if low == high else f"{low} to {high}"


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
