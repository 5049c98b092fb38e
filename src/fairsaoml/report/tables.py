"""The tables of a report: several runs share each table."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from fairsaoml.evaluate.rule import RULE, ratio_words
from fairsaoml.report.figures import style
from fairsaoml.report.groups import RATES, GroupChances, group_mark, rate_titles
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.reading import Block, Figures, Run
from fairsaoml.report.svg import Frame, hline, text, tick_words, ticks
from fairsaoml.report.words import answer_mark, interval_words, notion_title, plain

__all__ = [
    "chances_table",
    "group_table",
    "head",
    "lined",
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
TROUBLES = {"Undefined": "undefined", "Few cases": "insufficient", "Warning": "warnings"}
BAR_FRAME = (12.0, 2.0, 196.0, 18.0)  # of an interval's bar: left, top, width, height


def verdict_table(runs: Sequence[Run]) -> Markup:
    """Return every notion by every attribute, the ones asked for first, with their intervals."""
    entries = [_judged_first(run) for run in runs]
    lows = [entry["low"] for of_run in entries for *_, entry in of_run]
    least = math.floor(10 * min([*lows, 0.7])) / 10
    named = len(runs) > 1
    heads = [head("Run", "words")] if named else []
    heads += [head("Compared", "words"), head("Verdict", "words"), head("Ratio (95 % interval)")]
    heads.append(head(_axis(least), "bar"))
    bodies = []
    for i, run in enumerate(runs):
        rows: list[Markup] = []
        for attribute, key, entry in entries[i]:
            judged = key in run.asked.judged
            cells = [element("td") if rows else _name(i, runs)] if named else []
            asked = run.asked.ratio if judged else RULE
            goal = f"asked for: {asked:.2f}" if key in run.asked.notions else "for information"
            goal = goal if run.asked.notions or not judged else "by the 80 % rule"
            compared = [notion_title(key, attribute), element("small", goal)]
            cells += [
                element("td" if named else "th", *compared, class_="words"),
                element("td", answer_mark(entry["answer"]) if judged else "", class_="words"),
                element("td", interval_words(entry, asked)),
                element("td", _interval_bar(entry, asked, least), class_=f"bar {style(i)}"),
            ]
            rows.append(element("tr", *cells, class_=None if judged else "aside"))
        if rows:
            bodies.append(lined(rows))
    return table(
        "The lowest group's rate over the highest group's: 1 is equal treatment. Vertical line: "
        "what was asked for, or the 80 % rule.",
        heads,
        *bodies,
        class_="board",
    )


def _judged_first(run: Run) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Attribute, notion and verdict of each notion by each attribute."""
    return [
        (attribute, key, entry)
        for attribute, by_notion in run.verdict["attributes"].items()
        for key, entry in sorted(
            by_notion["notions"].items(), key=lambda pair: pair[0] not in run.asked.judged
        )
        if key in run.asked.judged or key != "eop"  # half of equalized odds
    ]


def _interval_bar(entry: Mapping[str, Any], asked: float, least: float) -> Markup:
    """A ratio's interval as a bar on a line from `least` to 1, with what was asked for."""
    frame = Frame(*BAR_FRAME, (least, 1.0), (0, 1))
    goal, y = frame.x(asked), frame.y(0.5)
    parts = [
        hline(frame, 0.5, "grid"),
        element("line", x1=goal, x2=goal, y1=frame.top, y2=frame.bottom, class_="rule"),
    ]
    if entry["ratio"] is not None:
        low, x, high = (frame.x(max(entry[key], least)) for key in ("low", "ratio", "high"))
        parts.append(element("line", x1=low, x2=high, y1=y, y2=y, class_="interval-bar"))
        parts.append(element("circle", cx=x, cy=y, r=4, class_="dot"))
    return _bar_of(parts)


def _axis(least: float) -> Markup:
    """The numbers above such bars."""
    frame = Frame(*BAR_FRAME, (least, 1.0), (0, 1))
    places = tick_words(ticks(least, 1.0, 4))
    return _bar_of([text(frame.x(value), 15, words, anchor="middle") for value, words in places])


def _bar_of(parts: Sequence[Markup]) -> Markup:
    return element("svg", *parts, viewBox="0 0 220 22", class_="chart bar", aria_hidden="true")


