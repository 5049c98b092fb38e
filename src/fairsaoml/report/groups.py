"""The groups beside one another: their rates as marks on a line, and their calibration."""

from collections.abc import Mapping, Sequence
from operator import add
from typing import NamedTuple, TypeVar

from fairsaoml.evaluate.shares import APART
from fairsaoml.report import svg
from fairsaoml.report.figures import style
from fairsaoml.report.markup import Markup, element, number
from fairsaoml.report.reading import UNNAMED, Run

__all__ = [
    "RATES",
    "GroupChances",
    "RateRow",
    "calibration_chart",
    "ends_in_words",
    "group_chances",
    "group_mark",
    "group_rates",
    "groups_in",
    "rate_rows",
    "rate_titles",
]

Group = TypeVar("Group")  # what is known of a group

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
FEWEST = 20  # rows of a tenth of the probabilities that make a point
LEFT, TOP, BOTTOM = 44.0, 12.0, 40.0  # around the chart of calibration
FIFTHS = [(fifth / 5, f"{fifth / 5:.1f}") for fifth in range(6)]  # of its axes


class RateRow(NamedTuple):
    """One run in one stretch of rounds."""

    stretch: str
    name: str
    style: str
    groups: Mapping[str, Mapping[str, int]]  # six counts by group


def rate_rows(runs: Sequence[Run], attribute: str) -> list[RateRow]:
    """Return the runs at each domain's end, domain by domain."""
    ends = [(i, run, block) for i, run in enumerate(runs) for block in run.blocks if block.end]
    domains = list(dict.fromkeys(block.domain for _, _, block in ends))
    return [
        RateRow(
            stretch=block.title if block.domain == UNNAMED else str(block.domain),
            name=run.name,
            style=style(i),
            groups=declared((block.figures.pooled.get("counts") or {}).get(attribute, {})),
        )
        for i, run, block in sorted(ends, key=lambda end: domains.index(end[2].domain))
    ]


def ends_in_words(runs: Sequence[Run]) -> str:
    """Return which rounds `rate_rows` are of."""
    ends = {block.domain: block.title for run in runs[::-1] for block in run.blocks if block.end}
    return next(iter(ends.values())) if len(ends) == 1 else "The last rounds of each domain"


def groups_in(rows: Sequence[RateRow]) -> dict[str, int]:
    """Return the number of each group's mark."""
    return {group: i for i, group in enumerate(dict.fromkeys(g for r in rows for g in r.groups))}


def declared(groups: Mapping[str, Group]) -> dict[str, Group]:
    """Return the groups that were declared; rows of others are counted, but not compared."""
    return {name: group for name, group in groups.items() if name not in APART}


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
    names = min(NAMES, longest * svg.LETTER * svg.BOLD + 14, width * 0.4)
    inner = (width - names - GAP * (columns - 1) - 10) / columns
    marks = groups_in(rows)
    parts: list[Markup] = []
    top = 0.0
    for start in range(0, len(panels), columns):
        bottom = top
        for column, (title, (part, whole, _)) in enumerate(panels[start : start + columns]):
            left = names + column * (inner + GAP)
            frame = svg.Frame(left, top + HEAD, inner, 1, (0, 1), (0, 1))
            parts.append(svg.text(left, top + 14, title, "title"))
            bottom = top + HEAD
            stretch = None
            for row in rows:
                if row.stretch != stretch:
                    stretch = row.stretch
                    bottom += ROW + 6 if named else 0
                    if column == 0 and named:
                        label = svg.shorten(stretch, names / svg.BOLD)
                        parts.append(svg.text(0, bottom - 5, label, "domain"))
                y = bottom + ROW / 2
                if column == 0:
                    label = svg.shorten(row.name if named else row.stretch, (names - 8) / svg.BOLD)
                    parts.append(svg.text(0, y + 4, label, f"name {row.style}" if named else "row"))
                parts.append(element("line", x1=left, x2=frame.right, y1=y, y2=y, class_="grid"))
                parts.append(_marks(row, frame, y, part, whole, marks))
                bottom += ROW
            for value, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
                parts.append(svg.text(frame.x(value), bottom + 14, f"{value:g}", anchor=anchor))
        top = bottom + HEAD + 8
    names_of = ", ".join(marks)
    return svg.drawing(
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
    row: RateRow, frame: svg.Frame, y: float, part: str, whole: str, order: Mapping[str, int]
) -> Markup:
    rates = {
        group: counts[part] / counts[whole] for group, counts in row.groups.items() if counts[whole]
    }
    reach = svg.extent(rates.values())
    if reach is None:
        return svg.text(frame.left, y + 4, "undefined", "note")
    x1, x2 = frame.x(reach[0]), frame.x(reach[1])
    between = element("line", x1=x1, x2=x2, y1=y, y2=y, class_="range")
    drawn = [_mark_at(order[group], frame.x(rate), y) for group, rate in rates.items()]
    return element("g", between, *drawn, class_=row.style)


