"""The live service beside what it stands on: an empty route, the bare learner, bare SQLite."""

import asyncio
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import answer_of
from benchmarks.measure import Measured, at_least, at_most

__all__ = ["measure", "open_service", "people"]

CLIENTS = 32
LABELS = 10_000
LABEL_TURNS = 5
BATCH = 500
COLUMNS = 8
EMPTY = """
import json, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def same(request):
    rows = json.loads(await request.body())["rows"]
    answer = {"id": rows[0]["id"], "decision": "yes", "probability": 0.5432109876543211, "round": 3}
    return JSONResponse({"decisions": [answer for row in rows]})
app = Starlette(routes=[Route("/v1/predict", same, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), http="h11", loop="asyncio", log_level="critical")
"""


def measure(full: bool) -> list[Measured]:
    """Ratios in one run, on one machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = _run(Path(name))
        seconds = 6.0 if full else 3.0
        empty = _empty_route(seconds)
        ready, alone, learning = _service(folder, seconds)
        batch, bare_batch = _batches(folder)
        labels, bare_labels = _labels(folder, Path(name))
        rounds = 2000 if full else 500
        early, late = answer_of("service_memory", str(_run(Path(name) / "again")), str(rounds))
    return [
        Measured(
            "single rows, 32 clients: requests/s over those of an empty route",
            len(alone) / len(empty),
            at_least(0.35),
            f"{len(alone) / seconds:.0f} and {len(empty) / seconds:.0f} requests/s",
        ),
        Measured(
            "99th percentile while rounds are learned over that without",
            _late(learning) / _late(alone),
            at_most(3.0),
            f"{1000 * _late(learning):.0f} and {1000 * _late(alone):.0f} ms",
        ),
        Measured(
            "batches of 500 rows: rows/s over those of the bare encoder and learner",
            bare_batch / batch,
            at_least(0.5),
            f"{BATCH / batch:.0f} and {BATCH / bare_batch:.0f} rows/s",
        ),
        Measured(
            "10,000 labels in one call over the bare SQLite transaction",
            labels / bare_labels,
            at_most(3.0),
            f"{1000 * labels:.0f} and {1000 * bare_labels:.0f} ms",
        ),
        Measured("start to ready, seconds", ready, at_most(3.0), "warm cache"),
        Measured(
            f"resident memory after {rounds} rounds over that after 200",
            late / early,
            at_most(1.1),
            f"{late / 2**20:.0f} and {early / 2**20:.0f} MB",
        ),
    ]


def _late(seconds: list[float]) -> float:
    return float(np.quantile(seconds, 0.99))


def people(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of a made table."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, COLUMNS)).round(3)
    return [
        {**{f"x{place}": value for place, value in enumerate(row)}, "job": "ab"[number % 2]}
        for number, row in enumerate(x.tolist())
    ]


def _run(folder: Path) -> Path:
    """A short run of a made table."""
    from fairsaoml.runs.runner import run
    from fairsaoml.runs.spec import RunSpec

    folder.mkdir(exist_ok=True)
    rows = people(600)
    lines = [",".join([*rows[0], "sex", "y"])]
    for number, row in enumerate(rows):
        label = row["x0"] + row["x1"] > 0
        lines.append(",".join([*map(str, row.values()), "fm"[number % 3 == 0], "ny"[label]]))
    (folder / "made.csv").write_text("\n".join(lines) + "\n")
    settings = {"label": "y", "sensitive": ["sex"], "rows": 200}
    spec = RunSpec(stream=str(folder / "made.csv"), stream_settings=settings, seeds=(0,))
    run(spec, folder / "run")
    return folder / "run"


# Over HTTP


def _empty_route(seconds: float) -> list[float]:
    port = _free_port()
    process = subprocess.Popen([sys.executable, "-c", EMPTY, str(port)])
    try:
        _wait_for(port)
        return asyncio.run(_load(port, seconds))
    finally:
        process.terminate()
        process.wait()


def _service(folder: Path, seconds: float) -> tuple[float, list[float], list[float]]:
    """Seconds to be ready, and of each request without and with rounds being learned."""
    with _serving(folder):
        pass  # everything is compiled once
    begun = time.perf_counter()
    with _serving(folder) as port:
        ready = time.perf_counter() - begun
        time.sleep(2.0)  # larger programs are compiled beside
        asyncio.run(_load(port, 1.0))
        alone = asyncio.run(_load(port, seconds))
        stop = threading.Event()
        teacher = threading.Thread(target=_teach, args=[port, stop])
        teacher.start()
        learning = asyncio.run(_load(port, seconds))
        stop.set()
        teacher.join()
    return ready, alone, learning


@contextmanager
def _serving(folder: Path) -> Iterator[int]:
    port = _free_port()
    words = ["-m", "fairsaoml.cli", "serve", str(folder), "--port", str(port), "--wait", "0s"]
    process = subprocess.Popen([sys.executable, *words, "--rows", "200"], stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _teach(port: int, stop: threading.Event) -> None:
    """Rows with their labels, task after task."""
    import requests

    address, number = f"http://127.0.0.1:{port}/v1", 0
    while not stop.is_set():
        rows = [{"id": f"t{number}-{i}", **row} for i, row in enumerate(people(50, number))]
        requests.post(f"{address}/predict", json={"rows": rows}, timeout=60)
        labels = [{"id": row["id"], "label": "ny"[row["x0"] > 0]} for row in rows]
        requests.post(f"{address}/labels", json={"labels": labels}, timeout=60)
        number += 1
        time.sleep(0.05)


async def _load(port: int, seconds: float) -> list[float]:
    """How long each request took, of clients that ask again when answered."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        rows = people(20, number)
        turn = 0
        while (begun := time.perf_counter()) < end:
            turn += 1
            body = json.dumps({"rows": [{"id": f"{number}-{begun}", **rows[turn % 20]}]}).encode()
            head = (
                "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            size = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(size)
            took.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return took


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait_for(port: int) -> None:
    """Until a request is answered."""
    import requests

    while True:
        try:
            requests.get(f"http://127.0.0.1:{port}/v2/health/ready", timeout=60)
            return
        except requests.ConnectionError:
            time.sleep(0.02)


# In this process


def _in_turns(
    first: Callable[[int], Any], second: Callable[[int], Any], turns: int
) -> tuple[float, float]:
    """Median seconds of two that take turns."""
    took: tuple[list[float], list[float]] = [], []
    for turn in range(turns):
        for work, seconds in zip((first, second), took, strict=True):
            begun = time.perf_counter()
            work(turn)
            seconds.append(time.perf_counter() - begun)
    return statistics.median(took[0]), statistics.median(took[1])


def open_service(folder: Path, rows: int) -> Any:
    """A service with tasks of so many rows, without HTTP."""
    from fairsaoml.serve.service import Service
    from fairsaoml.serve.tasks import TaskRules

    rules = TaskRules(
        task_rows=rows,
        task_seconds=None,
        wait_seconds=None,
        late="next",
        unknown="count",
        max_rows=10**6,
        retain_seconds=None,
    )
    return Service(folder, rules)


def _batches(folder: Path) -> tuple[float, float]:
    """Seconds of a batch in the service, from its JSON on, and of the bare encoder and learner."""
    import fairsaoml
    from fairsaoml.serve.reading import parse, to_json
    from fairsaoml.serve.server import collect_seldom

    service = open_service(folder, 10**6)
    collect_seldom()  # as in a service; for both sides
    bodies = [
        json.dumps([{"id": f"b{turn}-{i}", **row} for i, row in enumerate(people(BATCH, turn))])
        for turn in range(17)
    ]
    model = fairsaoml.load(folder)

    def bare(turn: int) -> Any:
        return model.decision_function(json.loads(bodies[turn]))

    def whole(turn: int) -> Any:
        return to_json([one.content for one in service.decide([parse(bodies[turn].encode())])[0]])

    bare(15), whole(15)
    times = _in_turns(whole, bare, 15)
    service.close()
    return times


def _labels(folder: Path, scratch: Path) -> tuple[float, float]:
    """Seconds of 10,000 labels in the service, and of the same rows updated in bare SQLite."""
    from fairsaoml.serve.reading import parse

    service = open_service(folder, 10**6)
    bare = sqlite3.connect(scratch / "bare.sqlite", isolation_level=None)
    bare.execute("PRAGMA journal_mode=WAL")
    bare.execute("PRAGMA synchronous=FULL")
    bare.execute(
        "CREATE TABLE rows (number INTEGER PRIMARY KEY, id TEXT, content TEXT, label TEXT)"
    )
    bare.execute("CREATE INDEX by_id ON rows (id)")
    bodies = []
    for turn in range(LABEL_TURNS):
        rows = [{"id": f"{turn}-{i}", **row} for i, row in enumerate(people(LABELS, turn))]
        bodies.append(json.dumps([{"id": row["id"], "label": "y"} for row in rows]).encode())
        service.decide([rows])
        kept = [(row["id"], json.dumps(row)) for row in rows]
        bare.execute("BEGIN")
        bare.executemany("INSERT INTO rows (id, content) VALUES (?, ?)", kept)
        bare.execute("COMMIT")

    def taken(turn: int) -> None:
        assert service.label(parse(bodies[turn]))["taken"] == LABELS

    def updated(turn: int) -> None:
        pairs = [(one["label"], one["id"]) for one in json.loads(bodies[turn])]
        bare.execute("BEGIN")
        bare.executemany("UPDATE rows SET label = ? WHERE id = ?", pairs)
        bare.execute("COMMIT")

    times = _in_turns(taken, updated, LABEL_TURNS)
    service.close()
    bare.close()
    return times
