"""A ratio's interval as a bar beside its numbers."""

from collections.abc import Mapping
from typing import Any

from fairsaoml.report.markup import Markup, element
from fairsaoml.report.svg import Frame, hline, text, tick_words, ticks

__all__ = ["interval_axis", "interval_bar"]

BAR_FRAME = (12.0, 2.0, 196.0, 18.0)  # left, top, width, height


def interval_bar(entry: Mapping[str, Any], asked: float, least: float) -> Markup:
    """Return a ratio's interval as a bar on a line from `least` to 1, with what was asked for."""
    frame = Frame(*BAR_FRAME, (least, 1.0), (0, 1))
    goal = frame.x(asked)
    parts = [
        hline(frame, 0.5, "grid"),
        element("line", x1=goal, x2=goal, y1=frame.top, y2=frame.bottom, class_="rule"),
    ]
    if entry["ratio"] is not None:
        low, high = (frame.x(max(entry[end], least)) for end in ("low", "high"))
        y = frame.y(0.5)
        parts.append(element("line", x1=low, x2=high, y1=y, y2=y, class_="interval-bar"))
        x = frame.x(max(entry["ratio"], least))
        parts.append(element("circle", cx=x, cy=y, r=4, class_="dot"))
    return element("svg", *parts, viewBox="0 0 220 22", class_="chart bar", aria_hidden="true")


def interval_axis(least: float) -> Markup:
    """Return the numbers above such bars."""
    frame = Frame(*BAR_FRAME, (least, 1.0), (0, 1))
    marks = [
        text(frame.x(value), 15, words, anchor="middle")
        for value, words in tick_words(ticks(least, 1.0, 4))
    ]
    return element("svg", *marks, viewBox="0 0 220 22", class_="chart bar", aria_hidden="true")