def _mark_at(i: int, x: float, y: float) -> Markup:
    return element("g", group_mark(i), transform=f"translate({number(x)} {number(y)})")


class GroupChances(NamedTuple):
    """A group's rows by tenths of their probability: rows, positive labels, sum of probability."""

    tenths: Sequence[tuple[float, float, float]]
    threshold: float | None  # the mean probability that a row needed; None: not known

    @property
    def total(self) -> tuple[float, float, float]:
        """All groups together."""
        return tuple(map(sum, zip(*self.tenths, strict=True)))  # type: ignore[return-value]


def group_chances(run: Run, attribute: str) -> dict[str, GroupChances]:
    """Return what the journal says of the probabilities of each group with rows.

    Empty for an older journal.
    """
    sums: dict[str, list[tuple[float, ...]]] = {}
    needed: dict[str, tuple[float, float]] = {}  # thresholds times rows, and rows
    for line in run.lines:
        for group, own in ((line.get("chances") or {}).get(attribute) or {}).items():
            before = sums.get(group, [(0.0, 0.0, 0.0)] * len(own["tenths"]))
            pairs = zip(before, own["tenths"], strict=True)
            sums[group] = [tuple(map(add, one, other)) for one, other in pairs]
            if own.get("threshold") is not None:
                total, weight = needed.get(group, (0.0, 0.0))
                rows = sum(tenth[0] for tenth in own["tenths"])
                needed[group] = (total + rows * own["threshold"], weight + rows)
    thresholds = {group: total / weight for group, (total, weight) in needed.items()}
    groups = {
        group: GroupChances(tenths, thresholds.get(group))  # type: ignore[arg-type]
        for group, tenths in sums.items()
    }
    return {group: own for group, own in declared(groups).items() if own.total[0]}


def calibration_chart(attribute: str, groups: Mapping[str, GroupChances], width: float) -> Markup:
    """Return the share of positive labels against the probability, a mark for each group."""
    side = min(width - LEFT - 12, 300.0)
    frame = svg.Frame(LEFT, TOP, side, side, (0, 1), (0, 1))
    corners = {"x1": frame.x(0), "x2": frame.x(1), "y1": frame.y(0), "y2": frame.y(1)}
    parts = [svg.hline(frame, value, "grid") for value, _ in FIFTHS]
    parts += [svg.y_axis(frame, FIFTHS), svg.x_axis(frame, FIFTHS, "probability given", below=33)]
    parts.append(element("line", **corners, class_="zero"))
    for i, own in enumerate(groups.values()):
        marks = [
            _mark_at(i, frame.x(chance / rows), frame.y(positive / rows))
            for rows, positive, chance in own.tenths
            if rows >= FEWEST
        ]
        parts.append(element("g", *marks, class_=style(i)))
    return svg.drawing(
        LEFT + side + 12,
        TOP + side + BOTTOM,
        f"Calibration by {attribute}",
        "The share of rows with a positive label, by the probability that was given to them; on "
        "the diagonal both agree. The table beside gives the means.",
        *parts,
        class_="chart",
    )
