"""Labels: taken once, corrected while their task is open, never to come, or erased with the row."""

import json
from collections.abc import Sequence
from typing import Any

from fairsaoml.core.errors import DataError
from fairsaoml.serve.reading import Reader, bad_id
from fairsaoml.serve.store import LABELLED, NEVER, WAITING, Store
from fairsaoml.serve.tasks import Tasks
from fairsaoml.serve.wire import to_line

__all__ = ["Labelling"]


class Labelling:
    """What becomes of decided rows."""

    def __init__(self, store: Store, tasks: Tasks, reader: Reader) -> None:
        self.store, self.tasks, self.reader = store, tasks, reader

    def label(self, labels: Sequence[Any], now: float) -> dict[str, Any]:
        """Take labels `{"id", "label", "group"?}`; return what became of them.

        Raises:
            FullDisk: nothing of this call was taken.
        """
        read, errors = self._read_labels(labels)
        known = self.store.by_id("number, state, task, label", [id for id, *_ in read])
        new: dict[int, str] = {}
        corrected: dict[int, str] = {}
        groups: dict[int, str] = {}
        repeated: list[Any] = []
        late: dict[int, Any] = {}
        unknown: list[Any] = []
        closed = self.store.counts["tasks"]
        for text, id, label, given in read:
            number, state, task, before = known.get(text, (0, NEVER, 0, None))
            if state == NEVER:
                unknown.append(id)
                continue
            is_late, is_first = task <= closed, state == WAITING and number not in new
            if is_first and is_late:
                late[number] = id
            elif not is_first:
                if label == (new.get(number) or corrected.get(number) or before):
                    repeated.append(id)
                    continue
                if is_late:  # learned already, or about to be with its first label
                    late[-number] = id
                    continue
            (new if is_first or number in new else corrected)[number] = label
            if given is not None:
                groups[number] = given
        with self.store.writing():
            self.tasks.label(new, [number for number in late if number > 0], now)
            self.tasks.correct(corrected, groups)
            self.store.counts.update(
                unknown=len(unknown), repeated=len(repeated), corrected=len(corrected)
            )
            if new:
                last, longest = self.store.fact("labels") or [now, 0.0]
                self.store.set_fact("labels", [now, max(longest, now - last)])
        said = {"repeated": repeated, "late": list(late.values()), "unknown": unknown}
        return {"taken": len(new), "corrected": len(corrected), **said, "errors": errors}

    def _read_labels(
        self, labels: Sequence[Any]
    ) -> tuple[list[tuple[str, Any, str, str | None]], list[dict[str, Any]]]:
        """Return (id as text, id, label, groups) of those that can be read, and what is wrong."""
        read, errors = [], []
        codes: dict[str, str] = {}  # few values, many labels
        for place, one in enumerate(labels):
            try:
                id, value, group = one["id"], one["label"], one.get("group")
                if problem := bad_id(id):
                    raise DataError(problem)
                word = value if type(value) is str else repr(value)
                if word not in codes:
                    codes[word] = str(self.reader.label(value))
                groups = None if group is None else to_line(self.reader.group_given(group))
                read.append((to_line(id), id, codes[word], groups))
            except DataError as problem:
                errors.append({"row": place, "error": str(problem)})
            except (TypeError, KeyError, AttributeError):
                message = 'expected an object with "id" and "label", in whole characters'
                errors.append({"row": place, "error": message})
        return read, errors

    def never(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Wait no longer for the labels of these ids; they are counted by decision and group."""
        texts = _texts(ids)
        found = self.store.by_id("number, state, answer, groups", texts)
        rows = {id: row for id, row in found.items() if row[1] == WAITING}
        with self.store.writing():
            self.store.write_many(
                f"UPDATE rows SET state = {NEVER} WHERE number = ?",
                [(row[0],) for row in rows.values()],
            )
            words = [self.reader.words[json.loads(answer)[0]] for _, _, answer, _ in rows.values()]
            groups = [json.loads(groups) for *_, groups in rows.values()]
            for name, levels in self.reader.levels(groups).items():
                for word, level in zip(words, levels, strict=True):
                    self.store.counts[to_line(["never", word, name, level])] += 1
            self.store.counts.update(never=len(rows), waiting=-len(rows), held=-len(rows))
        return {"taken": len(rows), "unknown": _unknown(texts, found)}

    def erase(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Remove rows from the store; what was learned from them stays learned."""
        texts = _texts(ids)
        found = self.store.by_id("number, state", texts)
        with self.store.writing():
            self.store.write_many("DELETE FROM rows WHERE id = ?", [(id,) for id in found])
            states = [state for _, state in found.values()]
            self.store.counts.update(
                erased=len(found),
                waiting=-states.count(WAITING),
                held=-states.count(WAITING) - states.count(LABELLED),
            )
        self.store.tidy()
        return {"erased": len(found), "unknown": _unknown(texts, found)}


def _texts(ids: Sequence[Any]) -> list[str]:
    for place, id in enumerate(ids):
        if problem := bad_id(id):
            raise DataError(f"{problem}, got {str(id)[:50]!r} at {place}")
    return list(dict.fromkeys(map(to_line, ids)))


def _unknown(texts: Sequence[str], found: dict[str, tuple]) -> list[Any]:
    return [json.loads(id) for id in texts if id not in found]
