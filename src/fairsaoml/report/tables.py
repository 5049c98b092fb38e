"""The tables of a report: several runs share each table."""

import json
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from fairsaoml.evaluate.rule import MARKS, ratio_words, verdict
from fairsaoml.report.figures import style
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.rates import RATES
from fairsaoml.report.reading import Block, Figures, Run, best_of
from fairsaoml.report.words import domain_ends, last_rounds, plain

__all__ = ["group_table", "scoreboard", "settings_table", "summary_table", "troubles_table"]

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


def scoreboard(runs: Sequence[Run]) -> Markup:
    """Return the table of the domains' last rounds: does each run meet the rule, how accurate?"""
    by_run = [{end.domain: end for end in domain_ends(run)} for run in runs]
    names = list(dict.fromkeys(name for ends in by_run for name in ends))
    heads = [_head(f"{last_rounds(runs)} of", "words"), *(_head(name) for name in names)]
    rows = []
    for i, (run, ends) in enumerate(zip(runs, by_run, strict=True)):
        cells = [_name(i, run)]
        for name in names:
            if name not in ends:
                cells.append(element("td", "not reached", class_="unknown"))
                continue
            accuracy = element("small", f"accuracy {plain(ends[name].accuracy, 3)}")
            marked = _marked("DP", ends[name].dp), _marked("EO", ends[name].eo)
            cells.append(element("td", *marked, accuracy))
        rows.append(element("tr", *cells))
    known = best_of(runs)
    best = [known.get(name, {}).get("fair_accuracy") for name in names]
    if any(value is not None for value in best):
        cells = [element("th", "Best accuracy of a fair rule", scope="row")]
        cells += [element("td", "unknown" if value is None else plain(value, 3)) for value in best]
        rows.append(element("tr", *cells))
    body = element("tbody", *rows, class_="lines")
    return _table(element("tr", *heads), body, class_="board")


def summary_table(runs: Sequence[Run], adapted: bool = False) -> Markup:
    """Return the table of every stretch of rounds: pooled figures, and means with their spread.

    Args:
        runs: of one stream.
        adapted: the figures after a few labels of each round, without the whole domains.
    """
    heads = element("tr", _head("", "words"), *(_head(title) for _, title in MEASURES))
    bodies = []
    for title, blocks in _aligned(runs, whole=not adapted):
        rows = [_stretch(title, blocks[0][1], len(MEASURES) + 1)]
        for i, block in blocks:
            figures = block.adapted if adapted else block.figures
            if figures is not None:
                cells = [_figure(figures, key) for key, _ in MEASURES]
                rows.append(element("tr", _name(i, runs[i]), *cells))
        bodies.append(element("tbody", *rows))
    return _table(heads, *bodies)


def group_table(runs: Sequence[Run], attribute: str) -> Markup:
    """Return the table of each group's counts and rates, and of their ratios."""
    titles = [title for title, *_ in RATES]
    heads = element(
        "tr", _head("", "words"), _head("Group", "words"), *(_head(title) for title in titles)
    )
    bodies = []
    for title, blocks in _aligned(runs, whole=False):
        rows = [_stretch(title, blocks[0][1], len(RATES) + 2)]
        for i, block in blocks:
            pooled = block.figures.pooled
            groups = (pooled.get("counts") or {}).get(attribute, {})
            ratios = (pooled.get("attributes") or {}).get(attribute, {})
            first = _name(i, runs[i])
            for group, counts in groups.items():
                cells = [_rate(counts[part], counts[whole]) for _, part, whole, _ in RATES]
                rows.append(element("tr", first, element("td", group, class_="words"), *cells))
                first = element("td")
            cells = [element("td", _marked("", ratios.get(key))) for *_, key in RATES]
            compared = element("td", "lowest ÷ highest", class_="words unknown")
            rows.append(element("tr", first, compared, *cells))
        bodies.append(element("tbody", *rows))
    return _table(heads, *bodies)


