"""The tables of a report: several runs share each table."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from fairsaoml.evaluate.rule import RULE, ratio_words
from fairsaoml.report.bars import interval_axis, interval_bar
from fairsaoml.report.calibration import GroupChances
from fairsaoml.report.figures import style
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.rates import RATES, group_mark, rate_titles
from fairsaoml.report.reading import Block, Figures, Run
from fairsaoml.report.words import answer_mark, interval_words, notion_title, plain

__all__ = [
    "chances_table",
    "group_table",
    "head",
    "settings_table",
    "summary_table",
    "table",
    "troubles_table",
    "verdict_table",
]

ROWS, SUCH = re.compile(r"\b(\d+) rows"), ", such as "  # in what is said of a round's rows
MEASURES = (
    ("accuracy", "Accuracy"),
    ("balanced_accuracy", "Balanced accuracy"),
    ("positive_rate", "Positive rate"),
    ("dp_ratio", "DP"),
    ("dp_difference", "DP difference"),
    ("eo_ratio", "EO"),
    ("eo_ratio_tpr", "TPR ratio"),
    ("eo_ratio_fpr", "FPR ratio"),
)
MOST_FEATURES = 24  # named; the rest is counted
MOST_TROUBLES = 8  # kinds listed for each run; the rest is counted


def verdict_table(runs: Sequence[Run]) -> Markup:
    """Return every notion by every attribute, the ones asked for first, with their intervals."""
    entries = [
        (i, run, attribute, key, entry)
        for i, run in enumerate(runs)
        for attribute, by_notion in run.verdict["attributes"].items()
        for key, entry in sorted(
            by_notion["notions"].items(), key=lambda pair: pair[0] not in run.asked.judged
        )
        if key in run.asked.judged or key != "eop"  # half of equalized odds
    ]
    least = math.floor(10 * min([entry["low"] for *_, entry in entries] + [0.7])) / 10
    named = len(runs) > 1
    heads = [head("Run", "words")] if named else []
    heads += [head("Compared", "words"), head("Verdict", "words"), head("Ratio (95 % interval)")]
    heads.append(element("th", interval_axis(least), scope="col", class_="bar"))
    bodies = []
    for _, group in groupby(entries, key=lambda entry: entry[:1]):
        rows = []
        for place, (i, run, attribute, key, entry) in enumerate(group):
            judged = key in run.asked.judged
            cells = [_name(i, runs) if place == 0 else element("td")] if named else []
            asked = run.asked.ratio if judged else RULE
            goal = f"asked for: {asked:.2f}" if key in run.asked.notions else "for information"
            goal = goal if run.asked.notions or not judged else "by the 80 % rule"
            compared = [notion_title(key, attribute), element("small", goal)]
            cells += [
                element("td" if named else "th", *compared, class_="words"),
                element("td", answer_mark(entry["answer"]) if judged else "", class_="words"),
                element("td", interval_words(entry, asked)),
                element("td", interval_bar(entry, asked, least), class_=f"bar {style(i)}"),
            ]
            rows.append(element("tr", *cells, class_=None if judged else "aside"))
        bodies.append(element("tbody", *rows, class_="lines"))
    return table(
        "The lowest group's rate over the highest group's: 1 is equal treatment. Vertical line: "
        "what was asked for, or the 80 % rule.",
        element("tr", *heads),
        *bodies,
        class_="board",
    )


def chances_table(groups: Mapping[str, GroupChances]) -> Markup:
    """Return each group's mean probability, share of positive labels, and threshold."""
    rows = []
    for i, (group, own) in enumerate(groups.items()):
        number, positive, chance = own.total
        mark = element("svg", group_mark(i), viewBox="-15 -6 30 12", class_=style(i))
        cells = [plain(chance / number if number else None, 3)]
        cells.append(plain(positive / number if number else None, 3))
        cells.append("not known" if own.threshold is None else plain(own.threshold, 3))
        name = element("th", mark, group, scope="row", class_="marked")
        rows.append(element("tr", name, *(element("td", cell) for cell in cells)))
    heads = ("Mean probability", "Positive labels", "Mean threshold")
    return table(
        "A probability is a promise: its mean should be the share of positive labels. A row is "
        "decided positive when its probability is above its threshold.",
        element("tr", head("Group", "words"), *(head(words) for words in heads)),
        element("tbody", *rows, class_="lines"),
    )


