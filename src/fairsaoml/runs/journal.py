"""The journal of a run: `rounds.jsonl`, one line per round and seed, written as it happens."""

import json
import os
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

from fairsaoml.core.errors import RunError
from fairsaoml.files import json_lines, sync_folder, tidy, write_all

__all__ = ["Journal", "read_rounds", "whole_rounds"]


class Journal:
    """An append-only file, open for writing by one process at a time.

    Args:
        path: the journal's file; created if there is none.
        after: cut what was written after this round, and a torn last line.

    Raises:
        RunError: another process is writing it, or it is damaged.
    """

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            _lock(self._descriptor, path)
            kept = takewhile(lambda line: line[1]["round"] <= after, _lines(path))
            # Cut in place: to continue needs no room for a second journal.
            os.ftruncate(self._descriptor, sum(size for size, _ in kept))
            sync_folder(path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records of one round, one per seed, in one call."""
        lines = [
            json.dumps(tidy(record), allow_nan=False, separators=(",", ":")) for record in records
        ]
        write_all(self._descriptor, ("\n".join(lines) + "\n").encode())

    def sync(self) -> None:
        """Flush what was written to the disk."""
        os.fsync(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """Return the records of a journal; a torn last line is left out."""
    if not path.exists():
        raise RunError(f"expected a run's journal at {path.name}, found none in {path.parent}")
    return [record for _, record in _lines(path)]


def whole_rounds(path: Path, seeds: int) -> int:
    """Return how many rounds in a row, from the first, have a line for every seed."""
    numbers = [record["round"] for _, record in _lines(path)] if path.exists() else []
    expected = (place // seeds + 1 for place in range(len(numbers)))
    right = takewhile(lambda pair: pair[0] == pair[1], zip(numbers, expected, strict=True))
    return sum(1 for _ in right) // seeds


def _lock(descriptor: int, path: Path) -> None:
    """Lock the file until it is closed, be it by a kill."""
    try:
        import fcntl
    except ImportError:
        return  # this system has no locks
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunError(
            f"another process is writing {path}; wait for it, or end it and continue the run"
        ) from None
    except OSError:
        return  # this file system has no locks


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    return json_lines(path, key="round", advice="start the run again with --force")
