"""Labels that arrive later, out of order, or never: predict now, learn when they are known.

A task is a sequence of predictions, cut by number or by time, never by which labels come first:
quick labels are often of one kind. It closes when all its labels are here, or after a wait with
those that are; tasks close in the order of issue, with their rows in that order. So the order in
which labels arrive changes nothing. A closed task is scored by its predictions as issued; then the
model learns from it.

With a journal, a process that is killed at any moment continues where it was: events are written
before they take effect, and the model learns again what it had not been saved with.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from fairsaoml.core.errors import DataError, RunError
from fairsaoml.serve.events import Event, EventLog
from fairsaoml.serve.ledger import ClosedTask, Id, Ledger, Tally
from fairsaoml.serve.rows import to_rows
from fairsaoml.serve.task_rules import TaskRules, closing
from fairsaoml.serve.teaching import last_step, require_learner, teach

__all__ = ["DelayedLabels", "Issued"]

JOURNAL_SCHEMA = 1
MOST_ROWS = 100_000  # held in memory, by default


class Issued(NamedTuple):
    """Predictions, and the ids to label them by."""

    ids: list[Id]
    prediction: Any  # as the model gave them
    probability: Any | None  # of a model that has `predict_proba`


class DelayedLabels:
    """A model that predicts now and learns when the labels are here.

    It has one owner: one thread of one process.

    Args:
        model: has `predict(X)`, perhaps `predict_proba(X)`, and learns a task with
            `partial_fit(X, y, sensitive_features=...)`, without the last if none were issued; or
            a scikit-learn pipeline of fitted preprocessing that ends in such a model.
        task_rows: a task is full with so many predictions,
        task_seconds: or so long after its first one.
        wait_seconds: a full task closes when all its labels are here, or after so long with those
            that are. Nothing is learned from a task without any label.
        late: a label whose task is closed is late, and counted. "next": its row goes into the next
            task to close. "drop": it is left out.
        unknown: a label for an id that is not waiting (never issued, labelled before, expired) is
            an error, and nothing of that call is taken. "count": it is counted, the rest is taken.
        max_rows: at most so many rows are held; beyond that the oldest predictions without a label
            expire, are counted, and are no longer waited for.
        clock: the time in seconds; every call looks at it, and `tick` does nothing else.
        on_close: called with every closed task before the model learns from it, and again for all
            of them when a journal is read: a restarted process has the same scores.
        journal: a file; empty or absent, it is begun, else its events are read and continued. The
            model must then be the one the journal was begun with, or one saved since, however old:
            its `n_rounds_` tells what it has learned.
        learned: how many of the journal's rounds a model without `n_rounds_` has learned.

    Raises:
        ConfigError: values that do not fit together, or a model that cannot learn.
        RunError: a damaged journal, or another model than the journal's.

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
        require_learner(model)
        self.model = model
        self._rules = TaskRules(
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
        """Predict rows and wait for their labels.

        Args:
            X: rows, laid out as in the first call.
            sensitive_features: one row for each.
            ids: to label the predictions by; their numbers, by default.

        Returns:
            The ids, and the predictions as the model gave them.

        Raises:
            DataError: rows that differ from the first call's, or ids in use.
        """
        now = self._catch_up()
        ledger = self._ledger
        layout, x = to_rows(X)
        groups = None if sensitive_features is None else to_rows(sensitive_features)
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
            self._catch_up()
        return Issued(ids=names, prediction=prediction, probability=probability)

    def label(self, ids: Id | Sequence[Id], y: Any) -> None:
        """Take labels of one or many predictions, in any order.

        They are recorded before the model learns. If it fails then, do not send them again: the
        next call, of whatever kind, lets it learn.

        Args:
            ids: as `issue` returned them.
            y: a label for each.

        Raises:
            DataError: labels that are missing, or ids that do not wait for one.
        """
        now = self._catch_up()
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
            self._catch_up()

    def tick(self) -> None:
        """Close what is due; for times in which nothing else is called."""
        self._catch_up()

    def close_all(self) -> None:
        """Close every task now, with the labels that are here: the stream has ended."""
        now = self._catch_up()
        if self._ledger.filling:
            self._record("full", now, {"task": self._ledger.filling.number})
        while self._ledger.tasks or self._ledger.late:
            self._record("closed", now, closing(self._ledger, "asked"))
        self._learn()

    @property
    def tally(self) -> Tally:
        """How many predictions, labels and tasks there have been so far."""
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
        """Close the journal; its file is all that is needed to continue."""
        if self._log:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, learned: int | None) -> None:
        """Continue from the journal, or begin it."""
        for event in self._log.read() if self._log else ():
            self._replay(event, learned)
        rounds = self._ledger.tally.rounds
        if not self._ledger.begun:
            begun = {
                "schema": JOURNAL_SCHEMA,
                "rounds": int(getattr(last_step(self.model), "n_rounds_", 0)),
                "settings": asdict(self._rules),
            }
            self._record("begun", self._now(), begun)
        elif self._learned is not None and self._learned > rounds:
            raise _another_model(self._learned, rounds)
        self._catch_up()

    def _now(self) -> float:
        return max(float(self._clock()), self._ledger.at)  # a clock may be set back

    def _catch_up(self) -> float:
        """Apply every event that is due by now, learn from the closed tasks, return the time."""
        now = self._now()
        while due := self._rules.due(self._ledger, now):
            self._record(*due)
        self._learn()
        return now

    def _record(self, kind: str, at: float, content: Event) -> None:
        """Write an event to the journal, then apply it."""
        event = {"event": kind, "at": at, **content}
        if self._log:
            self._log.append(event)
            if kind == "closed":
                self._log.sync()  # a model saved from now on must not know more than the journal
        self._apply(event)

    def _apply(self, event: Event) -> None:
        if closed := self._ledger.apply(event):
            self._unlearned.append(closed)

    def _replay(self, event: Event, learned: int | None) -> None:
        """Apply an event of the journal again."""
        if not self._ledger.begun:
            if event.get("event") != "begun" or event.get("schema") != JOURNAL_SCHEMA:
                raise RunError(
                    f"expected a journal of delayed labels of schema {JOURNAL_SCHEMA}, got one "
                    f"that begins with {str(event)[:80]}; give another file"
                )
            rounds = getattr(last_step(self.model), "n_rounds_", None)
            known = learned if rounds is None or learned is not None else rounds - event["rounds"]
            if known is not None and known < 0:
                raise _another_model(known, 0)
            self._learned = known
        self._apply(event)
        self._learn()

    def _learn(self) -> None:
        """Score closed tasks and learn from them, each once; what failed is tried again."""
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
                    teach(self.model, task.X, task.y, **also)
                    self._learned = task.round
            self._unlearned.popleft()


def _another_model(learned: int, rounds: int) -> RunError:
    return RunError(
        f"expected a model that has learned at most the {rounds} rounds of the journal since it "
        f"began, got one that has learned {learned}; give the model that the journal was begun "
        "with, or one saved since"
    )


def _listed(ids: Any) -> list[Id]:
    """Return ids as plain values."""
    names = [id.item() if isinstance(id, np.generic) else id for id in ids]
    odd = [id for id in names if not isinstance(id, int | str) or isinstance(id, bool)]
    if odd:
        raise DataError(f"expected ids that are numbers or words, got {_some(odd)}; convert them")
    return names


def _is_missing(label: Any) -> bool:
    return label is None or label != label


def _some(values: Sequence[Any]) -> str:
    """Return a few values for a message."""
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")
