"""Decisions and labels: each row is decided once, whatever comes twice, and labelled once.

A decision is committed before it is told. A label is corrected while its task is open; it may be
known never to come, or be erased with its row. Why a row was decided as it was is kept in 38 bytes
beside the decision, as the model of then will be gone.
"""

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Explanation
from fairsaoml.serve.model import probability
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.reading import PLAIN, BadValue, Reader, id_text, is_text, to_line
from fairsaoml.serve.store import LABELLED, NEVER, WAITING, FullDisk
from fairsaoml.serve.tasks import NewLabel, Tasks

CONFLICT = "another row was decided under this id; give every row an id of its own"
NO_LABEL = 'expected an object with "id" and "label", in whole characters'
MOST_FEATURES = 5  # that counted most
KEPT = np.dtype(f"<f4, <f4, {MOST_FEATURES}<u2, {MOST_FEATURES}<f4")
KEPT.names = ("plain", "threshold", "feature", "part")
NO_FEATURE = np.iinfo(np.uint16).max


class Answer(NamedTuple):
    """What is said about one row: a decision, or why there is none."""

    status: int  # 200, 409, 422, 507
    content: dict[str, Any]


class AskedRow(NamedTuple):
    """A row to decide, as it came and as text."""

    id: int | str
    key: str  # the id as text
    content: str  # without its id
    row: dict[str, Any]


