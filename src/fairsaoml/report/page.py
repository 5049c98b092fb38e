"""A page that stands alone: its head, its styles inside it, nothing from outside."""

from importlib.resources import files

from fairsaoml.report.markup import Markup, element

__all__ = ["asset", "page"]


def page(title: str, styles: str, *body: str) -> str:
    """A whole HTML document of this body.

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
    """A style sheet or a script that is written into pages."""
    return (files("fairsaoml.report") / "assets" / name).read_text(encoding="utf-8")
