"""Files that stand alone: pages and pictures with their styles inside, nothing from outside."""

from importlib.resources import files
from pathlib import Path

from fairsaoml.core.errors import RunError
from fairsaoml.files import write_text
from fairsaoml.report.markup import Markup, element

__all__ = ["asset", "check_picture", "page", "write_page"]


def page(title: str, styles: str, *body: str) -> str:
    """Return a complete HTML document.

    >>> page("Title", "", element("p", "Words."))[-34:]
    '<body><p>Words.</p></body></html>\\n'
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(styles)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', *body), lang='en')}\n"


def asset(name: str) -> str:
    """Return a style sheet or a script that is written into pages."""
    return (files("fairsaoml.report") / "assets" / name).read_text(encoding="utf-8")


def check_picture(out: Path) -> None:
    """Raise RunError if the name is not an SVG file's, before anything is computed for it."""
    if out.suffix != ".svg":
        raise RunError(f"expected a picture's name ending in .svg, got {out}; rename it")


def write_page(out: Path, content: str) -> Path:
    """Write a page or a picture, creating its folder; return the file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, content)
    return out
