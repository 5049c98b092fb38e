"""Decisions: each row once, whatever comes twice; committed before they are told."""

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairsaoml.serve.live import Live
from fairsaoml.serve.reading import BadValue, Reader, bad_id
from fairsaoml.serve.store import FullDisk, Store, to_text
from fairsaoml.serve.tasks import NewRow, Tasks

__all__ = ["Answer", "Deciding"]


class Answer(NamedTuple):
    """What is said about one row: a decision, or why there is none."""

    status: int  # 200, 409, 422, 507
    content: dict[str, Any]


class Deciding:
    """Rows in, answers out; the same id and row again, the same answer."""

    def __init__(self, store: Store, tasks: Tasks, reader: Reader) -> None:
        self.store, self.tasks, self.reader = store, tasks, reader

    def decide(self, live: Live, rows: Sequence[Any], now: float) -> list[Answer]:
        """Decide rows by one state, commit them together, and answer each."""
        answers: list[Answer | None] = [None] * len(rows)
        ids: list[str] = []
        contents: list[str] = []
        for place, row in enumerate(rows):
            problem = _bad_row(row)
            if problem:
                answers[place] = _refused(*problem)
            ids.append("" if problem else to_text(row.get("id", secrets.token_hex(8))))
            contents.append("" if problem else _content(row))
        known = self.store.by_id("content, answer, round", [id for id in ids if id])
        first: dict[str, int] = {}
        repeats, new = [], []
        for place, id in enumerate(ids):
            if answers[place] is not None:
                continue
            if id in known:
                content, answer, round = known[id]
                answers[place] = (
                    self._said(id, json.loads(answer), round)
                    if content == contents[place]
                    else _conflict(id)
                )
            elif id in first:
                repeats.append(place)
            else:
                first[id] = place
                new.append(place)
        bad = self.reader.bad_rows([rows[place] for place in new])
        for place, problem in bad.items():
            answers[new[place]] = _refused(*problem)
        good = [place for index, place in enumerate(new) if index not in bad]
        if good:
            self._issue(live, rows, ids, contents, good, answers, now)
        for place in repeats:
            same = contents[place] == contents[first[ids[place]]]
            answers[place] = answers[first[ids[place]]] if same else _conflict(ids[place])
        return [answer for answer in answers if answer is not None]

    def _issue(
        self,
        live: Live,
        rows: Sequence[Mapping[str, Any]],
        ids: Sequence[str],
        contents: Sequence[str],
        good: Sequence[int],
        answers: list[Answer | None],
        now: float,
    ) -> None:
        """Decide new rows, commit them, and set their answers."""
        said = live.decide(*self.reader.encode([rows[place] for place in good]))
        decided = list(zip(said.decision, said.probability, strict=True))
        issued = [
            NewRow(
                id=ids[place],
                content=contents[place],
                answer=to_text(answer),
                round=live.round,
                why=why,
                groups=to_text(self.reader.groups(rows[place])),
            )
            for place, answer, why in zip(good, decided, said.why, strict=True)
        ]
        try:
            with self.store.writing():
                self.tasks.issue(issued, now)
        except FullDisk as problem:
            for place, answer in zip(good, decided, strict=True):
                content = self._said(ids[place], answer, live.round).content
                answers[place] = Answer(507, {**content, "recorded": False, "error": str(problem)})
            return
        for place, answer in zip(good, decided, strict=True):
            answers[place] = self._said(ids[place], answer, live.round)

    def _said(self, id: str, answer: Sequence[Any], round: int) -> Answer:
        decision, probability = answer
        return Answer(
            200,
            {
                "id": json.loads(id),
                "decision": self.reader.words[decision],
                "probability": probability,
                "round": round,
            },
        )


def _content(row: Mapping[str, Any]) -> str:
    return to_text({name: value for name, value in row.items() if name != "id"})


def _bad_row(row: Any) -> BadValue | None:
    if not isinstance(row, dict):
        return BadValue("", "expected an object of column and value")
    for name, value in row.items():
        if isinstance(value, float) and not math.isfinite(value):
            return BadValue(name, "expected a number of 64 bits, got a larger one; mend it")
        if isinstance(value, list | dict):
            return BadValue(
                name, "expected a number, a word, true, false or null, got a list or an object"
            )
    if "id" in row and (problem := bad_id(row["id"])):
        return BadValue("id", problem)
    return None


def _refused(column: str, message: str) -> Answer:
    return Answer(422, {"column": column, "error": message})


def _conflict(id: str) -> Answer:
    message = "another row was decided under this id; give every row an id of its own"
    return Answer(409, {"id": json.loads(id), "error": message})
