"""Decisions: each row once, whatever comes twice; committed before they are told."""

import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairsaoml.serve.live import Live
from fairsaoml.serve.reading import BadValue, Reader, bad_id
from fairsaoml.serve.store import FullDisk, Store
from fairsaoml.serve.tasks import NewRow, Tasks
from fairsaoml.serve.wire import PLAIN, is_text, to_line

__all__ = ["Answer", "Deciding"]


class Answer(NamedTuple):
    """What is said about one row: a decision, or why there is none."""

    status: int  # 200, 409, 422, 507
    content: dict[str, Any]


class NewlyAsked(NamedTuple):
    """A row that was not decided before."""

    place: int  # in the request
    id: int | str
    content: str  # the row as text, without its id
    row: dict[str, Any]


class Deciding:
    """Rows in, answers out; the same id and row again, the same answer."""

    def __init__(self, store: Store, tasks: Tasks, reader: Reader) -> None:
        self.store, self.tasks, self.reader = store, tasks, reader

    def decide(self, live: Live, rows: Sequence[Any], now: float) -> list[Answer]:
        """Decide rows by one state, commit them together, and answer each."""
        answers: list[Answer | None] = [None] * len(rows)
        read: list[tuple[str, NewlyAsked]] = []
        for place, row in enumerate(rows):
            taken = _read(place, row)
            if isinstance(taken, BadValue):
                answers[place] = _refused(taken)
            else:
                read.append(taken)
        known = self.store.by_id("content, answer, round", [id for id, _ in read])
        new: dict[str, NewlyAsked] = {}
        for id, one in read:
            if id in known:
                content, answer, round = known[id]
                decision, chance = json.loads(answer)
                said = self._said(one.id, decision, chance, round)
                answers[one.place] = said if content == one.content else _conflict(one.id)
            else:
                new.setdefault(id, one)
        if new:
            self._issue(live, new, answers, now)
        for id, one in read:
            if answers[one.place] is None:  # a row that came twice
                first = new[id]
                same = first.content == one.content
                answers[one.place] = answers[first.place] if same else _conflict(one.id)
        return [answer for answer in answers if answer is not None]

    def _issue(
        self, live: Live, new: dict[str, NewlyAsked], answers: list[Answer | None], now: float
    ) -> None:
        """Decide new rows, commit them, and set their answers."""
        items = list(new.items())
        bad = self.reader.bad_rows([one.row for _, one in items])
        for index, problem in bad.items():
            answers[items[index][1].place] = _refused(problem)
        if bad:
            items = [item for index, item in enumerate(items) if index not in bad]
        if not items:
            return
        said = live.decide(*self.reader.seen([one.row for _, one in items]))
        issued = [
            NewRow(id, one.content, f"[{decision},{chance!r}]", live.round, why, self._groups(one))
            for (id, one), (decision, chance, why) in zip(
                items, zip(*said, strict=True), strict=True
            )
        ]
        unrecorded = {}
        try:
            with self.store.writing():
                self.tasks.issue(issued, now)
        except FullDisk as full:
            unrecorded = {"recorded": False, "error": str(full)}
        for (_, one), decision, chance in zip(items, said.decision, said.probability, strict=True):
            answer = self._said(one.id, decision, chance, live.round)
            answers[one.place] = Answer(507, answer.content | unrecorded) if unrecorded else answer

    def _groups(self, one: NewlyAsked) -> str:
        groups = self.reader.groups(one.row)
        return to_line(groups) if groups else "{}"

    def _said(self, id: int | str, decision: int, probability: float, round: int) -> Answer:
        word = self.reader.words[decision]
        return Answer(200, {"id": id, "decision": word, "probability": probability, "round": round})


def _read(place: int, row: Any) -> tuple[str, NewlyAsked] | BadValue:
    """Return a row with its id as text, or what is wrong with it."""
    if type(row) is not dict:
        return BadValue("", "expected an object of column and value")
    values = row.copy()
    if "id" in values:
        id = values.pop("id")
        if problem := bad_id(id):
            return BadValue("id", problem)
    else:
        id = secrets.token_hex(8)
    if not PLAIN.issuperset(map(type, values.values())):
        name, value = next((n, v) for n, v in values.items() if type(v) not in PLAIN)
        got = "a list or an object" if isinstance(value, list | dict) else "one beyond 64 bits"
        return BadValue(name, f"expected a number, a word, true, false or null, got {got}")
    try:
        return to_line(id), NewlyAsked(place, id, to_line(values), values)
    except TypeError:
        names = [name for name, value in row.items() if not (is_text(name) and is_text(value))]
        return BadValue(names[0], "expected text, got half a character; mend it")


def _refused(problem: BadValue) -> Answer:
    return Answer(422, {"column": problem.column, "error": problem.message})


def _conflict(id: int | str) -> Answer:
    message = "another row was decided under this id; give every row an id of its own"
    return Answer(409, {"id": id, "error": message})
