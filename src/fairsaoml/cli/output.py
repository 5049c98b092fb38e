"""What commands have in common at their end: a folder's name, and a result as JSON."""

from pathlib import Path
from typing import Any

import typer

__all__ = ["print_json", "stem"]


def stem(stream: str) -> str:
    """A stream's name as part of a folder's.

    >>> stem("stop-and-frisk:BMS"), stem("data/hiring.csv.gz")
    ('stop-and-frisk-BMS', 'hiring')
    """
    return Path(stream).name.split(".")[0].replace(":", "-")


def print_json(result: Any) -> None:
    """A result on stdout."""
    import json

    typer.echo(json.dumps(result, indent=2))
