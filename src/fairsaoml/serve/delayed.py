"""Labels that arrive later, out of order, or never: predict now, learn when they are known.

A task is a sequence of predictions, cut by number or by time, never by which labels come first:
quick labels are often of one kind. It closes when all its labels are here, or after a wait with
those that are; tasks close in the order of issue, with their rows in that order. So the order in
which labels arrive changes nothing. A closed task is scored by its predictions as issued; then the
model learns from it.

With a journal, a process that is killed at any moment continues where it was: what happens is
committed to a store before it takes effect, and the model learns again what it had not been saved
with.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import narwhals as nw
import numpy as np

from fairsaoml.core.errors import ConfigError, DataError, RunError, warn
from fairsaoml.serve.store import some, to_text
from fairsaoml.serve.tasks import MOST_ROWS, TAKEN_ROWS, Tally, TaskRules, Tasks, columns_of

Id = int | str
Layout = list[Any]  # kind (numbers, objects, frame, series, columns), names, the frame's library


class Issued(NamedTuple):
    """Predictions, and the ids to label them by."""

    ids: list[Id]
    prediction: Any  # as the model gave them
    probability: Any | None  # of a model that has `predict_proba`


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
            that the journal holds when it is opened: a restarted process has the same scores.
        journal: a file; empty or absent, it is begun, else it is continued. The model must then
            be the one the journal was begun with, or one saved since: its `n_rounds_` tells what
            it has learned.
        retain_seconds: a closed task's rows leave the journal so long after their prediction, when
            `compact` is called; by default they stay, and a model may be as old as the journal.
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
        retain_seconds: float | None = None,
    ) -> None:
        self.model = model
        self._on_close = on_close
        rules = TaskRules(
            task_rows, task_seconds, wait_seconds, late, unknown, max_rows, retain_seconds
        )
        self._tasks = Tasks(None if journal is None else Path(journal), rules, clock)
        self._scored = self._done = 0  # tasks; done when they are learned too
        self._learned: int | None = 0  # rounds of this journal; None where nobody knows
        try:
            self._begin(learned)
        except BaseException:
            self.close()
            raise

    @property
    def model(self) -> Any:
        """What predicts and learns."""
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._preprocessing, self._learner = _parts(model)
        self._model = model

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
            DataError: rows that differ from the first call's, groups that the model cannot learn
                from, or ids in use.
        """
        self.tick()
        layout, x = to_rows(X)
        group_layout, groups = None, [None] * len(x)
        if sensitive_features is not None:
            group_layout, groups = to_rows(sensitive_features)
        layouts, first_layouts = [layout, group_layout], self._tasks.fact("layouts")
        if first_layouts and layouts != first_layouts:
            raise DataError(
                f"expected rows and sensitive features as in the first call, {first_layouts}, "
                f"got {layouts}; pass them alike in every call, or begin another journal"
            )
        first, most = self.tally.issued + 1, self._tasks.rules.max_rows
        names = _listed(range(first, first + len(x)) if ids is None else ids)
        if not len(x) == len(names) == len(groups) or len(x) > most:
            raise DataError(
                f"expected at most max_rows={most} rows, an id and sensitive features for each, "
                f"got {len(x)} rows, {len(names)} ids and sensitive features for "
                f"{'none' if group_layout is None else len(groups)}; pass one of each per row"
            )
        self._check_groups(X, sensitive_features)
        texts = [to_text(name) for name in names]
        open_rows = {id for id, (state,) in self._tasks.by_id("state", texts).items() if state < 2}
        known = [name for name, text in zip(names, texts, strict=True) if text in open_rows]
        if known or len(set(names)) < len(names):
            raise DataError(
                f"expected ids that are not in use, got {some(known or names)}; give every "
                "prediction an id of its own"
            )
        prediction, probability = self.model.predict(X), None
        chances = [None] * len(x)
        if hasattr(self.model, "predict_proba"):
            probability = self.model.predict_proba(X)
            chances = np.asarray(probability).tolist()
        answers = zip(np.asarray(prediction).tolist(), chances, strict=True)
        if x:
            columns = (map(to_text, column) for column in (x, answers, groups))
            with self._tasks.writing():
                self._tasks.set_fact("layouts", layouts)
                self._tasks.issue([(*row, None, None) for row in zip(texts, *columns, strict=True)])
            self.tick()
        return Issued(ids=names, prediction=prediction, probability=probability)

    def label(self, ids: Id | Sequence[Id], y: Any) -> None:
        """Take labels of one or many predictions, in any order.

        They are recorded before the model learns. If it fails then, do not send them again: the
        next call, of whatever kind, lets it learn.

        Args:
            ids: as `issue` returned them.
            y: a label for each.

        Raises:
            DataError: labels that are missing or none of the model's, or ids that do not wait for
                one.
        """
        self.tick()
        single = isinstance(ids, int | str | np.integer)
        names, labels = _listed([ids] if single else ids), np.asarray([y] if single else y).tolist()
        if len(names) != len(labels) or any(label is None or label != label for label in labels):
            raise DataError(
                f"expected a label for each of {len(names)} ids, got {some(labels)}; leave out "
                "the ids whose labels are not known yet"
            )
        pairs = list(zip(names, labels, strict=True))
        if wrong := [f"{label!r} for id {id!r}" for id, label in pairs if not self._takes(label)]:
            raise DataError(
                f"expected labels among {some(self._known_labels())}, got "
                f"{', '.join(wrong[:5])}; correct them: nothing of this call was taken"
            )
        if names:
            with self._tasks.writing():
                taken = [(to_text(id), id, to_text(label), None) for id, label in pairs]
                self._tasks.label(taken, corrects=False)
            self.tick()

    def tick(self) -> None:
        """Close what is due, and learn from it; for times in which nothing else is called."""
        self._tasks.catch_up()
        self._learn()

    def close_all(self) -> None:
        """Close every task now, with the labels that are here: the stream has ended."""
        self.tick()
        self._tasks.close_all()
        self._learn()

    def compact(self, saved_rounds: int) -> int:
        """Remove rows from the journal that are older than `retain_seconds`.

        Args:
            saved_rounds: rounds of this journal that a saved model has learned; the rows of later
                ones stay.

        Returns:
            How many rows were removed.
        """
        self.tick()
        return self._tasks.forget(saved_rounds)

    @property
    def tally(self) -> Tally:
        """How many predictions, labels and tasks there have been so far."""
        return Tally(**{name: self._tasks.counts[name] for name in Tally._fields})

    @property
    def waiting(self) -> list[Id]:
        """Predictions whose labels may still come, in the order of issue."""
        return self._tasks.waiting

    @property
    def held(self) -> int:
        """Rows that wait for their label, or with it for their task: at most `max_rows`."""
        return self._tasks.counts["held"]

    def close(self) -> None:
        """Close the journal; its file is all that is needed to continue."""
        self._tasks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, learned: int | None) -> None:
        """Continue from the journal, or begin it."""
        rounds, begun = getattr(self._learner, "n_rounds_", None), self._tasks.fact("rounds_before")
        if begun is None:
            with self._tasks.writing():
                self._tasks.set_fact("rounds_before", int(rounds or 0))
        else:
            known = learned if rounds is None or learned is not None else rounds - begun
            removed = self._tasks.removed
            if known is not None and not removed["round"] <= known <= self.tally.rounds:
                raise RunError(
                    f"expected a model that has learned {removed['round']} to {self.tally.rounds} "
                    f"rounds of the journal, got one that has learned {known}; give the model that "
                    "the journal was begun with, or one saved since its rows were removed"
                )
            self._learned, self._done = known, removed["task"]
            labels = self._tasks.query("SELECT DISTINCT label FROM rows WHERE label IS NOT NULL")
            found = [json.loads(label) for (label,) in labels]
            if len(found) > 1 and not any(map(self._takes, found)):
                raise RunError(
                    f"expected the model of the journal, whose labels are {some(found)}, got one "
                    f"of the labels {some(self._known_labels())}; give the model that the "
                    "journal was begun with"
                )
        self.tick()

    def _learn(self) -> None:
        """Score closed tasks and learn from them, each once; what failed is tried again."""
        while self._done < self.tally.tasks:
            task = self._closed(self._done + 1)
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
                    groups, before = task.sensitive_features, self._preprocessing
                    try:
                        self._check_groups(task.X, groups)
                    except DataError as problem:
                        raise RunError(
                            f"{problem}. All rows of {self._tasks.path} are so: begin another "
                            "journal, or give the model that it was begun with"
                        ) from None
                    also = {} if groups is None else {"sensitive_features": groups}
                    X = task.X if before is None else before.transform(task.X)
                    self._learner.partial_fit(X, task.y, **also)
                    self._learned = task.round
            self._done = task.number
            if self._tasks.path is None:  # nobody will ask for it again
                with self._tasks.writing():
                    self._tasks.execute("DELETE FROM rows WHERE taken_by = ?", [task.number])
                    self._tasks.execute("DELETE FROM tasks WHERE number = ?", [task.number])

    def _check_groups(self, X: Any, sensitive_features: Any) -> None:
        """Raise DataError for groups that the model says it cannot learn from."""
        if hasattr(self._learner, "check_groups"):
            self._learner.check_groups(X, sensitive_features)

    def _takes(self, label: Any) -> bool:
        """Whether the model can learn from a label; yes where it does not tell its labels."""
        if hasattr(self._learner, "takes_label"):
            return self._learner.takes_label(label)
        known = self._known_labels()
        return not known or label in known

    def _known_labels(self) -> list[Any]:
        classes = getattr(self._learner, "classes_", None)
        return [] if classes is None else np.asarray(classes).tolist()

    def _closed(self, number: int) -> ClosedTask:
        """Return a closed task, its rows in the layout in which they were given."""
        taken = self._tasks.query(TAKEN_ROWS, [number])
        known = {label: self._takes(json.loads(label)) for label in {label for *_, label in taken}}
        if odd := [f"{label} for id {id}" for id, *_, label in taken if not known[label]]:
            warn(
                f"{len(odd)} rows of task {number} are left out, as their labels are none of the "
                f"model's, {some(self._known_labels())}: {', '.join(odd[:5])}"
            )
        rows = [row for row in taken if known[row[-1]]]
        ids, contents, answers, groups, labels = columns_of(rows)
        chances = [chance for _, chance in answers]
        query = "SELECT round, late, unlabelled, why FROM tasks WHERE number = ?"
        [(round, late, unlabelled, why)] = self._tasks.query(query, [number])
        if not rows and (round or 0) > (self._learned or 0):  # all labels were refused
            round = None  # as of a task without labels
            with self._tasks.writing():
                self._tasks.execute("UPDATE tasks SET round = NULL WHERE number = ?", [number])
                self._tasks.execute("UPDATE tasks SET round = round - 1 WHERE number > ?", [number])
                self._tasks.counts["rounds"] -= 1
        layout, sensitive = self._tasks.fact("layouts")
        return ClosedTask(
            number=number,
            round=round,
            ids=ids,
            X=from_rows(layout, contents),
            y=np.asarray(labels),
            sensitive_features=sensitive and from_rows(sensitive, groups),
            prediction=np.asarray([prediction for prediction, _ in answers]),
            probability=np.asarray(chances) if rows and chances[0] is not None else None,
            late=late,
            unlabelled=unlabelled,
            why=why,
        )


