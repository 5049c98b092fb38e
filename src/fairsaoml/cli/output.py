"""What commands have in common: folder names, chosen names, JSON on stdout."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

__all__ = ["chosen", "piped", "print_json", "stem"]


def stem(stream: str) -> str:
    """Return a stream's name as part of a folder's name.

    >>> stem("stop-and-frisk:BMS"), stem("data/hiring.csv.gz")
    ('stop-and-frisk-BMS', 'hiring')
    """
    return Path(stream).name.split(".")[0].replace(":", "-")


def chosen(names: str, known: Iterable[str]) -> Sequence[str]:
    """Return the names of an option such as `--learners A,B`; "all" is every known one."""
    return list(known) if names == "all" else names.split(",")


@contextmanager
def piped(file: str) -> Iterator[Path]:
    """Yield a file's path; for "-" that of a copy of standard input, CSV or Parquet."""
    if file != "-":
        from fairsaoml.streams.catalog import require_file

        require_file(file)
        yield Path(file)
        return
    import sys
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        content = sys.stdin.buffer.read()
        name = "stdin.parquet" if content.startswith(b"PAR1") else "stdin.csv"
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


def print_json(result: Any) -> None:
    """Print plain data as JSON."""
    import json

    typer.echo(json.dumps(result, indent=2))
