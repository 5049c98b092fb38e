"""The pages there are, as Markdown: their names, their headings, their blocks of code."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["PAGES", "ROOT", "Block", "Page", "blocks", "headings", "parser", "read", "slug"]

ROOT = Path(__file__).parents[2]
# In the order of the navigation: file -> its title there.
PAGES = {
    "README.md": "Start",
    "docs/tutorial.md": "Tutorial",
    "docs/how-to.md": "How to",
    "docs/service.md": "Run it as a service",
    "docs/explanation.md": "How it works",
    "docs/learners.md": "Learners",
    "docs/datasets.md": "Data sets",
    "docs/results.md": "Results",
    "docs/benchmarks.md": "Benchmarks",
    "docs/performance.md": "Performance",
    "docs/deviations.md": "Deviations",
    "docs/bad-input.md": "Bad input",
    "docs/reference.md": "Reference",
}
# A comment before a block: `<!-- not run: why -->`, or `<!-- slow: why -->` for the build alone.
MARK = re.compile(r"<!--\s*(not run|slow):\s*(.+?)\s*-->", re.DOTALL)


class Page(NamedTuple):
    """A page as it is written."""

    path: Path  # from the project's folder
    title: str
    text: str

    @property
    def name(self) -> str:
        """Its name among the built pages."""
        return "index.html" if self.path.name == "README.md" else f"{self.path.stem}.html"


class Block(NamedTuple):
    """A block of code, and why it is not run, or not always."""

    page: Page
    line: int
    language: str
    code: str
    mark: str  # "", "slow" or "not run"
    reason: str

    @property
    def place(self) -> str:
        """Where a person finds it."""
        return f"{self.page.path}:{self.line}"


def read(root: Path = ROOT) -> list[Page]:
    """All pages; one that is not yet written is left out."""
    found = [(Path(path), title) for path, title in PAGES.items() if (root / path).exists()]
    more = sorted({path.relative_to(root) for path in (root / "docs").glob("*.md")})
    found += [(path, path.stem.replace("-", " ")) for path in more if str(path) not in PAGES]
    return [Page(path, title, (root / path).read_text()) for path, title in found]


def parser() -> MarkdownIt:
    """Markdown as the pages use it: tables, and comments in HTML."""
    return MarkdownIt("commonmark").enable("table")


def blocks(page: Page) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    before: Token | None = None
    for token in parser().parse(page.text):
        if token.type == "fence":
            marked = MARK.search(before.content) if before else None
            mark, reason = marked.groups() if marked else ("", "")
            line = (token.map or [0])[0] + 1
            yield Block(page, line, token.info.strip(), token.content, mark, reason)
        before = token if token.type == "html_block" else None


def headings(tokens: list[Token]) -> Iterator[tuple[Token, str, str]]:
    """Each heading's token, its text and its anchor; a second one of a name is numbered."""
    seen: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in inline.children or [])
            anchor = slug(text)
            seen[anchor] = seen.get(anchor, -1) + 1
            yield token, text, anchor + (f"-{seen[anchor]}" if seen[anchor] else "")


def slug(text: str) -> str:
    """A heading's anchor, as the usual hosts of Markdown make it.

    >>> slug("`stop-and-frisk:BMS`, and more")
    'stop-and-friskbms-and-more'
    """
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
