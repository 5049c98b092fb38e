"""The groups beside one another: their rates as marks on a line, and their calibration."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairsaoml.evaluate.metrics import APART
from fairsaoml.report.figures import style
from fairsaoml.report.reading import UNNAMED, Run
from fairsaoml.report.svg import BOLD, LETTER, Frame, shorten

Group = TypeVar("Group")  # what is known of a group

RATES = (  # how many, out of how many, and the figure that compares the groups
    ("predicted_positive", "rows", "dp_ratio"),
    ("true_positive", "y1_rows", "eo_ratio_tpr"),
    ("false_positive", "y0_rows", "eo_ratio_fpr"),
)
ROW, HEAD, GAP = 20.0, 20.0, 26.0
NAMES = 260.0  # the most room for the names of runs on the left


class RateRow(NamedTuple):
    """One run in one stretch of rounds."""

    stretch: str
    name: str
    style: str
    groups: Mapping[str, Mapping[str, int]]  # six counts by group

    def rates(self, part: str, whole: str) -> dict[str, float]:
        """The share of each group that has any rows."""
        return {
            group: counts[part] / counts[whole]
            for group, counts in self.groups.items()
            if counts[whole]
        }


def rate_rows(runs: Sequence[Run], attribute: str) -> list[RateRow]:
    """Return the runs at each domain's end, domain by domain."""
    ends = [(i, run, block) for i, run in enumerate(runs) for block in run.blocks if block.end]
    domains = list(dict.fromkeys(block.domain for _, _, block in ends))
    return [
        RateRow(
            stretch=block.title if block.domain == UNNAMED else str(block.domain),
            name=run.name,
            style=style(i),
            groups=declared((block.figures["pooled"].get("counts") or {}).get(attribute, {})),
        )
        for i, run, block in sorted(ends, key=lambda end: domains.index(end[2].domain))
    ]


def groups_in(rows: Sequence[RateRow]) -> dict[str, int]:
    """Return the number of each group's mark."""
    return {group: i for i, group in enumerate(dict.fromkeys(g for r in rows for g in r.groups))}


def declared(groups: Mapping[str, Group]) -> dict[str, Group]:
    """Return the groups that were declared; rows of others are counted, but not compared."""
    return {name: group for name, group in groups.items() if name not in APART}


def rate_titles(decided: str) -> tuple[str, str, str]:
    """Return the titles of RATES; `decided` is what a positive decision is called."""
    return (decided.capitalize(), "True positives", "False positives")


def rate_layout(rows: Sequence[RateRow], width: float, columns: int) -> dict[str, Any]:
    """Return where the drawing of rates has its panels, `columns` of them beside one another.

    Its `height`, the `frames` of RATES, and how far below a frame's top there are `labels` (words
    and their class) and `rows`.
    """
    named = len({row.name for row in rows}) > 1
    longest = max(len(words) for row in rows for words in (row.name, row.stretch))
    names = min(NAMES, longest * LETTER * BOLD + 14, width * 0.4)
    inner = (width - names - GAP * (columns - 1) - 10) / columns
    labels: list[tuple[float, str, str]] = []
    placed: list[tuple[float, RateRow]] = []
    below, stretch = 0.0, None
    for row in rows:
        if named and row.stretch != stretch:
            stretch = row.stretch
            below += ROW + 6
            labels.append((below - 5, shorten(stretch, names / BOLD), "domain"))
        words = shorten(row.name if named else row.stretch, (names - 8) / BOLD)
        labels.append((below + ROW / 2 + 4, words, f"name {row.style}" if named else "row"))
        placed.append((below + ROW / 2, row))
        below += ROW
    height = HEAD + below + HEAD + 8
    frames = [
        Frame(names + i % columns * (inner + GAP), i // columns * height + HEAD, inner, below)
        for i in range(len(RATES))
    ]
    height = frames[-1].bottom + HEAD + 8
    return {"height": height, "frames": frames, "labels": labels, "rows": placed}


def group_chances(run: Run, attribute: str) -> dict[str, tuple[NDArray[np.float64], float | None]]:
    """Return what the journal says of the probabilities of each group with rows.

    By tenths of the probability: rows, positive labels, sum of probability; and the mean
    probability that a row needed, if that is known. Empty for an older journal.
    """
    tenths: dict[str, Any] = {}
    thresholds: dict[str, Any] = {}  # times rows, and rows
    for line in run.lines:
        for group, own in ((line.get("chances") or {}).get(attribute) or {}).items():
            counts = np.array(own["tenths"], float)
            tenths[group] = tenths.get(group, 0) + counts
            if own.get("threshold") is not None:
                rows = counts[:, 0].sum()
                needed = np.array([rows * own["threshold"], rows])
                thresholds[group] = thresholds.get(group, 0) + needed
    needed_of = {group: total / rows for group, (total, rows) in thresholds.items()}
    return {
        group: (counts, needed_of.get(group))
        for group, counts in declared(tenths).items()
        if counts[:, 0].any()
    }
