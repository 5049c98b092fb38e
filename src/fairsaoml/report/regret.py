"""Regret and violation against the window's length, with the proven growth beside them.

Both axes are logarithmic, so that growth like tau^a is a line of slope a. A bound does not give
its constant: each dotted line goes through the first measured value above zero.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from fairsaoml.report.figures import part, style
from fairsaoml.report.markup import asset, check_picture, render, write_page
from fairsaoml.report.svg import EndName, Frame, Values, end_names

WIDTH, HEIGHT = 400.0, 250.0  # of a panel's frame
LEFT, NAMES, TOP, BOTTOM = 48.0, 150.0, 34.0, 40.0  # room around it
DECADES = 4.0  # at most so many powers of ten below the largest value are shown


class _Curve(NamedTuple):
    name: str
    class_: str
    values: Values  # by window; None where there is nothing above zero to show


class _Panel(NamedTuple):
    """A panel as the template draws it."""

    title: str
    left: float  # of its axis, too
    frame: Frame
    sizes: Sequence[tuple[float, str]]  # on the axis of values
    windows: Sequence[tuple[float, str]]  # on the axis of windows
    places: Sequence[float]  # of the windows
    lines: Sequence[tuple[Values, str]]  # and their classes
    names: Sequence[EndName]


def write_regret_picture(measured: Mapping[str, Any], out: Path) -> Path:
    """Write what `fairsaoml regret` measured as one self-contained SVG file; return the file."""
    check_picture(out)
    return write_page(out, regret_picture(measured, alone=asset("chart.css")))


def regret_picture(measured: Mapping[str, Any], alone: str | None = None) -> Markup:
    """Return a panel for the loss, if the comparator was solved, and one for the violations.

    Args:
        measured: as `runs.regret` returns it.
        alone: the style sheet of a picture outside a page.
    """
    entries = measured["windows"]
    xs = [entry["window"] for entry in entries]
    panels = []
    if measured["comparator"] is not None:
        curves = [
            _Curve("FairSAR", style(0), [_above(entry["fair_regret"]) for entry in entries]),
            _Curve("SAR", style(1), [_above(entry["regret"]) for entry in entries]),
        ]
        bound = _bound("(τ log T)^½", "loss", entries, curves[0])
        panels.append(("Loss regret", [*curves, *bound]))
    if measured["constraints"]:
        curves = [
            _Curve(name, part(i), [_above(entry["violation"][name]) for entry in entries])
            for i, name in enumerate(measured["constraints"])
        ]
        highest = max(curves, key=lambda curve: max((v for v in curve.values if v), default=0.0))
        bounds = _bound("(τ T log T)^¼", "violation", entries, highest)
        bounds += _bound("T^¼ τ^½ (proof)", "violation_of_proof", entries, highest)
        panels.append(("Worst sum of violations", [*curves, *bounds]))
    step = LEFT + WIDTH + NAMES
    title = f"Regret of {measured['learner']} on {measured['stream']} by window length"
    description = (
        f"{measured['rounds']} rounds, {len(measured['seeds'])} seeds, {measured['form']} scores; "
        "the mean over seeds of the largest value over all windows of a length. Both axes are "
        "logarithmic; values at or below zero are left out. Dotted: the growth proven for "
        "FairSAOML, through the first value shown."
    )
    return render(
        "regret.svg",
        width=max(len(panels), 1) * step,
        height=TOP + HEIGHT + BOTTOM,
        title=title,
        description=description,
        alone=alone,
        panels=[_panel(name, xs, curves, at * step) for at, (name, curves) in enumerate(panels)],
    )


def _above(figure: Mapping[str, Any]) -> float | None:
    """A value that a logarithmic axis can show."""
    return figure["mean"] if figure["mean"] > 0 else None


def _bound(
    name: str, key: str, entries: Sequence[Mapping[str, Any]], curve: _Curve
) -> list[_Curve]:
    """A proven growth through the first value of a curve; none where it shows nothing."""
    for entry, value in zip(entries, curve.values, strict=True):
        if value is not None:
            scale = value / entry["proven"][key]
            return [_Curve(name, "", [scale * other["proven"][key] for other in entries])]
    return []


def _panel(title: str, xs: Sequence[int], curves: Sequence[_Curve], left: float) -> _Panel:
    known = [value for curve in curves for value in curve.values if value is not None]
    high = math.log10(max(known, default=1.0))
    low = max(math.log10(min(known, default=0.1)), high - DECADES)
    low, high = math.floor(low * 4) / 4, math.ceil(high * 4 + 0.1) / 4
    ends = (math.log10(xs[0]), math.log10(max(xs[-1], xs[0] + 1)))
    frame = Frame(left + LEFT, TOP, WIDTH, HEIGHT, ends, (low, high))
    logs = [math.log10(x) for x in xs]
    lines, names = [], []
    for curve in curves:
        heights = [
            None if v is None or math.log10(v) < low else math.log10(v) for v in curve.values
        ]
        lines.append((heights, curve.class_ or "bound"))
        shown = [(x, height) for x, height in zip(logs, heights, strict=True) if height is not None]
        if shown:
            class_ = f"name {curve.class_}" if curve.class_ else "note"
            last_x, last_y = shown[-1]
            names.append((curve.name, class_, frame.x(last_x), frame.y(last_y)))
    return _Panel(
        title=title,
        left=left,
        frame=frame,
        sizes=[(math.log10(value), f"{value:g}") for value in _round_numbers(low, high)],
        windows=[(math.log10(value), str(value)) for value in _axis(xs)],
        places=logs,
        lines=lines,
        names=end_names(frame, names),
    )


def _round_numbers(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten from 10^low to 10^high; powers of ten alone over many.

    >>> _round_numbers(0, 1), _round_numbers(-1, 3)
    ([1.0, 2.0, 5.0, 10.0], [0.1, 1.0, 10.0, 100.0, 1000.0])
    """
    steps = (1, 2, 5) if high - low <= 2.2 else (1,)
    powers = range(math.floor(low), math.ceil(high) + 1)
    every = [float(f"{step}e{power}") for power in powers for step in steps]
    return [value for value in every if low - 1e-9 <= math.log10(value) <= high + 1e-9]


def _axis(xs: Sequence[int]) -> list[int]:
    """Powers of two among the windows' range, and the last window if it is none of them."""
    low, high = xs[0], xs[-1]
    powers = [1 << power for power in range(high.bit_length()) if low <= 1 << power <= high]
    # The last one needs room of its own.
    return [p for p in powers if p * 1.3 < high] + [high] if high not in powers else powers
