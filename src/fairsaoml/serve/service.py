"""Decide, take labels, learn: all that the service does, without HTTP.

One thread writes (`decide`, `label`, `never`, `erase`, `tick`, and what a learned round records);
another one learns (`learn_next`). A request never waits for a round. What is returned is committed.
A model is never changed: learning makes another one, which is swapped in whole.
"""

import copy
import sqlite3
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from fairsaoml.core.errors import RunError
from fairsaoml.core.types import Task
from fairsaoml.evaluate.records import line, tally
from fairsaoml.evaluate.verdict import Asked
from fairsaoml.files import tidy
from fairsaoml.runs.folder import SERVED, SERVICE, locked, read_spec
from fairsaoml.serve.alarms import Alarm, Alarms
from fairsaoml.serve.deciding import Deciding
from fairsaoml.serve.model import RunModel
from fairsaoml.serve.online import MANY_ROWS, OnlineLearner
from fairsaoml.serve.reading import Reader
from fairsaoml.serve.store import FullDisk, to_text
from fairsaoml.serve.tasks import TAKEN_ROWS, Clock, TaskRules, Tasks, columns_of

STORE = "store.sqlite"
TIDY_SECONDS = 60.0  # between looks for rows that were kept long enough
TALLY = ("issued", "labelled", "late", "expired", "unknown", "repeated", "corrected", "never")
WEBHOOK_SECONDS = 5.0  # to wait for its answer
WEBHOOK_PAUSES = (0.0, 0.0, 5.0)  # before each try


class Service(Deciding):
    """The model of a run's folder, deciding and learning.

    Args:
        folder: the run's; what the service keeps is in its `service` folder.
        rules: how tasks are cut, how long labels are waited for, how long rows are kept.
        clock: the time in seconds.
        webhook: alarms are posted there.

    Raises:
        RunError: no run, another process serves it, or a damaged store.
    """

    def __init__(
        self, folder: Path, rules: TaskRules, clock: Clock = time.time, webhook: str | None = None
    ) -> None:
        self.folder, self._webhook = folder / SERVICE, webhook
        self.asked = Asked.of(read_spec(folder))  # before anything is made there
        with ExitStack() as owned:  # given back where something fails
            owned.enter_context(locked(folder))  # neither `learn` nor another service meanwhile
            self.folder.mkdir(exist_ok=True)
            tasks = owned.enter_context(closing(self._tasks(rules, clock)))
            reader = Reader(RunModel(folder))
            super().__init__(tasks, reader, self._saved_or(reader.model.online))
            self.rounds_before = self._rounds_before()
            self.alarms = self._known_alarms()
            self._decide_nothing(rows=1)  # compiled
            reading = sqlite3.connect(self.folder / STORE, check_same_thread=False)
            self._reading = owned.enter_context(closing(reading))
            self._owned = owned.pop_all()
        self._reading_lock = threading.Lock()
        self._tidy_at = 0.0

    def _tasks(self, rules: TaskRules, clock: Clock) -> Tasks:
        try:
            return Tasks(self.folder / STORE, rules, clock)
        except RunError as problem:
            raise RunError(
                f"{problem}; the model that was saved last is in {self.folder / SERVED}: "
                f"`fairsaoml.load` reads it, and without the store it goes on from there"
            ) from None

    def _saved_or(self, run: OnlineLearner) -> OnlineLearner:
        """Return what the service has saved of a run's model, or what the run itself has learned.

        Raises:
            RunError: another model is saved there.
        """
        saved = self.folder / SERVED
        online = OnlineLearner.load(saved) if saved.exists() else run
        if (online.schema, online.learner) != (run.schema, run.learner):
            raise RunError(
                f"expected the model of the run in {saved}, got another one; remove {saved} "
                "to begin again from the run, or serve the run it was begun from"
            )
        return online

    def _rounds_before(self) -> int:
        """Return how many rounds the model had learned when the store was begun."""
        begun = self.tasks.fact("rounds_before")
        if begun is None:
            begun = self.live.round
            with self.tasks.writing():
                self.tasks.set_fact("rounds_before", begun)
        first, last = begun + self.tasks.removed["round"], begun + self.tasks.counts["rounds"]
        if not first <= self.live.round <= last:
            raise RunError(
                f"expected a model of {first} to {last} rounds, got one of {self.live.round}: "
                f"the store in {self.folder} belongs to another; restore both from one backup"
            )
        return begun

    def query(self, sql: str, *values: Any) -> list[tuple]:
        """Return all rows of a query; it sees what is committed, and never waits for a writer."""
        with self._reading_lock:
            return self._reading.execute(sql, values).fetchall()

    def warm_up(self) -> None:
        """Compile what rounds and larger requests need, before they come."""
        rows, schema = self.tasks.rules.task_rows or 0, self.live.schema
        x = np.zeros((rows, len(schema.features)), np.float32)
        group = np.zeros((rows, len(schema.attributes)), np.int32)
        copy.copy(self.live).learn(Task(x=x, y=np.arange(rows) % 2, group=group))
        self._decide_nothing(MANY_ROWS)

    def _decide_nothing(self, rows: int) -> None:
        self.live.explained(np.zeros((rows, len(self.live.schema.features)), np.float32))

    def tick(self) -> None:
        """Do what is due: close tasks, remove old rows."""
        with self._turn():
            self._listen()
            if self.tasks.now >= self._tidy_at:
                self._tidy_at = self.tasks.now + TIDY_SECONDS
                self.tasks.forget(self.live.round - self.rounds_before)

    def learn_next(self) -> bool:
        """Learn the next closed task, if there is one; nobody waits for it."""
        number = self.live.round - self.rounds_before + 1
        columns = "number, closed_at, late, unlabelled, why, record"
        closed = self.query(f"SELECT {columns} FROM tasks WHERE round = ?", number)
        if not closed:
            return False
        [(task, closed_at, late, unlabelled, why, before)] = closed
        begun = time.perf_counter()
        labelled, decided = read_rows(self.reader, self.query(TAKEN_ROWS, task))
        online, record = learn(self.live, labelled, decided)
        if before is None:  # else it was learned before a kill, and not saved
            record["seconds"] = time.perf_counter() - begun
            about = {"task": task, "late": late, "unlabelled": unlabelled, "why": why}
            record = {**tidy(record), "at": closed_at, **about}  # times with all digits
            when = {"round": online.round, "at": closed_at}
            with self._lock:
                alarms = self.alarms.after_round(labelled, decided, when)
                self._publish(alarms, when, record)
        self.save(online)
        self.live = online  # whole, or not at all
        self.on_event()
        return True

    def save(self, online: OnlineLearner) -> None:
        """Keep what was learned: a restarted service goes on from here."""
        online.save(self.folder / SERVED)

    def _known_alarms(self) -> Alarms:
        """Return the alarms as they were committed last."""
        return Alarms(self.live.schema, self.asked, self.tasks.fact("alarms"))

    def _publish(self, alarms: list[Alarm], when: dict, record: dict | None = None) -> None:
        """Commit a round's line, and what began or ended; then tell the webhook."""
        raised = [{**alarm._asdict(), **when} for alarm in alarms]
        events = [("alarm", to_text(one)) for one in raised]
        try:
            with self.tasks.writing():
                if record is not None:
                    text = to_text(record)
                    events.insert(0, ("round", text))
                    change = "UPDATE tasks SET record = ? WHERE number = ?"
                    self.tasks.execute(change, [text, record["task"]])
                self.tasks.set_fact("alarms", self.alarms.state)
                self.tasks.executemany("INSERT INTO events (kind, content) VALUES (?, ?)", events)
        except FullDisk:  # the same will come again: so that it counts once
            self.alarms = self._known_alarms()
            raise
        if self._webhook is not None:
            for one in raised:  # nobody waits for it
                threading.Thread(target=post, args=[self._webhook, one], daemon=True).start()

    def _listen(self) -> None:
        """Look whether labels have stopped."""
        now = self.tasks.now
        last, longest = self.tasks.fact("labels") or [now, 0.0]
        when = {"round": self.live.round, "at": now}
        waiting = self.tasks.counts["waiting"]
        if alarms := self.alarms.after_silence(now - last, longest, waiting, when):
            self._publish(alarms, when)
            self.on_event()

    def close(self) -> None:
        """Close the store; the folder is all that is needed to go on."""
        with self._lock, self._reading_lock:
            self._owned.close()


