"""The journal of a run: `rounds.jsonl`, one line per round and seed, written as it happens."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

from fairsaoml import files
from fairsaoml.core.errors import RunError

_written = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
DIGEST = "journal"  # in a checkpoint's manifest: of the journal's lines up to its round


class _Damaged(RunError):
    """A line that is not what was written."""


class Journal:
    """An append-only file, written by whoever holds the folder's lock.

    Args:
        path: the journal's file; created if there is none.
        after: cut what was written after this round, damaged or not, and a torn last line.

    Raises:
        RunError: a line up to that round is damaged.
    """

    def __init__(self, path: Path, *, after: int = 0) -> None:
        self._descriptor = files.open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            kept = last = 0
            try:
                for size, record in takewhile(lambda line: line[1]["round"] <= after, _lines(path)):
                    kept, last = kept + size, record["round"]
            except _Damaged:
                if last < after:
                    raise  # what is damaged is not what is written again
            # Cut in place: to continue needs no room for a second journal.
            os.ftruncate(self._descriptor, kept)
            self._digest = hashlib.sha256(files.read_bytes(path))
            files.sync_folder(path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records of one round, one per seed, in one call."""
        content = "".join(f"{_written(files.tidy(record))}\n" for record in records).encode()
        files.write_all(self._descriptor, content)
        self._digest.update(content)

    @property
    def digest(self) -> str:
        """A checksum of all that it holds."""
        return self._digest.hexdigest()

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


def is_intact(path: Path, round: int, digest: str | None) -> bool:
    """Return whether the lines up to a round are those of a digest; without one nobody can tell."""
    if digest is None:
        return True
    content = files.read_bytes(path)
    if hashlib.sha256(content).hexdigest() == digest:  # nothing came after that round
        return True
    size = 0
    with suppress(_Damaged):
        for length, _ in takewhile(lambda line: line[1]["round"] <= round, _lines(path)):
            size += length
    return hashlib.sha256(content[:size]).hexdigest() == digest


def require_intact(path: Path, manifest: Path) -> None:
    """Raise RunError where a journal is not the one that the newest checkpoint was saved with."""
    try:
        saved = files.read_json(manifest)
        intact = is_intact(path, saved["round"], saved.get(DIGEST))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # no checkpoint that could tell
    if not intact:
        raise RunError(f"{path} is not what was written; put it back, or run again with --force")


def whole_rounds(path: Path, seeds: int, before: int = 0) -> int:
    """Return up to which round, from the one after `before`, every seed has its line."""
    lines = before * seeds
    with suppress(_Damaged):  # from a damaged line on, nothing counts
        for _, record in _lines(path) if path.exists() else ():
            if record["round"] != lines // seeds + 1:
                break
            lines += 1
    return lines // seeds


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The size in bytes and the record of each complete line.

    Only the last line may be incomplete, as a kill leaves it; it is left out.
    """
    with open(files.open_regular(path), "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line) if line.endswith(b"\n") else None
            except (ValueError, RecursionError):
                record = None
            record = record if isinstance(record, dict) else {}
            if type(round := record.get("round")) is int and round > 0:
                yield len(line), record
            elif file.read(1):
                raise _Damaged(
                    f"line {number} of {path} is damaged; expected one JSON object a line; start "
                    "the run again with --force"
                )
