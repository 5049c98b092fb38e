"""A run of a small table, and a service on a copy of it: shared by the tests of the service."""

import csv
import json
import queue
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from unittest import mock

import httpx2
import numpy as np
from starlette.testclient import TestClient

from fairsaoml.files import tidy
from fairsaoml.runs.folder import SERVICE
from fairsaoml.runs.runner import run
from fairsaoml.runs.spec import RunSpec
from fairsaoml.serve.app import App
from fairsaoml.serve.model import RunModel
from fairsaoml.serve.reading import Reader
from fairsaoml.serve.server import Server, serve
from fairsaoml.serve.service import STORE, Service, learn, read_rows
from fairsaoml.serve.store import Store
from fairsaoml.serve.tasks import TAKEN_ROWS, TaskRules

COLUMNS = ("age", "job", "sex")
ODD = "<script>alert(1)</script>"  # a group's name that must stay text


def replay(folder):
    """Learn every round of a stopped service again, from the run; return the journal's lines.

    Only the rows in the store are used, so all of them must still be there.
    """
    reader, records = Reader(RunModel(folder)), []
    online = reader.model.online
    with closing(Store(folder / SERVICE / STORE)) as store:
        for (task,) in store.query("SELECT number FROM tasks WHERE round IS NOT NULL ORDER BY 1"):
            online, record = learn(online, *read_rows(reader, store.query(TAKEN_ROWS, [task])))
            records.append(tidy(record))
    return records


def people(count, seed=0, groups=("f", ODD)):
    """Rows of a table with their labels."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        age, job = int(draw.integers(20, 70)), str(draw.choice(["clerk", "nurse", "boss"]))
        sex = groups[int(draw.random() < 0.5)]
        label = "yes" if draw.logistic() + (age - 45) / 10 + (job == "boss") > 0 else "no"
        rows.append(({"id": f"{seed}-{number}", "age": age, "job": job, "sex": sex}, label))
    return rows


def make_run(folder, **options):
    """A finished run of a table of 180 people in three tasks."""
    table = folder / "people.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, "hired"])
        writer.writerows([row[name] for name in COLUMNS] + [label] for row, label in people(180, 9))
    settings = {"label": "hired", "sensitive": ["sex"], "rows": 60}
    spec = RunSpec(stream=str(table), stream_settings=settings, seeds=(0,), **options)
    run(spec, folder / "run")
    return folder / "run"


_finished = []


def finished_run(folders):
    """The run that all tests of a process share; they serve copies of it."""
    if not _finished:
        _finished.append(make_run(folders.mktemp("served")))
    return _finished[0]


def rules(**changes):
    """Tasks of ten rows, which wait long."""
    settings = {"task_rows": 10, "task_seconds": None, "wait_seconds": 1000.0, "late": "next"}
    settings |= {"unknown": "count", "max_rows": 10_000, "retain_seconds": 10_000.0}
    return TaskRules(**{**settings, **changes})


class Client:
    """Asks an app, as a client would."""

    def __init__(self, app, client):
        self.app, self.http = app, client

    def post(self, path, content, **headers):
        answer = self.http.post(f"/v1/{path}", json=content, headers=headers)
        return answer.status_code, answer.json()

    def get(self, path, **headers):
        answer = self.http.get(path, headers=headers)
        return answer.status_code, answer.json()

    def predict(self, *rows):
        status, content = self.post("predict", {"rows": list(rows)})
        return status, content.get("decisions", content)

    def label(self, *labels):
        return self.post(
            "labels", {"labels": [{"id": id, "label": label} for id, label in labels]}
        )[1]

    def learn(self):
        """Wait until nothing is left to learn."""
        service = self.app.service
        while service.live.round < service.rounds_before + service.tasks.counts["rounds"]:
            assert not self.app.problem, self.app.problem


@contextmanager
def serving(folder, tokens=None, host="localhost", origin=None, **changes):
    """A service on a folder, in this process."""
    also = {name: changes.pop(name) for name in ("clock", "webhook") if name in changes}
    service = Service(folder, rules(**changes), **also)
    app = App(service, tokens or {}, origin)
    with TestClient(app.router, base_url=f"http://{host}") as client:
        yield Client(app, client)


@contextmanager
def listening(folder, **options):
    """A service that listens on a port, in a thread of this process: its address."""
    address, servers = queue.Queue(), queue.Queue()

    class Known(Server):
        def run(self, sockets):
            servers.put(self)
            super().run(sockets)

    told = {"port": 0, "on_ready": address.put, **options}
    with mock.patch("fairsaoml.serve.server.Server", Known):
        thread = threading.Thread(target=serve, args=[folder, rules()], kwargs=told)
        thread.start()
        server = servers.get(timeout=60)
    try:
        yield address.get()
    finally:
        server.should_exit = True
        thread.join()


def copy_of(run_folder, to):
    """A fresh copy of a run, to serve."""
    shutil.copytree(run_folder, to)
    return to


def journal(folder):
    """The rounds as the store holds them, without times."""
    with closing(sqlite3.connect(folder / "service" / "store.sqlite")) as store:
        lines = store.execute("SELECT record FROM tasks WHERE record IS NOT NULL ORDER BY round")
        return [json.loads(line) for (line,) in lines]


class Process:
    """A service in a process of its own, with a client."""

    def __init__(self, folder, *options):
        words = ["-m", "fairsaoml.cli", "serve", str(folder), "--port", "0", *options]
        self.process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        line = self.process.stdout.readline()
        assert " at http" in line, line + self.process.stdout.read()
        self.address = line.split(" at ")[1].strip()
        self.http = httpx2.Client(base_url=self.address, timeout=30)

    def stop(self, signal=signal.SIGTERM):
        """End it, and return its exit code."""
        self.http.close()
        self.process.send_signal(signal)
        code = self.process.wait(120)
        self.process.stdout.close()
        return code
