"""Prometheus metrics of the service. Groups are labels of a metric; ids of people never are."""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from fairsaoml.serve.service import TALLY
from fairsaoml.serve.views import Views

__all__ = ["Metrics"]

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
TRAFFIC_SECONDS = 10  # one point of the page's traffic curve
TRAFFIC_POINTS = 720
WINDOW = 10  # rounds that the gauges of rates speak of
RATES = f"Rates by group over the last {WINDOW} rounds."
RATIOS = f"Lowest group's rate over the highest's, over the last {WINDOW} rounds."


class Metrics(Collector):
    """Counts requests; all else is read from the service when it is asked for."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._registry = CollectorRegistry()
        self._latency = Histogram(
            "fairsaoml_request_duration_seconds",
            "Time to answer a request.",
            ["route", "status"],
            buckets=LATENCIES,
            registry=self._registry,
        )
        self._registry.register(self)
        self._points: deque[list[Any]] = deque(maxlen=TRAFFIC_POINTS)

    def observe(self, route: str, status: int, seconds: float, now: float) -> None:
        """Count one request."""
        self._latency.labels(route, status).observe(seconds)
        at = int(now // TRAFFIC_SECONDS * TRAFFIC_SECONDS)
        if not self._points or self._points[-1][0] != at:
            self._points.append([at, 0, 0.0, 0.0])
        point = self._points[-1]
        point[1] += 1
        point[2] += seconds
        point[3] = max(point[3], seconds)

    def traffic(self) -> list[dict[str, float]]:
        """Return requests a second, their mean and longest time, by ten seconds."""
        return [
            {"at": at, "rate": count / TRAFFIC_SECONDS, "mean": total / count, "longest": longest}
            for at, count, total, longest in list(self._points)
        ]

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> Iterator[Any]:
        """Nothing is asked at registration."""
        return iter(())

    def collect(self) -> Iterator[Any]:
        """Yield what the service knows of itself, as counters and gauges."""
        service, said = self._views.service, self._views.fairness(WINDOW)
        counts, round = service.store.counts, service.live.round
        tasks, waiting = {(): counts["tasks"]}, {(): counts["waiting"]}
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
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        for kind, name, words, labels, samples in (
            (counter, "rows", "Rows by what became of them.", ["what"], rows),
            (counter, "tasks", "Tasks closed.", [], tasks),
            (gauge, "waiting_rows", "Decisions whose label may still come.", [], waiting),
            (gauge, "model_round", "Rounds that the model has learned.", [], {(): round}),
            (gauge, "store_bytes", "Size of the store.", [], {(): service.store.size()}),
            (gauge, "alarms", "Alarms that are on.", ["kind"], alarms),
            (gauge, "rate", RATES, ["attribute", "group", "rate"], rates),
            (gauge, "fairness_ratio", RATIOS, ["attribute", "notion"], ratios),
        ):
            family = kind(f"fairsaoml_{name}", words, labels=labels)
            for values, value in samples.items():
                family.add_metric(values, value)
            yield family
