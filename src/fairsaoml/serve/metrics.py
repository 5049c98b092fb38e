"""Prometheus metrics of the service. Groups are labels of a metric; ids of people never are."""

from collections import deque
from collections.abc import Iterator
from functools import cache
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


class Metrics:
    """Counts requests; all else is read from the service when it is asked for."""

    def __init__(self, views: Views) -> None:
        self._registry = CollectorRegistry()
        self._latency = Histogram(
            "fairsaoml_request_duration_seconds",
            "Time to answer a request.",
            ["route", "status"],
            buckets=LATENCIES,
            registry=self._registry,
        )
        self._observer = cache(lambda route, status: self._latency.labels(route, str(status)))
        self._registry.register(_Stated(views))
        self._points: deque[list[Any]] = deque(maxlen=TRAFFIC_POINTS)

    def observe(self, route: str, status: int, seconds: float, now: float) -> None:
        """Count one request."""
        self._observer(route, status).observe(seconds)
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


class _Stated(Collector):
    """What the service knows of itself, when somebody asks."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def describe(self) -> Iterator[Any]:
        """Nothing is asked at registration."""
        return iter(())

    def collect(self) -> Iterator[Any]:
        """Yield counters and gauges."""
        service = self._views.service
        counts = service.store.counts
        rows = CounterMetricFamily(
            "fairsaoml_rows", "Rows by what became of them.", labels=["what"]
        )
        for name in TALLY:
            rows.add_metric([name], counts[name])
        yield rows
        yield CounterMetricFamily("fairsaoml_tasks", "Tasks closed.", value=counts["tasks"])
        for name, words, value in (
            ("waiting_rows", "Decisions whose label may still come.", counts["waiting"]),
            ("model_round", "Rounds that the model has learned.", service.live.round),
            ("store_bytes", "Size of the store.", _size(service)),
        ):
            yield GaugeMetricFamily(f"fairsaoml_{name}", words, value=value)
        alarms = GaugeMetricFamily("fairsaoml_alarms", "Alarms that are on.", labels=["kind"])
        for kind in ("fairness", "drift", "labels"):
            on = sum(one["kind"] == kind for one in service.alarms.on.values())
            alarms.add_metric([kind], on)
        yield alarms
        yield from self._rates()

    def _rates(self) -> Iterator[Any]:
        said = self._views.fairness(WINDOW)
        names = ("attribute", "group", "rate")
        help = f"Rates by group over the last {WINDOW} rounds."
        rates = GaugeMetricFamily("fairsaoml_rate", help, labels=names)
        for attribute, levels in said["groups"].items():
            for group, figures in levels.items():
                for name, figure in figures.items():
                    if isinstance(figure, dict):
                        rates.add_metric([attribute, group, name], figure["rate"])
        yield rates
        ratios = GaugeMetricFamily(
            "fairsaoml_fairness_ratio",
            f"Lowest group's rate over the highest's, over the last {WINDOW} rounds.",
            labels=["attribute", "notion"],
        )
        for attribute, entry in ((said["verdict"] or {}).get("attributes") or {}).items():
            for notion, figures in entry["notions"].items():
                if figures["ratio"] is not None:
                    ratios.add_metric([attribute, notion], figures["ratio"])
        yield ratios


def _size(service: Any) -> int:
    path = service.store.path
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
