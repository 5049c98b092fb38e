"""A simulated world on the built-in stream: rows, later labels, and two changes of the world.

The model comes from the stream's first rounds. Then the world sends a row for every decision it
wants and a label some seconds later, half a second a round. After a third and two thirds of the
stream the world changes: the page shows the dip and the recovery within two minutes.
"""

import csv
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import requests

from fairsaoml.core.types import Attribute, Task
from fairsaoml.runs.runner import run
from fairsaoml.runs.spec import RunSpec
from fairsaoml.serve.server import serve
from fairsaoml.serve.task_rules import TaskRules
from fairsaoml.streams.catalog import open_stream

__all__ = ["serve_demo"]

ROWS, TASKS = 200, 60  # of each of the stream's three worlds
LEARNED_BEFORE = 10  # rounds that the model has learned when the service begins
ROUND_SECONDS = 0.55  # 170 rounds in a minute and a half
LABELS_LATER = 2  # rounds
ROWS_AT_ONCE = 25  # in a request
LABEL = "loan"


def serve_demo(rules: TaskRules, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Learn a few rounds, serve, and let the world begin; returns when told to stop."""
    stream = open_stream("synthetic", {"rows": ROWS, "tasks": TASKS})
    tasks = list(stream.tasks(0))
    names, attribute = stream.schema.features, stream.schema.attributes[0]
    with tempfile.TemporaryDirectory() as name:
        folder, table = Path(name) / "demo", Path(name) / "first.csv"
        known = [
            item for task in tasks[:LEARNED_BEFORE] for item in _people(task, names, attribute)
        ]
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*known[0][0], LABEL])
            writer.writeheader()
            writer.writerows({**row, LABEL: label} for row, label in known)
        settings = {"label": LABEL, "sensitive": [attribute.name], "rows": ROWS}
        run(RunSpec(stream=str(table), stream_settings=settings, seeds=(0,)), folder)

        def ready(address: str) -> None:
            on_ready(address)
            world = threading.Thread(
                target=_world, args=[address, tasks[LEARNED_BEFORE:], names, attribute], daemon=True
            )
            world.start()

        serve(folder, replace(rules, task_rows=ROWS), port=port, on_ready=ready)


def _people(
    task: Task, names: tuple[str, ...], attribute: Attribute
) -> list[tuple[dict[str, Any], str]]:
    """Return a task's rows as a client has them, each with its label."""
    codes = np.asarray(task.group)[:, 0].tolist()
    return [
        (
            {**dict(zip(names, row, strict=True)), attribute.name: attribute.levels[code]},
            "repaid" if label else "defaulted",
        )
        for row, code, label in zip(np.asarray(task.x, float).tolist(), codes, task.y, strict=True)
    ]


def _world(address: str, tasks: list[Task], names: tuple[str, ...], attribute: Attribute) -> None:
    """Send rows and, later, their labels, as a client would."""
    http = requests.Session()
    later: deque[list[dict[str, Any]]] = deque()
    for number, task in enumerate(tasks):
        begun = time.monotonic()
        people = _people(task, names, attribute)
        rows = [{"id": f"{number}-{place}", **row} for place, (row, _) in enumerate(people)]
        later.append(
            [{"id": f"{number}-{place}", "label": label} for place, (_, label) in enumerate(people)]
        )
        try:
            for first in range(0, len(rows), ROWS_AT_ONCE):
                content = {"rows": rows[first : first + ROWS_AT_ONCE]}
                http.post(f"{address}/v1/predict", json=content, timeout=60)
            if len(later) > LABELS_LATER:
                http.post(f"{address}/v1/labels", json={"labels": later.popleft()}, timeout=60)
        except requests.RequestException:
            return  # the service has stopped
        time.sleep(max(0.0, ROUND_SECONDS - (time.monotonic() - begun)))
    with suppress(requests.RequestException):
        for labels in later:
            http.post(f"{address}/v1/labels", json={"labels": labels}, timeout=60)
