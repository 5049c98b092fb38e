"""Labels: taken once, corrected while their task is open, never to come, or erased with the row."""

import json
from collections.abc import Sequence
from typing import Any

from fairsaoml.core.errors import DataError
from fairsaoml.serve.reading import Reader, id_text
from fairsaoml.serve.store import LABELLED, NEVER, WAITING, Store
from fairsaoml.serve.tasks import Tasks
from fairsaoml.serve.wire import to_line

__all__ = ["erase", "label", "never"]


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