def learn(
    online: OnlineLearner, task: Task, decided: np.ndarray
) -> tuple[OnlineLearner, dict[str, Any]]:
    """Return the learner after one more round, and the round's line for the journal.

    Args:
        online: what decides now; it stays as it is.
        task: labelled rows.
        decided: the decisions on them as they were issued.
    """
    online = copy.copy(online)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        online.learn(task)
    figures = {
        **tally(task.y, decided, task.group, online.schema),
        "dual": online.dual.tolist(),
        "weights": online.weights.tolist(),
        "memory": memory(online.weights, online.round),
        "warnings": [*(str(one.message) for one in caught), *online.notes],
    }
    return online, line(online.round, online.seed, task, figures, seconds=0.0)


def memory(weights: Sequence[float] | np.ndarray, round: int) -> float:
    """Return how many rounds the weights look back: level k looks back 2^k, the last to the first.

    >>> memory([0.5, 0.0, 0.5], 3), memory([1.0, 0.0, 0.0], 100), memory([0.0, 0.0, 1.0], 100)
    (2.0, 1.0, 100.0)
    """
    spans = [min(2**level, round) for level in range(len(weights))]
    spans[-1:] = [round]
    return float(np.dot(weights, spans))


def read_rows(reader: Reader, rows: Sequence[tuple]) -> tuple[Task, np.ndarray]:
    """Return a closed task's rows, as `TAKEN_ROWS` finds them, and how they were decided."""
    _, contents, answers, groups, labels = columns_of(rows)
    whole = [{**row, **(group or {})} for row, group in zip(contents, groups, strict=True)]
    y = np.array(labels, np.float32)
    task = Task(x=reader.encode(whole), y=y, group=reader.codes(whole))
    return task, np.array([decision for decision, _ in answers])


def post(url: str, content: Mapping[str, Any]) -> None:
    """Tell another service of an alarm, as JSON; a failure harms nobody."""
    import requests

    for pause in WEBHOOK_PAUSES:
        time.sleep(pause)
        with suppress(requests.RequestException):
            said = requests.post(url, json=content, timeout=WEBHOOK_SECONDS, allow_redirects=False)
            if said.status_code < 500:
                return
