"""The little Markdown that our own tables are written in, as elements of a page."""

import re

from fairsaoml.report.markup import Markup, element, join

__all__ = ["to_markup"]

INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*")
TAGS = ("code", "strong", "em")


def to_markup(source: str) -> Markup:
    """Headings, paragraphs, pipe tables and fenced code; everything else is plain text.

    >>> to_markup("# Title\\n\\nSome `code`.")
    '<h1>Title</h1><p>Some <code>code</code>.</p>'
    >>> to_markup("| a | b |\\n|---|--:|\\n| 1 | 2 |").count("<td")
    1
    """
    parts = []
    for fence in re.split(r"(?m)(^```.*?^```$)", source, flags=re.DOTALL):
        if fence.startswith("```"):
            code = fence.split("\n", 1)[1].removesuffix("```")
            parts.append(element("pre", element("code", code)))
            continue
        for block in re.split(r"\n\s*\n", fence.strip()):
            if block:
                parts.append(_block(block))
    return join(*parts)


def _block(block: str) -> Markup:
    heading = re.match(r"(#+) (.*)", block)
    if heading:
        rest = block.partition("\n")[2]
        title = element(f"h{min(len(heading[1]), 6)}", _inline(heading[2]))
        return join(title, _block(rest)) if rest.strip() else title
    lines = block.splitlines()
    if lines[0].startswith("|"):
        return _table(lines)
    if all(line.startswith("- ") for line in lines):
        return element("ul", *(element("li", _inline(line[2:])) for line in lines))
    return element("p", _inline(" ".join(lines)))


def _table(lines: list[str]) -> Markup:
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    head, body = cells[0], cells[2:]
    titles = [
        element("th", _inline(title), class_=None if at else "words", scope="col")
        for at, title in enumerate(head)
    ]
    rows = [
        element(
            "tr",
            element("th", _inline(first), scope="row"),
            *(element("td", _inline(cell)) for cell in rest),
        )
        for first, *rest in body
    ]
    drawn = element(
        "table",
        element("thead", element("tr", *titles)),
        element("tbody", *rows, class_="lines"),
    )
    return element("div", drawn, class_="scroll")


def _inline(words: str) -> Markup:
    parts: list[str] = []
    at = 0
    for match in INLINE.finditer(words):
        parts.append(words[at : match.start()])
        kind = next(i for i, found in enumerate(match.groups()) if found is not None)
        parts.append(element(TAGS[kind], match.group(kind + 1)))
        at = match.end()
    return join(*parts, words[at:])
