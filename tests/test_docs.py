"""The documentation is true: its links lead somewhere, its code runs, its reference is whole.

Here the quick blocks; `python -m tools.docs` runs them all and builds the pages.
"""

import ast
import builtins
import contextlib
import io
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # the tools are no package of ours to install

from tools.docs import blocks as code  # noqa: E402
from tools.docs import story  # noqa: E402
from tools.docs.__main__ import anchors_of, build  # noqa: E402
from tools.docs.links import broken, links  # noqa: E402
from tools.docs.pages import Page, blocks, read, slug  # noqa: E402
from tools.docs.reference import expanded  # noqa: E402

PAGES = read()
TELLING = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


def page(text, path="docs/page.md"):
    return Page(Path(path), "Page", text)


@pytest.fixture(scope="module")
def texts():
    """Every page with its reference filled in."""
    return {page.path: expanded(page.text) for page in PAGES}


def test_every_link_leads_somewhere(texts):
    assert sum(1 for page in PAGES for _ in links(page)) > 20
    assert broken(PAGES, ROOT, anchors_of(texts)) == []


@pytest.fixture
def told_here(monkeypatch):
    """Pages are told in this process: one of its own would import and compile all anew."""

    def tell(steps, folder):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(steps)))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            story.main()
        return said.getvalue()

    monkeypatch.setattr(code, "_tell", tell)


@pytest.mark.parametrize("page", TELLING, ids=lambda page: page.path.name)
def test_every_quick_block_runs(page, tmp_path, told_here):
    chosen = code.wanted(blocks(page), slow=False)
    code.run([block for block in chosen if block.language != "console"], tmp_path)


def test_an_answer_stands_alone_but_for_the_rows_that_its_page_names():
    """Every name in a block of Python is made there; `X`, `y` and `sex` are the exceptions."""
    (answers,) = [page for page in PAGES if page.path.name == "how-to.md"]
    for block in [block for block in blocks(answers) if block.language == "python"]:
        nodes = list(ast.walk(ast.parse(block.code)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        made = {name.id for name in names if isinstance(name.ctx, ast.Store)} | set(dir(builtins))
        made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        made |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        imported = [node.asname or node.name for node in nodes if isinstance(node, ast.alias)]
        made |= {name.partition(".")[0] for name in imported}
        assert {name.id for name in names} - made <= {"X", "y", "sex"}, block.place


def test_a_newcomer_reads_less_than_a_thousand_lines():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = text[text.index("Read `") : text.index("in that order")]
    files = [ROOT / f"src/fairsaoml/{name}.py" for name in re.findall(r"`(.+?)`", listed)]
    assert len(files) == 7
    assert sum(len(file.read_text().splitlines()) for file in files) < 1000


def test_a_block_that_is_not_run_says_why():
    for found in (block for page in PAGES for block in blocks(page)):
        assert not found.mark or len(found.reason.split()) >= 3, found.place


def test_the_reference_has_every_public_name_and_every_command(texts):
    import typer

    import fairsaoml
    from fairsaoml.cli import app

    reference = texts[Path("docs/reference.md")]
    for name in fairsaoml.__all__:
        assert f"### `{name}`" in reference
    for name, command in typer.main.get_command(app).commands.items():
        for one in getattr(command, "commands", {"": None}):
            assert f"### `fairsaoml {name} {one}".rstrip() in reference
    assert not re.search(r"<!-- (names|commands|modules)", reference)


def test_the_pages_are_built_whole(texts, tmp_path):
    build(PAGES, texts, tmp_path / "site")
    names = {path.relative_to(tmp_path / "site") for path in (tmp_path / "site").rglob("*.html")}
    assert {Path(page.name) for page in PAGES} <= names
    for name in names:
        html = (tmp_path / "site" / name).read_text()
        for target in re.findall(r'(?:href|src)="([^":]+)"', html):
            path, _, anchor = target.partition("#")
            there = tmp_path / "site" / name.parent / path if path else tmp_path / "site" / name
            assert there.exists(), (name, target)
            assert not anchor or f'id="{anchor}"' in there.read_text(), (name, target)


# The tools notice


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("nowhere.md", "no such file"),
        ("#nothing", "no such heading"),
        ("../README.md#nothing", "no such heading"),
        ("https://no address", "no address"),
        ("http:/typo", "no address"),
        ("/absolute.md", "a path from the page"),
        ("../../outside", "no such file"),
    ],
)
def test_a_broken_link_is_found(target, problem):
    found = broken([page(f"# A\n\n[a](<{target}>)\n"), *PAGES], ROOT, {})
    assert len([one for one in found if "page.md:3" in one and problem in one]) == 1


@pytest.mark.parametrize("target", ["#a-b", "../README.md", "https://example.org/x#y", "demo.svg"])
def test_a_sound_link_is_left_alone(target):
    assert broken([page(f"# A b\n\n[a]({target})\n")], ROOT, {}) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "line 6"),
        ("a\n\n```console\n$ true\nout\n$ exit 3\n```\n", "docs/page.md:3 failed"),
        ("```json\n{'a': 1}\n```\n", "docs/page.md:1: no json"),
    ],
)
def test_a_block_that_fails_is_told_with_its_place(text, words, tmp_path):
    with pytest.raises(code.Failed, match=words):
        code.run(list(blocks(page(text))), tmp_path)


def test_the_blocks_of_a_page_are_one_story(tmp_path):
    text = (
        "```python\nname = 'a.txt'\n```\n\n```console\n$ echo there > a.txt\nignored\n```\n\n"
        "<!-- not run: it would fail, and is here to show it -->\n```python\n1 / 0\n```\n\n"
        "```python\nprint(open(name).read().strip())\n```\n"
    )
    chosen = list(code.wanted(blocks(page(text)), slow=True))
    assert code.run(chosen, tmp_path) == "there\n"


def test_slow_blocks_are_for_the_build():
    text = "<!-- slow: for hours and hours -->\n```console\n$ sleep 9999\n```\n"
    assert list(code.wanted(blocks(page(text)), slow=False)) == []
    assert len(list(code.wanted(blocks(page(text)), slow=True))) == 1


def test_an_anchor_is_what_hosts_of_markdown_make_of_a_heading():
    assert slug("Files of a run") == "files-of-a-run"
    assert slug("`fairsaoml run`, and so on!") == "fairsaoml-run-and-so-on"
