"""Decisions and labels: each row is decided once, whatever comes twice, and labelled once.

A decision is committed before it is told. A label is corrected while its task is open; it may be
known never to come, or be erased with its row.
"""

import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from fairsaoml.core.errors import DataError
from fairsaoml.serve.live import decide
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.reading import PLAIN, BadValue, Reader, id_text, is_text, to_line
from fairsaoml.serve.store import LABELLED, NEVER, WAITING, FullDisk, Store
from fairsaoml.serve.tasks import NewRow, Tasks

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


def label(tasks: Tasks, reader: Reader, labels: Sequence[Any], now: float) -> dict[str, Any]:
    """Take labels `{"id", "label", "group"?}`; return what became of them.

    Raises:
        FullDisk: nothing of this call was taken.
    """
    read, errors = _read_labels(reader, labels)
    store = tasks.store
    known = store.by_id("number, state, task, label", [id for id, *_ in read])
    new: dict[int, str] = {}
    corrected: dict[int, str] = {}
    groups: dict[int, str] = {}
    new_but_late: list[int] = []
    late, repeated, unknown = [], [], []  # ids
    for text, id, label, group in read:
        number, state, task, before = known.get(text, (0, NEVER, 0, None))
        is_first = state == WAITING and number not in new
        if state == NEVER:
            unknown.append(id)
            continue
        if not is_first and label == (new.get(number) or corrected.get(number) or before):
            repeated.append(id)
            continue
        if tasks.is_late(task):
            late.append(id)
            if not is_first:  # learned already, or about to be with its first label
                continue
            new_but_late.append(number)
        (new if state == WAITING else corrected)[number] = label
        if group is not None:
            groups[number] = group
    with store.writing():
        tasks.label(new, new_but_late, now)
        tasks.correct(corrected, groups)
        store.counts.update(unknown=len(unknown), repeated=len(repeated), corrected=len(corrected))
        if new:
            last, longest = store.fact("labels") or [now, 0.0]
            store.set_fact("labels", [now, max(longest, now - last)])
    said = {"repeated": repeated, "late": late, "unknown": unknown, "errors": errors}
    return {"taken": len(new), "corrected": len(corrected), **said}


def _read_labels(
    reader: Reader, labels: Sequence[Any]
) -> tuple[list[tuple[str, Any, str, str | None]], list[dict[str, Any]]]:
    """Return (id as text, id, label, groups) of those that can be read, and what is wrong."""
    read, errors = [], []
    codes: dict[str, str] = {}  # few values, many labels
    for place, one in enumerate(labels):
        try:
            id, value, group = one["id"], one["label"], one.get("group")
            word = value if type(value) is str else repr(value)
            if word not in codes:
                codes[word] = str(reader.label(value))
            groups = None if group is None else to_line(reader.group_given(group))
            read.append((id_text(id), id, codes[word], groups))
        except DataError as problem:
            errors.append({"row": place, "error": str(problem)})
        except (TypeError, KeyError, AttributeError):
            message = 'expected an object with "id" and "label", in whole characters'
            errors.append({"row": place, "error": message})
    return read, errors


def never(store: Store, reader: Reader, ids: Sequence[Any]) -> dict[str, Any]:
    """Wait no longer for the labels of these ids; they are counted by decision and group."""
    texts = _texts(ids)
    found = store.by_id("number, state, answer, groups", texts)
    rows = {id: row for id, row in found.items() if row[1] == WAITING}
    with store.writing():
        store.write_many(
            f"UPDATE rows SET state = {NEVER} WHERE number = ?",
            [(row[0],) for row in rows.values()],
        )
        words = [reader.words[json.loads(answer)[0]] for _, _, answer, _ in rows.values()]
        groups = [json.loads(groups) for *_, groups in rows.values()]
        for name, levels in reader.levels(groups).items():
            for word, level in zip(words, levels, strict=True):
                store.counts[to_line(["never", word, name, level])] += 1
        store.counts.update(never=len(rows), waiting=-len(rows), held=-len(rows))
    return {"taken": len(rows), "unknown": _not_among(found, texts)}


def erase(store: Store, ids: Sequence[Any]) -> dict[str, Any]:
    """Remove rows from the store; what was learned from them stays learned."""
    texts = _texts(ids)
    found = store.by_id("number, state", texts)
    with store.writing():
        store.write_many("DELETE FROM rows WHERE id = ?", [(id,) for id in found])
        states = [state for _, state in found.values()]
        store.counts.update(
            erased=len(found),
            waiting=-states.count(WAITING),
            held=-states.count(WAITING) - states.count(LABELLED),
        )
    store.tidy()
    return {"erased": len(found), "unknown": _not_among(found, texts)}


def _texts(ids: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(map(id_text, ids)))


def _not_among(found: dict[str, tuple], texts: Sequence[str]) -> list[Any]:
    return [json.loads(id) for id in texts if id not in found]
