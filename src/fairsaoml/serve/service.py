"""Decide, take labels, learn: all that the service does, without HTTP.

One thread writes (`decide`, `label`, `never`, `erase`, `tick`, and what a learned round records);
another one learns (`learn_next`). A request never waits for a round. What is returned is committed.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
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
from fairsaoml.serve.deciding import Answer, Deciding
from fairsaoml.serve.labelling import Labelling
from fairsaoml.serve.live import Live, LiveModel
from fairsaoml.serve.online import MANY_ROWS
from fairsaoml.serve.store import FullDisk, Store, to_text
from fairsaoml.serve.task_rules import TaskRules
from fairsaoml.serve.tasks import TAKEN_ROWS, TakenRow, Tasks
from fairsaoml.serve.webhook import post

__all__ = ["TALLY", "Service", "replay"]

STORE = "store.sqlite"
TIDY_SECONDS = 60.0  # between looks for rows that were kept long enough
TALLY = ("issued", "labelled", "late", "expired", "unknown", "repeated", "corrected", "never")


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
        self._clock, self._webhook = clock, webhook
        self.on_event: Callable[[], None] = lambda: None  # something was committed
        self.asked = Asked.of(read_spec(folder))  # before anything is made there
        self._owned = ExitStack()
        self._owned.enter_context(locked(folder))  # neither `learn` nor another service meanwhile
        self.folder.mkdir(exist_ok=True)
        try:
            self.store = Store(self.folder / STORE)
        except RunError as problem:
            self._owned.close()
            raise RunError(
                f"{problem}; the model that was saved last is in {self.folder / SERVED}: "
                f"`fairsaoml.load` reads it, and without the store it goes on from there"
            ) from None
        try:
            self.tasks = Tasks(self.store, rules)
            self.models = LiveModel(folder, self.folder / SERVED)
            self.live: Live = self.models.live
            begun = self.store.fact("rounds_before")
            if begun is None:
                begun = self.live.round
                with self.store.writing():
                    self.store.set_fact("rounds_before", begun)
            self.rounds_before: int = begun
            schema = self.live.online.schema
            self.alarms = self._known_alarms()
            removed = (self.store.fact("removed") or {"round": 0})["round"]
            if not begun + removed <= self.live.round <= begun + self.store.counts["rounds"]:
                raise RunError(
                    f"expected a model of {begun + removed} to "
                    f"{begun + self.store.counts['rounds']} rounds, got one of {self.live.round}: "
                    f"the store in {self.folder} belongs to another; restore both from one backup"
                )
            self.live.decide(np.zeros((1, len(schema.features)), np.float32))  # compiled
        except BaseException:
            self.store.close()
            self._owned.close()
            raise
        self.saved_round = self.live.round
        self._tidy_at = 0.0
        self.reader = self.models.reader
        parts = (self.store, self.tasks, self.reader)
        self._deciding, self._labelling = Deciding(*parts), Labelling(*parts)
        self._reading = self.store.reader()  # of the thread that learns
        self._lock = threading.Lock()  # around the writer's connection

    # Deciding

    def decide(self, requests: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Answer]]:
        """Decide the rows of requests that came together; all are committed together."""
        with self._lock:
            now = self._now()
            rows = [row for request in requests for row in request]
            answers = self._deciding.decide(self.live, rows, now)
            if self.tasks.is_due:  # what is due by the time can wait for `tick`
                self._catch_up(now)
        ends = np.cumsum([0, *map(len, requests)]).tolist()
        return [answers[low:high] for low, high in pairwise(ends)]

    def warm_up(self) -> None:
        """Compile what rounds and larger requests need, before they come."""
        self.models.warm_up(self.live, self.tasks.rules.task_rows or 0)
        self.live.decide(np.zeros((MANY_ROWS, len(self.live.online.schema.features)), np.float32))

    def label(self, labels: Sequence[Any]) -> dict[str, Any]:
        """Take labels `{"id", "label", "group"?}`; return what became of them.

        Raises:
            FullDisk: nothing of this call was taken.
        """
        return self._write(lambda now: self._labelling.label(labels, now))

    def never(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Wait no longer for the labels of these ids; they are counted by decision and group."""
        return self._write(lambda now: self._labelling.never(ids))

    def erase(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Remove rows from the store; what was learned from them stays learned."""
        return self._write(lambda now: self._labelling.erase(ids))

    def _write(self, work: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
        with self._lock:
            now = self._now()
            self._catch_up(now)  # tasks that close by time do so before a label comes late
            said = work(now)
            self._catch_up(now)
        return said

    # Learning

    def tick(self) -> None:
        """Do what is due: close tasks, remove old rows."""
        with self._lock:
            now = self._now()
            self._catch_up(now)
            self._listen(now)
            if now >= self._tidy_at:
                self._tidy_at = now + TIDY_SECONDS
                self.tasks.forget(now, self.saved_round - self.rounds_before)

    def learn_next(self) -> bool:
        """Learn the next closed task, if there is one; nobody waits for it."""
        live = self.live
        query = "SELECT number, closed_at, late, unlabelled, why, record FROM tasks WHERE round = ?"
        number = live.round - self.rounds_before + 1
        found = self._reading.execute(query, [number]).fetchone()
        if found is None:
            return False
        task, closed_at, late, unlabelled, why, before = found
        begun = time.perf_counter()
        rows = self._reading.execute(TAKEN_ROWS, [task]).fetchall()
        labelled, decided = read_rows(self.models, [TakenRow(*row) for row in rows])
        learned = self.models.learn(live, labelled, decided)
        about = {"at": closed_at, "task": task, "late": late, "unlabelled": unlabelled, "why": why}
        seconds = time.perf_counter() - begun
        record = {**tidy({**learned.record, "seconds": seconds}), **about}  # times with all digits
        if before is None:  # else it was learned before a kill, and not saved
            when = {"round": learned.live.round, "at": closed_at}
            with self._lock:
                alarms = self.alarms.after_round(labelled, decided, when)
                try:
                    with self.store.writing():
                        self.store.write(
                            "UPDATE tasks SET record = ? WHERE number = ?", [to_text(record), task]
                        )
                        self._record("round", [record])
                        self._raise(alarms, when)
                except FullDisk:  # the round will be learned again: so that it counts once
                    self.alarms = self._known_alarms()
                    raise
            self._tell(alarms, when)
        self.models.save(learned.live)
        self.saved_round = learned.live.round
        self.live = learned.live  # whole, or not at all
        self.on_event()
        return True

    def _known_alarms(self) -> Alarms:
        """Return the alarms as they were committed last."""
        return Alarms(self.live.online.schema, self.asked, self.store.fact("alarms"))

    def _raise(self, alarms: Sequence[Alarm], when: Mapping[str, Any]) -> None:
        """Record what began or ended, inside `writing`."""
        self.store.set_fact("alarms", self.alarms.state)
        self._record("alarm", [{**alarm._asdict(), **when} for alarm in alarms])

    def _record(self, kind: str, contents: Sequence[Mapping[str, Any]]) -> None:
        """Record events for whoever listens, inside `writing`."""
        self.store.write_many(
            "INSERT INTO events (kind, content) VALUES (?, ?)",
            [(kind, to_text(content)) for content in contents],
        )

    def _tell(self, alarms: Sequence[Alarm], when: Mapping[str, Any]) -> None:
        """Tell the webhook of alarms that are committed."""
        if self._webhook is not None:
            for alarm in alarms:
                post(self._webhook, {**alarm._asdict(), **when})

    def _listen(self, now: float) -> None:
        """Look whether labels have stopped."""
        last, longest = self.store.fact("labels") or [now, 0.0]
        waiting = self.store.counts["waiting"]
        when = {"round": self.live.round, "at": now}
        alarms = self.alarms.after_silence(now - last, longest, waiting, when)
        if alarms:
            with self.store.writing():
                self._raise(alarms, when)
            self._tell(alarms, when)
            self.on_event()

    def _now(self) -> float:
        return max(float(self._clock()), self.tasks.at)

    def _catch_up(self, now: float) -> None:
        rounds = self.store.counts["rounds"]
        self.tasks.catch_up(now)
        if self.store.counts["rounds"] > rounds:
            self.on_event()

    def close(self) -> None:
        """Close the store; the folder is all that is needed to go on."""
        with self._lock:
            self._reading.close()
            self.store.close()
            self._owned.close()


def read_rows(models: LiveModel, rows: Sequence[TakenRow]) -> tuple[Task, np.ndarray]:
    """Return a closed task's rows as they stand in the store, and how they were decided."""
    contents = [{**json.loads(row.content), **json.loads(row.groups or "{}")} for row in rows]
    task = models.task(contents, [json.loads(row.label) for row in rows])
    return task, np.array([json.loads(row.answer)[0] for row in rows])


def replay(folder: Path) -> list[dict[str, Any]]:
    """Learn every round of a stopped service again, from the run; return the journal's lines.

    Only the rows in the store are used, so all of them must still be there.
    """
    models = LiveModel(folder, folder / SERVICE / "none")
    store = Store(folder / SERVICE / STORE)
    live, records = models.live, []
    try:
        for (task,) in store.query("SELECT number FROM tasks WHERE round IS NOT NULL ORDER BY 1"):
            rows = store.query(TAKEN_ROWS, [task])
            live, record = models.learn(live, *read_rows(models, [TakenRow(*row) for row in rows]))
            records.append(tidy(record))
    finally:
        store.close()
    return records
