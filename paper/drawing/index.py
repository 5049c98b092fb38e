"""All figures and tables of an evaluation on one page, each with the command behind it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fairsaoml.report.markdown import to_markup
from fairsaoml.report.markup import Markup, element
from fairsaoml.report.page import asset, page

__all__ = ["Piece", "index_page", "style_sheet"]


class Piece(NamedTuple):
    """A figure, a table or both: drawn already, the text in Markdown."""

    name: str
    title: str
    caption: str
    command: str
    picture: str = ""
    text: str = ""
    details: str = ""  # folded away


def style_sheet() -> str:
    """The styles of a figure that stands alone."""
    return asset("chart.css") + (Path(__file__).parent / "paper.css").read_text(encoding="utf-8")


def index_page(title: str, lead: str, pieces: Sequence[Piece]) -> str:
    """One self-contained page."""
    sections = [_section(piece) for piece in pieces]
    contents = [element("li", element("a", piece.title, href=f"#{piece.name}")) for piece in pieces]
    main = element(
        "main",
        element("header", element("h1", title), element("p", lead, class_="lead")),
        element("ul", *contents),
        *sections,
    )
    return page(title, style_sheet() + asset("page.css"), main)


def _section(piece: Piece) -> Markup:
    parts: list[str] = [element("h2", piece.title), element("p", piece.caption, class_="aside")]
    parts.append(element("pre", element("code", piece.command)))
    if piece.picture:
        # Drawn by this package: markup already. A wide picture scrolls on a narrow screen.
        parts.append(element("div", Markup(piece.picture), class_="scroll"))
    if piece.text:
        parts.append(to_markup(piece.text))
    if piece.details:
        parts.append(element("details", element("summary", "In detail"), to_markup(piece.details)))
    return element("section", *parts, id=piece.name)
