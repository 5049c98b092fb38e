"""Files that are either complete or absent, never followed through a link; JSON without NaN."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import RunError

ROUNDED = "%.7g"  # the significant digits of a float in a file: what float32 can tell
WHOLE = {int, str, bool, type(None)}  # has nothing to round


def tidy(value: Any) -> Any:
    """Return plain data with floats of seven significant digits; a non-finite float is None.

    >>> tidy({"a": 0.1 + 0.2, "b": [float("nan"), 1]})
    {'a': 0.3, 'b': [None, 1]}
    """
    if type(value) in WHOLE:
        return value
    if isinstance(value, float):
        return float(ROUNDED % value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: tidy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [tidy(item) for item in value]
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
    temporary.unlink(missing_ok=True)  # left by a kill, or a link that must not be followed
    try:
        yield temporary
        _flush(temporary, os.O_RDWR)
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
    if os.name == "posix":  # elsewhere a folder cannot be opened
        _flush(folder, os.O_RDONLY)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, content: bytes) -> None:
    """Create or replace a file with `content`, completely or not at all."""
    with replacing(path) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
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


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file: what lies in a folder from elsewhere is not trusted.

    Raises:
        RunError: there is a link, a folder, a pipe or a device.
        OSError: it cannot be opened.
    """
    # A pipe without a writer would otherwise be waited for.
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if path.is_symlink():
        raise RunError(f"expected a regular file at {path}, found a link; remove it")
    descriptor = os.open(path, flags | careful, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RunError(f"expected a regular file at {path}, found something else; remove it")
    return descriptor


def refuse_link(path: Path) -> None:
    """Raise RunError where a folder of ours is a link to another."""
    if path.is_symlink():
        raise RunError(f"expected a folder at {path}, found a link; remove it")


def make_folder(path: Path) -> None:
    """Create a folder inside another of ours; a link in its place is refused (RunError)."""
    refuse_link(path)
    if not path.exists():
        path.mkdir(parents=True)
        sync_folder(path.parent)


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file."""
    with open(open_regular(path), "rb") as file:
        return file.read()


def read_json(path: Path) -> Any:
    """Return the plain data in a JSON file.

    Raises:
        ValueError: it is no JSON, or nested too deeply to be any of ours.
    """
    try:
        return json.loads(read_bytes(path).decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write_sealed(path: Path, content: dict[str, Any], name: str) -> None:
    """Write plain data with every digit, and its checksum under a name of its own."""
    sealed = {**content, name: seal_of(content)}
    write_text(path, json.dumps(sealed, indent=2, allow_nan=False) + "\n")


def seal_of(content: dict[str, Any]) -> str:
    """Return a checksum of plain data, whatever the order of its keys.

    >>> seal_of({"a": 1, "b": 2}) == seal_of({"b": 2, "a": 1})
    True
    """
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(plain.encode()).hexdigest()
