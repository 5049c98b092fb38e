"""What a ratio would show in a run: `python -m tools.would_show FOLDER ... [--ratio R]`.

Rows are few, and the worst of several ratios is taken. So a rule whose rates have a true ratio of
.9 shows less. Rows of every group and label are those of the run; decisions are drawn anew, at the
window's own rates, one group at a time being the one below.
"""

import argparse
import json
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from tools.windows import ENOUGH, WINDOW, pooled

DRAWS = 40
LABELS = (("y1_rows", "true_positive"), ("y0_rows", "false_positive"))


def would_show(folder: Path, ratio: float) -> float:
    """The mean over windows of the EO that a rule with a true ratio would show."""
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    first, last = lines[-1]["round"] // 10 + 1, lines[-1]["round"]
    draw = np.random.default_rng(0)
    shown = []
    for at in range(first, last - WINDOW + 2, WINDOW):
        window = [line for line in lines if at <= line["round"] < at + WINDOW]
        shown += [pooled([_drawn(window, ratio, draw)], ENOUGH)["EO"] for _ in range(DRAWS)]
    return fmean(value for value in shown if value == value)


def _drawn(window: list[dict[str, Any]], ratio: float, draw: np.random.Generator) -> dict[str, Any]:
    """A window's counts with decisions drawn anew, as one line."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for attribute in window[0]["counts"]:
        names = dict.fromkeys(chain.from_iterable(line["counts"][attribute] for line in window))
        groups = counts[attribute] = {
            name: dict.fromkeys(("rows", "predicted_positive"), 1) for name in names
        }
        for rows, positive in LABELS:
            of = {
                name: [line["counts"][attribute].get(name, {}) for line in window] for name in names
            }
            total = {name: sum(c.get(rows, 0) for c in cells) for name, cells in of.items()}
            seen = sum(c.get(positive, 0) for cells in of.values() for c in cells)
            rate = seen / max(sum(total.values()), 1)
            enough = [name for name in names if total[name] >= ENOUGH]
            below = draw.choice(enough) if enough else None
            for name in names:
                chance = rate * (ratio if name == below else 1)
                groups[name] |= {
                    rows: total[name],
                    positive: int(draw.binomial(total[name], chance)),
                }
    return {"counts": counts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--ratio", type=float, default=0.9)
    chosen = parser.parse_args()
    for folder in chosen.folders:
        print(f"{folder}: {would_show(folder, chosen.ratio):.3f}")


if __name__ == "__main__":
    main()
