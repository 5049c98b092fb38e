"""A run in a few numbers: from the lines of `rounds.jsonl` to `summary.json`.

Three kinds of numbers, side by side. The mean over rounds skips the rounds in which a figure is
undefined and says how many. The pool adds up the counts first and divides once: no round is
skipped, and small rounds weigh little, but gaps in opposite directions cancel. Between them stands
the mean over windows: counts are pooled over ten rounds at a time.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

from fairsaoml.core.errors import DataError
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.metrics import FIGURES, pooled, with_counts
from fairsaoml.evaluate.verdict import Asked, judge
from fairsaoml.evaluate.windows import WINDOW, Line, windows_of

LEFT_OUT = re.compile(r"(\d+) rows (.+) were left out")  # a stream's warning

LAST_ROUNDS = WINDOW  # what `last` means, of a stream and of a domain


def summarise(
    rounds: Iterable[Line],
    *,
    learner: str,
    stream: str,
    seeds: Sequence[int],
    best: Mapping[str, Mapping[str, float]] | None = None,
    asked: Asked | None = None,
    columns_left_out: int = 0,
    column_reasons: Sequence[str] = (),
) -> dict[str, Any]:
    """What `summary.json` says: blocks for all rounds, the last ten, and each domain.

    A block has `rounds` (the first and the last, both inside), and for every name in `FIGURES`:
    `mean` (each seed's mean over rounds, then over seeds), `spread` (the seeds' standard deviation,
    with n - 1; None for a single seed), `skipped` (how many lines the mean left out because the
    figure is undefined, named only if any), `windows` (each seed's mean over windows of ten rounds,
    then over seeds) and `pooled` (of counts added up over rounds and seeds, with these counts and
    with reasons where a figure is None). `adapted` holds the same of the
    figures after a few labels of the round (D18), if the lines have them.

    A domain is a stretch of rounds of one domain; one that comes back is listed again. `best` is
    what the stream knows to be achievable there. `left_out` has `reasons` as far as they are known:
    of rows from the journal's warnings, of columns from `column_reasons`. `verdict` is on what was
    `asked`, if given.

    >>> counts = {"rows": 4, "predicted_positive": 2, "y1_rows": 2, "true_positive": 2,
    ...           "y0_rows": 2, "false_positive": 0}
    >>> line = {"domain": "", "seed": 0, "counts": {"sex": {"f": counts, "m": counts}}}
    >>> first, second = {"round": 1, "accuracy": 0.5}, {"round": 2, "accuracy": None}
    >>> summary = summarise([line | first, line | second], learner="l", stream="s", seeds=[0])
    >>> block = summary["overall"]
    >>> block["rounds"], block["mean"]["accuracy"], block["skipped"]["accuracy"]
    ([1, 2], 0.5, 1)
    >>> block["pooled"]["accuracy"], block["pooled"]["dp_ratio"]
    (1.0, 1.0)
    """
    lines = sorted(rounds, key=lambda line: (line["round"], line["seed"]))
    if not lines:
        raise DataError(
            "expected at least one round to sum up, got none; give the stream at least one task"
        )
    domains = []
    for name, stretch in groupby(lines, key=lambda line: line["domain"]):
        own = list(stretch)
        known = {"best": dict(best[name])} if best and name in best else {}
        domains.append({"name": name, **_block(own), "last": _block(_last(own)), **known})
    return {
        "learner": learner,
        "stream": stream,
        "seeds": list(seeds),
        "rounds": len({line["round"] for line in lines}),
        "left_out": _left_out(lines, columns_left_out, column_reasons),
        "overall": _block(lines),
        "last": _block(_last(lines)),
        "domains": domains,
        **({"verdict": judge(lines, asked)} if asked else {}),
    }


def _left_out(lines: Sequence[Line], columns: int, why_columns: Sequence[str]) -> dict[str, Any]:
    """What was not learned from: rounds (by any seed), updates (of all seeds), rows and columns.

    `reasons` are those that are known, each with its number of rows or columns.

    >>> line = {"seed": 0, "warnings": ["3 rows without a label were left out"], "left_out": 3}
    >>> empty = {"round": 2, "seed": 0, "warnings": [WARNINGS["empty"]]}
    >>> _left_out([line | {"round": 1}, line | {"round": 1, "seed": 1}, empty], 1, ["as asked"])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'rounds': 1, 'updates': 0, 'rows': 3, 'columns': 1,
     'reasons': {'rows': {'without a label': 3}, 'columns': {'as asked': 1}}}
    """
    learned, updates = set(), 0
    rows: Counter[int] = Counter()  # of a round: its seeds share them
    why_rows: Counter[tuple[str, int]] = Counter()
    for line in lines:
        round, words = line["round"], set(line.get("warnings") or ())
        updates += WARNINGS["not_finite"] in words
        if not words & {WARNINGS["empty"], WARNINGS["not_finite"]}:
            learned.add(round)
        rows[round] = max(rows[round], line.get("left_out", 0))
        for said in filter(None, map(LEFT_OUT.fullmatch, line.get("warnings") or ())):
            why_rows[said[2], round] = max(why_rows[said[2], round], int(said[1]))
    by_reason: Counter[str] = Counter()
    for (why, _), number in why_rows.items():
        by_reason[why] += number
    known = {"rows": dict(by_reason), "columns": dict(Counter(why_columns))}
    known = {what: numbers for what, numbers in known.items() if numbers}
    return {
        "rounds": len(rows) - len(learned),
        "updates": updates,
        "rows": rows.total(),
        "columns": columns,
        **({"reasons": known} if known else {}),
    }


def _last(lines: Sequence[Line]) -> list[Line]:
    """The lines of the last ten rounds."""
    kept = set(sorted({line["round"] for line in lines})[-LAST_ROUNDS:])
    return [line for line in lines if line["round"] in kept]


def _block(lines: Sequence[Line]) -> dict[str, Any]:
    block = {
        "rounds": [lines[0]["round"], lines[-1]["round"]],
        **_means(lines),
        "windows": _of_windows(lines),
        "pooled": with_counts(pooled(lines)),
    }
    adapted = [{"seed": line["seed"], **line["adapted"]} for line in lines if line.get("adapted")]
    if adapted:
        block["adapted"] = _means(adapted)
        if all("counts" in line for line in adapted):
            block["adapted"]["pooled"] = with_counts(pooled(adapted))
    return block


def _means(lines: Sequence[Line]) -> dict[str, Any]:
    """Each figure's mean and spread over seeds of its mean over rounds, nulls skipped."""
    means: dict[str, dict[str, float | None]] = {"mean": {}, "spread": {}, "skipped": {}}
    for name in FIGURES:
        by_seed: dict[int, list[float]] = {}
        for line in lines:
            if line.get(name) is not None:
                by_seed.setdefault(line["seed"], []).append(line[name])
        of_seeds = [fmean(values) for values in by_seed.values()]
        means["mean"][name] = fmean(of_seeds) if of_seeds else None
        means["spread"][name] = stdev(of_seeds) if len(of_seeds) > 1 else None
        if missing := len(lines) - sum(map(len, by_seed.values())):
            means["skipped"][name] = missing
    return means


def _of_windows(lines: Sequence[Line]) -> dict[str, float | None]:
    """Each figure's mean over windows, then over seeds."""
    of_windows = [
        {**with_counts(pooled(line for line in window if line["seed"] == seed)), "seed": seed}
        for window in windows_of(lines)
        for seed in dict.fromkeys(line["seed"] for line in window)
    ]
    return _means(of_windows)["mean"]