def _listed(ids: Any) -> list[Id]:
    """Return ids as plain values."""
    names = [id.item() if isinstance(id, np.generic) else id for id in ids]
    odd = [id for id in names if not isinstance(id, int | str) or isinstance(id, bool)]
    if odd:
        raise DataError(f"expected ids that are numbers or words, got {some(odd)}; convert them")
    return names


def _parts(model: Any) -> tuple[Any, Any]:
    """Return what comes before the last step of a pipeline, or None, and what learns.

    Refuses a model that cannot predict, cannot learn, or whose preprocessing is not fitted.

    >>> _parts("a name")
    Traceback (most recent call last):
    fairsaoml.core.errors.ConfigError: expected a model with predict, got str; give one that has it
    """
    is_pipeline = isinstance(getattr(model, "steps", None), list) and hasattr(model, "__getitem__")
    *before, learner = [step for _, step in model.steps] if is_pipeline else [model]
    for part, method in ((model, "predict"), (learner, "partial_fit")):
        if not callable(getattr(part, method, None)):
            raise ConfigError(
                f"expected a model with {method}, got {type(part).__name__}; give one that has it"
            )
    if not before:
        return None, learner
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    for step in before:
        try:
            check_is_fitted(step)
        except (NotFittedError, TypeError):  # TypeError: the word "passthrough", or no estimator
            if not isinstance(step, str):
                raise ConfigError(
                    f"expected a pipeline whose preprocessing is fitted, got {type(step).__name__} "
                    "as it was made; fit the steps before the last one on past rows first"
                ) from None
    return model[:-1], learner


