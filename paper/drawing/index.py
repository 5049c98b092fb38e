"""All figures and tables of an evaluation on one page, each with the command behind it."""

from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup

from fairsaoml.report.markup import render

__all__ = ["Section", "index_page", "to_html"]


BODY = """
<main>
<header><h1>{{ title }}</h1><p class="lead">{{ lead }}</p></header>
<ul>{% for one in sections %}<li><a href="#{{ one.name }}">{{ one.title }}</a></li>{% endfor %}</ul>
{% for one in sections %}
<section id="{{ one.name }}">
<h2>{{ one.title }}</h2>
<p class="aside">{{ one.caption }}</p>
<pre><code>{{ one.command }}</code></pre>
{# A wide figure scrolls on a narrow screen. #}
{% if one.figure %}<div class="scroll">{{ one.figure|safe }}</div>{% endif %}
{% if one.text %}{{ to_html(one.text) }}{% endif %}
{% if one.details %}
<details><summary>In detail</summary>{{ to_html(one.details) }}</details>
{% endif %}
</section>
{% endfor %}
</main>
"""


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
    values = {"title": title, "lead": lead, "sections": sections, "to_html": to_html}
    body = Environment(autoescape=True).from_string(BODY).render(values)
    return render("page.html", title=title, body=Markup(body)) + "\n"


def to_html(markdown: str) -> Markup:
    """Return Markdown as HTML, with tables that scroll on a narrow screen.

    >>> str(to_html("Some `code`, <b>no HTML</b>."))
    '<p>Some <code>code</code>, &lt;b&gt;no HTML&lt;/b&gt;.</p>\\n'
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>\n')
    reader.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return Markup(reader.render(markdown))
