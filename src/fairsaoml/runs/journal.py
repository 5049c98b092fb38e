"""The journal of a run: `rounds.jsonl`, one line per round and seed, written as it happens."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fairsaoml.errors import RunError
from fairsaoml.runs.files import tidy, write_bytes

__all__ = ["Journal", "read_rounds"]


class Journal:
    """Append-only. Opened after a round, it first cuts what was written later, or torn."""

    def __init__(self, path: Path, *, after: int = 0) -> None:
        kept = b"".join(line for line, record in _lines(path) if record["round"] <= after)
        write_bytes(path, kept)
        self._file = open(path, "ab")  # noqa: SIM115

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write one round, for all seeds, in one piece."""
        lines = [
            json.dumps(tidy(record), allow_nan=False, separators=(",", ":")) for record in records
        ]
        self._file.write(("\n".join(lines) + "\n").encode())
        self._file.flush()

    def sync(self) -> None:
        """Make sure that what was written is on the disk."""
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a journal; a torn last line is left out."""
    if not path.exists():
        raise RunError(f"expected a run's journal at {path.name}, found none in {path.parent}")
    return [record for _, record in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Whole lines as bytes and data. Only the last one may be torn: a kill can cut it."""
    if not path.exists():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except ValueError:
            if number == len(lines):
                return
            raise RunError(
                f"line {number} of {path} is damaged; expected one JSON object a line; "
                "start the run anew with --force"
            ) from None
        if not line.endswith(b"\n"):
            return
        yield line, record
