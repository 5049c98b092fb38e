"""How fair and accurate runs were, in windows: `python -m tools.windows FOLDER [FOLDER ...]`.

Pooled over a whole stream, gaps that change sign hide each other. So counts are pooled in windows
of ten rounds after the first tenth of the rounds, and the figures of the whole windows averaged;
for streams with domains, also pooled over the last ten rounds of each.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

WINDOW = 10
ENOUGH = 50  # rows that a group's rate must rest on in a window to be compared
UNDEFINED = float("nan")
COUNTS = ("rows", "predicted_positive", "y1_rows", "true_positive", "y0_rows", "false_positive")
RATES = {
    "DP": ("predicted_positive", "rows"),
    "TPR": ("true_positive", "y1_rows"),
    "FPR": ("false_positive", "y0_rows"),
}

Record = dict[str, Any]
Figures = dict[str, float]


class Measured(NamedTuple):
    """What a run showed; accuracy is pooled over the same rounds as the windows."""

    windows: Figures  # mean of the windows, of the seeds
    error: Figures  # its standard error, from the windows
    whole: Figures  # all rounds after the first tenth, pooled
    ends: dict[str, Figures]  # the last ten rounds of each domain, seeds pooled
    domains: dict[str, Figures]  # all rounds of each domain, seeds pooled


def pooled(records: Iterable[Record], enough: int = 1) -> Figures:
    """Accuracy, balanced accuracy and the worst ratio of each rate, from counts added up."""
    totals: dict[str, dict[str, dict[str, int]]] = {}
    for record in records:
        for attribute, groups in record["counts"].items():
            for group, counts in groups.items():
                if group == "unseen":
                    continue
                sums = totals.setdefault(attribute, {}).setdefault(group, dict.fromkeys(COUNTS, 0))
                for name in COUNTS:
                    sums[name] += counts[name]
    by_attribute = [list(groups.values()) for groups in totals.values()]
    figures = {
        rate: _least(_ratio(groups, top, bottom, enough) for groups in by_attribute)
        for rate, (top, bottom) in RATES.items()
    }
    figures["EO"] = _least((figures["TPR"], figures["FPR"]))
    everyone = by_attribute[0]
    total = {name: sum(sums[name] for sums in everyone) for name in COUNTS}
    found = total["true_positive"] / max(total["y1_rows"], 1)
    spared = 1 - total["false_positive"] / max(total["y0_rows"], 1)
    right = total["true_positive"] + total["y0_rows"] - total["false_positive"]
    positive = total["predicted_positive"] / total["rows"]
    return figures | {
        "accuracy": right / total["rows"],
        "balanced": (found + spared) / 2,
        "positive": positive,
    }


def _ratio(groups: Sequence[dict[str, int]], top: str, bottom: str, enough: int) -> float:
    """The lowest rate over the highest; NaN where fewer than two groups can be compared."""
    rates = [sums[top] / sums[bottom] for sums in groups if sums[bottom] >= enough]
    return min(rates) / max(rates) if len(rates) > 1 and max(rates) > 0 else UNDEFINED


def _least(ratios: Iterable[float]) -> float:
    """The smallest ratio of those that are defined."""
    return min((ratio for ratio in ratios if ratio == ratio), default=UNDEFINED)


def calibration_error(records: Iterable[Record]) -> float:
    """The mean distance of probabilities from the share of positive labels, by tenths."""
    distance = rows = 0.0
    tenths: dict[int, list[float]] = {}
    for record in records:
        for group in next(iter(record["chances"].values())).values():
            for tenth, cell in enumerate(group["tenths"]):
                old = tenths.get(tenth, [0, 0, 0.0])
                tenths[tenth] = [before + new for before, new in zip(old, cell, strict=True)]
    for count, positive, summed in tenths.values():
        rows, distance = rows + count, distance + abs(positive - summed)
    return distance / max(rows, 1)


def measure(folder: Path) -> Measured:
    """What the rounds in a run's folder show."""
    records = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    last = max(record["round"] for record in records)
    first = last // 10 + 1
    by_seed = {seed: [r for r in records if r["seed"] == seed] for seed in _values(records, "seed")}
    starts = range(first, last - WINDOW + 2, WINDOW)
    windows = [
        [pooled((r for r in own if at <= r["round"] < at + WINDOW), ENOUGH) for at in starts]
        for own in by_seed.values()
    ]
    later = [record for record in records if record["round"] >= first]
    whole = pooled(later)
    # Seeds of one stream share their rows, or at least their course: windows are what varies.
    series = {
        name: [fmean(seed[at][name] for seed in windows) for at in range(len(starts))]
        for name in whole
    }
    # A window in which nothing can be compared says nothing.
    series = {name: [v for v in values if v == v] for name, values in series.items()}
    mean = {name: fmean(values) if values else UNDEFINED for name, values in series.items()}
    error = {
        name: stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        for name, values in series.items()
    }
    for name in ("accuracy", "balanced"):
        mean[name] = whole[name]
    ends, domains = {}, {}
    for domain, own in groupby(records, lambda record: record["domain"]):
        rounds = list(own)
        final = max(record["round"] for record in rounds)
        ends[domain] = pooled(r for r in rounds if r["round"] > final - WINDOW)
        domains[domain] = pooled(rounds)
    if all(record.get("chances") for record in later):
        whole["calibration"] = calibration_error(later)
    return Measured(windows=mean, error=error, whole=whole, ends=ends, domains=domains)


def _values(records: Sequence[Record], name: str) -> list[Any]:
    return list(dict.fromkeys(record[name] for record in records))


def main(folders: Sequence[str]) -> None:
    for folder in folders:
        found = measure(Path(folder))
        mean, whole = found.windows, found.whole
        print(
            f"{Path(folder).name}: windows of {WINDOW}: EO {mean['EO']:.3f} DP {mean['DP']:.3f}; "
            f"all: EO {whole['EO']:.3f} DP {whole['DP']:.3f} "
            f"accuracy {whole['accuracy']:.4f} balanced {whole['balanced']:.4f} "
            f"calibration error {whole.get('calibration', UNDEFINED):.4f}"
        )
        if len(found.ends) > 1:
            for domain, end in found.ends.items():
                print(
                    f"  {domain}, its last {WINDOW}: EO {end['EO']:.3f} "
                    f"DP {end['DP']:.3f} accuracy {end['accuracy']:.4f}"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
