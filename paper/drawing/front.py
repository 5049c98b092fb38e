"""The front of a tuning as a picture: how accurate against how fair, a mark for each trial."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from fairsaoml.report.markup import Markup, element, join, number
from fairsaoml.report.svg import Frame, drawing, text, ticks

__all__ = ["draw_front"]

WIDTH, HEIGHT = 640.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 16.0, 66.0, 44.0
ROOM = 0.02  # of accuracy, at least, to either side of the marks
NAMED = 2  # streams that a line has room for
SMALL, LARGE = 3.0, 6.0  # marks
BESIDE = 150.0  # room for a name, before the next
LAYERS = {"tried": "hue-7", "front": "hue-0", "default": "hue-1", "chosen": "hue-2"}


def draw_front(result: Mapping[str, Any]) -> Markup:
    """The trials of a `trials.json` as an SVG picture that stands alone.

    Each mark carries its trial and settings as a title, for whoever points at it.
    """
    trials = result["trials"]
    best = sorted((t for t in trials if t["on_front"]), key=lambda t: t["accuracy"])
    chosen = next(t for t in trials if t["trial"] == result["chosen"]["trial"])
    frame = Frame(
        left=LEFT,
        top=TOP,
        width=WIDTH - LEFT - RIGHT,
        height=HEIGHT - TOP - BOTTOM,
        x_range=_reach([trial["accuracy"] for trial in trials]),
        y_range=(0.0, 1.0),
    )
    streams = list(chosen["streams"])
    seen = " and ".join(streams) if len(streams) <= NAMED else f"{len(streams)} streams"
    return drawing(
        WIDTH,
        HEIGHT,
        f"Tuning {result['learner']} on {result['stream']}: accuracy against fairness",
        f"{len(trials)} trials, {len(best)} of them on the front. Chosen: trial "
        f"{chosen['trial']}, accuracy {chosen['accuracy']:.3f}, ratio {chosen['ratio']:.2f}.",
        text(
            0, 12, f"{result['learner']} tuned on {', '.join(result['stream'].split(','))}", "title"
        ),
        text(0, 30, f"{len(trials)} trials; mean of {seen}", "note"),
        _scenery(frame, result["goal"]),
        *(_mark(frame, trial, "tried", SMALL) for trial in trials if not trial["on_front"]),
        _staircase(frame, best),
        *(_mark(frame, trial, "front", SMALL) for trial in best),
        *(
            _named(frame, trial, "default", frame.right - BESIDE)
            for trial in trials
            if trial["is_default"] and trial is not chosen
        ),
        _named(frame, chosen, "chosen", frame.right),
        class_="chart",
        alone=(files("fairsaoml.report") / "assets" / "chart.css").read_text(encoding="utf-8"),
    )


def _reach(values: Sequence[float]) -> tuple[float, float]:
    return min(values) - ROOM, max(values) + ROOM


def _scenery(frame: Frame, goal: float) -> Markup:
    parts = []
    for value in ticks(*frame.y_range, 5):
        y = frame.y(value)
        parts.append(element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="grid"))
        parts.append(text(frame.left - 8, y + 4, f"{value:.1f}", anchor="end"))
    for value in ticks(*frame.x_range, 6):
        parts.append(text(frame.x(value), frame.bottom + 16, f"{value:g}", anchor="middle"))
    y = frame.y(goal)
    parts.append(element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="rule"))
    parts.append(text(frame.left + 4, y + 15, f"fair enough: {goal:g}", "note"))
    middle = (frame.left + frame.right) / 2
    parts.append(text(middle, frame.bottom + 34, "accuracy", "note", "middle"))
    parts.append(text(0, frame.top - 12, "worst of DP and EO ratio", "note"))
    return join(*parts)


def _staircase(frame: Frame, best: Sequence[Mapping[str, Any]]) -> Markup:
    """The edge of what was reached: from each trial of the front straight to the next."""
    corners: list[str] = []
    for trial in best:
        x, y = number(frame.x(trial["accuracy"])), number(frame.y(trial["ratio"]))
        corners.append(f"V{y}H{x}" if corners else f"M{number(frame.left)} {y}H{x}")
    path = "".join(corners) + f"V{number(frame.bottom)}"
    return element("path", d=path, class_=f"line {LAYERS['front']}")


def _mark(frame: Frame, trial: Mapping[str, Any], layer: str, radius: float) -> Markup:
    settings = ", ".join(f"{key}={value}" for key, value in trial["settings"].items())
    words = f"trial {trial['trial']}: {trial['accuracy']:.3f}, {trial['ratio']:.2f}; {settings}"
    x, y = frame.x(trial["accuracy"]), frame.y(trial["ratio"])
    style = "dot" if radius == SMALL else "mark"
    shown = element("title", words)
    return element("circle", shown, cx=x, cy=y, r=radius, class_=f"{style} {LAYERS[layer]}")


def _named(frame: Frame, trial: Mapping[str, Any], layer: str, place: float) -> Markup:
    """A trial that is spoken of: a ring, and its name in the line above, where no mark can be."""
    words = f"{layer}: {trial['accuracy']:.3f}, {trial['ratio']:.2f}"
    name = text(place, frame.top - 12, words, f"name {LAYERS[layer]}", "end")
    return join(_mark(frame, trial, layer, LARGE), name)
