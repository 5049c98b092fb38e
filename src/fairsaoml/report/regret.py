"""Regret and violation against the window's length, with the proven growth beside them.

Both axes are logarithmic, so that growth like tau^a is a line of slope a. A bound does not give
its constant: each dotted line goes through the first measured value above zero.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from fairsaoml.report.figures import part, style
from fairsaoml.report.markup import asset, check_picture, render, write_page
from fairsaoml.report.svg import Frame, Values, end_names

WIDTH, HEIGHT = 400.0, 250.0  # of a panel's frame
LEFT, NAMES, TOP, BOTTOM = 48.0, 150.0, 34.0, 40.0  # room around it
DECADES = 4.0  # at most so many powers of ten below the largest value are shown
BOUND = "bound"  # the class of what is proven


class _Curve(NamedTuple):
    name: str
    class_: str
    logs: Values  # by window; None where there is nothing above zero to show


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
    panels = {}
    if measured["comparator"] is not None:
        curves = [
            _curve("FairSAR", style(0), [entry["fair_regret"] for entry in entries]),
            _curve("SAR", style(1), [entry["regret"] for entry in entries]),
        ]
        panels["Loss regret"] = [*curves, *_bound("(τ log T)^½", "loss", entries, curves[0])]
    if measured["constraints"]:
        curves = [
            _curve(name, part(i), [entry["violation"][name] for entry in entries])
            for i, name in enumerate(measured["constraints"])
        ]
        highest = max(curves, key=lambda curve: max(_known(curve), default=float("-inf")))
        panels["Worst sum of violations"] = [
            *curves,
            *_bound("(τ T log T)^¼", "violation", entries, highest),
            *_bound("T^¼ τ^½ (proof)", "violation_of_proof", entries, highest),
        ]
    windows = [entry["window"] for entry in entries]
    places = [log10(window) for window in windows]
    ends = (places[0], log10(max(windows[-1], windows[0] + 1)))
    step = LEFT + WIDTH + NAMES
    return render(
        "regret.svg",
        measured=measured,
        alone=alone,
        step=step,
        height=TOP + HEIGHT + BOTTOM,
        places=places,
        windows=[(log10(window), str(window)) for window in _axis(windows)],
        panels=[
            {"title": title, **_panel(places, curves, ends, at * step)}
            for at, (title, curves) in enumerate(panels.items())
        ],
    )


def _curve(name: str, class_: str, figures: Sequence[Mapping[str, Any]]) -> _Curve:
    means = [figure["mean"] for figure in figures]
    return _Curve(name, class_, [log10(mean) if mean > 0 else None for mean in means])


def _known(*curves: _Curve) -> list[float]:
    return [log for curve in curves for log in curve.logs if log is not None]


def _bound(
    name: str, key: str, entries: Sequence[Mapping[str, Any]], curve: _Curve
) -> list[_Curve]:
    """A proven growth through the first value of a curve; none where it shows nothing."""
    for log, entry in zip(curve.logs, entries, strict=True):
        if log is not None:
            above = log - log10(entry["proven"][key])
            return [_Curve(name, BOUND, [above + log10(one["proven"][key]) for one in entries])]
    return []


def _panel(
    places: Sequence[float], curves: Sequence[_Curve], ends: tuple[float, float], left: float
) -> dict[str, Any]:
    """A panel as the template draws it: its frame, numbers, lines, and their names."""
    high = max(_known(*curves), default=0.0)
    low = max(min(_known(*curves), default=-1.0), high - DECADES)
    low, high = floor(low * 4) / 4, ceil(high * 4 + 0.1) / 4
    frame = Frame(left + LEFT, TOP, WIDTH, HEIGHT, ends, (low, high))
    lines, names = [], []
    for curve in curves:
        heights = [None if log is None or log < low else log for log in curve.logs]
        lines.append((heights, curve.class_))
        shown = [(x, y) for x, y in zip(places, heights, strict=True) if y is not None]
        if shown:
            class_ = "note" if curve.class_ == BOUND else f"name {curve.class_}"
            last_x, last_y = shown[-1]
            names.append((curve.name, class_, frame.x(last_x), frame.y(last_y)))
    sizes = [(log10(value), f"{value:g}") for value in _round_numbers(low, high)]
    return {"frame": frame, "sizes": sizes, "lines": lines, "names": end_names(frame, names)}


def _round_numbers(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten from 10^low to 10^high; powers of ten alone over many.

    >>> _round_numbers(0, 1), _round_numbers(-1, 3)
    ([1.0, 2.0, 5.0, 10.0], [0.1, 1.0, 10.0, 100.0, 1000.0])
    """
    steps = (1, 2, 5) if high - low <= 2.2 else (1,)
    powers = range(floor(low), ceil(high) + 1)
    every = [float(f"{step}e{power}") for power in powers for step in steps]
    return [value for value in every if low - 1e-9 <= log10(value) <= high + 1e-9]


def _axis(windows: Sequence[int]) -> list[int]:
    """Powers of two among the windows' range, and the last window if it is none of them."""
    low, high = windows[0], windows[-1]
    powers = [1 << power for power in range(high.bit_length()) if low <= 1 << power <= high]
    # The last one needs room of its own.
    return [p for p in powers if p * 1.3 < high] + [high] if high not in powers else powers