def summary_table(runs: Sequence[Run], adapted: bool = False) -> Markup:
    """Return the table of every stretch of rounds: means of windows, means of rounds, spread.

    Args:
        runs: of one stream.
        adapted: the figures after a few labels of each round, without the whole domains.
    """
    heads = element("tr", head("Run", _first(runs)), *(head(title) for _, title in MEASURES))
    bodies = []
    for title, blocks in _aligned(runs, whole=not adapted):
        rows = [_stretch(title, blocks[0][1], len(MEASURES) + 1)]
        for i, block in blocks:
            figures = block.adapted if adapted else block.figures
            if figures is not None:
                cells = [_figure(figures, key) for key, _ in MEASURES]
                rows.append(element("tr", _name(i, runs), *cells))
        bodies.append(element("tbody", *rows))
    caption = (
        "After one pass on a labelled tenth of each round, scored on the rest."
        if adapted
        else "Large: the mean of windows of ten rounds, counts pooled within each, so that gaps in "
        "opposite directions do not cancel. Small: the mean over rounds, ± the standard deviation "
        "over seeds."
    )
    return table(caption, heads, *bodies)


def group_table(runs: Sequence[Run], attribute: str) -> Markup:
    """Return the table of each group's counts and rates, and of their ratios."""
    heads = element(
        "tr",
        head("Run", _first(runs)),
        head("Group", "words"),
        *map(head, rate_titles(runs[0].asked.decided)),
    )
    bodies = []
    for title, blocks in _aligned(runs, whole=False, all_rounds=len(runs[0].domains) == 1):
        rows = [_stretch(title, blocks[0][1], len(RATES) + 2)]
        for i, block in blocks:
            pooled = block.figures.pooled
            groups = (pooled.get("counts") or {}).get(attribute, {})
            ratios = (pooled.get("attributes") or {}).get(attribute, {})
            first = _name(i, runs)
            for group, counts in groups.items():
                cells = [_rate(counts[part], counts[whole]) for part, whole, _ in RATES]
                rows.append(element("tr", first, element("td", group, class_="words"), *cells))
                first = element("td", class_="none" if len(runs) == 1 else None)
            if block.end:  # of more rounds, gaps in opposite directions would cancel
                cells = [element("td", ratio_words(ratios.get(key))) for *_, key in RATES]
                compared = element("td", "lowest ÷ highest", class_="words unknown")
                rows.append(element("tr", first, compared, *cells))
        bodies.append(element("tbody", *rows))
    caption = f"Decisions by {attribute}: how many of how many, and their share."
    return table(caption, heads, *bodies)


def troubles_table(runs: Sequence[Run]) -> Markup:
    """Return the table of what was undefined, rests on few rows or was warned of, and how often."""
    rows = []
    for i, run in enumerate(runs):
        for kind, key in (
            ("Undefined", "undefined"),
            ("Few cases", "insufficient"),
            ("Warning", "warnings"),
        ):
            counts = _counted(run.lines, key, len(run.seeds))
            for words, times in counts.most_common(MOST_TROUBLES):
                share = f"{times:,} of {len(run.lines):,}"
                rows.append(_trouble(_name(i, runs), kind, words, share))
            if len(counts) > MOST_TROUBLES:
                rest = sum(n for _, n in counts.most_common()[MOST_TROUBLES:])
                more = f"{len(counts) - MOST_TROUBLES} other kinds"
                rows.append(_trouble(_name(i, runs), kind, more, f"{rest:,}"))
    if not rows:
        return element(
            "p",
            "Every ratio of every round is defined, none rests on too few cases, "
            "and no warning was raised.",
        )
    heads = [head("Run", _first(runs)), head("Kind", "words"), head("What", "words")]
    return table(
        "How often, of all rounds and seeds.",
        element("tr", *heads, head("Times")),
        element("tbody", *rows, class_="lines"),
    )


def _counted(lines: Sequence[Mapping[str, Any]], key: str, seeds: int) -> Counter[str]:
    """How often each thing was said; rows that were counted in it are those of all rounds.

    >>> said = [{"warnings": ["3 rows are odd, such as 'a'"]}, {"warnings": ["4 rows are odd"]}]
    >>> _counted(said, "warnings", seeds=1)
    Counter({"7 rows are odd, such as 'a'": 2})
    """
    kinds: dict[str, list[str]] = {}
    for words in (_words(item) for line in lines for item in line.get(key) or []):
        kinds.setdefault(ROWS.sub("", words.split(SUCH)[0]), []).append(words)
    counts: Counter[str] = Counter()
    for said in kinds.values():
        rows = sum(int(found[1]) for words in said if (found := ROWS.search(words)))
        counts[ROWS.sub(f"{rows // seeds} rows", said[0], count=1)] = len(said)
    return counts


