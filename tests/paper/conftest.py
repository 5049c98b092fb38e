"""The command `python -m paper`, for the tests of the paper's evaluation."""

import sys

import pytest
from paper.commands import app

from conftest import Said
from fairsaoml.cli import run_app


@pytest.fixture
def command(capsys, monkeypatch):
    """`python -m paper` in this process: command("reproduce", "figure-1") -> Said."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["paper", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run_app(app)
        said = capsys.readouterr()
        return Said(ended.value.code or 0, said.out, said.err)

    return call
