"""The groups' rates as marks on a line: the farther apart, the more unequal."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairsaoml.report.markup import Markup, element, number
from fairsaoml.report.svg import BOLD, LETTER, Frame, drawing, extent, shorten, text

__all__ = ["RATES", "RateRow", "group_mark", "group_rates", "rate_titles"]

RATES = (  # how many, out of how many, and the figure that compares the groups
    ("predicted_positive", "rows", "dp_ratio"),
    ("true_positive", "y1_rows", "eo_ratio_tpr"),
    ("false_positive", "y0_rows", "eo_ratio_fpr"),
)
SHAPES = (  # one for each group, filled first and then hollow; corners around the middle
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
    "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "M0 -4.6L4.4 3.4H-4.4Z",
    "M0 -5L4.6 0L0 5L-4.6 0Z",
)
ROW, HEAD, GAP = 20.0, 20.0, 26.0
NAMES = 260.0  # the most room for the names of runs on the left


class RateRow(NamedTuple):
    """One run in one stretch of rounds."""

    stretch: str
    name: str
    style: str
    groups: Mapping[str, Mapping[str, int]]  # six counts by group


def rate_titles(decided: str) -> tuple[str, str, str]:
    """Return the titles of RATES; `decided` is what a positive decision is called."""
    return (decided.capitalize(), "True positives", "False positives")


def group_rates(
    attribute: str, rows: Sequence[RateRow], decided: str, width: float, columns: int
) -> Markup:
    """Return a drawing with a panel for each rate, `columns` of them in a row."""
    panels = list(zip(rate_titles(decided), RATES, strict=True))
    named = len({row.name for row in rows}) > 1
    longest = max(len(words) for row in rows for words in (row.name, row.stretch))
    names = min(NAMES, longest * LETTER * BOLD + 14, width * 0.4)
    inner = (width - names - GAP * (columns - 1) - 10) / columns
    marks = {group: i for i, group in enumerate(dict.fromkeys(g for r in rows for g in r.groups))}
    parts: list[Markup] = []
    top = 0.0
    for start in range(0, len(panels), columns):
        bottom = top
        for column, (title, (part, whole, _)) in enumerate(panels[start : start + columns]):
            left = names + column * (inner + GAP)
            frame = Frame(left, top + HEAD, inner, 1, (0, 1), (0, 1))
            parts.append(text(left, top + 14, title, "title"))
            bottom = top + HEAD
            stretch = None
            for row in rows:
                if row.stretch != stretch:
                    stretch = row.stretch
                    bottom += ROW + 6 if named else 0
                    if column == 0 and named:
                        label = shorten(stretch, names / BOLD)
                        parts.append(text(0, bottom - 5, label, "domain"))
                y = bottom + ROW / 2
                if column == 0:
                    label = shorten(row.name if named else row.stretch, (names - 8) / BOLD)
                    parts.append(text(0, y + 4, label, f"name {row.style}" if named else "row"))
                parts.append(element("line", x1=left, x2=frame.right, y1=y, y2=y, class_="grid"))
                parts.append(_marks(row, frame, y, part, whole, marks))
                bottom += ROW
            for value, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
                parts.append(text(frame.x(value), bottom + 14, f"{value:g}", anchor=anchor))
        top = bottom + HEAD + 8
    names_of = ", ".join(marks)
    return drawing(
        width,
        top,
        f"Rates by {attribute}: {decided}, true positives, false positives",
        f"One mark for each of the groups {names_of}. The table below gives rates and counts.",
        *parts,
        class_="chart",
    )


def group_mark(i: int) -> Markup:
    """Return the i-th group's mark, around the origin: filled shapes first, then hollow ones."""
    full = (i // len(SHAPES)) % 2 == 0
    return element("path", d=SHAPES[i % len(SHAPES)], class_="mark full" if full else "mark")


def _marks(
    row: RateRow, frame: Frame, y: float, part: str, whole: str, order: Mapping[str, int]
) -> Markup:
    rates = {
        group: counts[part] / counts[whole] for group, counts in row.groups.items() if counts[whole]
    }
    reach = extent(rates.values())
    if reach is None:
        return text(frame.left, y + 4, "undefined", "note")
    x1, x2 = frame.x(reach[0]), frame.x(reach[1])
    between = element("line", x1=x1, x2=x2, y1=y, y2=y, class_="range")
    drawn = [
        element(
            "g",
            group_mark(order[group]),
            transform=f"translate({number(frame.x(rate))} {number(y)})",
        )
        for group, rate in rates.items()
    ]
    return element("g", between, *drawn, class_=row.style)
