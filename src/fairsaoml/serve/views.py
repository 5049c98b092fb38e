"""What the service tells of itself: rounds, fairness, decisions, events; metrics for Prometheus.

Reads have a connection of their own and see what is committed; they never wait for a writer. Groups
are labels of a metric; ids of people never are.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from fairsaoml.core.errors import DataError
from fairsaoml.evaluate import confidence, metrics, verdict
from fairsaoml.serve.access import Refused
from fairsaoml.serve.deciding import reasons_from_bytes
from fairsaoml.serve.reading import is_text, to_line
from fairsaoml.serve.service import TALLY, Service
from fairsaoml.serve.store import NEVER

MOST_LINES = 2000  # rounds or events in one answer
WINDOW = 100  # rounds that `fairness` speaks of, unless asked
RECORDS = "SELECT record FROM tasks WHERE record IS NOT NULL"
FIGURES = ("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy")
STATES = ("waiting", "labelled", "learned", "never")
LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
TRAFFIC_SECONDS = 10  # one point of the page's traffic curve
TRAFFIC_POINTS = 720
GAUGED = 10  # rounds that the gauges of rates speak of
RATE_WORDS = f"Rates by group over the last {GAUGED} rounds."
RATIO_WORDS = f"Lowest group's rate over the highest's, over the last {GAUGED} rounds."


class Views(Collector):
    """Answers to questions about a service; requests are counted here, all else is read there."""

    def __init__(self, service: Service) -> None:
        self.service, self._query, self.begun = service, service.query, time.time()
        self._judged = lru_cache(maxsize=8)(self._judge)
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._latency = Histogram(
            "fairsaoml_request_duration_seconds",
            "Time to answer a request.",
            ["route", "status"],
            buckets=LATENCIES,
            registry=self._registry,
        )
        self._points: deque[tuple[int, int, float, float]] = deque(maxlen=TRAFFIC_POINTS)

    def _lines(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return [json.loads(line) for (line,) in self._query(sql, *values)]

    def rounds(self, since: int) -> dict[str, Any]:
        """Return the journal's lines after a round, oldest first, and the last event's number."""
        event = self.last_event()
        query = f"{RECORDS} AND round > ? ORDER BY round LIMIT ?"
        lines = self._lines(query, since - self.service.rounds_before, MOST_LINES)
        return {"rounds": lines, "event": event}

    def fairness(self, window: int = WINDOW) -> dict[str, Any]:
        """Return the verdict on the last rounds, each group's rates with intervals, and alarms."""
        if not 1 <= window <= MOST_LINES:
            raise DataError(f"expected a window of 1 to {MOST_LINES} rounds, got {window}")
        judged = self._judged(window, self.service.live.round)
        query = "SELECT content FROM events WHERE kind = 'alarm' ORDER BY number DESC LIMIT 50"
        return {**judged, "alarms": self.service.alarms.on, "alarm_history": self._lines(query)}

    def _judge(self, window: int, round: int) -> dict[str, Any]:
        """Judge the last rounds, up to `round`: the answer is the same until there is another."""
        lines = self._lines(f"{RECORDS} ORDER BY number DESC LIMIT ?", window)[::-1]
        if not lines:
            return {"verdict": None, "rounds": [], "groups": {}}
        return {
            "verdict": verdict.judge(lines, self.service.asked),
            "rounds": [lines[0]["round"], lines[-1]["round"]],
            "groups": {
                attribute: {level: _rates(six) for level, six in levels.items()}
                for attribute, levels in metrics.pooled(lines).items()
            },
        }

    def decision(self, id: str) -> dict[str, Any]:
        """Return what was decided under an id.

        Raises:
            Refused: nothing was.
        """
        text = to_line(id) if is_text(id) else None
        number = id if id.lstrip("-").isdigit() else None
        found = self._query(
            "SELECT id, at, round, content, answer, groups, label, state, why FROM rows "
            "WHERE id IN (?, ?) ORDER BY number DESC LIMIT 1",
            text,
            number,
        )
        if not found:
            raise Refused(404, f"no decision under the id {id!r}")
        [(key, at, round, content, answer, groups, label, state, why)] = found
        decided, probability = json.loads(answer)
        words = self.service.reader.words
        return {
            "id": json.loads(key),
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
        online, reader, rules = service.live, service.reader, service.tasks.rules
        counts = service.tasks.counts
        return {
            "learner": online.learner,
            "round": online.round,
            "columns": list(reader.columns),
            "label": {"column": reader.model.label.column, "values": list(reader.words)},
            "groups": {name: list(levels) for name, levels in online.schema.attributes},
            "asked": {"notions": list(service.asked.judged), "ratio": service.asked.ratio},
            "settings": {
                "rows": rules.task_rows,
                "wait_seconds": rules.wait_seconds,
                "retain_seconds": rules.retain_seconds,
            },
            "counts": {name: counts[name] for name in (*TALLY, "waiting", "held", "erased")},
            "never": self.never(),
            "alarms": service.alarms.on,
            "begun": self.begun,
        }

    def never(self) -> dict[str, Any]:
        """Return labels that will never come, by decision and group, and what that does."""
        by: dict[str, Any] = {}
        unlabelled = set[str]()  # decisions
        for name, count in dict(self.service.tasks.counts).items():
            if name.startswith('["never"'):
                _, decision, attribute, group = json.loads(name)
                key = "unknown" if group is None else str(group)
                by.setdefault(attribute, {}).setdefault(decision, {})[key] = count
                unlabelled.add(decision)
        labelled = self._query(
            "SELECT DISTINCT json_extract(answer, '$[0]') FROM (SELECT answer FROM rows WHERE "
            f"label IS NOT NULL AND state != {NEVER} ORDER BY number DESC LIMIT 1000)"
        )
        decisions = {self.service.reader.words[decided] for (decided,) in labelled}
        warning = ""
        if len(decisions) == 1 and unlabelled - decisions:
            [only] = decisions
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

    def observe(self, route: str, status: int, seconds: float, now: float) -> None:
        """Count one request."""
        self._latency.labels(route, status).observe(seconds)
        at = int(now // TRAFFIC_SECONDS * TRAFFIC_SECONDS)
        is_new = not self._points or self._points[-1][0] != at
        _, count, total, longest = (at, 0, 0.0, 0.0) if is_new else self._points.pop()
        self._points.append((at, count + 1, total + seconds, max(longest, seconds)))

    def traffic(self) -> list[dict[str, float]]:
        """Return requests a second, their mean and longest time, by ten seconds."""
        return [
            {"at": at, "rate": count / TRAFFIC_SECONDS, "mean": total / count, "longest": longest}
            for at, count, total, longest in list(self._points)
        ]

    def metrics(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Yield what the service knows of itself, as counters and gauges."""
        service, counts = self.service, self.service.tasks.counts
        said = self._judged(GAUGED, service.live.round)
        rows = {(name,): counts[name] for name in TALLY}
        on = Counter(one["kind"] for one in service.alarms.on.values())
        alarms = {(kind,): on[kind] for kind in ("fairness", "drift", "labels")}
        rates = {
            (attribute, group, name): figure["rate"]
            for attribute, levels in said["groups"].items()
            for group, figures in levels.items()
            for name, figure in figures.items()
            if isinstance(figure, dict)
        }
        ratios = {
            (attribute, notion): figures["ratio"]
            for attribute, entry in ((said["verdict"] or {}).get("attributes") or {}).items()
            for notion, figures in entry["notions"].items()
            if figures["ratio"] is not None
        }
        waiting, round, size = counts["waiting"], service.live.round, service.tasks.size()
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        for kind, name, words, labels, samples in (
            (counter, "rows", "Rows by what became of them.", ["what"], rows),
            (counter, "tasks", "Tasks closed.", [], {(): counts["tasks"]}),
            (gauge, "waiting_rows", "Decisions whose label may still come.", [], {(): waiting}),
            (gauge, "model_round", "Rounds that the model has learned.", [], {(): round}),
            (gauge, "store_bytes", "Size of the store.", [], {(): size}),
            (gauge, "alarms", "Alarms that are on.", ["kind"], alarms),
            (gauge, "rate", RATE_WORDS, ["attribute", "group", "rate"], rates),
            (gauge, "fairness_ratio", RATIO_WORDS, ["attribute", "notion"], ratios),
        ):
            family = kind(f"fairsaoml_{name}", words, labels=labels)
            for values, value in samples.items():
                family.add_metric(values, value)
            yield family


def _rates(counts: metrics.Counts) -> dict[str, Any]:
    """Return a group's rates with their 95 % intervals; null where there is no row."""
    shares = {name: metrics.RATES[name].share(counts) for name in FIGURES}
    shares["base_rate"] = confidence.Share(counts.y1_rows, counts.rows)
    rates = {
        name: {"rate": share.rate, **confidence.wilson(share)._asdict()} if share.whole else None
        for name, share in shares.items()
    }
    return {"rows": counts.rows, **rates}
