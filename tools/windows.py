"""How fair and accurate runs were, in windows: `python -m tools.windows FOLDER [FOLDER ...]`.

Pooled over a whole stream, gaps that change sign hide each other. So counts are pooled in windows
of ten rounds after the first tenth of the rounds, and the ratios of the whole windows averaged;
for streams with domains, also pooled over the last ten rounds of each.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

WINDOW = 10
COUNTS = ("rows", "predicted_positive", "y1_rows", "true_positive", "y0_rows", "false_positive")
RATES = {
    "DP": ("predicted_positive", "rows"),
    "TPR": ("true_positive", "y1_rows"),
    "FPR": ("false_positive", "y0_rows"),
}

Record = dict[str, Any]


def pooled(records: Iterable[Record]) -> dict[str, float]:
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
    figures = {}
    for rate, (top, bottom) in RATES.items():
        figures[rate] = min(
            _ratio([sums[top] / sums[bottom] for sums in groups.values() if sums[bottom]])
            for groups in totals.values()
        )
    figures["EO"] = min(figures["TPR"], figures["FPR"])
    everyone = list(next(iter(totals.values())).values())
    total = {name: sum(sums[name] for sums in everyone) for name in COUNTS}
    found = total["true_positive"] / max(total["y1_rows"], 1)
    spared = 1 - total["false_positive"] / max(total["y0_rows"], 1)
    right = total["true_positive"] + total["y0_rows"] - total["false_positive"]
    figures |= {"accuracy": right / total["rows"], "balanced": (found + spared) / 2}
    return figures


def _ratio(rates: Sequence[float]) -> float:
    return min(rates) / max(rates) if rates and max(rates) > 0 else float("nan")


def main(folders: Sequence[str]) -> None:
    for folder in folders:
        lines = (Path(folder) / "rounds.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        last = max(record["round"] for record in records)
        first = last // 10 + 1
        windows = [
            pooled(r for r in records if begin <= r["round"] < begin + WINDOW)
            for begin in range(first, last - WINDOW + 2, WINDOW)
        ]
        whole = pooled(r for r in records if r["round"] >= first)
        mean = {name: sum(w[name] for w in windows) / len(windows) for name in windows[0]}
        print(
            f"{Path(folder).name}: windows of {WINDOW}: EO {mean['EO']:.3f} DP {mean['DP']:.3f}; "
            f"all: EO {whole['EO']:.3f} DP {whole['DP']:.3f} "
            f"accuracy {whole['accuracy']:.4f} balanced {whole['balanced']:.4f}"
        )
        domains = [list(group) for _, group in groupby(records, lambda r: r["domain"])]
        if len(domains) > 1:
            for rounds in domains:
                final = max(record["round"] for record in rounds)
                end = pooled(r for r in rounds if r["round"] > final - WINDOW)
                print(
                    f"  {rounds[0]['domain']}, its last {WINDOW}: EO {end['EO']:.3f} "
                    f"DP {end['DP']:.3f} accuracy {end['accuracy']:.4f}"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
