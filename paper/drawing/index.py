"""All figures and tables of an evaluation on one page, each with the command behind it."""

from collections.abc import Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt

from fairsaoml.report.markup import Markup, element, render

__all__ = ["Section", "index_page", "to_html"]


class Section(NamedTuple):
    """A figure, a table or both: the figure as SVG, the rest in Markdown."""

    name: str
    title: str
    caption: str
    command: str
    figure: str = ""
    text: str = ""
    details: str = ""  # folded away


def index_page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Return one self-contained HTML page."""
    contents = [element("li", element("a", one.title, href=f"#{one.name}")) for one in sections]
    main = element(
        "main",
        element("header", element("h1", title), element("p", lead, class_="lead")),
        element("ul", *contents),
        *map(_section, sections),
    )
    return render("page.html", title=title, body=main)


def to_html(markdown: str) -> Markup:
    """Return Markdown as HTML, with tables that scroll on a narrow screen.

    >>> str(to_html("Some `code`, <b>no HTML</b>."))
    '<p>Some <code>code</code>, &lt;b&gt;no HTML&lt;/b&gt;.</p>\\n'
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>\n')
    reader.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return Markup(reader.render(markdown))


def _section(section: Section) -> Markup:
    parts = [element("h2", section.title), element("p", section.caption, class_="aside")]
    parts.append(element("pre", element("code", section.command)))
    if section.figure:
        # A wide figure scrolls on a narrow screen.
        parts.append(element("div", Markup(section.figure), class_="scroll"))
    if section.text:
        parts.append(to_html(section.text))
    if section.details:
        summary = element("summary", "In detail")
        parts.append(element("details", summary, to_html(section.details)))
    return element("section", *parts, id=section.name)
