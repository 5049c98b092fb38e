"""Files that are whole or not there: written aside, flushed, renamed; JSON without NaN."""

import json
import math
import os
from pathlib import Path
from typing import Any

__all__ = [
    "read_json",
    "sync_folder",
    "tidy",
    "write_all",
    "write_bytes",
    "write_json",
    "write_text",
]

DIGITS = 7  # significant digits of a float in a file: what float32 can tell


def tidy(value: Any) -> Any:
    """Plain data with floats of seven significant digits; a float that is not finite is None.

    >>> tidy({"a": 0.1 + 0.2, "b": [float("nan"), 1]})
    {'a': 0.3, 'b': [None, 1]}
    """
    if isinstance(value, dict):
        return {key: tidy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def write_bytes(path: Path, content: bytes) -> None:
    """Write a whole file or none: aside, flushed to the disk, renamed over the old one."""
    aside = path.with_name(f".{path.name}.part")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Hand all of it to the system at once; a nearly full disk may take it in pieces."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def sync_folder(folder: Path) -> None:
    """Flush what a folder lists: a file that was flushed may still be lost by its name."""
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` for text."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """`write_bytes` for plain data; NaN is refused."""
    write_text(path, json.dumps(tidy(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Plain data from a file."""
    return json.loads(path.read_text())
