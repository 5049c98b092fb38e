"""docs/bad-input.md, what a new user does wrong: she types each line, and is told what it says."""

import re
import shlex
from pathlib import Path

import pytest

import tiny
from fairsaoml.runs.runner import run
from fairsaoml.runs.spec import RunSpec
from test_story import loans, write

PAGE = Path(__file__).parent.parent / "docs" / "bad-input.md"
SECTION = PAGE.read_text().partition("## What a new user does wrong")[2].partition("\n## ")[0]
MISTAKES = re.findall(r"^\| `(.+?)` \| (.+) \|$", SECTION, re.MULTILINE)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """What the page says is there; and files that are no tables."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        write(Path("loans.csv"), loans(0, 240))
        may = [{**row} for row in loans(240, 20)]
        for row in may:
            del row["default"]
        write(Path("may.csv"), may)
        write(Path("narrow.csv"), [{"loan": row["loan"], "sex": row["sex"]} for row in may])
        Path("empty.csv").touch()
        Path("loans.xlsx").write_bytes(b"PK")
        spec = RunSpec(
            stream="loans.csv",
            stream_settings={"label": "default", "sensitive": "sex", "rows": 120},
            learner=tiny.FIRST,
            learner_settings=tiny.GOLDEN[tiny.FIRST],
            seeds=(0,),
        )
        run(spec, Path("loans"))
    return home


def everything_in(folder):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_she_is_told_what_the_page_says_and_nothing_changes(command, home, monkeypatch):
    monkeypatch.chdir(home)
    before, told = everything_in(home), {}
    for typed, _ in MISTAKES:
        said = command(*shlex.split(typed))
        assert (said.code in (1, 2), said.out) == (True, ""), typed
        [line] = said.err.splitlines()  # and no notes on what is not going to be run
        told[typed] = line.removeprefix("fairsaoml: ")
        assert everything_in(home) == before, typed
    assert told == dict(MISTAKES)
    assert len(MISTAKES) > 40
