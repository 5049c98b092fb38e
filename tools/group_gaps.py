"""How the gap between groups moves over time, as figures and as the picture in docs/datasets.md.

python -m tools.group_gaps docs/gaps.svg
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.streams.datasets.home import data_home
from fairsaoml.streams.datasets.movielens import LIKED, load_ratings
from fairsaoml.streams.datasets.nypd import BOROUGHS
from fairsaoml.streams.datasets.stop_and_frisk import (
    DEFAULT_YEARS,
    load_arrests,
    load_years,
    parse_years,
)

__all__ = ["PeriodGap", "arrests_gaps", "draw", "frisk_gaps", "gaps", "movielens_gaps"]


class PeriodGap(NamedTuple):
    """One stretch of time."""

    period: str
    rows: int
    gap: float | None  # P(y=1 | group) - P(y=1 | others); None where either is absent


def gaps(period: np.ndarray, y: np.ndarray, group: np.ndarray) -> list[PeriodGap]:
    """The gap in each period, in order.

    >>> period, y = np.array(["a", "a", "a", "b"]), np.array([1, 1, 0, 1])
    >>> gaps(period, y, group=np.array([1, 0, 0, 1]))
    [PeriodGap(period='a', rows=3, gap=0.5), PeriodGap(period='b', rows=1, gap=None)]
    """
    by_period = []
    for name in np.unique(period):
        here = period == name
        ours, theirs = y[here & (group == 1)], y[here & (group == 0)]
        gap = float(ours.mean() - theirs.mean()) if len(ours) and len(theirs) else None
        by_period.append(PeriodGap(str(name), int(here.sum()), gap))
    return by_period


def movielens_gaps(ratings: Any) -> list[PeriodGap]:
    """Liking a film, women minus men, by month."""
    moment = ratings["timestamp"].to_numpy().astype("datetime64[s]")
    women = np.array(ratings["gender"].to_pylist()) == "F"
    return gaps(moment.astype("datetime64[M]"), ratings["rating"].to_numpy() > LIKED, women)


def frisk_gaps(table: Any) -> dict[str, list[PeriodGap]]:
    """Being frisked, black minus others, by borough and quarter."""
    return _stop_gaps(table, "frisked", quarters=True)


def arrests_gaps(table: Any) -> dict[str, list[PeriodGap]]:
    """Being arrested, black minus others, by borough and month."""
    return _stop_gaps(table, "arstmade", quarters=False)


def _stop_gaps(table: Any, label: str, *, quarters: bool) -> dict[str, list[PeriodGap]]:
    month = np.asarray(table["date"]).astype("datetime64[M]")
    if quarters:
        month = month - month.astype(int) % 3
    borough, race, answer = (
        np.array(table[name].to_pylist()) for name in ("borough", "race", label)
    )
    return {
        name: gaps(month[here], answer[here] == "Y", race[here] == "B")
        for letter, name in BOROUGHS.items()
        if (here := borough == letter).any()
    }


def draw(panels: Mapping[str, Mapping[str, list[PeriodGap]]]) -> str:
    """An SVG picture: one panel per stream, one line per domain."""
    body = "".join(
        f'<g transform="translate({place * PANEL} 0)">{_panel(title, lines)}</g>'
        for place, (title, lines) in enumerate(panels.items())
    )
    words = "; ".join(panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {len(panels) * PANEL} 200" '
        f'font-family="sans-serif" font-size="10" role="img"><title>{words}</title>'
        f'<rect width="100%" height="100%" fill="white"/>{body}</svg>\n'
    )


PANEL = 310  # width of a panel
LEFT, RIGHT, TOP, BOTTOM = 40, 300, 26, 160  # of the area of its lines
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000")  # told apart by all eyes


def _panel(title: str, lines: Mapping[str, list[PeriodGap]]) -> str:
    known = [gap.gap for line in lines.values() for gap in line if gap.gap is not None]
    low, high = min(0.0, *known), max(0.0, *known)
    periods = [gap.period for gap in next(iter(lines.values()))]

    def x(at: int) -> float:
        return LEFT + (RIGHT - LEFT) * at / max(1, len(periods) - 1)

    def y(gap: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (gap - low) / (high - low)

    parts = [f'<text x="{LEFT}" y="14" font-weight="bold">{title}</text>']
    for value in sorted({low, 0.0, high}):
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{RIGHT}" stroke="#ccc"/>')
        parts.append(
            f'<text x="{LEFT - 4}" y="{y(value) + 3:.1f}" text-anchor="end">{value:+.2f}</text>'
        )
    for at, anchor in ((0, "start"), (len(periods) - 1, "end")):
        parts.append(
            f'<text x="{x(at):.1f}" y="{BOTTOM + 14}" text-anchor="{anchor}">{periods[at]}</text>'
        )
    for (name, line), colour, place in zip(lines.items(), COLOURS, range(len(lines)), strict=False):
        points = " ".join(
            f"{x(at):.1f},{y(gap.gap):.1f}" for at, gap in enumerate(line) if gap.gap is not None
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        if len(lines) > 1:
            where = LEFT + place * (RIGHT - LEFT) / len(lines)
            parts.append(f'<text x="{where:.0f}" y="190" fill="{colour}">{name[:9]}</text>')
    return "".join(parts)


def main(path: Path) -> None:
    """Draw all three data sets, which must be in the data home."""
    home = data_home()
    panels = {
        "films liked: women - men, by month": {"all": movielens_gaps(load_ratings(home))},
        "frisked: black - others, by quarter": frisk_gaps(
            load_years(parse_years(DEFAULT_YEARS), home)[0]
        ),
        "arrested: black - others, by month": arrests_gaps(load_arrests(home)[0]),
    }
    path.write_text(draw(panels))
    for title, lines in panels.items():
        for name, line in lines.items():
            known = [gap.gap for gap in line if gap.gap is not None]
            print(f"{title}, {name}: {min(known):+.3f} to {max(known):+.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
