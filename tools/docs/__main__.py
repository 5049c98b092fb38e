"""`python -m tools.docs`: check the links, run the code, build the pages."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tools.docs import blocks as code
from tools.docs.links import broken
from tools.docs.pages import ROOT, Page, blocks, headings, parser, read
from tools.docs.reference import expanded
from tools.docs.rendering import code_page, page_html

PICTURES = ("*.svg", "*.png")
STYLE = Path(__file__).with_name("style.css")


def build(pages: list[Page], texts: dict[Path, str], out: Path) -> None:
    """Write the pages, the examples, the pictures and the style into a folder."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "examples").mkdir(parents=True)
    for page in pages:
        (out / page.name).write_text(page_html(page, texts[page.path], pages))
    for path in sorted((ROOT / "examples").glob("*.py")):
        own = path.relative_to(ROOT)
        (out / own.with_suffix(".html")).write_text(code_page(own, path.read_text(), pages))
    for pattern in PICTURES:
        for picture in (ROOT / "docs").glob(pattern):
            shutil.copy(picture, out)
    shutil.copy(STYLE, out)


def run_all(pages: list[Page], *, slow: bool) -> list[str]:
    """Run every page's blocks; what failed. What is not run is said, with its reason."""
    failed = []
    for page in pages:
        found = list(blocks(page))
        for block in found:
            if block.mark and not (slow and block.mark == "slow"):
                print(f"{block.place}: {block.mark}: {block.reason}")
        chosen = list(code.wanted(found, slow=slow))
        if not chosen:
            continue
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                code.run(chosen, Path(folder))
            except code.Failed as failure:
                failed.append(f"{page.path}: {failure}")
        print(f"{page.path}: {len(chosen)} blocks, {time.monotonic() - begun:.0f} s", flush=True)
    return failed


def anchors_of(texts: dict[Path, str]) -> dict[Path, set[str]]:
    """What can be linked to in each page as it will be."""
    return {
        path: {anchor for _, _, anchor in headings(parser().parse(text))}
        for path, text in texts.items()
    }


def main() -> None:
    """Exit 1 where a link leads nowhere or a block fails."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=ROOT / "build" / "docs")
    options.add_argument("--quick", action="store_true", help="leave slow blocks out")
    options.add_argument("--no-run", action="store_true", help="run no block at all")
    asked = options.parse_args()
    pages = read()
    texts = {page.path: expanded(page.text) for page in pages}
    problems = broken(pages, ROOT, anchors_of(texts))
    if not asked.no_run:
        problems += run_all(pages, slow=not asked.quick)
    if problems:
        sys.exit("\n".join(problems))
    build(pages, texts, asked.out)
    print(f"{len(pages)} pages: {asked.out / 'index.html'}")


if __name__ == "__main__":
    main()
