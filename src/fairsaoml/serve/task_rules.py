"""When a task is full, when it closes, how much is held: settings, checked."""

from dataclasses import dataclass
from typing import Literal

from fairsaoml.core.errors import ConfigError

__all__ = ["TaskRules"]


@dataclass(frozen=True, kw_only=True)
class TaskRules:
    """What a task is, how long it waits, and how much is held. `DelayedLabels` explains them."""

    task_rows: int | None
    task_seconds: float | None
    wait_seconds: float | None
    late: Literal["next", "drop"]
    unknown: Literal["raise", "count"]
    max_rows: int
    retain_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.task_rows is None and self.task_seconds is None:
            raise ConfigError("expected task_rows or task_seconds, got neither; say what a task is")
        least = {"task_rows": 1, "task_seconds": 0, "wait_seconds": 0, "retain_seconds": 0}
        least["max_rows"] = self.task_rows or 1
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and not value >= low:
                raise ConfigError(f"expected {name} of at least {low}, got {value!r}")
        for name, (one, other) in {"late": ("next", "drop"), "unknown": ("raise", "count")}.items():
            if (value := getattr(self, name)) not in (one, other):
                raise ConfigError(f"expected {name}={one!r} or {other!r}, got {value!r}")
