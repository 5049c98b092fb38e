"""Figure 1: the intervals of the adaptive geometric cover."""

from fairsaoml.core import intervals
from paper.drawing.style import EDGE, PALE, SOFT, STROKES, figure_of, styled, to_svg

__all__ = ["geometric_cover"]

CELL, ROW = 38.0, 42.0  # points: a round's width, a level's height
BAR, GAP = 0.62, 0.04  # of a row, of a round
MARKED = STROKES[1].colour
ON_MARK = "#1c2025"  # the ink of a light page, on dark pages too


@styled
def geometric_cover(*, horizon: int, base: int, round: int) -> str:
    """Draw all intervals up to a horizon, level by level, as SVG.

    Args:
        horizon: the last round.
        base: intervals of level k are base^k rounds long.
        round: the intervals that start in this round are marked.
    """
    levels = intervals.cover(horizon, base)
    chosen = intervals.starts(round, base, len(levels))
    figure = figure_of(CELL * horizon + 120, ROW * len(levels) + 70)
    axes = figure.add_subplot(
        xlim=(0.5, horizon + 0.5), ylim=(len(levels) - 0.5, -0.5), xlabel="round"
    )
    axes.grid(visible=False)
    for level, spans in enumerate(levels):
        for first, last in spans:
            marked = first == round and level in chosen
            state = " chosen" * marked
            axes.barh(
                level,
                last - first + 1 - 2 * GAP,
                height=BAR,
                left=first - 0.5 + GAP,
                color=MARKED if marked else PALE,
                edgecolor=MARKED if marked else EDGE,
                gid="interval" + state,
            )
            axes.text(
                (first + last) / 2,
                level,
                f"[{first},{last}]" if last > first or marked else str(first),
                size=9.5,
                color=ON_MARK if marked else SOFT,
                weight="bold" if marked else "normal",
                ha="center",
                va="center",
                gid="on" + state,
            )
    axes.axvline(round - 0.5, color=MARKED, linewidth=1.4, linestyle=(0, (3, 3)), zorder=0.5)
    axes.text(
        round - 0.4,
        -0.6,
        f"C_{round}: the intervals that start in round {round}",
        color=SOFT,
    )
    axes.set_xticks(range(1, horizon + 1))
    lengths = [base**level for level in range(len(levels))]
    names = [f"k = {k}: {n} round{'s' * (n > 1)}" for k, n in enumerate(lengths)]
    axes.set_yticks(range(len(levels)), names)
    named = ", ".join(
        "[{}, {}]".format(*intervals.interval(round, level, base, horizon)) for level in chosen
    )
    return to_svg(
        figure,
        f"Intervals of the adaptive geometric cover up to round {horizon}",
        f"{len(levels)} levels; the target set C_{round} is {named}.",
    )
