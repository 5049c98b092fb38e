"""What the service tells of itself: rounds, fairness, decisions, events; read from the store.

Reads have a connection of their own and see what is committed; they never wait for a writer.
"""

import json
import threading
import time
from functools import lru_cache
from typing import Any

from fairsaoml.core.errors import DataError
from fairsaoml.evaluate.confidence import Share, wilson
from fairsaoml.evaluate.metrics import RATES, Counts, pooled
from fairsaoml.evaluate.verdict import judge
from fairsaoml.serve.live import reasons_from_bytes
from fairsaoml.serve.service import TALLY, Service
from fairsaoml.serve.store import NEVER
from fairsaoml.serve.wire import is_text, to_line

__all__ = ["Views"]

MOST_LINES = 2000  # rounds or events in one answer
WINDOW = 100  # rounds that `fairness` speaks of, unless asked
FIGURES = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")
STATES = ("waiting", "labelled", "learned", "never")


class Views:
    """Answers to questions about a service."""

    def __init__(self, service: Service) -> None:
        self.service, self._connection = service, service.store.reader()
        self._lock = threading.Lock()
        self._judged = lru_cache(maxsize=8)(self._judge)
        self.begun = time.time()

    def _query(self, sql: str, *values: Any) -> list[tuple]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def _lines(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return [json.loads(line) for (line,) in self._query(sql, *values)]

    def rounds(self, since: int) -> dict[str, Any]:
        """Return the journal's lines after a round, oldest first, and the last event's number."""
        event = self.last_event()
        query = (
            "SELECT record FROM tasks WHERE round > ? AND record IS NOT NULL ORDER BY round LIMIT ?"
        )
        lines = self._lines(query, since - self.service.rounds_before, MOST_LINES)
        return {"rounds": lines, "event": event}

    def fairness(self, window: int = WINDOW) -> dict[str, Any]:
        """Return the verdict on the last rounds, and each group's rates with their intervals."""
        if not 1 <= window <= MOST_LINES:
            raise DataError(f"expected a window of 1 to {MOST_LINES} rounds, got {window}")
        judged = self._judged(window, self.service.live.round)
        return {**judged, "alarms": self.service.alarms.on}

    def _judge(self, window: int, round: int) -> dict[str, Any]:
        """Judge the last rounds, up to `round`: the answer is the same until there is another."""
        query = "SELECT record FROM tasks WHERE record IS NOT NULL ORDER BY number DESC LIMIT ?"
        lines = self._lines(query, window)[::-1]
        if not lines:
            return {"verdict": None, "rounds": [], "groups": {}}
        return {
            "verdict": judge(lines, self.service.asked),
            "rounds": [lines[0]["round"], lines[-1]["round"]],
            "groups": {
                attribute: {level: _rates(six) for level, six in levels.items()}
                for attribute, levels in pooled(lines).items()
            },
        }

    def decision(self, id: str) -> dict[str, Any] | None:
        """Return what was decided under an id, None where nothing was."""
        if not is_text(id):
            return None
        texts = [to_line(id)] + ([id] if id.lstrip("-").isdigit() else [])
        found = self._query(
            "SELECT id, at, round, content, answer, groups, label, state, why FROM rows "
            f"WHERE id IN ({','.join('?' * len(texts))}) ORDER BY number DESC LIMIT 1",
            *texts,
        )
        if not found:
            return None
        name, at, round, content, answer, groups, label, state, why = found[0]
        decided, probability = json.loads(answer)[:2]
        words = self.service.reader.words
        return {
            "id": json.loads(name),
            "at": at,
            "round": round,
            "decision": words[decided],
            "probability": probability,
            "row": json.loads(content),
            "groups": json.loads(groups),
            "label": None if label is None else words[json.loads(label)],
            "state": STATES[state],
            "why": why and reasons_from_bytes(why, self.service.live.schema.features),
        }

    def model(self) -> dict[str, Any]:
        """Return what runs."""
        service = self.service
        online, reader, counts = service.live, service.reader, service.store.counts
        return {
            "learner": online.learner,
            "round": online.round,
            "columns": list(reader.columns),
            "label": {"column": reader.model.label.column, "values": list(reader.words)},
            "groups": {name: list(levels) for name, levels in online.schema.attributes},
            "asked": {"notions": list(service.asked.judged), "ratio": service.asked.ratio},
            "settings": {
                "rows": service.tasks.rules.task_rows,
                "wait_seconds": service.tasks.rules.wait_seconds,
                "retain_seconds": service.tasks.rules.retain_seconds,
            },
            "counts": {name: counts[name] for name in (*TALLY, "waiting", "held", "erased")},
            "never": self.never(),
            "alarms": service.alarms.on,
            "begun": self.begun,
        }

    def never(self) -> dict[str, Any]:
        """Return labels that will never come, by decision and group, and what that does."""
        by: dict[str, Any] = {}
        decided: set[str] = set()
        for name, count in dict(self.service.store.counts).items():
            if name.startswith('["never"'):
                _, decision, attribute, group = json.loads(name)
                key = "unknown" if group is None else str(group)
                by.setdefault(attribute, {}).setdefault(decision, {})[key] = count
                decided.add(decision)
        words = self.service.reader.words
        labelled = self._query(
            "SELECT json_extract(answer, '$[0]'), count(*) FROM (SELECT answer FROM rows WHERE "
            f"label IS NOT NULL AND state != {NEVER} ORDER BY number DESC LIMIT 1000) GROUP BY 1"
        )
        kinds = {words[kind] for kind, _ in labelled}
        warning = ""
        if len(kinds) == 1 and decided - kinds:
            [only] = kinds
            warning = (
                f"Only rows decided {only!r} get labels: accuracy, true and false positive rates "
                "speak of these alone, and the model learns from these alone."
            )
        return {"counts": by, "warning": warning}

    def last_event(self) -> int:
        """Return the number of the newest event, 0 if there is none."""
        return self._query("SELECT coalesce(max(number), 0) FROM events")[0][0]

    def events(self, after: int) -> list[tuple[int, str, str]]:
        """Return (number, kind, JSON) of the events after one, oldest first."""
        query = "SELECT number, kind, content FROM events WHERE number > ? ORDER BY number LIMIT ?"
        return self._query(query, after, MOST_LINES)

    def alarms(self) -> list[dict[str, Any]]:
        """Return the last alarms, newest first."""
        query = "SELECT content FROM events WHERE kind = 'alarm' ORDER BY number DESC LIMIT 50"
        return self._lines(query)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()


def _rates(counts: Counts) -> dict[str, Any]:
    """Return a group's rates with their 95 % intervals; null where there is no row."""
    said: dict[str, Any] = {"rows": counts.rows}
    shares = {name: RATES[name].share(counts) for name in FIGURES}
    shares["base_rate"] = Share(counts.y1_rows, counts.rows)
    for name, share in shares.items():
        said[name] = {"rate": share.rate, **wilson(share)._asdict()} if share.whole else None
    return said
