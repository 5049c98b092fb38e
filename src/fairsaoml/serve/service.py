"""Decide, take labels, learn: all that the service does, without HTTP.

One thread writes (`decide`, `label`, `never`, `erase`, `tick`, and what a learned round records);
another one learns (`learn_next`). A request never waits for a round. What is returned is committed.
"""

import copy
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fairsaoml.core.errors import RunError
from fairsaoml.core.types import Task
from fairsaoml.evaluate.verdict import Asked
from fairsaoml.files import tidy
from fairsaoml.runs.folder import SERVED, SERVICE, locked, read_spec
from fairsaoml.serve.alarms import Alarm, Alarms
from fairsaoml.serve.deciding import Answer, Deciding, erase, label, never
from fairsaoml.serve.live import decide, learn, served_learner
from fairsaoml.serve.model import RunModel
from fairsaoml.serve.online import MANY_ROWS, OnlineLearner
from fairsaoml.serve.reading import Reader
from fairsaoml.serve.store import FullDisk, Store, to_text
from fairsaoml.serve.tasks import TAKEN_ROWS, TakenRow, TaskRules, Tasks

STORE = "store.sqlite"
TIDY_SECONDS = 60.0  # between looks for rows that were kept long enough
TALLY = ("issued", "labelled", "late", "expired", "unknown", "repeated", "corrected", "never")
WEBHOOK_TRIES = 3
WEBHOOK_SECONDS = 5.0  # to wait for its answer, and longer before each try


