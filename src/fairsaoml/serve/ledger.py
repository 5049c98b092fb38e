"""Predictions and their labels, as a function of events: the same events, the same ledger.

Nothing is decided here. `serve.delayed` decides what happens next and records it as an event; the
ledger applies it, the first time and again when a journal is read.

    issued    rows and their predictions go into the newest task; where others begin, it is full
    full      a task takes no more predictions
    labelled  labels have come, on time or after their task was closed (late)
    expired   predictions that nobody labelled are dropped
    closed    the oldest task's labelled rows, in the order of issue, with the late ones
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.errors import RunError
from fairsaoml.serve.events import Event
from fairsaoml.serve.rows import Layout, from_rows

__all__ = ["ClosedTask", "Held", "Id", "Ledger", "OpenTask", "Tally"]

Id = int | str


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


class ClosedTask(NamedTuple):
    """A task's labelled rows in the order of issue, each with its prediction as issued."""

    number: int  # 1, 2, 3, ...
    round: int | None  # None where no label came: nothing was learned
    ids: list[Id]
    X: Any
    y: np.ndarray
    sensitive_features: Any
    prediction: np.ndarray
    probability: np.ndarray | None
    late: int  # rows of earlier tasks among these
    unlabelled: int  # predictions of this task without a label when it closed
    why: str  # complete, time, room, asked


@dataclass(slots=True)
class Held:
    """A prediction that is waiting for its label, or with its label for its task."""

    number: int  # in the order of issue
    id: Id
    task: int
    x: Any
    sensitive: Any
    prediction: Any
    probability: Any
    label: Any = None  # a label is never None


@dataclass(slots=True)
class OpenTask:
    """A task that predictions go into (until it is full) and labels (until it is closed)."""

    number: int
    opened_at: float
    rows: list[Held] = field(default_factory=list)
    size: int = 0  # predictions issued into it, expired ones included
    waiting: int = 0  # of them neither labelled nor expired
    full_at: float | None = None


class Ledger:
    """The predictions and labels that are held now."""

    def __init__(self) -> None:
        self.begun: Event = {}
        self.at = 0.0  # time of the last event; it never runs backwards
        self.tally = Tally()
        self.held: dict[Id, Held] = {}
        self.waiting: OrderedDict[Id, Held] = OrderedDict()  # in the order of issue
        self.tasks: deque[OpenTask] = deque()  # oldest first; only the last is not full
        self.late: list[Held] = []  # labelled after their task, for the next one to close
        self.layouts: list[Layout | None] = []  # of features and sensitive features

    @property
    def filling(self) -> OpenTask | None:
        """The task that takes predictions now."""
        return self.tasks[-1] if self.tasks and self.tasks[-1].full_at is None else None

    @property
    def next_task(self) -> int:
        """The number of a task yet to begin."""
        return self.tally.tasks + len(self.tasks) + 1

    def is_late(self, row: Held) -> bool:
        """Whether a prediction's task is closed: tasks close in order."""
        return row.task <= self.tally.tasks

    def rows_to_close(self) -> list[Held]:
        """Return the rows that the oldest task would have if it closed now."""
        rows = self.tasks[0].rows if self.tasks else []
        labelled = [row for row in rows if row.label is not None]
        return sorted([*labelled, *self.late], key=lambda row: row.number)

    def apply(self, event: Event) -> ClosedTask | None:
        """Apply an event; return the task that it closes, if it does.

        Raises:
            RunError: an event of another version, or one that contradicts those before.
        """
        kind = event["event"]
        self.at = max(self.at, event["at"])
        if kind == "begun":
            self.begun = event
        elif kind == "issued":
            self._issued(event)
        elif kind == "full":
            self.tasks[-1].full_at = event["at"]
        elif kind == "labelled":
            self._labelled(event)
        elif kind == "expired":
            self._expired(event["ids"])
        elif kind == "closed":
            return self._closed(event)
        else:
            raise RunError(
                f"expected an event of this version of fairsaoml, got {kind!r}; upgrade to continue"
            )
        return None

    def _issued(self, event: Event) -> None:
        if "layouts" in event:  # once, with the first rows
            self.layouts = [plain and Layout.from_json(plain) for plain in event["layouts"]]
        number = self.tally.issued
        rows = zip(
            event["ids"],
            event["x"],
            event["sensitive"] or [None] * len(event["ids"]),
            event["prediction"],
            event["probability"] or [None] * len(event["ids"]),
            strict=True,
        )
        for task_number, size in event["tasks"]:
            task = self.filling
            if task is None or task.number != task_number:
                if task is not None:
                    task.full_at = event["at"]
                task = OpenTask(number=task_number, opened_at=event["at"])
                self.tasks.append(task)
            for _ in range(size):
                number += 1
                id, x, sensitive, prediction, probability = next(rows)
                row = Held(number, id, task.number, x, sensitive, prediction, probability)
                self.held[id] = self.waiting[id] = row
                task.rows.append(row)
            task.size += size
            task.waiting += size
        self._count(issued=len(event["ids"]))

    def _labelled(self, event: Event) -> None:
        late, drop = set(event.get("late", [])), event.get("rule") == "drop"
        open_tasks = {task.number: task for task in self.tasks}
        for id, label in zip(event["ids"], event["y"], strict=True):
            row = self.waiting.pop(id)
            row.label = label
            if id not in late:
                open_tasks[row.task].waiting -= 1
            elif drop:
                del self.held[id]
            else:
                self.late.append(row)
        self._count(
            labelled=len(event["ids"]),
            late=len(late),
            dropped=len(late) if drop else 0,
            unknown=event.get("unknown", 0),
            repeated=event.get("repeated", 0),
        )

    def _expired(self, ids: list[Id]) -> None:
        open_tasks = {task.number: task for task in self.tasks}
        touched = {}
        for id in ids:
            row = self.waiting.pop(id)
            del self.held[id]
            if not self.is_late(row):
                open_tasks[row.task].waiting -= 1
                touched[row.task] = open_tasks[row.task]
        gone = set(ids)
        for task in touched.values():
            task.rows = [row for row in task.rows if row.id not in gone]
        self._count(expired=len(ids))

    def _closed(self, event: Event) -> ClosedTask:
        rows = self.rows_to_close()
        # Late rows may be all there is.
        task = self.tasks.popleft() if self.tasks else OpenTask(self.next_task, event["at"])
        if event["ids"] != [row.id for row in rows] or event["task"] != task.number:
            raise RunError(
                f"expected task {task.number} to close with {len(rows)} rows, got task "
                f"{event['task']} with {len(event['ids'])} in the journal; it was changed by "
                "hand or belongs to several processes: continue from an intact copy"
            )
        self.late = []
        for row in rows:
            del self.held[row.id]
        self._count(tasks=1, rounds=1 if rows else 0)
        layout, sensitive = self.layouts
        return ClosedTask(
            number=task.number,
            round=self.tally.rounds if rows else None,
            ids=event["ids"],
            X=from_rows(layout or Layout("numbers"), [row.x for row in rows]),
            y=np.asarray([row.label for row in rows]),
            sensitive_features=sensitive and from_rows(sensitive, [row.sensitive for row in rows]),
            prediction=np.asarray([row.prediction for row in rows]),
            probability=np.asarray([row.probability for row in rows])
            if rows and rows[0].probability is not None
            else None,
            late=event["late"],
            unlabelled=event["unlabelled"],
            why=event["why"],
        )

    def _count(self, **more: int) -> None:
        self.tally = Tally(
            **{name: have + more.get(name, 0) for name, have in self.tally._asdict().items()}
        )
