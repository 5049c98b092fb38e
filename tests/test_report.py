"""The report says what the run's files say: nothing from outside, nothing hidden, nothing run."""

import json
import random
from pathlib import Path

from fairsaoml.evaluate.summary import summarise

BEST = {"accuracy": 0.83, "fair_accuracy": 0.8}


def fake_counts(rng: random.Random, gap: float, skill: float) -> dict:
    """Two groups of a few hundred rows; `gap` tilts the decisions towards the majority."""
    counts = {}
    for group, sign, size in (("majority", 1, 560), ("minority", -1, 440)):
        y1 = round(size * (0.53 + sign * 0.04))
        true_positive = sum(rng.random() < skill + sign * gap / 2 for _ in range(y1))
        false_positive = sum(rng.random() < 1 - skill + sign * gap / 2 for _ in range(size - y1))
        counts[group] = {
            "rows": size,
            "predicted_positive": true_positive + false_positive,
            "y1_rows": y1,
            "true_positive": true_positive,
            "y0_rows": size - y1,
            "false_positive": false_positive,
        }
    return counts


def figures_of(counts: dict) -> dict:
    """The measures of two groups' counts, by the book."""

    def ratio(part: str, whole: str) -> float | None:
        rates = [c[part] / c[whole] if c[whole] else None for c in counts.values()]
        return None if None in rates or max(rates) == 0 else min(rates) / max(rates)

    total = {key: sum(c[key] for c in counts.values()) for key in next(iter(counts.values()))}
    right = total["true_positive"] + total["y0_rows"] - total["false_positive"]
    tpr = total["true_positive"] / total["y1_rows"] if total["y1_rows"] else None
    fpr = total["false_positive"] / total["y0_rows"] if total["y0_rows"] else None
    parts = {
        "eo_ratio_tpr": ratio("true_positive", "y1_rows"),
        "eo_ratio_fpr": ratio("false_positive", "y0_rows"),
    }
    rates = [c["predicted_positive"] / c["rows"] for c in counts.values()]
    return {
        "accuracy": right / total["rows"],
        "balanced_accuracy": None if tpr is None or fpr is None else (tpr + 1 - fpr) / 2,
        "positive_rate": total["predicted_positive"] / total["rows"],
        "dp_ratio": ratio("predicted_positive", "rows"),
        "dp_difference": max(rates) - min(rates),
        "eo_ratio": None if None in parts.values() else min(parts.values()),
        **parts,
    }


def fake_run(
    folder: Path,
    *,
    name: str = "fairsaoml-live",
    gap: float = 0.04,
    skill: float = 0.8,
    seeds: int = 3,
    domains: tuple = (("market-1", 30), ("market-2", 30), ("market-3", 30)),
    constraints: tuple = ("eo1[group=minority]", "eo0[group=minority]"),
    summary: bool = True,
) -> Path:
    """A run's folder as DESIGN.md describes it, with plausible numbers in it."""
    folder.mkdir(parents=True)
    rng = random.Random(f"{name} {gap} {skill}")
    lines = []
    start = 1
    length = sum(count for _, count in domains)
    dual = [0.2 for _ in constraints]
    for domain, count in domains:
        for round in range(start, start + count):
            age = round - start
            shock = 0.75**age
            levels = 1 + sum(round > 2**k for k in range(1, 7) if 2 ** (k + 1) <= length)
            dual = [max(0.0, d + 0.3 * shock - 0.05 * d + rng.gauss(0, 0.02)) for d in dual]
            for seed in range(seeds):
                counts = fake_counts(rng, gap + 0.5 * shock, skill - 0.25 * shock)
                mass = [
                    (k + 1) ** (2.5 * (1 - shock) - 1) * rng.uniform(0.8, 1) for k in range(levels)
                ]
                lines.append(
                    {
                        "round": round,
                        "seed": seed,
                        "domain": domain,
                        "rows": 1000,
                        **figures_of(counts),
                        "loss": 0.45 + shock / 3,
                        "violation": [0.3 * shock - 0.02 + rng.gauss(0, 0.02) for _ in constraints],
                        "dual": dual,
                        "weights": [m / sum(mass) for m in mass],
                        "awake": [k for k in range(levels) if (round - 1) % 2**k == 0],
                        "counts": {"group": counts},
                        "attributes": {"group": {"dp_ratio": figures_of(counts)["dp_ratio"]}},
                        "undefined": [],
                        "insufficient": [],
                        "warnings": [],
                        "adapted": figures_of(counts),
                        "seconds": 0.01,
                    }
                )
        start += count
    spec = {
        "schema": 1,
        "name": name,
        "learner": {"name": "fairsaoml-live", "config": {"base": 2, "tolerance": 0.02}},
        "stream": {
            "name": "synthetic",
            "settings": {"generator": 0},
            "features": ["income", "debt"],
            "attributes": [{"name": "group", "levels": ["majority", "minority"]}],
            "length": length,
            "notes": ["ten features"],
        },
        "constraints": list(constraints),
        "seeds": list(range(seeds)),
        "versions": {"fairsaoml": "0.1.0", "jax": "0.5.0", "python": "3.11"},
        "command": f"fairsaoml run synthetic --seeds {seeds} --out runs/{name}",
    }
    write_run(folder, spec, lines, summary=summary)
    return folder


def write_run(folder: Path, spec: dict, lines: list, *, summary: bool = True) -> None:
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "rounds.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if summary:
        names = {line["domain"] for line in lines}
        found = summarise(
            lines,
            learner=spec["learner"]["name"],
            stream=spec["stream"]["name"],
            seeds=spec["seeds"],
            best=dict.fromkeys(names, BEST),
        )
        (folder / "summary.json").write_text(json.dumps(found))
