"""Predictions in tasks: issued, labelled, closed in the order of issue, and forgotten.

All of it is in a store. What is due follows from the store and the time, so it does not depend on
how often somebody looks, and a restarted process goes on where the killed one was.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.serve.store import LABELLED, NEVER, TAKEN, WAITING, Store, some

MOST_ROWS = 100_000  # held, by default
ROUNDS_KEPT = 10_000  # lines of the journal that outlive their rows


@dataclass(frozen=True)
class TaskRules:
    """What a task is, how long it waits, and how much is held. `DelayedLabels` explains them."""

    task_rows: int | None = None
    task_seconds: float | None = None
    wait_seconds: float | None = None
    late: Literal["next", "drop"] = "next"
    unknown: Literal["raise", "count"] = "raise"
    max_rows: int = MOST_ROWS
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


Clock = Callable[[], float]  # the time in seconds


# A prediction to wait for (id, content, answer, groups, the model's round, why), and a label that
# has come (id as text, id, label, groups); texts are JSON. There may be thousands in a call, and a
# named tuple takes five times as long to make.
NewRow = tuple[str, str, str, str, int | None, bytes | None]
NewLabel = tuple[str, Any, str, str | None]


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


# Of rows; the first half is what the index is of.
WAITS = f"state < 2 AND state = {WAITING}"
# That a task has closed with, in the order of issue; all columns are JSON.
COLUMNS = "id, content, answer, groups, label"
TAKEN_ROWS = f"SELECT {COLUMNS} FROM rows WHERE taken_by = ? ORDER BY number"


class Tasks(Store):
    """A store of tasks, kept by the rules.

    Its `counts`: issued, waiting, held (waiting or labelled), labelled, late, dropped, expired,
    tasks (closed), rounds (of them with rows).
    """

    def __init__(self, path: Path | None, rules: TaskRules, clock: Clock) -> None:
        super().__init__(path)
        self.rules, self._clock = rules, clock
        self.now: float = self.fact("at") or 0.0  # all that is done happens then
        self.is_due = False  # something, because of rows that were issued, not of time

    def look(self) -> None:
        """Look at the clock; it may be set back, the time of the tasks is not."""
        self.now = max(float(self._clock()), self.now)

    @property
    def oldest(self) -> OpenTask | None:
        """The task that closes next: tasks close in order."""
        return self._open("ASC")

    @property
    def filling(self) -> OpenTask | None:
        """The task that takes predictions now."""
        last = self._open("DESC")
        return last if last and last.full_at is None else None

    def _open(self, order: str) -> OpenTask | None:
        query = f"SELECT {', '.join(OpenTask._fields)} FROM tasks WHERE number > ?"
        first = self.query(f"{query} ORDER BY number {order} LIMIT 1", [self.counts["tasks"]])
        return OpenTask(*first[0]) if first else None

    @property
    def waiting(self) -> list[Any]:
        """Predictions whose labels may still come, in the order of issue: their ids."""
        rows = self.query(f"SELECT id FROM rows WHERE {WAITS} ORDER BY task, number")
        return [json.loads(id) for (id,) in rows]

    @property
    def removed(self) -> dict[str, int]:
        """The last task, and the last round, of which rows were removed."""
        return self.fact("removed") or {"task": 0, "round": 0}

    def issue(self, rows: Sequence[NewRow]) -> None:
        """Put predictions into the task that is filling, and into others when it is full."""
        numbered, left = enumerate(rows, self.counts["issued"] + 1), len(rows)
        into = "INSERT INTO rows (number, task, at, id, content, answer, groups, round, why)"
        most = self.rules.task_rows or math.inf
        while left:
            task = self.filling or self._begin()
            size = int(max(min(most - task.size, left), 0))
            placed = islice(numbered, size)
            self.insert(into, [(number, task.number, self.now, *row) for number, row in placed])
            more = [size, task.number]
            self.execute("UPDATE tasks SET size = size + ? WHERE number = ?", more)
            left -= size
            if task.size + size >= most:
                self._fill(task.number, self.now)
                self.is_due = True
        self._count(issued=len(rows), waiting=len(rows), held=len(rows))
        self.is_due |= self.counts["held"] > self.rules.max_rows

    def _begin(self) -> OpenTask:
        last = max(self.value("SELECT max(number) FROM tasks") or 0, self.counts["tasks"])
        task = OpenTask(last + 1, self.now, 0, None)
        self.execute("INSERT INTO tasks (number, opened_at, size) VALUES (?, ?, 0)", task[:2])
        return task

    def _fill(self, number: int, at: float) -> None:
        self.execute("UPDATE tasks SET full_at = ? WHERE number = ?", [at, number])

    def label(self, labels: Sequence[NewLabel], *, corrects: bool) -> dict[str, Any]:
        """Take labels, inside `writing`; return how many, and the ids of all others.

        A second label replaces the first one, if it `corrects`, while the row's task is open.

        Raises:
            DataError: an id does not wait for a label, where the rules call that an error.
        """
        rows = self.by_id("number, state, task, label", [key for key, *_ in labels])
        taken: dict[int, str] = {}  # by the row's number
        groups: dict[int, str] = {}
        first_but_late: list[int] = []
        repeated, late, unknown = [], [], []  # ids
        first, closed = 0, self.counts["tasks"]
        for key, id, label, group in labels:
            number, state, task, before = rows.get(key, (0, NEVER, 0, None))
            known = taken.get(number, before)
            if state == NEVER or (state == TAKEN and not corrects):
                unknown.append(id)
                continue
            if known is not None and (label == known or not corrects):
                repeated.append(id)
                continue
            if task <= closed:
                late.append(id)
                if known is not None:  # learned already, or about to be with its first label
                    continue
                first_but_late.append(number)
            first += known is None
            taken[number] = label
            if group is not None:
                groups[number] = group
        if self.rules.unknown == "raise" and (unknown or repeated):
            why = [(repeated, "labelled already"), (unknown, "never issued, learned, or expired")]
            raise DataError(
                "expected ids that wait for a label, got "
                f"{' and '.join(f'{some(ids)} ({words})' for ids, words in why if ids)}; nothing "
                "of this call was taken: leave them out, or use unknown='count'"
            )
        self.change(f"label = ?, state = {LABELLED}", taken)
        self.change("groups = json_patch(groups, ?)", groups)
        corrected = len(taken) - first
        self._count(labelled=first, waiting=-first, late=len(first_but_late))
        self._count(corrected=corrected, repeated=len(repeated), unknown=len(unknown))
        if self.rules.late == "drop":
            self.executemany("DELETE FROM rows WHERE number = ?", [(n,) for n in first_but_late])
            self._count(dropped=len(first_but_late), held=-len(first_but_late))
        ids = {"repeated": repeated, "late": late, "unknown": unknown}
        return {"taken": first, "corrected": corrected, **ids}

    def catch_up(self) -> None:
        """Look at the clock; fill, close and expire what is due."""
        self.look()
        self.is_due = False
        if self._due():
            with self.writing():
                while due := self._due():
                    due()

    def _due(self) -> Callable[[], None] | None:
        """Return what has to happen next, to be called."""
        rules, task, oldest = self.rules, self.filling, self.oldest
        if task:
            if rules.task_rows is not None and task.size >= rules.task_rows:
                return partial(self._fill, task.number, self.now)
            if rules.task_seconds is not None and self.now >= task.opened_at + rules.task_seconds:
                return partial(self._fill, task.number, task.opened_at + rules.task_seconds)
        if oldest and oldest.full_at is not None:
            query = f"SELECT 1 FROM rows WHERE {WAITS} AND task = ? LIMIT 1"
            if not self.value(query, [oldest.number]):
                return partial(self.close_task, "complete")
            if rules.wait_seconds is not None and self.now >= oldest.full_at + rules.wait_seconds:
                return partial(self.close_task, "time")
        excess = self.counts["held"] - rules.max_rows
        if excess <= 0:
            return None
        if self.counts["waiting"]:
            return partial(self._expire, excess)
        # With nothing to wait for, what is held can only be learned from.
        close = partial(self.close_task, "room")
        return partial(self._fill, task.number, self.now) if task else close

    def _expire(self, rows: int) -> None:
        """Drop the oldest predictions that nobody has labelled."""
        oldest = f"SELECT number FROM rows WHERE {WAITS} ORDER BY task, number LIMIT ?"
        gone = self.execute(f"DELETE FROM rows WHERE number IN ({oldest})", [rows]).rowcount
        self._count(expired=gone, waiting=-gone, held=-gone)

    def close_task(self, why: str) -> None:
        """Close the oldest task with its labelled rows and the late ones, or these alone."""
        number, _, size, _ = self.oldest or self._begin()
        labelled = f"state < 2 AND state = {LABELLED} AND task"
        late = self.value(f"SELECT count(*) FROM rows WHERE {labelled} < ?", [number])
        take = f"UPDATE rows SET state = {TAKEN}, taken_by = ? WHERE {labelled} <= ?"
        rows = self.execute(take, [number, number]).rowcount
        round = self.counts["rounds"] + 1 if rows else None
        self.execute(
            "UPDATE tasks SET closed_at = ?, why = ?, round = ?, late = ?, unlabelled = ? "
            "WHERE number = ?",
            [self.now, why, round, late, size - (rows - late), number],
        )
        self._count(tasks=1, rounds=1 if rows else 0, held=-rows)

    def close_all(self) -> None:
        """Close every task, with the labels that are here."""
        with self.writing():
            if task := self.filling:
                self._fill(task.number, self.now)
            while self.oldest or self.counts["held"] > self.counts["waiting"]:
                self.close_task("asked")

    def forget(self, learned: int) -> int:
        """Remove what is kept long enough; return how many rows were removed.

        Args:
            learned: rounds up to here are in a saved model; later ones are kept to learn again.
        """
        if self.rules.retain_seconds is None:
            return 0
        before = self.now - self.rules.retain_seconds
        unlearned = self.value("SELECT min(number) FROM tasks WHERE round > ?", [learned])
        end = self.counts["tasks"] if unlearned is None else unlearned - 1
        # Rows are in the order of time: those to go are among the first ones.
        query = "SELECT number FROM rows WHERE at >= ? ORDER BY number LIMIT 1"
        young = self.value(query, [before]) or self.counts["issued"] + 1
        values = [young, end, end]
        old = f"number < ? AND task <= ? AND state != {LABELLED} AND ifnull(taken_by <= ?, TRUE)"
        with self.writing():
            waiting = self.value(f"SELECT count(*) FROM rows WHERE {WAITS} AND {old}", values)
            [(task, round)] = self.query(
                "SELECT max(number), max(round) FROM tasks WHERE number IN "
                f"(SELECT taken_by FROM rows WHERE {old})",
                values,
            )
            gone = self.execute(f"DELETE FROM rows WHERE {old}", values).rowcount
            if task is not None:
                self.set_fact("removed", {"task": task, "round": round})
            # Events are in the order of time as well.
            self.execute(
                "DELETE FROM events WHERE number < (SELECT number FROM events WHERE "
                "json_extract(content, '$.at') >= ? ORDER BY number LIMIT 1)",
                [before],
            )
            if gone:
                self.execute("DELETE FROM tasks WHERE number <= ?", [end - ROUNDS_KEPT])
                self._count(expired=waiting, waiting=-waiting, held=-waiting)
        return gone

    def _count(self, **more: int) -> None:
        self.counts.update(more)
        self.set_fact("at", self.now)


def columns_of(taken: Sequence[tuple]) -> Iterator[list[Any]]:
    """Return the columns of `TAKEN_ROWS`, as plain data."""
    return ([json.loads(row[place] or "null") for row in taken] for place in range(5))
