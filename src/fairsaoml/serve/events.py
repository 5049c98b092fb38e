"""A log of events: one JSON object a line, complete or absent, exact to the last digit.

`runs.journal` is cut back to a checkpoint; here nothing is ever taken back, and reading passes once
over a file of any length.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import DataError
from fairsaoml.files import json_lines

__all__ = ["Event", "EventLog"]

Event = dict[str, Any]


class EventLog:
    """An append-only file of events. Read it to its end first, then write.

    Args:
        path: created, with its folder, if there is none.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        # Unbuffered: what was appended survives the process, and nothing else is ever written.
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        self._end = 0  # of the last complete line

    def read(self) -> Iterator[Event]:
        """Yield every event, oldest first; then cut off a last line that a kill has torn."""
        self.sync()  # what is learned from it now must stay true
        advice = "continue from an intact copy, or begin another journal"
        for size, event in json_lines(self._path, advice=advice):
            self._end += size
            yield event
        self._file.truncate(self._end)

    def append(self, event: Event) -> None:
        """Write one event; if that fails, as on a full disk, nothing of it stays.

        Raises:
            DataError: the event holds something that JSON cannot.
        """
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
        """Flush what was written to the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
