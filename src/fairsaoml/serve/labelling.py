"""Labels: taken once, corrected while their task is open, never to come, or erased with the row."""

import json
from collections.abc import Sequence
from typing import Any

from fairsaoml.core.errors import DataError
from fairsaoml.serve.reading import Reader, bad_id
from fairsaoml.serve.store import LABELLED, NEVER, WAITING, Store, to_text
from fairsaoml.serve.tasks import Tasks

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
        new: dict[int, tuple[str, str, int]] = {}
        corrected: dict[int, tuple[str, str, int]] = {}
        said: dict[str, list[Any]] = {"repeated": [], "late": [], "unknown": []}
        late: list[int] = []
        for id, label, groups in read:
            number, state, task, before = known.get(id, (0, None, 0, None))
            text = to_text(label)
            earlier = new.get(number) or corrected.get(number)
            before = earlier[0] if earlier else before
            is_late = state is not None and self.tasks.is_late(task)
            if state is None or state == NEVER:
                said["unknown"].append(json.loads(id))
            elif before == text:
                said["repeated"].append(json.loads(id))
            elif state == WAITING and number not in new:
                new[number] = (text, groups, number)
                if is_late:
                    late.append(number)
                    said["late"].append(json.loads(id))
            elif is_late:  # learned already, or about to be with its first label
                said["late"].append(json.loads(id))
            else:
                (new if number in new else corrected)[number] = (text, groups, number)
        with self.store.writing():
            self.tasks.label(list(new.values()), late, now)
            self.store.write_many(
                "UPDATE rows SET label = ?, groups = json_patch(groups, ?) WHERE number = ?",
                list(corrected.values()),
            )
            self.store.counts.update(
                unknown=len(said["unknown"]),
                repeated=len(said["repeated"]),
                corrected=len(corrected),
            )
            if new:
                last, longest = self.store.fact("labels") or [now, 0.0]
                self.store.set_fact("labels", [now, max(longest, now - last)])
        return {"taken": len(new), "corrected": len(corrected), **said, "errors": errors}

    def _read_labels(
        self, labels: Sequence[Any]
    ) -> tuple[list[tuple[str, int, str]], list[dict[str, Any]]]:
        """Return (id, label, groups) of those that can be read, and what is wrong with others."""
        read, errors = [], []
        codes: dict[Any, int] = {}  # few values, many labels
        for place, one in enumerate(labels):
            try:
                if not isinstance(one, dict) or not {"id", "label"} <= one.keys():
                    raise DataError('expected an object with "id" and "label"')
                if problem := bad_id(one["id"]):
                    raise DataError(problem)
                value = one["label"]
                key = (type(value), value) if not isinstance(value, list | dict) else None
                if key not in codes:
                    codes[key] = self.reader.label(value)
                groups = self.reader.group_given(one.get("group"))
                read.append((to_text(one["id"]), codes[key], to_text(groups)))
            except DataError as problem:
                errors.append({"row": place, "error": str(problem)})
        return read, errors

    def never(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Wait no longer for the labels of these ids; they are counted by decision and group."""
        found = self.store.by_id("number, state, answer, groups", _texts(ids))
        rows = {id: row for id, row in found.items() if row[1] == WAITING}
        with self.store.writing():
            self.store.write_many(
                f"UPDATE rows SET state = {NEVER} WHERE number = ?",
                [(row[0],) for row in rows.values()],
            )
            for _, _, answer, groups in rows.values():
                decision = self.reader.words[json.loads(answer)[0]]
                for name in self.reader.attributes:
                    group = (json.loads(groups) or {}).get(name)
                    self.store.counts[to_text(["never", decision, name, group])] += 1
            self.store.counts.update(never=len(rows), waiting=-len(rows), held=-len(rows))
        return {
            "taken": len(rows),
            "unknown": [json.loads(id) for id in _texts(ids) if id not in found],
        }

    def erase(self, ids: Sequence[Any]) -> dict[str, Any]:
        """Remove rows from the store; what was learned from them stays learned."""
        found = self.store.by_id("number, state", _texts(ids))
        with self.store.writing():
            marks = [(id,) for id in found]
            self.store.write_many("DELETE FROM rows WHERE id = ?", marks)
            states = [state for _, state in found.values()]
            self.store.counts.update(
                erased=len(found),
                waiting=-states.count(WAITING),
                held=-states.count(WAITING) - states.count(LABELLED),
            )
        self.store.tidy()
        return {
            "erased": len(found),
            "unknown": [json.loads(id) for id in _texts(ids) if id not in found],
        }


def _texts(ids: Sequence[Any]) -> list[str]:
    for place, id in enumerate(ids):
        if problem := bad_id(id):
            raise DataError(f"{problem}, got {str(id)[:50]!r} at {place}")
    return list(dict.fromkeys(map(to_text, ids)))
