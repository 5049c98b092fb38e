"""Decisions: each row once, whatever comes twice; committed before they are told."""

import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairsaoml.serve.live import decide
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.reading import BadValue, Reader, id_text
from fairsaoml.serve.store import FullDisk
from fairsaoml.serve.tasks import NewRow, Tasks
from fairsaoml.serve.wire import PLAIN, is_text, to_line

__all__ = ["Answer", "Deciding"]

CONFLICT = "another row was decided under this id; give every row an id of its own"


class Answer(NamedTuple):
    """What is said about one row: a decision, or why there is none."""

    status: int  # 200, 409, 422, 507
    content: dict[str, Any]


class AskedRow(NamedTuple):
    """A row to decide, as it came and as text."""

    place: int  # in the request
    id: int | str
    key: str  # the id as text
    content: str  # without its id
    row: dict[str, Any]


class Deciding:
    """Rows in, answers out; the same id and row again, the same answer."""

    def __init__(self, tasks: Tasks, reader: Reader) -> None:
        self.store, self.tasks, self.reader = tasks.store, tasks, reader

    def decide(self, live: OnlineLearner, rows: Sequence[Any], now: float) -> list[Answer]:
        """Decide rows by one state, commit them together, and answer each."""
        answers: dict[int, Answer] = {}
        new: dict[str, AskedRow] = {}
        again: list[AskedRow] = []  # asked for in this request or before
        for place, row in enumerate(rows):
            try:
                one = _read(place, row)
            except BadValue as problem:
                answers[place] = _refused(problem)
                continue
            if new.setdefault(one.key, one) is not one:
                again.append(one)
        known = self.store.by_id("content, answer, round", list(new))
        again += [new.pop(key) for key in known]
        if new:
            answers |= self._issue(live, list(new.values()), now)
        for one in again:
            if one.key in known:
                content, answer, round = known[one.key]
                decision, chance = json.loads(answer)
                said = self._said(one.id, decision, chance, round)
            else:
                first = new[one.key]
                content, said = first.content, answers[first.place]
            is_same = content == one.content
            answers[one.place] = said if is_same else Answer(409, {"id": one.id, "error": CONFLICT})
        return [answers[place] for place in range(len(rows))]

    def _issue(self, live: OnlineLearner, asked: list[AskedRow], now: float) -> dict[int, Answer]:
        """Decide new rows and commit them; return the answers by place."""
        answers = {}
        rows = [one.row for one in asked]
        x = self.reader.quick(rows)
        if x is None:
            for one in asked:
                if problem := self.reader.bad_value(one.row):
                    answers[one.place] = _refused(problem)
            asked = [one for one in asked if one.place not in answers]
            if not asked:
                return answers
            rows = [one.row for one in asked]
            x = self.reader.encode(rows)
        said = decide(live, x, self.reader.groups_seen(rows))
        groups = self.reader.groups(rows)
        issued = [
            NewRow(one.key, one.content, to_line((decision, chance)), live.round, why, group)
            for one, decision, chance, why, group in zip(asked, *said, groups, strict=True)
        ]
        unrecorded = {}
        try:
            with self.store.writing():
                self.tasks.issue(issued, now)
        except FullDisk as full:
            unrecorded = {"recorded": False, "error": str(full)}
        for one, decision, chance in zip(asked, said.decision, said.probability, strict=True):
            answer = self._said(one.id, decision, chance, live.round)
            answers[one.place] = Answer(507, answer.content | unrecorded) if unrecorded else answer
        return answers

    def _said(self, id: int | str, decision: int, probability: float, round: int) -> Answer:
        word = self.reader.words[decision]
        return Answer(200, {"id": id, "decision": word, "probability": probability, "round": round})


def _read(place: int, row: Any) -> AskedRow:
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
    return AskedRow(place, id, key, content, values)


def _require_plain(row: dict[str, Any]) -> None:
    for name, value in row.items():
        if type(value) not in PLAIN:
            got = "a list or an object" if isinstance(value, list | dict) else "one beyond 64 bits"
            raise BadValue(name, f"expected a number, a word, true, false or null, got {got}")
        if not (is_text(name) and is_text(value)):
            raise BadValue(name, "expected text, got half a character; mend it")


def _refused(problem: BadValue) -> Answer:
    return Answer(422, {"column": problem.column, "error": str(problem)})
