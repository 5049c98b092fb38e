"""Pages and pictures that stand alone: templates and elements, nothing loaded from outside."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairsaoml.core.errors import RunError
from fairsaoml.files import write_text

__all__ = ["Markup", "asset", "check_picture", "element", "number", "render", "write_page"]

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # characters that no XML may hold


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element with its attributes and children; text that is no `Markup` is escaped.

    A trailing underscore is dropped and the others become hyphens, as in `class_` and
    `stroke_width`; an attribute that is None is left out.

    >>> element("text", "a < b", class_="note", id=None)
    Markup('<text class="note">a &lt; b</text>')
    >>> element("line", x1=0, x2=1.5, stroke_width=2)
    Markup('<line x1="0" x2="1.5" stroke-width="2"/>')
    """
    written = Markup().join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"), value if isinstance(value, str) else number(value)
        )
        for key, value in attributes.items()
        if value is not None
    )
    if not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{Markup().join(children)}</{name}>")


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
    templates.filters |= {"n": number, "zip": zip}
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
