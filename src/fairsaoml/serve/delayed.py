"""Labels that come later, out of order, or never: predictions now, tasks when they are known.

A task is a run of predictions, cut by number or by time, never by which labels come first: quick
labels are often of one kind. It closes when all its labels are here, or after a wait with those
that are; tasks close in the order of issue, and so do the rows within. Labels that come in another
order therefore change nothing. What a closed task is scored by are its predictions as issued; then
the model learns from it.

With a journal, a process killed at any moment goes on from the same line of code: events are
written before they take effect, and the model learns again what it has not yet been saved with.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from fairsaoml.core.errors import DataError, RunError
from fairsaoml.serve.events import EventLog
from fairsaoml.serve.ledger import ClosedTask, Event, Id, Ledger, Tally
from fairsaoml.serve.rows import taken_apart
from fairsaoml.serve.rules import Rules, closing

__all__ = ["DelayedLabels", "Issued"]

JOURNAL_SCHEMA = 1
MOST_ROWS = 100_000  # held in memory, unless said otherwise


class Issued(NamedTuple):
    """Predictions, and the ids to label them by."""

    ids: list[Id]
    prediction: Any  # as the model gave them
    probability: Any | None  # of a model that has `predict_proba`


class DelayedLabels:
    """A model that predicts now and learns when the labels are here.

    `model` has `predict(X)`, and `predict_proba(X)` if it likes, and learns a task by
    `partial_fit(X, y, sensitive_features=...)`, without the last where none were issued.

    - A task is full with `task_rows` predictions, or `task_seconds` after its first one.
    - A full task closes when all its labels are here, or after `wait_seconds` with those that are.
      A task without any label is closed, and nothing is learned from it.
    - A label whose task is closed is late, and counted. `late="next"`: its row goes into the next
      task to close. `late="drop"`: it is left out.
    - At most `max_rows` rows are held; beyond it the oldest predictions without a label expire,
      are counted, and are no longer waited for.
    - A label for an id that is not waiting (never issued, labelled before, expired) is an error,
      and nothing of that call is taken. `unknown="count"`: it is counted, the rest is taken.

    Time is the `clock`'s, in seconds; it is looked at in every call, and `tick` does nothing else.
    `on_close` is called with every closed task before the model learns from it, and again for all
    of them when a journal is read: a restarted process has the same scores.

    `journal` is a file: empty or absent, it is begun; else all in it is read and gone on with. The
    model given must then be the one the journal was begun with, or one saved since, however old:
    `n_rounds_` tells what it has learned. Of a model that has no such number, `learned` is how many
    of the journal's rounds it has. A DelayedLabels has one owner: one thread, one process.

    >>> class Majority:
    ...     n_rounds_, seen = 0, []
    ...     def predict(self, X):
    ...         return [int(2 * sum(self.seen) > len(self.seen))] * len(X)
    ...     def partial_fit(self, X, y, sensitive_features=None):
    ...         self.seen, self.n_rounds_ = [*self.seen, *y], self.n_rounds_ + 1
    >>> tasks = []
    >>> delayed = DelayedLabels(Majority(), task_rows=2, on_close=tasks.append)
    >>> ids, decided, _ = delayed.issue([[0.1], [0.2], [0.3]])
    >>> ids, decided
    ([1, 2, 3], [0, 0, 0])
    >>> delayed.label([3, 2], [1, 1])  # the first task still waits for 1
    >>> delayed.waiting, tasks
    ([1], [])
    >>> delayed.label(1, 1)
    >>> tasks[0].ids, tasks[0].y.tolist(), tasks[0].prediction.tolist()
    ([1, 2], [1, 1], [0, 0])
    >>> delayed.issue([[0.4]]).prediction
    [1]
    """

    def __init__(
        self,
        model: Any,
        *,
        task_rows: int | None = None,
        task_seconds: float | None = None,
        wait_seconds: float | None = None,
        late: Literal["next", "drop"] = "next",
        unknown: Literal["raise", "count"] = "raise",
        max_rows: int = MOST_ROWS,
        clock: Callable[[], float] = time.time,
        on_close: Callable[[ClosedTask], None] | None = None,
        journal: Path | str | None = None,
        learned: int | None = None,
    ) -> None:
        self.model = model
        self._rules = Rules(
            task_rows=task_rows,
            task_seconds=task_seconds,
            wait_seconds=wait_seconds,
            late=late,
            unknown=unknown,
            max_rows=max_rows,
        )
        self._clock, self._on_close = clock, on_close
        self._ledger = Ledger()
        self._log = None if journal is None else EventLog(Path(journal))
        # Closed, but not yet scored and learned: empty between calls, unless one of them failed.
        self._unlearned: deque[ClosedTask] = deque()
        self._scored = 0  # tasks
        self._learned: int | None = 0  # rounds of this journal; None where nobody knows
        try:
            self._begin(learned)
        except BaseException:
            self.close()
            raise

    def issue(
        self, X: Any, *, sensitive_features: Any = None, ids: Sequence[Id] | None = None
    ) -> Issued:
        """Predict rows; their labels are waited for under these ids, or under their numbers."""
        now = self._settle()
        ledger = self._ledger
        layout, x = taken_apart(X)
        groups = None if sensitive_features is None else taken_apart(sensitive_features)
        layouts = [layout, groups and groups[0]]
        if ledger.layouts and layouts != ledger.layouts:
            raise DataError(
                f"expected rows and sensitive features as in the first call, {ledger.layouts}, "
                f"got {layouts}; pass them alike in every call"
            )
        first = ledger.tally.issued + 1
        names = _listed(range(first, first + len(x)) if ids is None else ids)
        rows = {len(x), len(names), len(x) if groups is None else len(groups[1])}
        if len(rows) > 1 or len(x) > self._rules.max_rows:
            raise DataError(
                f"expected at most max_rows={self._rules.max_rows} rows, an id and sensitive "
                f"features for each, got {len(x)} rows, {len(names)} ids and sensitive features "
                f"for {len(groups[1]) if groups else 'none'}; pass one of each per row"
            )
        known = [id for id in names if id in ledger.held]
        if known or len(set(names)) < len(names):
            raise DataError(
                f"expected ids that are not in use, got {_some(known or names)}; give every "
                "prediction an id of its own"
            )
        prediction = self.model.predict(X)
        ask = getattr(self.model, "predict_proba", None)
        probability = ask(X) if ask else None
        event = {
            "tasks": self._rules.cut(ledger, len(x)),
            "ids": names,
            "x": x,
            "sensitive": groups and groups[1],
            "prediction": np.asarray(prediction).tolist(),
            "probability": None if probability is None else np.asarray(probability).tolist(),
        }
        if x:
            once = {} if ledger.layouts else {"layouts": layouts}
            self._record("issued", now, {**event, **once})
            self._settle()
        return Issued(ids=names, prediction=prediction, probability=probability)

    def label(self, ids: Id | Sequence[Id], y: Any) -> None:
        """Take labels of predictions, in any order, of one or of many.

        They are written down before the model learns. Should it fail then, they are not to be
        sent again: the next call, of whatever kind, lets it learn.
        """
        now = self._settle()
        single = isinstance(ids, int | str | np.integer)
        names, labels = _listed([ids] if single else ids), np.asarray([y] if single else y).tolist()
        if len(names) != len(labels) or any(_is_missing(label) for label in labels):
            raise DataError(
                f"expected a label for each of {len(names)} ids, got {_some(labels)}; leave out "
                "the ids whose labels are not known yet"
            )
        ledger = self._ledger
        taken: dict[Id, Any] = {}
        unknown: list[Id] = []
        repeated: list[Id] = []
        for id, label in zip(names, labels, strict=True):
            if id in ledger.waiting and id not in taken:
                taken[id] = label
            else:
                (repeated if id in ledger.held else unknown).append(id)
        if self._rules.unknown == "raise" and (unknown or repeated):
            why = [(repeated, "labelled already"), (unknown, "never issued, learned, or expired")]
            raise DataError(
                "expected ids that wait for a label, got "
                f"{' and '.join(f'{_some(ids)} ({words})' for ids, words in why if ids)}; nothing "
                "of this call was taken: leave them out, or use unknown='count'"
            )
        late = [id for id in taken if ledger.is_late(ledger.waiting[id])]
        event: Event = {"ids": list(taken), "y": list(taken.values())}
        if late:
            event |= {"late": late, "rule": self._rules.late}
        if unknown or repeated:
            event |= {"unknown": len(unknown), "repeated": len(repeated)}
        if names:
            self._record("labelled", now, event)
            self._settle()

    def tick(self) -> None:
        """Close what is due; for the time in which nothing else happens."""
        self._settle()

    def close_all(self) -> None:
        """Close every task now, with the labels that are here: the stream has ended."""
        now = self._settle()
        if self._ledger.filling:
            self._record("full", now, {"task": self._ledger.filling.number})
        while self._ledger.tasks or self._ledger.late:
            self._record("closed", now, closing(self._ledger, "asked"))
        self._learn()

    @property
    def tally(self) -> Tally:
        """How many predictions, labels and tasks there have been, and what became of them."""
        return self._ledger.tally

    @property
    def waiting(self) -> list[Id]:
        """Predictions whose labels may still come, in the order of issue."""
        return list(self._ledger.waiting)

    @property
    def held(self) -> int:
        """Rows in memory: at most `max_rows`."""
        return len(self._ledger.held)

    def close(self) -> None:
        """Let go of the journal; its file is all that is needed to go on."""
        if self._log:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, learned: int | None) -> None:
        """Go on from the journal, or begin it."""
        for event in self._log.read() if self._log else ():
            self._read_again(event, learned)
        rounds = self._ledger.tally.rounds
        if not self._ledger.begun:
            begun = {
                "schema": JOURNAL_SCHEMA,
                "rounds": int(getattr(self.model, "n_rounds_", 0)),
                "settings": asdict(self._rules),
            }
            self._record("begun", self._now(), begun)
        elif self._learned is not None and self._learned > rounds:
            raise _another_model(self._learned, rounds)
        self._settle()

    def _now(self) -> float:
        return max(float(self._clock()), self._ledger.at)  # a clock may be set back

    def _settle(self) -> float:
        """Let everything happen that is due by now, and learn from it."""
        now = self._now()
        while due := self._rules.due(self._ledger, now):
            self._record(*due)
        self._learn()
        return now

    def _record(self, kind: str, at: float, content: Event) -> None:
        """Write an event down, then let it happen."""
        event = {"event": kind, "at": at, **content}
        if self._log:
            self._log.append(event)
            if kind == "closed":
                self._log.sync()  # a model saved from now on must not know more than the journal
        if closed := self._ledger.apply(event):
            self._unlearned.append(closed)

    def _read_again(self, event: Event, learned: int | None) -> None:
        """Let an event of the journal happen again."""
        if not self._ledger.begun:
            if event.get("event") != "begun" or event.get("schema") != JOURNAL_SCHEMA:
                raise RunError(
                    f"expected a journal of delayed labels of schema {JOURNAL_SCHEMA}, got one "
                    f"that begins with {str(event)[:80]}; give another file"
                )
            rounds = getattr(self.model, "n_rounds_", None)
            known = learned if rounds is None or learned is not None else rounds - event["rounds"]
            if known is not None and known < 0:
                raise _another_model(known, 0)
            self._learned = known
        if closed := self._ledger.apply(event):
            self._unlearned.append(closed)
            self._learn()

    def _learn(self) -> None:
        """Score closed tasks and learn from them, each once. What fails is tried again."""
        while self._unlearned:
            task = self._unlearned[0]
            if self._on_close and task.number > self._scored:
                self._on_close(task)
            self._scored = task.number
            if task.round is not None:
                if self._learned is None:
                    raise RunError(
                        "expected learned=, got none: the model has no n_rounds_ to tell which "
                        "rounds of the journal it has learned; say how many"
                    )
                if task.round > self._learned:
                    groups = task.sensitive_features
                    also = {} if groups is None else {"sensitive_features": groups}
                    self.model.partial_fit(task.X, task.y, **also)
                    self._learned = task.round
            self._unlearned.popleft()


def _another_model(learned: int, rounds: int) -> RunError:
    return RunError(
        f"expected a model that has learned at most the {rounds} rounds of the journal since it "
        f"began, got one that has learned {learned}; give the model that the journal was begun "
        "with, or one saved since"
    )


def _listed(ids: Any) -> list[Id]:
    """Ids as plain values."""
    names = [id.item() if isinstance(id, np.generic) else id for id in ids]
    odd = [id for id in names if not isinstance(id, int | str) or isinstance(id, bool)]
    if odd:
        raise DataError(f"expected ids that are numbers or words, got {_some(odd)}; convert them")
    return names


def _is_missing(label: Any) -> bool:
    return label is None or label != label


def _some(values: Sequence[Any]) -> str:
    """A few values for a message."""
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")
