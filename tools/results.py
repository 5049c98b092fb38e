"""Play learners and alternatives on streams and keep the runs: the numbers of docs/results.md.

    python -m tools.results play --rows ROW;ROW --streams A,B --tables FOLDER
    python -m tools.results table --rows ROW;ROW --streams A,B > table.md

A row is a learner or an alternative with settings: `fairsaoml-decoupled ratio=0.8`. A finished run
is kept as long as the code behind it is the same. Streams are the named ones, the tables below if
they are in FOLDER, and those of FOLDER's `commands.json` ({name: {file, flags}}). `decision` is the
stream's own: alternatives weigh both classes the same where it is balanced.
"""

import argparse
import ast
import hashlib
import inspect
import json
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from fairsaoml.cli import app
from tools.windows import measure

ROOT = Path("runs/results")
MARK = "code.txt"  # which code a finished run was made by
TABLES = {
    "compas": "--label two_year_recid --positive 1 --sensitive race --tasks 60 "
    "--time compas_screening_date --set decision=balanced",
    "gss": "--label above --positive yes --sensitive gender --tasks 90",
    "bank": "--label y --positive yes --sensitive married --time when --tasks 90 "
    "--set decision=balanced",
    "hmda": "--label approved --positive yes --sensitive race --tasks 80 --domain as_of_year "
    "--set decision=balanced",
}
NAMED = {
    "BMS": ["stop-and-frisk:BMS"],
    "RQS": ["stop-and-frisk:RQS"],
    "movielens": ["movielens"],
    **{f"synthetic-{g}": ["synthetic", "--set", f"generator={g}"] for g in range(10)},
}


class Source(NamedTuple):
    """A stream as `fairsaoml run` is told about it."""

    name: str
    words: list[str]  # the stream and its flags
    at_ends: bool  # measured at the ends of its domains, not in windows

    @property
    def balanced(self) -> bool:
        return "decision=balanced" in self.words


def sources(tables: list[Path]) -> dict[str, Source]:
    """Every stream by name."""
    known = {name: Source(name, words, at_ends=True) for name, words in NAMED.items()}
    for folder in tables:
        listed = {
            name: {"file": f"{name}.csv.gz", "flags": flags.split()}
            for name, flags in TABLES.items()
        }
        commands = folder / "commands.json"
        listed |= json.loads(commands.read_text()) if commands.exists() else {}
        known |= {
            name: Source(name, [str(folder / entry["file"]), *entry["flags"]], at_ends=False)
            for name, entry in listed.items()
            if (folder / entry["file"]).exists()
        }
    return known


def folder_of(source: Source, row: str) -> Path:
    """Where the run of a row on a stream is kept."""
    return ROOT / source.name / row.replace(" ", "_").replace("=", "-")


def play(source: Source, row: str, seeds: int) -> Path:
    """Run a row on a stream unless that was done with the same code; the run's folder."""
    folder = folder_of(source, row)
    code = _code(row.split()[0])
    mark = folder / MARK
    if mark.exists() and mark.read_text() == code:
        return folder
    mark.unlink(missing_ok=True)  # no file of a run's: a run replaces nothing else
    begun = time.time()
    if _is_alternative(row):
        _play_alternative(source, row, folder)
    else:
        name, *settings = row.split()
        words = [*source.words, "--learner", name, "--seeds", str(seeds), "--quiet", "--force"]
        for pair in settings:
            words += ["--set", pair]
        app(["run", *words, "--out", str(folder)], standalone_mode=False)
    mark.write_text(code)
    print(f"{source.name}: {row}: {time.time() - begun:.0f} s", file=sys.stderr, flush=True)
    return folder


def _play_alternative(source: Source, row: str, folder: Path) -> None:
    from fairsaoml.cli.options import parse_settings
    from fairsaoml.compare.alternatives import AlternativeSpec, run_alternative

    name, *pairs = row.split()
    settings = parse_settings(pairs)
    if source.balanced:
        settings["balanced"] = True
    stream, of_stream = _stream(source)
    spec = AlternativeSpec(
        stream=stream, alternative=name, stream_settings=of_stream, settings=settings
    )
    run_alternative(spec, folder, force=True)


def _stream(source: Source) -> tuple[str, dict[str, Any]]:
    """A stream's name and settings, read from its flags."""
    from fairsaoml.cli.options import parse_settings
    from fairsaoml.streams.catalog import is_table, setting_names

    stream, *flags = source.words
    typed: dict[str, Any] = {}
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        if flag == "--sensitive":
            typed.setdefault("sensitive", []).append(value)
        elif flag == "--set":
            pair = parse_settings([value])
            typed |= {key: pair[key] for key in pair if key in setting_names(stream)}
        else:
            typed[flag.removeprefix("--")] = int(value) if flag in ("--tasks", "--rows") else value
    if is_table(stream) and "positive" in typed:
        typed["positive"] = str(typed["positive"])
    return stream, typed


def _is_alternative(row: str) -> bool:
    from fairsaoml.compare.alternatives import CATALOG

    return row.split()[0] in CATALOG


def _code(name: str) -> str:
    """A hash of the sources behind a learner; of an alternative, its library's version."""
    if _is_alternative(name):
        from fairsaoml.compare.alternatives import catalog

        return f"{name} {catalog.defaults(name)}"
    from fairsaoml.learners import registry

    module = inspect.getmodule(registry.entry(name).factory)
    assert module is not None
    digest = hashlib.sha256()
    for path in sorted(set(_sources(module.__name__, set()))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(module: str, seen: set[str]) -> Iterator[Path]:
    """The file of a module, and those of our modules that it imports."""
    spec = find_spec(module)
    if module in seen or spec is None or spec.origin is None:
        return
    seen.add(module)
    yield Path(spec.origin)
    for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairsaoml."):
            yield from _sources(str(node.module), seen)
            for alias in node.names:
                if find_spec(str(node.module)).submodule_search_locations is not None:
                    yield from _sources(f"{node.module}.{alias.name}", seen)


def table(streams: list[Source], rows: list[str]) -> Iterator[str]:
    """A Markdown table: a row each, and for every stream its EO and accuracy."""
    yield "| | " + " | ".join(source.name for source in streams) + " |"
    yield "|---" * (1 + len(streams)) + "|"
    for row in rows:
        cells = [_cell(source, folder_of(source, row)) for source in streams]
        if any(cells):
            yield f"| {row} | " + " | ".join(cell or "-" for cell in cells) + " |"


def _cell(source: Source, folder: Path) -> str:
    """EO and accuracy (balanced where the stream's decision is), domain by domain or once."""
    if not (folder / MARK).exists():
        return ""
    found = measure(folder)
    blocks = list(found.ends.values()) if source.at_ends else [found.windows]
    names = ("EO", "balanced" if source.balanced else "accuracy")
    return " / ".join(" ".join(_digits(block[name]) for block in blocks) for name in names)


def _digits(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["play", "table"])
    parser.add_argument("--rows", required=True, help="separated by semicolons")
    parser.add_argument("--streams", default="all")
    parser.add_argument("--tables", type=Path, action="append", default=[])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    known = sources(options.tables)
    streams = list(known) if options.streams == "all" else options.streams.split(",")
    rows = [row.strip() for row in options.rows.split(";")]
    if options.task == "table":
        print("\n".join(table([known[name] for name in streams], rows)))
        return
    for name in streams:
        for row in rows:
            play(known[name], row, options.seeds)


if __name__ == "__main__":
    main()
