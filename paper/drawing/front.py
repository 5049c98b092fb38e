"""The result of a search as a picture: accuracy against fairness, a mark for each trial."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from paper.drawing.style import GROUND, INK, SOFT, STROKES, figure_of, styled, to_svg, write

__all__ = ["draw_front"]

WIDTH, HEIGHT = 680.0, 460.0
ROOM = 0.02  # of accuracy, to either side of the marks
NAMED = 2  # streams that a line has room for
FRONT, DEFAULT, CHOSEN, OTHER = (STROKES[at].colour for at in (0, 1, 2, 7))


@styled
def draw_front(result: Mapping[str, Any]) -> str:
    """Draw the trials of a `trials.json` as SVG; a mark shows its settings under a pointer."""
    trials, learner = result["trials"], result["learner"]
    front = sorted((t for t in trials if t["on_front"]), key=lambda trial: trial["accuracy"])
    chosen = next(t for t in trials if t["trial"] == result["chosen"]["trial"])
    streams = list(chosen["streams"])
    seen = " and ".join(streams) if len(streams) <= NAMED else f"{len(streams)} streams"
    accuracies = [trial["accuracy"] for trial in trials]
    figure = figure_of(WIDTH, HEIGHT)
    axes = figure.add_subplot(
        xlim=(min(accuracies) - ROOM, max(accuracies) + ROOM),
        ylim=(-0.02, 1.03),
        xlabel="accuracy",
        ylabel="worst of DP and EO ratio",
    )
    axes.set_title(
        f"{learner} tuned on {', '.join(result['stream'].split(','))}", pad=42, gid="title"
    )
    write(axes, f"{len(trials)} trials; mean of {seen}", (0, 1), (0, 26), color=SOFT)
    axes.axhline(result["goal"], color=INK, linewidth=1.4, zorder=1.5)
    goal = (0.0, result["goal"])
    write(axes, f"fair enough: {goal[1]:g}", goal, (4, -13), axes.get_yaxis_transform(), color=SOFT)
    # The edge of what was reached: from each trial of the front straight to the next.
    corners = [(axes.get_xlim()[0], front[0]["ratio"])]
    for trial in front:
        corners += [(corners[-1][0], trial["ratio"]), (trial["accuracy"], trial["ratio"])]
    corners.append((corners[-1][0], axes.get_ylim()[0]))
    axes.plot(*zip(*corners, strict=True), color=FRONT, gid="front")
    for trial in trials:
        _mark(axes, trial, colour=FRONT if trial["on_front"] else OTHER)
    named = [("chosen", chosen, CHOSEN)]
    named += [("default", t, DEFAULT) for t in trials if t["is_default"] and t is not chosen]
    for place, (name, trial, colour) in enumerate(named):
        # A ring, and its name in the line above, where no mark can be.
        _mark(axes, trial, colour=colour, ring=True)
        words = f"{name}: {trial['accuracy']:.3f}, {trial['ratio']:.2f}"
        style = {"color": colour, "weight": "bold", "ha": "right", "gid": "name"}
        write(axes, words, (1.0 - 0.27 * place, 1), (0, 8), **style)
    return to_svg(
        figure,
        f"Tuning {learner} on {result['stream']}: accuracy against fairness",
        f"{len(trials)} trials, {len(front)} of them on the front. Chosen: trial "
        f"{chosen['trial']}, accuracy {chosen['accuracy']:.3f}, ratio {chosen['ratio']:.2f}.",
        hints={f"trial {trial['trial']}": _hint(trial) for trial in trials},
    )


def _mark(axes: Axes, trial: Mapping[str, Any], *, colour: str, ring: bool = False) -> None:
    axes.plot(
        trial["accuracy"],
        trial["ratio"],
        marker="o",
        markersize=12 if ring else 6,
        markerfacecolor=GROUND if ring else colour,
        markeredgecolor=colour,
        markeredgewidth=1.8 if ring else 0,
        zorder=4 if ring else 3,
        clip_on=False,
        gid=f"trial {trial['trial']}",
    )


def _hint(trial: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{key}={value}" for key, value in trial["settings"].items())
    return f"trial {trial['trial']}: {trial['accuracy']:.3f}, {trial['ratio']:.2f}; {settings}"
