"""Pages and pictures from templates, which stand alone: nothing is loaded from outside."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairsaoml.core.errors import RunError
from fairsaoml.files import write_text
from fairsaoml.report.svg import Frame, around, shorten, stretches

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # characters that no XML may hold


def number(value: float) -> str:
    """Return a coordinate: at most two decimals, no trailing zeros, no minus zero.

    >>> number(3.0), number(1.239), number(-0.001)
    ('3', '1.24', '0')
    """
    return f"{value:z.2f}".rstrip("0").rstrip(".")


def path(points: Sequence[tuple[float, float]], frame: Frame) -> str:
    """Return the straight lines through points of a frame, as a path says them.

    >>> path([(0, 0), (0.5, 1)], Frame(10, 20, width=100, height=50))
    'M10 70L60 20'
    """
    xs, ys = np.array(points, float).T
    places = zip(frame.x(xs).tolist(), frame.y(ys).tolist(), strict=True)
    return "M" + "L".join([f"{number(x)} {number(y)}" for x, y in places])


def dashes(stretches: Sequence[tuple[int, int]], frame: Frame, row: float) -> str:
    """Return level lines, each from the beginning of a round to another's, as a path says them.

    >>> dashes([(1, 3)], Frame(0, 0, width=10, height=10, x_range=(0, 10)), 1)
    'M0.5 0H2.35'
    """
    gap = min(0.15, 1 / (frame.x(2) - frame.x(1)))  # rounds between them; a pixel at most
    y = number(frame.y(row))
    ends = ((frame.x(begin - 0.5), frame.x(end - 0.5 - gap)) for begin, end in stretches)
    return "".join([f"M{number(left)} {y}H{number(right)}" for left, right in ends])


def asset(name: str) -> Markup:
    """Return a style sheet or a script that is written into pages."""
    return Markup((files("fairsaoml.report") / "assets" / name).read_text(encoding="utf-8"))


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("fairsaoml.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # a page is written once: folding its constants takes longer than it saves
    )
    templates.filters |= {"n": number, "path": path, "dashes": dashes, "zip": zip}
    templates.filters |= {"around": around, "shorten": shorten, "stretches": stretches}
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return templates


def render(template: str, **values: Any) -> Markup:
    """Return a page or a picture from a template; text that is no `Markup` is escaped."""
    return Markup(_templates().get_template(template).render(asset=asset, **values))


def check_picture(out: Path) -> None:
    """Raise RunError if the name is not an SVG file's, before anything is computed for it."""
    if out.suffix != ".svg":
        raise RunError(f"expected a picture's name ending in .svg, got {out}; rename it")


def write_page(out: Path, content: str) -> Path:
    """Write a page or a picture, creating its folder; return the file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, CONTROL.sub("\ufffd", content) + "\n")
    return out
