"""The pictures of docs/explanation.md, docs/results.md and docs/performance.md.

python -m tools.pictures threshold docs/threshold.svg
python -m tools.pictures curves docs/ask-and-get.svg --streams A,B --tables FOLDER
python -m tools.pictures round docs/round.svg
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import parts
from matplotlib.axes import Axes
from paper.drawing.style import EDGE, INK, SOFT, STROKES, figure_of, styled, to_svg, write

from fairsaoml import OnlineLearner, open_stream
from tools.results import MARK, Source, folder_of, sources
from tools.windows import measure

ROUNDS = 12  # of `synthetic`, before its first change
ASKED = (0.8, 0.9, 0.95)
OURS = "fairsaoml-decoupled ratio={}"
THEIRS = "expgrad-eo ratio={} every=4"
WIDTH, ACROSS, PANEL = 900.0, 3, 250.0
BAR = 24.0  # points from one part of a round to the next


@styled
def draw_threshold() -> str:
    """Each row of a task: its probability, and the probability that it needs."""
    stream = open_stream("synthetic", {"tasks": ROUNDS})
    tasks = [task for task, _ in zip(stream.tasks(0), range(ROUNDS), strict=False)]
    online = OnlineLearner(stream.schema)
    for task in tasks[:-1]:
        online.learn(task)
    found: Any = online.explain(tasks[-1].x)
    chance, needed = np.asarray(found.probability), np.asarray(found.threshold)
    plain, group = float(found.plain_threshold), tasks[-1].group[:, 0]
    figure = figure_of(680, 470)
    axes = figure.add_subplot(
        xlim=(0, 1),
        ylim=(0.2, 0.8),
        xlabel="the row's probability of a positive label",
        ylabel="the probability that the row needs",
    )
    axes.set_title("How fairness moves a row's threshold", pad=26)
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1.4)
    axes.axhline(plain, color=SOFT, linewidth=1.2, dashes=(5, 3))
    axes.axvline(plain, color=SOFT, linewidth=1.2, dashes=(5, 3))
    changed = (chance > plain) != (chance > needed)
    for code, level in enumerate(stream.schema.attributes[0].levels):
        own, colour = group == code, STROKES[code].colour
        axes.scatter(chance[own], needed[own], s=14, color=colour, alpha=0.55, linewidths=0)
        turned = own & changed
        axes.scatter(
            chance[turned], needed[turned], s=46, facecolors="none", edgecolors=colour, linewidths=1
        )
        words = f"{level}: {int((turned & (chance > needed)).sum())} more yes, "
        words += f"{int((turned & (chance <= needed)).sum())} more no"
        write(axes, words, (0, 1), (250 * code, 8), color=colour, weight="bold")
    write(axes, "yes", (1, 0), (-30, 14), color=INK, weight="bold")
    write(axes, "no", (0, 1), (8, -20), color=INK, weight="bold")
    write(axes, "without fairness", (plain, 0), (5, 8), axes.get_xaxis_transform(), color=SOFT)
    return to_svg(
        figure,
        "How fairness moves a row's threshold",
        "Rows of a task by their probability and the probability they need; right of the diagonal "
        "is a yes. Ringed rows are decided otherwise than a single threshold would decide them.",
    )


@styled
def draw_curves(streams: list[Source]) -> str:
    """Accuracy against the measured ratio, ours and Fairlearn's, a panel for each stream."""
    down = -(-(len(streams) + 1) // ACROSS)
    figure = figure_of(WIDTH, PANEL * down + 40)
    first, *panels = figure.subplots(down, ACROSS, squeeze=False).flat
    first.set_title("asked and measured")
    first.plot([0.78, 0.97], [0.78, 0.97], color=EDGE, linewidth=1.2)
    first.set(xlim=(0.78, 0.97), ylim=(0.6, 1.0), xticks=ASKED, xlabel="asked", ylabel="measured")
    for panel in panels[len(streams) :]:
        panel.set_axis_off()
    for source, panel in zip(streams, panels, strict=False):
        panel.set_title(source.name)
        accuracy = "balanced accuracy" if source.balanced else "accuracy"
        panel.set(xlabel="measured ratio", ylabel=accuracy)
        for row, stroke in ((OURS, STROKES[0]), (THEIRS, STROKES[1])):
            found = [
                (asked, *_point(source, row, asked)) for asked in ASKED if _has(source, row, asked)
            ]
            if not found:
                continue
            asked, ratio, right = map(list, zip(*found, strict=True))
            style: dict[str, Any] = {"color": stroke.colour, "marker": "o", "markersize": 4}
            panel.plot(ratio, right, linestyle=stroke.linestyle, **style)
            first.plot(asked, ratio, linestyle=stroke.linestyle, alpha=0.55, linewidth=1, **style)
        _round_ticks(panel)
    write(first, "ours", (0, 1), (4, -14), color=STROKES[0].colour, weight="bold")
    write(first, "Fairlearn", (0, 1), (4, -28), color=STROKES[1].colour, weight="bold")
    return to_svg(
        figure,
        "Asked for .8, .9 and .95: the measured ratio, and accuracy at it",
        "The first panel shows the measured equalized-odds ratio by what was asked for; the others "
        "accuracy (balanced where the stream's decision is) by the measured ratio.",
    )


def _has(source: Source, row: str, asked: float) -> bool:
    return (folder_of(source, row.format(asked)) / MARK).exists()


def _point(source: Source, row: str, asked: float) -> tuple[float, float]:
    """The measured ratio and accuracy; of several domains the means of their ends."""
    found = measure(folder_of(source, row.format(asked)))
    blocks = list(found.ends.values()) if source.at_ends else [found.windows]
    accuracy = "balanced" if source.balanced else "accuracy"
    ratio, right = (float(np.mean([one[name] for one in blocks])) for name in ("EO", accuracy))
    return ratio, right


def _round_ticks(panel: Axes) -> None:
    panel.margins(0.15)
    panel.locator_params(nbins=4)


@styled
def draw_round() -> str:
    """What the parts of a round take, of a small task and of a large one."""
    rounds = parts.rounds()
    names = list(rounds[0].parts)
    figure = figure_of(WIDTH, BAR * len(names) + 60)
    panels = figure.subplots(1, len(rounds), sharey=True, squeeze=False)[0]
    places = np.arange(len(names))
    for panel, one, stroke in zip(panels, rounds, STROKES, strict=False):
        took = list(one.parts.values())
        panel.set_title(one.title)
        panel.barh(places, took, height=0.62, color=stroke.colour)
        panel.set(xlim=(0, 1.15 * max(took)), xlabel="milliseconds", yticks=places)
        panel.set_yticklabels(names, color=INK)
        panel.grid(visible=False)
        panel.tick_params(labelleft=panel is panels[0])
        for place, value in zip(places, took, strict=True):
            write(panel, f"{value:.2f}", (value, place), (5, -4), "data", color=SOFT)
    panels[0].invert_yaxis()
    said = "; ".join(
        f"{one.title}: " + ", ".join(f"{name} {took:.2f}" for name, took in one.parts.items())
        for one in rounds
    )
    return to_svg(figure, "Where the time of a round goes, in milliseconds", said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", choices=["threshold", "curves", "round"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--streams", default="")
    parser.add_argument("--tables", type=Path, action="append", default=[])
    chosen = parser.parse_args()
    if chosen.picture == "threshold":
        chosen.file.write_text(draw_threshold())
    elif chosen.picture == "round":
        chosen.file.write_text(draw_round())
    else:
        known = sources(chosen.tables)
        chosen.file.write_text(draw_curves([known[name] for name in chosen.streams.split(",")]))


if __name__ == "__main__":
    main()
