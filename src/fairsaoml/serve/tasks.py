"""Predictions in tasks: issued, labelled, closed in the order of issue, and forgotten.

All of it is in a store. What is due follows from the store and the time, so it does not depend on
how often somebody looks, and a restarted process goes on where the killed one was.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from fairsaoml.core.errors import ConfigError
from fairsaoml.serve.store import LABELLED, TAKEN, WAITING, Store

ROUNDS_KEPT = 10_000  # lines of the journal that outlive their rows


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


class NewRow(NamedTuple):
    """A prediction to wait for; texts are JSON."""

    id: str
    content: str
    answer: str
    round: int | None = None
    why: bytes | None = None
    groups: str | None = None


class Tally(NamedTuple):
    """How many of each there have been since the journal began."""

    issued: int = 0
    labelled: int = 0  # late ones included
    late: int = 0
    dropped: int = 0  # of the late ones
    expired: int = 0
    unknown: int = 0  # labels of ids that were not waiting, where these are counted
    repeated: int = 0  # second labels of ids that still had their first, where these are counted
    tasks: int = 0  # closed
    rounds: int = 0  # of them with rows to learn from


class OpenTask(NamedTuple):
    """A task that predictions go into (until it is full) and labels (until it is closed)."""

    number: int
    opened_at: float
    size: int  # predictions issued into it, expired ones included
    full_at: float | None


class TakenRow(NamedTuple):
    """A row that its task has closed with; texts are JSON."""

    id: str
    content: str
    answer: str
    groups: str | None
    label: str


TAKEN_ROWS = f"SELECT {', '.join(TakenRow._fields)} FROM rows WHERE taken_by = ? ORDER BY number"


class Tasks:
    """The tasks of a store, by the rules.

    `counts` of the store, which it keeps: issued, waiting, held (waiting or labelled), labelled,
    late, dropped, expired, tasks (closed), rounds (of them with rows).
    """

    def __init__(self, store: Store, rules: TaskRules, clock: Callable[[], float]) -> None:
        self.store, self.rules, self._clock = store, rules, clock
        self.at: float = store.fact("at") or 0.0  # of the last change; it never runs backwards
        self.is_due = False  # something, because of rows that were issued, not of time

    def now(self) -> float:
        """The time; a clock may be set back, this is not."""
        return max(float(self._clock()), self.at)

    @property
    def oldest(self) -> OpenTask | None:
        """The task that closes next: tasks close in order."""
        return self._task("WHERE number = ?", [self.store.counts["tasks"] + 1])

    @property
    def filling(self) -> OpenTask | None:
        """The task that takes predictions now."""
        last = self._task("ORDER BY number DESC LIMIT 1")
        return last if last and last.full_at is None else None

    def _task(self, where: str, values: Sequence[int] = ()) -> OpenTask | None:
        columns = "number, opened_at, size, full_at, closed_at"
        found = self.store.query(f"SELECT {columns} FROM tasks {where}", values)
        return OpenTask(*found[0][:4]) if found and found[0][4] is None else None

    @property
    def removed(self) -> dict[str, int]:
        """The last task, and the last round, of which rows were removed."""
        return self.store.fact("removed") or {"task": 0, "round": 0}

    def is_late(self, task: int) -> bool:
        """Whether a row's task is closed."""
        return task <= self.store.counts["tasks"]

    def issue(self, rows: Sequence[NewRow], now: float) -> None:
        """Put predictions into the task that is filling, and into others when it is full."""
        first, placed = self.store.counts["issued"] + 1, 0
        most = self.rules.task_rows or math.inf
        while placed < len(rows):
            task = self.filling or self._begin(now)
            size = int(max(min(most - task.size, len(rows) - placed), 0))
            numbered = enumerate(rows[placed : placed + size], first + placed)
            self.store.insert(
                "INSERT INTO rows (number, task, at, id, content, answer, round, why, groups)",
                [(number, task.number, now, *row) for number, row in numbered],
            )
            more = [size, task.number]
            self.store.write("UPDATE tasks SET size = size + ? WHERE number = ?", more)
            placed += size
            if task.size + size >= most:
                self._fill(task.number, now)
                self.is_due = True
        self._count(now, issued=len(rows), waiting=len(rows), held=len(rows))
        self.is_due |= self.store.counts["held"] > self.rules.max_rows

    def _begin(self, now: float) -> OpenTask:
        last = self.store.value("SELECT max(number) FROM tasks") or 0
        task = OpenTask(max(last, self.store.counts["tasks"]) + 1, now, 0, None)
        self.store.write("INSERT INTO tasks (number, opened_at, size) VALUES (?, ?, 0)", task[:2])
        return task

    def _fill(self, number: int, at: float) -> None:
        self.store.write("UPDATE tasks SET full_at = ? WHERE number = ?", [at, number])

    def label(self, labels: Mapping[int, str], late: Sequence[int], now: float) -> None:
        """Take labels of waiting rows, by their numbers."""
        self._set(f"label = ?, state = {LABELLED}", labels)
        self._count(now, labelled=len(labels), waiting=-len(labels), late=len(late))
        if self.rules.late == "drop":
            self.store.write_many("DELETE FROM rows WHERE number = ?", [(n,) for n in late])
            self._count(now, dropped=len(late), held=-len(late))

    def correct(self, labels: Mapping[int, str], groups: Mapping[int, str]) -> None:
        """Replace labels of rows whose task is open, and add groups that came with a label."""
        self._set("label = ?", labels)
        self._set("groups = json_patch(groups, ?)", groups)

    def _set(self, change: str, values: Mapping[int, str]) -> None:
        by_number = [(value, number) for number, value in values.items()]
        self.store.write_many(f"UPDATE rows SET {change} WHERE number = ?", by_number)

    def catch_up(self, now: float) -> None:
        """Fill, close and expire what is due by now."""
        self.is_due = False
        if self._due(now):
            with self.store.writing():
                while due := self._due(now):
                    due()

    def _due(self, now: float) -> Callable[[], None] | None:
        """Return what has to happen next, to be called."""
        rules, task, oldest = self.rules, self.filling, self.oldest
        if task:
            if rules.task_rows is not None and task.size >= rules.task_rows:
                return partial(self._fill, task.number, now)
            if rules.task_seconds is not None and now >= task.opened_at + rules.task_seconds:
                return partial(self._fill, task.number, task.opened_at + rules.task_seconds)
        if oldest and oldest.full_at is not None:
            if not self._is_waited_for(oldest.number):
                return partial(self.close, "complete", now)
            if rules.wait_seconds is not None and now >= oldest.full_at + rules.wait_seconds:
                return partial(self.close, "time", now)
        excess = self.store.counts["held"] - rules.max_rows
        if excess <= 0:
            return None
        if self.store.counts["waiting"]:
            return partial(self._expire, excess, now)
        # With nothing to wait for, what is held can only be learned from.
        return partial(self._fill, task.number, now) if task else partial(self.close, "room", now)

    def _is_waited_for(self, task: int) -> bool:
        query = f"SELECT 1 FROM rows WHERE state < 2 AND state = {WAITING} AND task = ? LIMIT 1"
        return bool(self.store.value(query, [task]))

    def _expire(self, rows: int, now: float) -> None:
        """Drop the oldest predictions that nobody has labelled."""
        gone = self.store.write(
            "DELETE FROM rows WHERE number IN (SELECT number FROM rows WHERE state < 2 AND "
            f"state = {WAITING} ORDER BY task, number LIMIT ?)",
            [rows],
        )
        self._count(now, expired=gone, waiting=-gone, held=-gone)

    def close(self, why: str, now: float) -> None:
        """Close the oldest task with its labelled rows and the late ones, or these alone."""
        number, _, size, _ = self.oldest or self._begin(now)
        labelled = f"state < 2 AND state = {LABELLED} AND task"
        late = self.store.value(f"SELECT count(*) FROM rows WHERE {labelled} < ?", [number])
        taken = f"UPDATE rows SET state = {TAKEN}, taken_by = ? WHERE {labelled} <= ?"
        rows = self.store.write(taken, [number, number])
        round = self.store.counts["rounds"] + 1 if rows else None
        self.store.write(
            "UPDATE tasks SET closed_at = ?, why = ?, round = ?, late = ?, unlabelled = ? "
            "WHERE number = ?",
            [now, why, round, late, size - (rows - late), number],
        )
        self._count(now, tasks=1, rounds=1 if rows else 0, held=-rows)

    def close_all(self, now: float) -> None:
        """Close every task, with the labels that are here."""
        with self.store.writing():
            if task := self.filling:
                self._fill(task.number, now)
            while self.oldest or self.store.counts["held"] > self.store.counts["waiting"]:
                self.close("asked", now)

    def unlearned(self, task: int) -> None:
        """Count a closed task as one without labels, as none of its rows can be learned from."""
        with self.store.writing():
            self.store.write("UPDATE tasks SET round = NULL WHERE number = ?", [task])
            self.store.write("UPDATE tasks SET round = round - 1 WHERE number > ?", [task])
            self.store.counts.update(rounds=-1)

    def taken(self, task: int) -> list[TakenRow]:
        """Return the rows that a task has closed with, in the order of issue."""
        return [TakenRow(*row) for row in self.store.query(TAKEN_ROWS, [task])]

    def forget(self, now: float, learned: int) -> int:
        """Remove what is kept long enough; return how many rows were removed.

        Args:
            now: the time.
            learned: rounds up to here are in a saved model; later ones are kept to learn again.
        """
        retain = self.rules.retain_seconds
        if retain is None:
            return 0
        unlearned = self.store.value("SELECT min(number) FROM tasks WHERE round > ?", [learned])
        end = self.store.counts["tasks"] if unlearned is None else unlearned - 1
        # Rows are in the order of time: those to go are among the first ones.
        query = "SELECT number FROM rows WHERE at >= ? ORDER BY number LIMIT 1"
        young = self.store.value(query, [now - retain]) or self.store.counts["issued"] + 1
        values = [young, end, end]
        old = (
            f"number < ? AND task <= ? AND state != {LABELLED} "
            "AND (taken_by IS NULL OR taken_by <= ?)"
        )
        with self.store.writing():
            query = f"SELECT count(*) FROM rows WHERE state < 2 AND state = {WAITING} AND {old}"
            waiting = self.store.value(query, values)
            [(task, round)] = self.store.query(
                "SELECT max(number), max(round) FROM tasks WHERE number IN "
                f"(SELECT taken_by FROM rows WHERE {old})",
                values,
            )
            gone = self.store.write(f"DELETE FROM rows WHERE {old}", values)
            if task is not None:
                self.store.set_fact("removed", {"task": task, "round": round})
            # Events are in the order of time as well.
            self.store.write(
                "DELETE FROM events WHERE number < (SELECT number FROM events WHERE "
                "json_extract(content, '$.at') >= ? ORDER BY number LIMIT 1)",
                [now - retain],
            )
            if gone:
                self.store.write("DELETE FROM tasks WHERE number <= ?", [end - ROUNDS_KEPT])
                self._count(now, expired=waiting, waiting=-waiting, held=-waiting)
        return gone

    def _count(self, now: float, **more: int) -> None:
        self.store.counts.update(more)
        if now > self.at:
            self.at = now
            self.store.set_fact("at", now)
