"""The journal of a run: `rounds.jsonl`, one line per round and seed, written as it happens."""

import json
import os
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fairsaoml.core.errors import RunError
from fairsaoml.files import sync_folder, tidy, write_all

__all__ = ["Journal", "read_rounds", "whole_rounds"]


class Journal:
    """Append-only. Opened after a round, it first cuts what was written later, or torn.

    One process at a time writes a journal; another one is refused.
    """

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            _lock(self._descriptor, path)
            kept = takewhile(lambda whole: whole[1]["round"] <= after, _lines(path))
            # Cut in place: to go on needs no room for a second journal.
            os.ftruncate(self._descriptor, sum(len(line) for line, _ in kept))
            sync_folder(path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write one round, for all seeds, in one piece."""
        lines = [
            json.dumps(tidy(record), allow_nan=False, separators=(",", ":")) for record in records
        ]
        write_all(self._descriptor, ("\n".join(lines) + "\n").encode())

    def sync(self) -> None:
        """Make sure that what was written is on the disk."""
        os.fsync(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a journal; a torn last line is left out."""
    if not path.exists():
        raise RunError(f"expected a run's journal at {path.name}, found none in {path.parent}")
    return [record for _, record in _lines(path)]


def whole_rounds(path: Path, seeds: int) -> int:
    """How many rounds from the first on a journal holds, each with a line of every seed."""
    numbers = [record["round"] for _, record in _lines(path)]
    expected = (place // seeds + 1 for place in range(len(numbers)))
    right = takewhile(lambda pair: pair[0] == pair[1], zip(numbers, expected, strict=True))
    return sum(1 for _ in right) // seeds


def _lock(descriptor: int, path: Path) -> None:
    """Keep others out until the file is closed, be it by a kill."""
    try:
        import fcntl
    except ImportError:
        return  # not on this system: nobody is kept out
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunError(
            f"another process is writing {path}; wait for it, or end it and go on with the run"
        ) from None
    except OSError:
        return  # not on this file system


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Whole lines as bytes and data. Only the last one may be torn: a kill can cut it."""
    if not path.exists():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        record = _record(line)
        if record is None:
            if number == len(lines):
                return
            raise RunError(
                f"line {number} of {path} is damaged; expected one JSON object a line; "
                "start the run anew with --force"
            )
        if not line.endswith(b"\n"):
            return
        yield line, record


def _record(line: bytes) -> dict[str, Any] | None:
    """A line as data; None where it is damaged."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "round" in record else None
