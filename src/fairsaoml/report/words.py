"""The verdict in plain words: who stays fair, at what accuracy, how far from what is possible."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairsaoml.report.markup import Markup, element, join
from fairsaoml.report.reading import Run

__all__ = ["FAIR", "Judgement", "count", "ends", "headline", "judge", "plain", "ratio", "verdict"]

FAIR = 0.8  # the 80 % rule
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
        answer, _ = ANSWERS[stays_fair(judge(runs[0]))]
        return f"{runs[0].name} {answer}{where}"
    fair = sum(stays_fair(judge(run)) is True for run in runs)
    many = "None" if fair == 0 else "All" if fair == len(runs) else str(fair)
    return f"{many} of {len(runs)} runs {'stays' if fair == 1 else 'stay'} fair{where}"


def stays_fair(judgements: Sequence[Judgement]) -> bool | None:
    """Fair in every domain; unfair if in any; else it cannot be told."""
    each = [judgement.fair for judgement in judgements]
    return False if False in each else None if None in each or not each else True


ANSWERS = {  # the words, and their class in page.css
    True: ("stays fair", "good"),
    False: ("does not stay fair", "bad"),
    None: ("cannot be judged", "unknown"),
}


def verdict(run: Run) -> Markup:
    """A paragraph about one run."""
    judgements = judge(run)
    answer = stays_fair(judgements)
    said, class_ = ANSWERS[answer]
    sentences: list[str] = [_reason(judgements, answer)]
    accuracies = [j.accuracy for j in judgements if j.accuracy is not None]
    if accuracies:
        where = "there" if len(judgements) == 1 else "at the domains' ends"
        reached = f"{_span(accuracies)}{_distance(judgements)}"
        sentences.append(f" Its accuracy {where} is {reached}.")
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


def ratio(value: float | None) -> str:
    """A ratio to two digits, or to as many as it takes not to round it up to the rule.

    >>> ratio(0.834), ratio(0.7961), ratio(0.79996), ratio(0.8)
    ('0.83', '0.796', '0.79996', '0.80')
    """
    if value is None or value >= FAIR or plain(value) != plain(FAIR):
        return plain(value)
    digits = next((n for n in range(3, 7) if float(plain(value, n)) < FAIR), 7)
    return plain(value, digits)


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
        f"lowest {name} {ratio(value)}{_in(domain, judgements)}"
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
    where = f"{len(failing)} of {len(judgements)} domains"
    if len(failing) == len(judgements):
        where = _everywhere(judgements)
    elif len(failing) == 1:
        where = failing[0].domain
    return f": {which} below 0.80 in the last {_rounds(judgements)} of {where} ({lowest})."


def _distance(judgements: Sequence[Judgement]) -> str:
    """How far from the best of a fair rule and from the best of any, where they are known."""
    bests = {
        "the best of a fair rule": [(j.best_fair, j.accuracy) for j in judgements],
        "the best of any rule": [(j.best, j.accuracy) for j in judgements],
    }
    said = []
    for what, pairs in bests.items():
        short = [best - got for best, got in pairs if best is not None and got is not None]
        if short:
            said.append(f"{_gap(short)} {what}")
    return f", {' and '.join(said)}" if said else ""


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