# Rows as plain data and back: how a journal keeps arrays and dataframes. A task is assembled from
# rows of many calls, perhaps by another process than took them. So rows are plain values, exact to
# the last digit, and a layout says what they were.


def to_rows(values: Any) -> tuple[Layout, list[Any]]:
    """Return the layout and the rows of an array, a list, a dict of columns or a dataframe.

    Raises:
        DataError: not a table, or infinite numbers.

    >>> to_rows(np.array([[1.5, 2.0], [np.nan, 4.0]]))
    (['numbers', [], ''], [[1.5, 2.0], [None, 4.0]])
    >>> to_rows({"sex": ["f", "m"], "age": [30, 40]})[1]
    [['f', 30], ['m', 40]]
    """
    table = nw.from_native(values, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(table, nw.DataFrame):
        layout = ["frame", table.columns, table.implementation.value]
        return layout, [_plain(list(row)) for row in table.rows()]
    if isinstance(table, nw.Series) and isinstance(table.name, str):
        return ["series", [table.name], table.implementation.value], _plain(table.to_list())
    if isinstance(values, Mapping):
        columns = [np.asarray(column).tolist() for column in values.values()]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return ["columns", [*map(str, values)], ""], _plain(rows)
    array = np.asarray(values)
    if array.ndim not in (1, 2):
        raise DataError(f"expected a table of rows, got shape {array.shape}; one row per decision")
    if array.dtype.kind in "biuf":
        return ["numbers", [], ""], _plain(array.tolist())
    # Again as objects: NumPy makes strings of values of several kinds.
    return ["objects", [], ""], _plain(np.asarray(values, dtype=object).tolist())


def from_rows(layout: Layout, rows: list[Any]) -> Any:
    """Return what `to_rows` was given; numbers come back in 64 bits.

    >>> from_rows(*to_rows(np.array([[1.5, 2.0], [np.nan, 4.0]])))
    array([[1.5, 2. ],
           [nan, 4. ]])
    """
    kind, names, backend = layout
    if kind == "numbers":
        array = np.asarray(rows)
        return array if array.dtype != object else array.astype(np.float64)  # None is NaN again
    if kind == "objects":
        return np.asarray(rows, dtype=object)
    if kind == "series":
        return nw.new_series(names[0], rows, backend=backend).to_native()
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return columns if kind == "columns" else nw.from_dict(columns, backend=backend).to_native()


def _plain(value: Any) -> Any:
    """Values as JSON has them: NaN is None, infinity is an error."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise DataError("expected finite numbers, got infinity; fill it in or leave the row out")
    return value
