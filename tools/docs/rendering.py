"""Pages as HTML: a navigation, the text, code in colour. No script, nothing from elsewhere."""

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from tools.docs.pages import Page, headings, parser

__all__ = ["code_page", "page_html"]

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · fairsaoml</title>
<link rel="stylesheet" href="{up}style.css">
</head>
<body>
<details class="menu"><summary>fairsaoml</summary>{navigation}</details>
<nav class="side" aria-label="Pages">
<a class="name" href="{up}index.html">fairsaoml</a>{navigation}
</nav>
<main>
{body}
</main>
</body>
</html>
"""
DEEPEST = 2  # headings of the page at hand that the navigation shows


def page_html(page: Page, text: str, pages: Sequence[Page]) -> str:
    """A page; `text` is its Markdown with everything filled in."""
    markdown = parser()
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("table_open", lambda *_: '<div class="scroll"><table>\n')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    tokens = markdown.parse(text)
    inside = []
    for token, words, anchor in headings(tokens):
        token.attrSet("id", anchor)
        if token.tag == f"h{DEEPEST}":
            inside.append((words, anchor))
    for token in tokens:
        for child in token.children or []:
            _point_at_pages(child, page, pages)
    return TEMPLATE.format(
        title=escape(page.title),
        up="",
        navigation=_navigation(pages, page, inside, up=""),
        body=markdown.renderer.render(tokens, markdown.options, {}),
    )


def code_page(path: Path, code: str, pages: Sequence[Page]) -> str:
    """A file of code as a page of its own, one folder down."""
    body = f"<h1>{escape(str(path))}</h1>\n<pre><code>{_coloured(code, 'python')}</code></pre>"
    return TEMPLATE.format(
        title=escape(path.name),
        up="../",
        navigation=_navigation(pages, None, [], up="../"),
        body=body,
    )


def _navigation(
    pages: Sequence[Page], here: Page | None, inside: Sequence[tuple[str, str]], *, up: str
) -> str:
    lines = ["<ul>"]
    for page in pages:
        mark = ' aria-current="page"' if page is here else ""
        lines.append(f'<li><a href="{up}{page.name}"{mark}>{escape(page.title)}</a>')
        if page is here and inside:
            links = "".join(
                f'<li><a href="#{anchor}">{escape(words)}</a></li>' for words, anchor in inside
            )
            lines.append(f"<ul>{links}</ul>")
        lines.append("</li>")
    return "\n".join([*lines, "</ul>"])


def _point_at_pages(token: Token, page: Page, pages: Sequence[Page]) -> None:
    """A link to a page's Markdown becomes one to its HTML; to an example, one to its page."""
    name = {"link_open": "href", "image": "src"}.get(token.type)
    target = str(token.attrGet(name)) if name else ""
    where = urlsplit(target)
    if not name or where.scheme or not where.path:
        return
    path = Path(os.path.normpath(page.path.parent / where.path))
    fragment = f"#{where.fragment}" if where.fragment else ""
    built = {one.path: one.name for one in pages}
    if path in built:
        token.attrSet(name, built[path] + fragment)
    elif path.parts[0] == "examples":
        token.attrSet(name, f"{path.with_suffix('.html')}" if path.suffix else "index.html")
    elif path.parts[0] == "docs":
        token.attrSet(name, str(path.relative_to("docs")))


def _fence(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    return f"<pre><code>{_coloured(token.content, token.info.strip())}</code></pre>\n"


def _coloured(code: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return escape(code)
    return highlight(code, lexer, HtmlFormatter(nowrap=True))
