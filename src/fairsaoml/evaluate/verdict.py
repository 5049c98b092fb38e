"""The verdict: was what was asked for kept, for whom not, since when, and how sure is that?

The notions and the ratio come from the run's settings; what nobody asked for is information. Where
nothing was asked for, demographic parity and equalized odds are judged by the 80 % rule.

A notion is judged on the latest windows of ten rounds: as many as it takes for equal treatment to
be told from the ratio asked for, by the number of rows alone, or all after the first tenth of the
rounds. Round 1, which is decided before anything is learned, is never judged: a run of one round
has no verdict. A group whose rows could not even tell it from the 80 % rule is shown with its
interval and left out, unless it is surely below the ratio. A gap that comes and goes averages out
within ten rounds: so the same rounds are also compared one by one, which is said where they are
surely below what was asked for (`averaged_out`). A ratio just below what was asked for,
which may as well be above it, is within its error: it is what was asked for (`answer_of`). Rows
whose group is unknown are counted and compared with nobody.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations, product
from statistics import NormalDist
from typing import Any, NamedTuple

from fairsaoml.evaluate.confidence import Interval, Share, typical_ratio
from fairsaoml.evaluate.metrics import APART, ODDS, RATES, Counts, pooled, summed
from fairsaoml.evaluate.rule import RULE, ratio_words
from fairsaoml.evaluate.windows import Line, windows_of

LEVEL = 0.95
WARM_UP = 0.1  # of the rounds are for learning and are not judged

ANSWERS = {  # the worst first
    "not fair": "not fair",
    "too few": "not enough rows to tell",
    "fair": "fair",
}


class Notion(NamedTuple):
    """A notion of fairness: its name, and the rates that it wants to be equal."""

    name: str
    rates: tuple[str, ...]


NOTIONS = {
    "dp": Notion("demographic parity", ("selection_rate",)),
    "eop": Notion("equal opportunity", ("true_positive_rate",)),
    "eo": Notion("equalized odds", ODDS),
}
UNASKED = ("dp", "eo")  # judged by the 80 % rule where nothing was asked for

NOBODY = Counts()
Groups = Mapping[str, Counts]  # by group; the mean over the seeds, so perhaps no whole numbers


class Asked(NamedTuple):
    """What a run was asked to keep, and whether a positive decision is good for the person."""

    notions: tuple[str, ...] = ()
    ratio: float = RULE
    favourable: bool = True
    unmeasured: tuple[str, ...] = ()  # notions of other packages: no rates are known to show them

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "Asked":
        """What a run's spec.json asks for.

        >>> Asked.of({"learner": {"config": {"constraints": "eo", "ratio": 0.9}}})
        Asked(notions=('eo',), ratio=0.9, favourable=True, unmeasured=())
        """
        config = (spec.get("learner") or {}).get("config") or {}
        stream = (spec.get("stream") or {}).get("settings") or {}
        names = str(config.get("constraints") or "none").split("+")
        notions = tuple(name for name in names if name in NOTIONS)
        return cls(
            notions=notions,
            ratio=float(config.get("ratio") or RULE) if notions else RULE,
            favourable=stream.get("favourable") not in ("no", False),
            unmeasured=tuple(name for name in names if name not in (*NOTIONS, "none")),
        )

    @property
    def decided(self) -> str:
        """What people are who are decided positive; labels say very different things."""
        return "selected" if self.favourable else "decided unfavourably"

    @property
    def judged(self) -> tuple[str, ...]:
        """The notions that the verdict is about."""
        return self.notions or UNASKED


class Comparison(NamedTuple):
    """Groups compared by a notion over some windows: the lowest ratio of any two of them."""

    ratio: float | None  # None: no window in which two groups have rows
    interval: Interval
    rate: str  # the rate that differs most
    lower: str  # the group for which it is lower
    higher: str
    undefined: tuple[str, ...] = ()  # the rates that some groups cannot be compared by

    @property
    def figures(self) -> dict[str, float | None]:
        """The ratio and its interval, as they stand in a verdict."""
        return {"ratio": self.ratio, **self.interval._asdict()}


def answer_of(ratio: float | None, interval: Interval, asked: float) -> str:
    """Return a key of ANSWERS.

    Not fair: the ratio is surely below what was asked for. Not enough rows to tell: it may be what
    was asked for, but also below the 80 % rule (or below what was asked for, where that is less).
    Fair: it may be what was asked for, and is surely no lower than the rule. A learner keeps to the
    ratio it is asked for, so that its interval nearly always has values on both sides of it.

    >>> answer_of(0.897, Interval(0.87, 0.92), 0.9), answer_of(0.93, Interval(0.77, 1.0), 0.9)
    ('fair', 'too few')
    >>> answer_of(0.82, Interval(0.78, 0.86), 0.8), answer_of(0.82, Interval(0.78, 0.86), 0.9)
    ('too few', 'not fair')
    """
    if ratio is None:
        return "too few"
    if interval.high < asked:
        return "not fair"
    return "fair" if interval.low >= min(asked, RULE) else "too few"


def judge(lines: Iterable[Line], asked: Asked) -> dict[str, Any]:
    """Return the verdict on a run, as it stands in `summary.json`.

    Args:
        lines: of `rounds.jsonl`.
        asked: as `Asked.of` reads it from `spec.json`.

    Returns:
        `answer` (a key of ANSWERS), `sentence`, what was `asked`, and by attribute: `answer`,
        `sentence`, `rows`, `unknown_rows`, `new_groups` (values that the first task had not, with
        their `rows` and `since` which round), and by notion `answer`, `ratio`, `low`, `high`, the
        `rounds` (none, where round 1 is all there is) and `windows` it rests on, the `rate` that
        differs most with `worse_off` and `better_off` and their `shares`, `since` (the round since
        which the answer has held), `by_round` (the ratio of these rounds one by one, and its
        interval), the rates that are `undefined`, and `left_out`: the intervals of groups too small
        to say.
    """
    every = list(lines)
    first = first_judged(max(line["round"] for line in every))
    learned = [line for line in every if line["round"] >= first]
    windows, rounds = windows_of(learned), windows_of(learned, size=1)
    attributes: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for line in every for name in line["counts"]):
        total = mean_counts(every, name)
        groups, singly = _declared(windows, name), _declared(rounds, name)
        names = list(dict.fromkeys(chain(*(groups or _declared([every], name)))))
        notions = {
            key: {"asked": key in asked.notions}
            | _notion(windows, groups, singly, names, key, asked)
            for key in NOTIONS
        }
        answer = _worst(notions[key]["answer"] for key in asked.judged)
        attributes[name] = {
            "answer": answer,
            "sentence": _sentence(name, answer, {key: notions[key] for key in asked.judged}, asked),
            "rows": round(sum(counts.rows for counts in total.values())),
            "unknown_rows": round(sum(total[g].rows for g in APART if g in total)),
            "new_groups": _new_groups(every, name),
            "notions": notions,
        }
    answers = {name: entry["answer"] for name, entry in attributes.items()}
    return {
        "answer": _worst(answers.values()),
        "sentence": _headline(answers),
        "asked": {name: list(v) if type(v) is tuple else v for name, v in asked._asdict().items()},
        "level": LEVEL,
        "attributes": attributes,
    }


def _worst(answers: Iterable[str]) -> str:
    return min(answers, key=list(ANSWERS).index, default="too few")


def _new_groups(lines: Sequence[Line], attribute: str) -> dict[str, dict[str, int]]:
    """Values that the first task had not, those of most rows first.

    >>> line = {"round": 7, "new_groups": {"race": {"x": 3}}}
    >>> _new_groups([line, line | {"seed": 1}, line | {"round": 8}], "race")
    {'x': {'rows': 6, 'since': 7}}
    """
    of_rounds = {line["round"]: line.get("new_groups", {}).get(attribute, {}) for line in lines}
    found: dict[str, dict[str, int]] = {}
    for round, rows in sorted(of_rounds.items()):
        for value, number in rows.items():
            found.setdefault(value, {"rows": 0, "since": round})["rows"] += number
    return dict(sorted(found.items(), key=lambda item: -item[1]["rows"]))


def first_judged(last: int) -> int:
    """Return the first round that may be judged, of a run up to round `last`.

    >>> first_judged(90), first_judged(5)
    (10, 2)
    """
    return max(math.floor(WARM_UP * last), 1) + 1  # round 1 is decided before anything is learned


def compared(windows: Sequence[Groups], notion: str, groups: Sequence[str]) -> Comparison:
    """Compare groups by a notion over windows; gaps in opposite directions cancel within one alone.

    Where a rate of two groups cannot be compared, the ratio is that of the others, and may be 0.
    """
    rates = NOTIONS[notion].rates
    each = _each(groups, notion)
    pairs, undefined = [], dict[str, None]()
    for (one, other), rate in product(combinations(groups, 2), rates):
        share = RATES[rate].share
        shares = [(share(w.get(one, NOBODY)), share(w.get(other, NOBODY))) for w in windows]
        ratio, interval = typical_ratio(shares, each)
        if ratio is None:
            undefined[rate] = None
        else:
            pairs.append((ratio, interval, rate, one, other))
    if not pairs:
        return Comparison(None, Interval(0.0, 1.0), rates[0], "", "", tuple(undefined))
    ratio, _, rate, one, other = min(pairs, key=lambda pair: pair[0])
    lower, higher = sorted((one, other), key=lambda group: _share(windows, group, rate).rate)
    low = 0.0 if undefined else min(interval.low for _, interval, *_ in pairs)
    return Comparison(
        ratio=ratio,
        interval=Interval(low, min(interval.high for _, interval, *_ in pairs)),
        rate=rate,
        lower=lower,
        higher=higher,
        undefined=tuple(undefined),
    )


def averaged_out(notion: Mapping[str, Any], asked: float) -> bool:
    """Whether single rounds are surely below what was asked for, and not all of them together."""
    return notion["answer"] != "not fair" and notion["by_round"]["high"] < asked


def not_judged(verdict: Mapping[str, Any]) -> list[str]:
    """Return the groups that a verdict leaves out: each too small for some notion it judges."""
    judged = verdict["asked"]["notions"] or UNASKED
    entries = [entry["notions"][key] for entry in verdict["attributes"].values() for key in judged]
    return list(dict.fromkeys(group for entry in entries for group in entry["left_out"]))


def _since(answers: Sequence[str]) -> int:
    """Return the place since which windows have not been, or have been, surely unfair.

    >>> _since(["fair", "not fair", "too few", "fair"]), _since(["fair", "not fair", "not fair"])
    (2, 1)
    """
    unfair = [answer == "not fair" for answer in answers]
    return next((i + 1 for i in range(len(unfair) - 1, -1, -1) if unfair[i] != unfair[-1]), 0)


def _notion(
    windows: Sequence[Sequence[Line]],
    groups: Sequence[Groups],
    singly: Sequence[Groups],
    names: Sequence[str],
    key: str,
    asked: Asked,
) -> dict[str, Any]:
    """One notion of one attribute: the comparison of the groups large enough, and its answer.

    Args:
        windows: those that may be judged; none where only round 1 is there.
        groups: the counts of each of `windows`; `singly`: of each of their rounds.
        names: all groups that are there.
    """
    rates, total = NOTIONS[key].rates, {name: _summed(groups, [name]) for name in names}
    left_out = {}
    for name in names if windows else ():
        if not _enough(groups, name, key, min(asked.ratio, RULE), _each(names, key)):
            rest = summed(total[other] for other in names if other != name)
            own = compared([{name: total[name], "": rest}], key, [name, ""])
            if answer_of(own.ratio, own.interval, asked.ratio) != "not fair":
                left_out[name] = {"rows": round(total[name].rows), **own.figures}
    kept, judged = [name for name in names if name not in left_out], groups[-1:]
    if len(kept) < 2:  # nobody to compare with: then all are, and the interval says how little
        kept, left_out, judged = list(names), {}, groups
        comparison = compared([total], key, kept)
    else:
        each = _each(kept, key)
        while len(judged) < len(groups) and not all(
            _enough(judged, name, key, asked.ratio, each) for name in kept
        ):
            judged = groups[-len(judged) - 1 :]
        comparison = compared(judged, key, kept)
    alone = [compared([window], key, kept) for window in groups]
    answers = [answer_of(one.ratio, one.interval, asked.ratio) for one in alone]
    answer = answer_of(comparison.ratio, comparison.interval, asked.ratio)
    if len(judged) > 1:  # single windows say less than all of them together
        answers[-len(judged) :] = [answer] * len(judged)
    shares = {group: _share(judged, group, comparison.rate) for group in kept}
    latest = chain(*windows[len(windows) - len(judged) :])
    rounds = sorted({line["round"] for line in latest})
    return {
        "answer": answer,
        **comparison.figures,
        "rounds": [rounds[0], rounds[-1]] if rounds else [],
        "windows": len(judged),
        "rate": comparison.rate,
        "worse_off": comparison.lower if asked.favourable else comparison.higher,
        "better_off": comparison.higher if asked.favourable else comparison.lower,
        "shares": {g: [round(share.part), round(share.whole)] for g, share in shares.items()},
        "since": windows[_since(answers)][0]["round"] if windows else 1,
        "by_round": compared(singly[len(singly) - len(rounds) :], key, kept).figures,
        "undefined": list(comparison.undefined if windows else rates),
        "left_out": left_out,
    }


def _each(groups: Sequence[str], notion: str) -> float:
    """The level of each comparison at which all hold together (Bonferroni)."""
    comparisons = math.comb(len(groups), 2) * len(NOTIONS[notion].rates)
    return 1 - (1 - LEVEL) / max(comparisons, 1)


def _enough(windows: Sequence[Groups], group: str, key: str, ratio: float, level: float) -> bool:
    """Whether a group's rows could tell equal treatment from the ratio, were it so treated."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    others = [name for name in windows[-1] if name != group]
    for rate in NOTIONS[key].rates:
        own, rest = _share(windows, group, rate), RATES[rate].share(_summed(windows, others))
        part, whole = own.part + rest.part, own.whole + rest.whole
        if not (part and own.whole and rest.whole):
            return False
        odds = (whole - part) / part
        if z * math.sqrt(odds * (1 / own.whole + 1 / rest.whole)) > -math.log(ratio):
            return False
    return True


