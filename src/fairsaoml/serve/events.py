"""A log of what happened: one JSON object a line, whole or not there, exact to the last digit.

`runs.journal` keeps a run's rounds and is cut back to a checkpoint; here nothing is ever taken
back, and a reader passes once over a file of any length.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import DataError, RunError

__all__ = ["EventLog"]

Event = dict[str, Any]


class EventLog:
    """Append-only. Read it to its end first, then write."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        # Unbuffered: what was appended survives the process, and nothing else is ever written.
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._end = 0  # of the last whole line

    def read(self) -> Iterator[Event]:
        """Every event, oldest first; then a last line that a kill has torn is cut off."""
        self.sync()  # what is learned from it now must stay true
        with open(self._path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    event = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    event = None
                if not isinstance(event, dict):
                    if file.read(1):
                        raise RunError(
                            f"line {number} of {self._path} is damaged; expected one JSON object a "
                            "line; go on from a whole copy, or begin another journal"
                        )
                    break
                self._end += len(line)
                yield event
        self._file.truncate(self._end)

    def append(self, event: Event) -> None:
        """Write one event; where that fails, as on a full disk, nothing of it stays."""
        try:
            line = json.dumps(event, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        except (TypeError, ValueError) as problem:
            raise DataError(
                f"expected numbers, words and truth values, got what no journal can hold "
                f"({problem}); convert it first"
            ) from None
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError:
            self._file.truncate(self._end)
            raise
        self._end += len(line)

    def sync(self) -> None:
        """Make sure that it is on the disk, should the power fail."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Nothing more will be written."""
        self._file.close()