class Service:
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
        self,
        folder: Path,
        rules: TaskRules,
        *,
        clock: Callable[[], float] = time.time,
        webhook: str | None = None,
    ) -> None:
        self.folder = folder / SERVICE
        self._webhook = webhook
        self.on_event: Callable[[], Any] = lambda: None  # something was committed
        self.asked = Asked.of(read_spec(folder))  # before anything is made there
        with ExitStack() as owned:  # given back where something fails
            owned.enter_context(locked(folder))  # neither `learn` nor another service meanwhile
            self.folder.mkdir(exist_ok=True)
            self.store = owned.enter_context(closing(self._open_store()))
            self.tasks = Tasks(self.store, rules, clock)
            self.reader = Reader(RunModel(folder))
            self.live: OnlineLearner = served_learner(self.reader.model, self.folder / SERVED)
            self.rounds_before = self._rounds_before()
            self.alarms = self._known_alarms()
            self._decide_nothing(rows=1)  # compiled
            self._reading = owned.enter_context(closing(self.store.reader()))  # of who learns
            self._owned = owned.pop_all()
        self._tidy_at = 0.0
        self._deciding = Deciding(self.tasks, self.reader)
        self._lock = threading.Lock()  # around the writer's connection

    def _open_store(self) -> Store:
        try:
            return Store(self.folder / STORE)
        except RunError as problem:
            raise RunError(
                f"{problem}; the model that was saved last is in {self.folder / SERVED}: "
                f"`fairsaoml.load` reads it, and without the store it goes on from there"
            ) from None

    def _rounds_before(self) -> int:
        """Return how many rounds the model had learned when the store was begun."""
        begun = self.store.fact("rounds_before")
        if begun is None:
            begun = self.live.round
            with self.store.writing():
                self.store.set_fact("rounds_before", begun)
        first, last = begun + self.tasks.removed["round"], begun + self.store.counts["rounds"]
        if not first <= self.live.round <= last:
            raise RunError(
                f"expected a model of {first} to {last} rounds, got one of {self.live.round}: "
                f"the store in {self.folder} belongs to another; restore both from one backup"
            )
        return begun

    # Deciding

    def decide(self, requests: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Answer]]:
        """Decide the rows of requests that came together; all are committed together."""
        with self._lock:
            now = self.tasks.now()
            rows = [row for request in requests for row in request]
            answers = self._deciding.decide(self.live, rows, now)
            if self.tasks.is_due:  # what is due by the time can wait for `tick`
                self._catch_up(now)
        ends = np.cumsum([0, *map(len, requests)]).tolist()
        return [answers[low:high] for low, high in pairwise(ends)]

    def warm_up(self) -> None:
        """Compile what rounds and larger requests need, before they come."""
        rows, schema = self.tasks.rules.task_rows or 0, self.live.schema
        x = np.zeros((rows, len(schema.features)), np.float32)
        group = np.zeros((rows, len(schema.attributes)), np.int32)
        copy.copy(self.live).learn(Task(x=x, y=np.arange(rows) % 2, group=group))
        self._decide_nothing(MANY_ROWS)

    def _decide_nothing(self, rows: int) -> None:
        decide(self.live, np.zeros((rows, len(self.live.schema.features)), np.float32))

    def label(self, labels: Sequence[Any]) -> dict[str, Any]:
        """Take labels `{"id", "label", "group"?}`; return what became of them.

        Raises:
            FullDisk: nothing of this call was taken.
        """
        return self._write(lambda now: label(self.tasks, self.reader, labels, now))

    def never(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Wait no longer for the labels of these ids; they are counted by decision and group."""
        return self._write(lambda now: never(self.store, self.reader, ids))

    def erase(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Remove rows from the store; what was learned from them stays learned."""
        return self._write(lambda now: erase(self.store, ids))

    def _write(self, work: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
        with self._lock:
            now = self.tasks.now()
            self._catch_up(now)  # tasks that close by time do so before a label comes late
            said = work(now)
            self._catch_up(now)
        return said

    # Learning

    def tick(self) -> None:
        """Do what is due: close tasks, remove old rows."""
        with self._lock:
            now = self.tasks.now()
            self._catch_up(now)
            self._listen(now)
            if now >= self._tidy_at:
                self._tidy_at = now + TIDY_SECONDS
                self.tasks.forget(now, self.live.round - self.rounds_before)

    def learn_next(self) -> bool:
        """Learn the next closed task, if there is one; nobody waits for it."""
        query = "SELECT number, closed_at, late, unlabelled, why, record FROM tasks WHERE round = ?"
        number = self.live.round - self.rounds_before + 1
        found = self._reading.execute(query, [number]).fetchone()
        if found is None:
            return False
        task, closed_at, late, unlabelled, why, before = found
        begun = time.perf_counter()
        rows = self._reading.execute(TAKEN_ROWS, [task]).fetchall()
        labelled, decided = read_rows(self.reader, rows)
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
        return Alarms(self.live.schema, self.asked, self.store.fact("alarms"))

    def _publish(
        self,
        alarms: Sequence[Alarm],
        when: Mapping[str, Any],
        record: Mapping[str, Any] | None = None,
    ) -> None:
        """Commit a round's line, and what began or ended; then tell the webhook."""
        raised = [{**alarm._asdict(), **when} for alarm in alarms]
        events = [("alarm", to_text(one)) for one in raised]
        try:
            with self.store.writing():
                if record is not None:
                    events.insert(0, ("round", to_text(record)))
                    line = [to_text(record), record["task"]]
                    self.store.write("UPDATE tasks SET record = ? WHERE number = ?", line)
                self.store.set_fact("alarms", self.alarms.state)
                self.store.write_many("INSERT INTO events (kind, content) VALUES (?, ?)", events)
        except FullDisk:  # the same will come again: so that it counts once
            self.alarms = self._known_alarms()
            raise
        if self._webhook is not None:
            for one in raised:  # nobody waits for it
                threading.Thread(target=post, args=[self._webhook, one], daemon=True).start()

    def _listen(self, now: float) -> None:
        """Look whether labels have stopped."""
        last, longest = self.store.fact("labels") or [now, 0.0]
        waiting = self.store.counts["waiting"]
        when = {"round": self.live.round, "at": now}
        alarms = self.alarms.after_silence(now - last, longest, waiting, when)
        if alarms:
            self._publish(alarms, when)
            self.on_event()

    def _catch_up(self, now: float) -> None:
        rounds = self.store.counts["rounds"]
        self.tasks.catch_up(now)
        if self.store.counts["rounds"] > rounds:
            self.on_event()

    def close(self) -> None:
        """Close the store; the folder is all that is needed to go on."""
        with self._lock:
            self._owned.close()


def read_rows(reader: Reader, rows: Sequence[tuple]) -> tuple[Task, np.ndarray]:
    """Return a closed task's rows, as `TAKEN_ROWS` finds them, and how they were decided."""
    taken = [TakenRow(*row) for row in rows]
    contents = [{**json.loads(row.content), **json.loads(row.groups or "{}")} for row in taken]
    task = Task(
        x=reader.encode(contents),
        y=np.array([json.loads(row.label) for row in taken], np.float32),
        group=reader.codes(contents),
    )
    return task, np.array([json.loads(row.answer)[0] for row in taken])


def post(url: str, content: Mapping[str, Any]) -> None:
    """Tell another service of an alarm, as JSON; a failure harms nobody."""
    import requests

    for attempt in range(WEBHOOK_TRIES):
        try:
            answer = requests.post(
                url, json=content, timeout=WEBHOOK_SECONDS, allow_redirects=False
            )
            if answer.status_code < 500:
                return
        except requests.RequestException:
            pass
        time.sleep(WEBHOOK_SECONDS * attempt)
