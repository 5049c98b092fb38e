"""Calibration by group: do the probabilities mean the same for everyone, and what do they need?"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairsaoml.report.markup import Markup, element, number
from fairsaoml.report.rates import group_mark
from fairsaoml.report.reading import Run
from fairsaoml.report.svg import Frame, drawing, hline, text

__all__ = ["GroupChances", "calibration_chart", "group_chances"]

FEWEST = 20  # rows of a tenth that make a point
LEFT, TOP, BOTTOM = 44.0, 12.0, 40.0
TENTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class GroupChances(NamedTuple):
    """A group's rows by tenths of their probability: rows, positive labels, sum of probability."""

    tenths: Sequence[tuple[float, float, float]]
    threshold: float | None  # the mean probability that a row needed; None: not known

    @property
    def total(self) -> tuple[float, float, float]:
        """All groups together."""
        return tuple(map(sum, zip(*self.tenths, strict=True)))  # type: ignore[return-value]


def group_chances(run: Run, attribute: str) -> dict[str, GroupChances]:
    """Return what the journal says of each group's probabilities; empty for an older journal."""
    sums: dict[str, list[list[float]]] = {}
    needed: dict[str, list[float]] = {}
    for line in run.lines:
        for group, own in ((line.get("chances") or {}).get(attribute) or {}).items():
            total = sums.setdefault(group, [[0.0] * 3 for _ in own["tenths"]])
            for kept, tenth in zip(total, own["tenths"], strict=True):
                for place, value in enumerate(tenth):
                    kept[place] += value
            rows = sum(tenth[0] for tenth in own["tenths"])
            if own.get("threshold") is not None:
                needed.setdefault(group, [0.0, 0.0])
                needed[group][0] += rows * own["threshold"]
                needed[group][1] += rows
    return {
        group: GroupChances(
            tenths=[(rows, positive, chance) for rows, positive, chance in total],
            threshold=needed[group][0] / needed[group][1] if group in needed else None,
        )
        for group, total in sums.items()
    }


def calibration_chart(attribute: str, groups: Mapping[str, GroupChances], width: float) -> Markup:
    """Return the share of positive labels against the probability, a mark for each group."""
    side = min(width - LEFT - 12, 300.0)
    frame = Frame(LEFT, TOP, side, side, (0, 1), (0, 1))
    parts = [hline(frame, value, "grid") for value in TENTHS]
    for value in TENTHS:
        words = f"{value:.1f}"
        parts.append(text(frame.left - 8, frame.y(value) + 4, words, anchor="end"))
        parts.append(text(frame.x(value), frame.bottom + 16, words, anchor="middle"))
    parts.append(
        element(
            "line",
            x1=frame.x(0),
            x2=frame.x(1),
            y1=frame.y(0),
            y2=frame.y(1),
            class_="zero",
        )
    )
    words = "probability given"
    parts.append(text(frame.left + side / 2, frame.bottom + 33, words, "note", "middle"))
    for i, own in enumerate(groups.values()):
        marks = [
            element(
                "g",
                group_mark(i),
                transform=f"translate({number(frame.x(chance / rows))} "
                f"{number(frame.y(positive / rows))})",
            )
            for rows, positive, chance in own.tenths
            if rows >= FEWEST
        ]
        parts.append(element("g", *marks, class_=f"hue-{i % 12}"))
    return drawing(
        LEFT + side + 12,
        TOP + side + BOTTOM,
        f"Calibration by {attribute}",
        "The share of rows with a positive label, by the probability that was given to them; on "
        "the diagonal both agree. The table beside gives the means.",
        *parts,
        class_="chart",
    )
