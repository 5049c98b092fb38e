"""Every block of code is run: a page's blocks in order, in a folder of its own.

A page is a story: what one block defines or writes, the next ones may use. Of a ```console block
the lines after `$ ` are run by a shell, the others are what they print. ```toml and ```json must
be that. What a block that is not run would have shown is the word of whoever wrote it, so a page
says why: `<!-- not run: why -->` before it; or `<!-- slow: why -->` for one only the build runs.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.docs.pages import ROOT, Block

__all__ = ["Failed", "commands", "run", "wanted"]

STORY = Path(__file__).with_name("story.py")
PARSERS = {"toml": tomllib.loads, "json": json.loads}
SHOWN = 3000  # letters of what a failed block said


class Failed(Exception):
    """A block that did not run; where, and what it said."""


def wanted(blocks: Iterable[Block], *, slow: bool) -> Iterator[Block]:
    """The blocks that are to be run."""
    return (block for block in blocks if not block.mark or (slow and block.mark == "slow"))


def run(blocks: Sequence[Block], folder: Path) -> str:
    """Run the blocks of one page, in order, in a folder that they may fill; what they said."""
    steps = []
    for block in blocks:
        step = {"page": str(block.page.path), "line": block.line, "language": block.language}
        if block.language == "python":
            steps.append({**step, "code": block.code})
        elif block.language == "console":
            steps += [{**step, "code": command} for command in commands(block.code)]
        elif block.language in PARSERS:
            _parse(block)
    return _tell(steps, folder) if steps else ""


def commands(code: str) -> list[str]:
    r"""The commands of a console block; a backslash at a line's end goes on with the next.

    >>> commands("$ ls \\\n  -l\na.txt\n$ pwd\n")
    ['ls \\\n  -l', 'pwd']
    """
    found: list[str] = []
    goes_on = False
    for line in code.splitlines():
        if goes_on:
            found[-1] += f"\n{line}"
        elif line.startswith("$ "):
            found.append(line.removeprefix("$ "))
        else:
            continue
        goes_on = line.endswith("\\")
    return found


def _parse(block: Block) -> None:
    try:
        PARSERS[block.language](block.code)
    except ValueError as error:
        raise Failed(f"{block.place}: no {block.language}: {error}") from None


def _tell(steps: list[dict], folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    scripts = str(Path(sys.executable).parent)  # where the command `fairsaoml` is
    path = f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [sys.executable, "-P", str(STORY)],
        input=json.dumps(steps),
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},  # `python -m paper` is there
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise Failed(done.stdout[-SHOWN:])
    return done.stdout