def _headline(answers: Mapping[str, str]) -> str:
    """The headline, such as "Fair by sex; not enough rows to tell by race"."""
    said = []
    for answer, words in ANSWERS.items():
        names = [name for name in answers if answers[name] == answer]
        said += [f"{words} by {' and '.join(names)}"] if names else []
    words = "; ".join(said) or "no group to compare"
    return words[0].upper() + words[1:]


def _sentence(
    attribute: str, answer: str, notions: Mapping[str, Mapping[str, Any]], asked: Asked
) -> str:
    """One attribute's verdict in a sentence: each notion's ratio, its interval, of which rounds."""
    said = []
    for key, entry in notions.items():
        name = NOTIONS[key].name
        if entry["ratio"] is None:
            said.append(f"{name} is undefined, for want of rows")
            continue
        reach = f"({entry['low']:.2f} to {entry['high']:.2f})"
        rounds = "rounds {} to {}".format(*entry["rounds"])
        words = f"{name} is {ratio_words(entry['ratio'], asked.ratio)} {reach} in {rounds}"
        if entry["answer"] == "fair" and entry["ratio"] < asked.ratio:
            words += ", at what was asked within its error"
        if averaged_out(entry, asked.ratio):
            single = "{ratio:.2f} ({low:.2f} to {high:.2f})".format(**entry["by_round"])
            words += f", but {single} round by round: gaps come and go, and average out within "
            words += "ten rounds"
        for rate in entry["undefined"]:
            words += f", its {rate.replace('_', ' ')} undefined for some group"
        said.append(words)
    by_rule = asked.ratio == RULE
    goal = f"the 80 % rule is {RULE:.2f}" if by_rule else f"{asked.ratio:.2f} was asked for"
    if asked.unmeasured:
        goal += f"; {' and '.join(asked.unmeasured)} was asked for, which is not measured here"
    words = ANSWERS[answer]
    if not any(entry["rounds"] for entry in notions.values()):
        said = ["the only round was decided before anything was learned"]
    small = dict.fromkeys(group for entry in notions.values() for group in entry["left_out"])
    apart = f" Not judged, for too few rows: {', '.join(small)}." if small else ""
    return f"{words[0].upper()}{words[1:]} by {attribute}: {' and '.join(said)}; {goal}.{apart}"


def mean_counts(window: Iterable[Line], attribute: str) -> dict[str, Counts]:
    """The window's counts by group, as one seed has them on average: seeds may share their rows."""
    lines = list(window)
    seeds = len({line["seed"] for line in lines})
    groups = pooled(lines, attribute).get(attribute, {})
    # Shares need no whole numbers.
    return {group: Counts(*(n / seeds for n in six)) for group, six in groups.items()}  # type: ignore[arg-type]


def _declared(windows: Iterable[Sequence[Line]], attribute: str) -> list[Groups]:
    """Each window's counts of the groups that may be compared."""
    counts = (mean_counts(lines, attribute) for lines in windows)
    return [{g: six for g, six in groups.items() if g not in APART} for groups in counts]


def _share(windows: Iterable[Groups], group: str, rate: str) -> Share:
    return RATES[rate].share(_summed(windows, [group]))


def _summed(windows: Iterable[Groups], groups: Sequence[str]) -> Counts:
    return summed(window[group] for window in windows for group in groups if group in window)