def settings_table(runs: Sequence[Run]) -> Markup:
    """Return the content of `spec.json`, a column for each run; what differs is bold."""
    columns = [_sections(run) for run in runs]
    heads = [head("", "words"), *(head(run.name, "words") for run in runs)]
    bodies = []
    for sections in zip(*columns, strict=True):
        rows = []
        for key in dict.fromkeys(key for section in sections for key in section):
            values = [section.get(key, "") for section in sections]
            differs = len(set(values)) > 1
            cells = [
                element("td", element("strong", value) if differs else value, class_="words wrap")
                for value in values
            ]
            rows.append(element("tr", element("th", key, scope="row"), *cells))
        bodies.append(element("tbody", *rows, class_="lines"))
    return table("All settings; what differs is bold.", element("tr", *heads), *bodies)


def _aligned(
    runs: Sequence[Run], whole: bool = True, all_rounds: bool = True
) -> list[tuple[str, list[tuple[int, Block]]]]:
    """The runs' stretches of rounds by title; `whole`: also whole domains, `all_rounds`: and all.

    Over several domains counts are not pooled: gaps in opposite directions would cancel.
    """
    aligned: dict[str, list[tuple[int, Block]]] = {}
    for i, run in enumerate(runs):
        for block in run.blocks:
            if block.end or (all_rounds if block.domain is None else whole):
                aligned.setdefault(block.title, []).append((i, block))
    return list(aligned.items())


def _sections(run: Run) -> list[dict[str, str]]:
    """The settings of learner, stream and run as readable keys and values."""
    spec = run.spec
    learner, stream = spec.get("learner") or {}, spec.get("stream") or {}
    features = stream.get("features") or []
    rest = [f"and {len(features) - MOST_FEATURES} more"] if len(features) > MOST_FEATURES else []
    seconds = [line["seconds"] for line in run.lines if line.get("seconds") is not None]
    sections: list[dict[str, Any]] = [
        {
            "learner": learner.get("name"),
            **{key: _words(value) for key, value in (learner.get("config") or {}).items()},
            "constraints in use": spec.get("constraints"),
        },
        {
            "stream": stream.get("name"),
            **(stream.get("settings") or {}),
            **{f"protected: {a['name']}": a["levels"] for a in stream.get("attributes") or []},
            "features": [*features[:MOST_FEATURES], *rest],
            "notes": stream.get("notes"),
        },
        {
            "seeds": spec.get("seeds"),
            **{f"version of {key}": value for key, value in (spec.get("versions") or {}).items()},
            "seconds a round and seed": f"{fmean(seconds):.3g}" if seconds else None,
        },
    ]
    return [
        {key: _words(value) for key, value in section.items() if value not in (None, [])}
        for section in sections
    ]


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, str | int | float) for v in value):
        return ", ".join(map(str, value))
    return "none" if value is None else json.dumps(value)


def _figure(figures: Figures, key: str) -> Markup:
    """The mean of windows, or the pooled figure of an older summary; the mean of rounds below."""
    mean, spread = figures.mean.get(key), figures.spread.get(key)
    average = plain(mean, 3) + (f" ± {spread:.3f}" if spread is not None else "")
    large = figures.windows or figures.pooled
    if not large:
        return element("td", average)
    value = large.get(key)
    class_ = "unknown" if value is None else None
    return element("td", plain(value, 3), element("small", average), class_=class_)


def _rate(part: int, whole: int) -> Markup:
    of = element("small", f"{part:,} of {whole:,}", class_="beside")
    if not whole:
        return element("td", of, "undefined", class_="unknown")
    return element("td", of, f"{part / whole:.3f}")


def _trouble(name: Markup, kind: str, words: str, times: str) -> Markup:
    return element(
        "tr",
        name,
        element("td", kind, class_="words"),
        element("td", words, class_="words wrap"),
        element("td", times),
    )


def _name(i: int, runs: Sequence[Run]) -> Markup:
    """The head of a run's row; nothing where there is one run."""
    if len(runs) == 1:
        return element("td", class_="none")
    chip = element("span", class_=f"chip {style(i)}")
    return element("th", chip, runs[i].name, scope="row")


def _first(runs: Sequence[Run]) -> str:
    """The class of the column of names: hidden where there is one run."""
    return "none" if len(runs) == 1 else "words"


def _stretch(title: str, block: Block, columns: int) -> Markup:
    rounds = element("span", f"rounds {block.first} to {block.last}", class_="aside")
    return element("tr", element("th", title, rounds, scope="rowgroup", colspan=str(columns)))


def head(words: str, class_: str | None = None) -> Markup:
    """Return the head of a column."""
    return element("th", words, scope="col", class_=class_)


def table(caption: str, heads: Markup, *bodies: Markup, class_: str = "") -> Markup:
    """Return a table that scrolls by itself where it is too wide."""
    body = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", heads),
        *bodies,
    )
    return element("div", body, class_=f"scroll {class_}".strip())
