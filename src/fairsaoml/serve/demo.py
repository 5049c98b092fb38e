"""A simulated world on the built-in stream: rows, later labels, and two changes of the world.

The model comes from the stream's first rounds. Then the world sends a row for every decision it
wants and a label some seconds later, half a second a round. After a third and two thirds of the
stream the world changes: the page shows the dip and the recovery within two minutes.
"""

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
import pyarrow as pa
import requests
from pyarrow.csv import write_csv

from fairsaoml import RunSpec, Schema, Task, open_stream, run
from fairsaoml.serve.server import serve
from fairsaoml.serve.tasks import TaskRules

ROWS, TASKS = 200, 60  # of each of the stream's three worlds
LEARNED_BEFORE = 10  # rounds that the model has learned when the service begins
ROUND_SECONDS = 0.55  # 170 rounds in a minute and a half
LABELS_LATER = 2  # rounds
ROWS_AT_ONCE = 25  # in a request
LABEL = "loan"


def serve_demo(rules: TaskRules, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Learn a few rounds, serve, and let the world begin; returns when told to stop."""
    stream = open_stream("synthetic", {"rows": ROWS, "tasks": TASKS})
    tasks = [_people(task, stream.schema) for task in stream.tasks(0)]
    with tempfile.TemporaryDirectory() as name:
        folder, table = Path(name) / "demo", Path(name) / "first.csv"
        write_csv(pa.concat_tables(tasks[:LEARNED_BEFORE]), table)
        settings = {
            "label": LABEL,
            "sensitive": [attribute for attribute, _ in stream.schema.attributes],
            "rows": ROWS,
        }
        run(RunSpec(stream=str(table), stream_settings=settings, seeds=(0,)), folder)

        def ready(address: str) -> None:
            on_ready(address)
            to_come = [people.to_pylist() for people in tasks[LEARNED_BEFORE:]]
            threading.Thread(target=_world, args=[address, to_come], daemon=True).start()

        serve(folder, replace(rules, task_rows=ROWS), port=port, on_ready=ready)


def _people(task: Task, schema: Schema) -> Any:
    """Return a table of a task's rows as a client has them, with their labels."""
    columns = dict(zip(schema.features, np.asarray(task.x, float).T, strict=True))
    for (attribute, levels), codes in zip(schema.attributes, task.group.T, strict=True):
        columns[attribute] = np.array(levels)[codes]
    return pa.table({**columns, LABEL: np.where(task.y, "repaid", "defaulted")})


def _world(address: str, tasks: list[list[dict[str, Any]]]) -> None:
    """Send rows and, later, their labels, as a client would."""
    http = requests.Session()

    def post(path: str, **content: Any) -> None:
        http.post(f"{address}/v1/{path}", json=content, timeout=60)

    later: deque[list[dict[str, Any]]] = deque()
    with suppress(requests.RequestException):  # the service has stopped
        for number, people in enumerate(tasks):
            begun = time.monotonic()
            rows = [{"id": f"{number}-{place}", **row} for place, row in enumerate(people)]
            later.append([{"id": row["id"], "label": row.pop(LABEL)} for row in rows])
            for first in range(0, len(rows), ROWS_AT_ONCE):
                post("predict", rows=rows[first : first + ROWS_AT_ONCE])
            if len(later) > LABELS_LATER:
                post("labels", labels=later.popleft())
            time.sleep(max(0.0, ROUND_SECONDS - (time.monotonic() - begun)))
        for labels in later:
            post("labels", labels=labels)