def troubles_table(runs: Sequence[Run]) -> Markup:
    """Return the table of what was undefined, rests on few rows or was warned of, and how often."""
    rows = []
    for i, run in enumerate(runs):
        for kind, key in (
            ("Undefined", "undefined"),
            ("Few cases", "insufficient"),
            ("Warning", "warnings"),
        ):
            counts = Counter(_words(item) for line in run.lines for item in line.get(key) or [])
            for words, times in counts.most_common(MOST_TROUBLES):
                share = f"{times:,} of {len(run.lines):,}"
                rows.append(_trouble(i, run, kind, words, share))
            if len(counts) > MOST_TROUBLES:
                rest = sum(n for _, n in counts.most_common()[MOST_TROUBLES:])
                more = f"{len(counts) - MOST_TROUBLES} other kinds"
                rows.append(_trouble(i, run, kind, more, f"{rest:,}"))
    if not rows:
        return element(
            "p",
            "Every ratio of every round is defined, none rests on too few cases, "
            "and no warning was raised.",
        )
    heads = [_head("", "words"), _head("", "words"), _head("What", "words")]
    return _table(
        element("tr", *heads, _head("Rounds × seeds")),
        element("tbody", *rows, class_="lines"),
    )


def settings_table(runs: Sequence[Run]) -> Markup:
    """Return the content of `spec.json`, a column for each run; what differs is bold."""
    columns = [_sections(run) for run in runs]
    heads = [_head("", "words"), *(_head(run.name, "words") for run in runs)]
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
    return _table(element("tr", *heads), *bodies)


def _aligned(runs: Sequence[Run], whole: bool = True) -> list[tuple[str, list[tuple[int, Block]]]]:
    """The runs' stretches of rounds by title; `whole`: also whole domains."""
    aligned: dict[str, list[tuple[int, Block]]] = {}
    for i, run in enumerate(runs):
        for block in run.blocks:
            if whole or block.end or block.domain is None:
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


def _marked(name: str, value: float | None) -> Markup:
    """A ratio with its mark by the 80 % rule."""
    rule = verdict(value)
    words = f"{name} {ratio_words(value)}".strip()
    if rule == "undefined":
        return element("span", words, class_="unknown")
    class_, verb = ("good", "meets") if rule == "met" else ("bad", "misses")
    label = f"{words}, {verb} the rule"
    return element("span", f"{words} {MARKS[rule]}", class_=class_, role="img", aria_label=label)


def _figure(figures: Figures, key: str) -> Markup:
    """The pooled figure, the mean below it; the mean alone where no counts were pooled."""
    mean, spread = figures.mean.get(key), figures.spread.get(key)
    average = plain(mean, 3) + (f" ± {spread:.3f}" if spread is not None else "")
    if not figures.pooled:
        return element("td", average)
    notes = [average if mean is not None else "mean undefined"]
    if figures.skipped.get(key):
        notes.append(f"{figures.skipped[key]:,} skipped")
    if any(reason.startswith(key) for reason in figures.pooled.get("insufficient") or []):
        notes.append("few cases")
    pooled = figures.pooled.get(key)
    class_ = "unknown" if pooled is None else None
    return element("td", plain(pooled, 3), *(element("small", n) for n in notes), class_=class_)


def _rate(part: int, whole: int) -> Markup:
    of = element("small", f"{part:,} of {whole:,}", class_="beside")
    if not whole:
        return element("td", of, "undefined", class_="unknown")
    return element("td", of, f"{part / whole:.3f}")


def _trouble(i: int, run: Run, kind: str, words: str, times: str) -> Markup:
    return element(
        "tr",
        _name(i, run),
        element("td", kind, class_="words"),
        element("td", words, class_="words wrap"),
        element("td", times),
    )


def _name(i: int, run: Run) -> Markup:
    chip = element("span", class_=f"chip {style(i)}")
    return element("th", chip, run.name, scope="row")


def _stretch(title: str, block: Block, columns: int) -> Markup:
    rounds = element("span", f"rounds {block.first} to {block.last}", class_="aside")
    return element("tr", element("th", title, rounds, scope="rowgroup", colspan=str(columns)))


def _head(words: str, class_: str | None = None) -> Markup:
    return element("th", words, scope="col", class_=class_)


def _table(heads: Markup, *bodies: Markup, class_: str = "") -> Markup:
    table = element("table", element("thead", heads), *bodies)
    return element("div", table, class_=f"scroll {class_}".strip())