def chances_table(groups: Mapping[str, GroupChances]) -> Markup:
    """Return each group's mean probability, share of positive labels, and threshold."""
    rows = []
    for i, (group, own) in enumerate(groups.items()):
        number, positive, chance = own.total  # shown only if it has rows
        mark = element("svg", group_mark(i), viewBox="-15 -6 30 12", class_=style(i))
        threshold = "not known" if own.threshold is None else plain(own.threshold, 3)
        name = element("th", mark, group, scope="row", class_="marked")
        cells = [plain(chance / number, 3), plain(positive / number, 3), threshold]
        rows.append(element("tr", name, *(element("td", cell) for cell in cells)))
    heads = ("Mean probability", "Positive labels", "Mean threshold")
    return table(
        "A probability is a promise: its mean should be the share of positive labels. A row is "
        "decided positive when its probability is above its threshold.",
        [head("Group", "words"), *map(head, heads)],
        lined(rows),
    )


def summary_table(runs: Sequence[Run], adapted: bool = False) -> Markup:
    """Return the table of every stretch of rounds: means of windows, means of rounds, spread.

    Args:
        runs: of one stream.
        adapted: the figures after a few labels of each round, without the whole domains.
    """
    heads = [_run_head(runs), *(head(title) for _, title in MEASURES)]
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
    titles = rate_titles(runs[0].asked.decided)
    heads = [_run_head(runs), head("Group", "words"), *map(head, titles)]
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
        for kind, key in TROUBLES.items():
            counts = _counted(run.lines, key, len(run.seeds)).most_common()
            most, rest = counts[:MOST_TROUBLES], counts[MOST_TROUBLES:]
            said = [(words, f"{times:,} of {len(run.lines):,}") for words, times in most]
            if rest:
                said.append((f"{len(rest)} other kinds", f"{sum(n for _, n in rest):,}"))
            for words, times in said:
                cells = [element("td", kind, class_="words")]
                cells += [element("td", words, class_="words wrap"), element("td", times)]
                rows.append(element("tr", _name(i, runs), *cells))
    if not rows:
        return element(
            "p",
            "Every ratio of every round is defined, none rests on too few cases, "
            "and no warning was raised.",
        )
    heads = [_run_head(runs), head("Kind", "words"), head("What", "words"), head("Times")]
    return table("How often, of all rounds and seeds.", heads, lined(rows))


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
        bodies.append(lined(rows))
    return table("All settings; what differs is bold.", heads, *bodies)


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
    spec, stream = run.spec, run.source
    features = stream.get("features") or []
    rest = [f"and {len(features) - MOST_FEATURES} more"] if len(features) > MOST_FEATURES else []
    seconds = [line["seconds"] for line in run.lines if line.get("seconds") is not None]
    sections: list[dict[str, Any]] = [
        {
            "learner": run.learner or None,
            **{key: _words(value) for key, value in run.config.items()},
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


def _name(i: int, runs: Sequence[Run]) -> Markup:
    """The head of a run's row; nothing where there is one run."""
    if len(runs) == 1:
        return element("td", class_="none")
    chip = element("span", class_=f"chip {style(i)}")
    return element("th", chip, runs[i].name, scope="row")


def _run_head(runs: Sequence[Run]) -> Markup:
    """The head of the column of names: hidden where there is one run."""
    return head("Run", "none" if len(runs) == 1 else "words")


def _stretch(title: str, block: Block, columns: int) -> Markup:
    rounds = element("span", f"rounds {block.first} to {block.last}", class_="aside")
    return element("tr", element("th", title, rounds, scope="rowgroup", colspan=str(columns)))


def head(words: str, class_: str | None = None) -> Markup:
    """Return the head of a column."""
    return element("th", words, scope="col", class_=class_)


def table(caption: str, heads: Sequence[Markup], *bodies: Markup, class_: str = "") -> Markup:
    """Return a table that scrolls by itself where it is too wide."""
    above = element("caption", element("span", caption)), element("thead", element("tr", *heads))
    return element("div", element("table", *above, *bodies), class_=f"scroll {class_}".strip())


def lined(rows: Sequence[Markup]) -> Markup:
    """Return the body of a table, a line between its rows."""
    return element("tbody", *rows, class_="lines")