class Deciding:
    """Rows in, answers out; the same id and row again, the same answer.

    Args:
        tasks: what was decided; one thread writes there.
        reader: of rows, labels and groups.
        live: the model; another one takes its place when it has learned.
    """

    def __init__(self, tasks: Tasks, reader: Reader, live: OnlineLearner) -> None:
        self.tasks, self.reader, self.live = tasks, reader, live
        self.on_event: Callable[[], Any] = lambda: None  # something was committed
        self._lock = threading.Lock()  # around the writer's connection

    def decide(self, requests: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Answer]]:
        """Decide the rows of requests that came together; all are committed together."""
        with self._lock:
            self.tasks.look()
            answers = iter(self._decide([row for request in requests for row in request]))
            if self.tasks.is_due:  # what is due by the time can wait for `tick`
                self._catch_up()
        return [list(islice(answers, len(request))) for request in requests]

    def _decide(self, rows: Sequence[Any]) -> list[Answer]:
        asked: list[AskedRow | Answer] = []
        new: dict[str, AskedRow] = {}
        for row in rows:
            try:
                one = _read(row)
            except BadValue as problem:
                asked.append(_refused(problem))
            else:
                asked.append(one)
                new.setdefault(one.key, one)
        said: dict[str, tuple[str, Answer]] = {}  # the row as text, and what is said about it
        known = self.tasks.by_id("content, answer, round", list(new))
        for key, (content, answer, round) in known.items():
            decision, chance = json.loads(answer)
            said[key] = content, self._answer(new.pop(key).id, decision, chance, round)
        if new:
            said |= self._issue(list(new.values()))
        return [one if isinstance(one, Answer) else _same(one, *said[one.key]) for one in asked]

    def _issue(self, asked: list[AskedRow]) -> dict[str, tuple[str, Answer]]:
        """Decide new rows by one state and commit them together."""
        said, live, rows = {}, self.live, [one.row for one in asked]
        x = self.reader.quick(rows)
        if x is None:
            for one in asked:
                if problem := self.reader.bad_value(one.row):
                    said[one.key] = one.content, _refused(problem)
            asked = [one for one in asked if one.key not in said]
            if not asked:
                return said
            rows = [one.row for one in asked]
            x = self.reader.encode(rows)
        scores, margins, why = live.explained(x, self.reader.groups_seen(rows))
        decided = (margins > 0).astype(int).tolist(), probability(scores).tolist()
        reasons = [None] * len(x) if why is None else reasons_to_bytes(why)
        issued, columns = [], (asked, *decided, self.reader.groups(rows), reasons)
        for one, decision, chance, group, reason in zip(*columns, strict=True):
            answer = to_line((decision, chance))
            issued.append((one.key, one.content, answer, group, live.round, reason))
            said[one.key] = one.content, self._answer(one.id, decision, chance, live.round)
        try:
            with self.tasks.writing():
                self.tasks.issue(issued)
        except FullDisk as full:
            also = {"recorded": False, "error": str(full)}
            for one in asked:
                said[one.key] = one.content, Answer(507, said[one.key][1].content | also)
        return said

    def _answer(self, id: int | str, decision: int, probability: float, round: int) -> Answer:
        word = self.reader.words[decision]
        return Answer(200, {"id": id, "decision": word, "probability": probability, "round": round})

    def label(self, labels: Sequence[Any]) -> dict[str, Any]:
        """Take labels `{"id", "label", "group"?}`; return what became of them.

        Raises:
            FullDisk: nothing of this call was taken.
        """
        read, errors = self._read_labels(labels)
        with self._turn(), self.tasks.writing():
            said = self.tasks.label(read, corrects=True)
            if said["taken"]:
                now = self.tasks.now
                last, longest = self.tasks.fact("labels") or [now, 0.0]
                self.tasks.set_fact("labels", [now, max(longest, now - last)])
        return {**said, "errors": errors}

    def _read_labels(self, labels: Sequence[Any]) -> tuple[list[NewLabel], list[dict[str, Any]]]:
        """Return those that can be read, and what is wrong with the others."""
        read, errors = [], []
        codes: dict[str, str] = {}  # few values, many labels
        for place, one in enumerate(labels):
            try:
                id, value, group = one["id"], one["label"], one.get("group")
                word = value if type(value) is str else repr(value)
                if word not in codes:
                    codes[word] = str(self.reader.label(value))
                groups = None if group is None else to_line(self.reader.group_given(group))
                read.append((id_text(id), id, codes[word], groups))
            except (DataError, TypeError, KeyError, AttributeError) as problem:
                words = str(problem) if isinstance(problem, DataError) else NO_LABEL
                errors.append({"row": place, "error": words})
        return read, errors

    def never(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Wait no longer for the labels of these ids; they are counted by decision and group."""
        with self._turn(), self.tasks.writing():
            known, unknown = self._known("number, state, answer, groups", ids)
            rows = [row for row in known.values() if row[1] == WAITING]
            self.tasks.change("state = ?", {number: NEVER for number, *_ in rows})
            words = [self.reader.words[json.loads(answer)[0]] for _, _, answer, _ in rows]
            groups = [json.loads(groups) for *_, groups in rows]
            counts = self.tasks.counts
            for name, levels in self.reader.levels(groups).items():
                for word, level in zip(words, levels, strict=True):
                    counts[to_line(["never", word, name, level])] += 1
            counts.update(never=len(rows), waiting=-len(rows), held=-len(rows))
        return {"taken": len(rows), "unknown": unknown}

    def erase(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Remove rows from the store; what was learned from them stays learned."""
        with self._turn():
            with self.tasks.writing():
                known, unknown = self._known("state", ids)
                self.tasks.executemany("DELETE FROM rows WHERE id = ?", [(key,) for key in known])
                states = [state for (state,) in known.values()]
                waiting = states.count(WAITING)
                held = waiting + states.count(LABELLED)
                self.tasks.counts.update(erased=len(known), waiting=-waiting, held=-held)
            # The write-ahead log goes into the file, so that what was erased is nowhere.
            self.tasks.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return {"erased": len(known), "unknown": unknown}

    def _known(self, columns: str, ids: Sequence[Any]) -> tuple[dict[str, tuple], list[Any]]:
        """Return columns of the rows of these ids, and the ids that are no row's."""
        keys = list(dict.fromkeys(map(id_text, ids)))
        known = self.tasks.by_id(columns, keys)
        return known, [json.loads(key) for key in keys if key not in known]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Write; tasks that close by time do so before a label comes late."""
        with self._lock:
            self._catch_up()
            yield
            self._catch_up()

    def _catch_up(self) -> None:
        rounds = self.tasks.counts["rounds"]
        self.tasks.catch_up()
        if self.tasks.counts["rounds"] > rounds:
            self.on_event()


def _read(row: Any) -> AskedRow:
    """Return a row to decide.

    Raises:
        BadValue: it is no row, or holds what no row may hold.
    """
    if type(row) is not dict:
        raise BadValue("", "expected an object of column and value")
    values = row.copy()
    id = values.pop("id") if "id" in values else secrets.token_hex(8)
    key = id_text(id)
    try:
        content = to_line(values)
    except TypeError:
        _require_plain(values)
        raise
    # Only what looks like a list or an object may be one: quicker than to look at every value.
    if "[" in content or "{" in content[1:]:
        _require_plain(values)
    return AskedRow(id, key, content, values)


def _require_plain(row: dict[str, Any]) -> None:
    for name, value in row.items():
        if type(value) not in PLAIN:
            got = "a list or an object" if isinstance(value, list | dict) else "one beyond 64 bits"
            raise BadValue(name, f"expected a number, a word, true, false or null, got {got}")
        if not (is_text(name) and is_text(value)):
            raise BadValue(name, "expected text, got half a character; mend it")


def _same(asked: AskedRow, content: str, answer: Answer) -> Answer:
    """Return the answer to a row, unless its id is another row's."""
    if content == asked.content:
        return answer
    return Answer(409, {"id": asked.id, "error": CONFLICT})


def _refused(problem: BadValue) -> Answer:
    return Answer(422, {"column": problem.column, "error": str(problem)})


def reasons_to_bytes(why: Explanation) -> list[bytes]:
    """Return what is kept of an explanation, for each row.

    >>> part = np.array([[0.5, -2.0, 0.0]])
    >>> why = Explanation(np.array([0.3]), np.array(0.5), np.array([0.4]), np.zeros((1, 0)), part)
    >>> reasons_from_bytes(reasons_to_bytes(why)[0], ["age", "debt", "job"])["features"]
    {'debt': -2.0, 'age': 0.5, 'job': 0.0}
    """
    contribution = np.asarray(why.contribution)
    kept = np.zeros(len(contribution), KEPT)
    kept["plain"], kept["threshold"] = why.plain_threshold, why.threshold
    kept["feature"] = NO_FEATURE
    largest = np.argsort(-np.abs(contribution), axis=1, kind="stable")[:, :MOST_FEATURES]
    count = largest.shape[1]
    kept["feature"][:, :count] = largest
    kept["part"][:, :count] = np.take_along_axis(contribution, largest, axis=1)
    return kept.view(f"V{KEPT.itemsize}").tolist()


def reasons_from_bytes(kept: bytes, names: Sequence[str]) -> dict[str, Any]:
    """Return the threshold, that without fairness, and the features that counted most."""
    plain, threshold, features, parts = np.frombuffer(kept, KEPT)[0].tolist()
    most = zip(features.tolist(), parts.tolist(), strict=True)
    return {
        "threshold": round(threshold, 6),
        "threshold_without_fairness": round(plain, 6),
        "features": {names[place]: round(part, 6) for place, part in most if place != NO_FEATURE},
    }
