"""Links lead somewhere: to a file that is there, and to a heading that is in it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from markdown_it.token import Token

from tools.docs.pages import Page, headings, parser

__all__ = ["Link", "broken", "links"]

FAR = ("http", "https", "mailto")


class Link(NamedTuple):
    """A link of a page, and where it wants to go."""

    page: Page
    line: int
    target: str


def links(page: Page) -> Iterator[Link]:
    """All links and pictures of a page."""
    for block in parser().parse(page.text):
        line = (block.map or [0])[0] + 1
        for token in block.children or []:
            target = token.attrGet("href" if token.type == "link_open" else "src")
            if target is not None:
                yield Link(page, line, str(target))


def broken(pages: Sequence[Page], root: Path, anchors: Mapping[Path, set[str]]) -> list[str]:
    """What is wrong with the pages' links, each in words. `anchors`: what else pages will hold."""
    known = {page.path: _anchors(parser().parse(page.text)) for page in pages}
    known = {path: found | anchors.get(path, set()) for path, found in known.items()}
    found = []
    for page in pages:
        for link in links(page):
            problem = _problem(link, root, known)
            if problem:
                found.append(f"{page.path}:{link.line}: {link.target}: {problem}")
    return found


def _anchors(tokens: list[Token]) -> set[str]:
    return {anchor for _, _, anchor in headings(tokens)}


def _problem(link: Link, root: Path, known: Mapping[Path, set[str]]) -> str:
    where = urlsplit(link.target)
    if where.scheme in FAR:
        # Whether the far end answers today is not ours to test; whether it is an address is.
        well_formed = where.scheme == "mailto" or "." in where.netloc
        return "" if well_formed and " " not in link.target else "no address"
    if where.scheme or where.netloc or where.path.startswith("/"):
        return "expected an address or a path from the page"
    target = link.page.path
    if where.path:
        full = (root / link.page.path.parent / unquote(where.path)).resolve()
        if not full.exists():
            return "no such file"
        if not full.is_relative_to(root.resolve()):
            return "outside of the project"
        target = full.relative_to(root.resolve())
    if where.fragment and where.fragment not in known.get(target, set()):
        return "no such heading"
    return ""
