"""Files that are either complete or absent, and JSON without NaN."""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import RunError

__all__ = [
    "json_lines",
    "read_json",
    "replacing",
    "sync_folder",
    "tidy",
    "write_all",
    "write_bytes",
    "write_json",
    "write_text",
]

DIGITS = 7  # significant digits of a float in a file: what float32 can tell


def tidy(value: Any) -> Any:
    """Return plain data with floats of seven significant digits; a non-finite float is None.

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


@contextmanager
def replacing(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """Yield a temporary path; when the block succeeds, the file there becomes `path`.

    Readers of `path` see the old file or the complete new one. The content is flushed to the disk
    before the rename, and the rename after it. If the block raises, the temporary file is removed.

    Args:
        path: the file to create or replace.
        shared: several processes may write `path` at once, so each gets its own temporary name.
    """
    owner = f".{os.getpid()}" if shared else ""
    temporary = path.with_name(f".{path.name}{owner}.part")
    try:
        yield temporary
        descriptor = os.open(temporary, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of `content`; a nearly full disk may accept only a part per call."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries: a flushed file can still be lost if its name is not."""
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, content: bytes) -> None:
    """Create or replace a file with `content`, completely or not at all."""
    with replacing(path) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` for text."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """`write_bytes` for plain data, tidied; raises TypeError for anything else."""
    write_text(path, json.dumps(tidy(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Return the plain data in a JSON file."""
    return json.loads(path.read_text())


def json_lines(path: Path, *, key: str = "", advice: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the size in bytes and the content of each complete line of a file.

    Only the last line may be incomplete, as a kill leaves it; it is left out.

    Args:
        path: one JSON object a line.
        key: that every object must have.
        advice: what to do about a damaged file, for the error.

    Raises:
        RunError: another line is damaged.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                record = None
            if isinstance(record, dict) and (not key or key in record):
                yield len(line), record
            elif file.read(1):
                raise RunError(
                    f"line {number} of {path} is damaged; expected one JSON object a line; {advice}"
                )
