"""Kill the service with SIGKILL at random moments under load; nothing acknowledged may be lost.

    python -m tests.kill_service --kills 200

Three clients send rows and labels as fast as they are answered. After each kill the service is
started again and asked for every decision and label that was acknowledged. At the end the records
are replayed through the library: the same rounds.
"""

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx2

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from serving import Process, journal, make_run, people, replay

TIMES = {"seconds", "at", "task", "late", "unlabelled", "why"}
ROWS = 7  # in a request


class Load(threading.Thread):
    """A client that remembers what was acknowledged."""

    def __init__(self, address, seed):
        super().__init__(daemon=True)
        self.address, self.seed = address, seed
        self.decided, self.labelled = {}, {}

    def run(self):
        batch = 0
        try:
            with httpx2.Client(base_url=self.address, timeout=30) as http:
                while True:
                    rows = people(ROWS, seed=self.seed * 100_000 + batch)
                    batch += 1
                    answer = http.post("/v1/predict", json={"rows": [row for row, _ in rows]})
                    self.decided.update({one["id"]: one for one in answer.json()["decisions"]})
                    labels = [{"id": row["id"], "label": label} for row, label in rows]
                    taken = http.post("/v1/labels", json={"labels": labels}).json()
                    assert not taken["unknown"], taken
                    self.labelled.update({one["id"]: one["label"] for one in labels})
        except (httpx2.HTTPError, ValueError):
            pass  # killed


def kill_often(folder, kills, chance, say=lambda words: None):
    """Serve, load and kill so many times; return how many decisions and labels were acknowledged.

    Raises AssertionError where something acknowledged is missing or different.
    """
    decided, labelled = {}, {}
    for number in range(kills + 1):
        process = Process(folder, "--rows", "40", "--wait", "1s")
        missing = check(process.http, decided, labelled)
        assert not missing, missing[:5]
        if number == kills:
            before = -1
            while before < 1 or before < len(rounds(process.http)):  # until all is learned
                before = len(rounds(process.http))
                time.sleep(2.0)
            assert process.stop() == 0
            break
        clients = [Load(process.address, 3 * number + place) for place in range(3)]
        for client in clients:
            client.start()
        while not any(client.decided for client in clients) and clients[0].is_alive():
            time.sleep(0.01)  # a kill before anything was acknowledged would show nothing
        time.sleep(chance.uniform(0.0, 1.5))
        process.stop(9)
        for client in clients:
            client.join()
            decided |= client.decided
            labelled |= client.labelled
        say(f"kill {number + 1}: {len(decided)} decisions, {len(labelled)} labels acknowledged")
    with closing(sqlite3.connect(folder / "service" / "store.sqlite")) as store:
        [(rows, ids)] = store.execute("SELECT count(*), count(DISTINCT id) FROM rows").fetchall()
    assert rows == ids >= len(decided)  # each once
    lines, again = journal(folder), replay(folder)[: len(journal(folder))]
    assert lines
    for line, other in zip(lines, again, strict=True):
        for name in line.keys() - TIMES:
            assert line[name] == other[name], (line["round"], name)
    return len(decided), len(labelled), len(lines)


def rounds(http):
    """The lines of the journal."""
    return http.get("/v1/rounds").json()["rounds"]


def check(http, decided, labelled):
    """What was acknowledged and is not there, or is there otherwise."""
    missing = []
    ids = list(decided)
    # All of the last ones, and a sample of those that earlier restarts have shown.
    for id in ids[-60:] + random.sample(ids, min(40, len(ids))):
        found = http.get(f"/v1/decisions/{id}").json()
        same = all(found.get(name) == value for name, value in decided[id].items())
        if not same or (id in labelled and found["label"] != labelled[id]):
            missing.append((decided[id], found))
    counts = http.get("/v1/model").json()["counts"]
    if counts["issued"] < len(decided) or counts["labelled"] < len(labelled):
        missing.append(counts)
    return missing


def main():
    """Kill as often as asked, and say how it went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = make_run(Path(name))
        counted = kill_often(folder, asked.kills, random.Random(asked.seed), print)
        words = "decisions, labels and rounds, nothing lost"
        print(f"{asked.kills} kills; {json.dumps(counted)} {words}", flush=True)


if __name__ == "__main__":
    main()
