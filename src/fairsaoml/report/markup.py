"""Pages and pictures from templates, which stand alone: nothing is loaded from outside."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairsaoml.core.errors import RunError
from fairsaoml.files import write_text
from fairsaoml.report.svg import stretches

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # characters that no XML may hold


def number(value: float) -> str:
    """Return a coordinate: at most two decimals, no trailing zeros, no minus zero.

    >>> number(3.0), number(1.239), number(-0.001)
    ('3', '1.24', '0')
    """
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


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
    )
    templates.filters |= {"n": number, "stretches": stretches, "zip": zip}
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
