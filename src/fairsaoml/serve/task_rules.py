"""When a task is full, when it closes, what expires: decided from a ledger and the time.

Pure functions: what is due does not depend on how often they are called.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple

from fairsaoml.core.errors import ConfigError
from fairsaoml.serve.events import Event
from fairsaoml.serve.ledger import Ledger, OpenTask

__all__ = ["Due", "TaskRules", "closing"]


class Due(NamedTuple):
    """An event that has to happen, and since when."""

    kind: str
    at: float
    content: Event


@dataclass(frozen=True, kw_only=True)
class TaskRules:
    """What a task is, how long it waits, and how much is held. `DelayedLabels` explains them."""

    task_rows: int | None
    task_seconds: float | None
    wait_seconds: float | None
    late: Literal["next", "drop"]
    unknown: Literal["raise", "count"]
    max_rows: int

    def __post_init__(self) -> None:
        if self.task_rows is None and self.task_seconds is None:
            raise ConfigError("expected task_rows or task_seconds, got neither; say what a task is")
        least = {"task_rows": 1, "task_seconds": 0, "wait_seconds": 0}
        least["max_rows"] = self.task_rows or 1
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and not value >= low:
                raise ConfigError(f"expected {name} of at least {low}, got {value!r}")
        for name, (one, other) in {"late": ("next", "drop"), "unknown": ("raise", "count")}.items():
            if (value := getattr(self, name)) not in (one, other):
                raise ConfigError(f"expected {name}={one!r} or {other!r}, got {value!r}")

    def due(self, ledger: Ledger, now: float) -> Due | None:
        """Return the next event that has to happen by now, or None."""
        if task := ledger.filling:
            if task.size == self.task_rows:
                return Due("full", now, {"task": task.number})
            if self.task_seconds is not None and now >= task.opened_at + self.task_seconds:
                return Due("full", task.opened_at + self.task_seconds, {"task": task.number})
        if ledger.tasks and (why := self._may_close(ledger.tasks[0], now)):
            return Due("closed", now, closing(ledger, why))
        excess = len(ledger.held) - self.max_rows
        if excess <= 0:
            return None
        if ledger.waiting:
            return Due("expired", now, {"ids": list(islice(ledger.waiting, excess))})
        # With nothing to wait for, what is held can only be learned from.
        if ledger.filling:
            return Due("full", now, {"task": ledger.filling.number})
        return Due("closed", now, closing(ledger, "room"))

    def cut(self, ledger: Ledger, rows: int) -> list[tuple[int, int]]:
        """Return (task, rows) for new rows: as many as the open task has room for, then others."""
        task = ledger.filling
        number = task.number if task else ledger.next_task
        room = rows if self.task_rows is None else self.task_rows - (task.size if task else 0)
        cuts = []
        while rows:
            cuts.append((number, min(room, rows)))
            rows -= min(room, rows)
            number, room = number + 1, self.task_rows or rows
        return cuts

    def _may_close(self, task: OpenTask, now: float) -> str:
        """Why the oldest task may close; empty if it may not."""
        if task.full_at is None:
            return ""
        if not task.waiting:
            return "complete"
        waited = self.wait_seconds is not None and now >= task.full_at + self.wait_seconds
        return "time" if waited else ""


def closing(ledger: Ledger, why: str) -> Event:
    """Return the event that closes the oldest task now, or late rows alone if no task is open."""
    rows = ledger.rows_to_close()
    task = ledger.tasks[0] if ledger.tasks else None
    on_time = len(rows) - len(ledger.late)
    return {
        "task": task.number if task else ledger.next_task,
        "why": why,
        "ids": [row.id for row in rows],
        "late": len(ledger.late),
        "unlabelled": task.size - on_time if task else 0,
    }
