"""The service from outside: TLS, limits, webhooks, files to deploy it, kills, a new model."""

import contextlib
import json
import random
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue

import httpx2
import pytest

from fairsaoml.cli.folders import serve
from fairsaoml.core.errors import DataError
from fairsaoml.serve import access
from fairsaoml.serve.export import encoder_of, write_new
from fairsaoml.serve.server import _listen
from kill_service import kill_often
from serving import copy_of, finished_run, listening, people, serving

DEPLOY = Path(__file__).parents[1] / "docs" / "service"
TOKENS = {scope: scope[0] * 20 for scope in ("decide", "label", "read")}


@pytest.fixture
def folder(tmp_path_factory, tmp_path):
    return copy_of(finished_run(tmp_path_factory), tmp_path / "run")


# Who gets in


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_with_a_certificate_it_speaks_tls_and_wants_its_tokens(folder, tmp_path):
    certificate, key, tokens = (tmp_path / name for name in ("cert.pem", "key.pem", "tokens"))
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", *subject]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tokens.write_text("\n".join(f"{scope}={token}" for scope, token in TOKENS.items()))
    with listening(folder, certificate=certificate, key=key, tokens=tokens) as address:
        assert address.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(certificate))
        headers = {"authorization": f"Bearer {TOKENS['decide']}"}
        with httpx2.Client(base_url=address, verify=trusted, headers=headers) as http:
            rows = {"rows": [row for row, _ in people(2)]}
            assert len(http.post("/v1/predict", json=rows).json()["decisions"]) == 2
            assert http.get("/v1/model").status_code == 401
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(address.replace("https", "http") + "/v2/health/live")


def test_a_certificate_needs_its_key(folder, command):
    said = command("serve", folder, "--certificate", "cert.pem")
    assert said.code == 2
    assert "together" in said.err


def connected(address, sent):
    """A connection on which something was sent."""
    host, port = address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(sent)
    return connection


def test_long_heads_slow_requests_and_connections_too_many_are_cut_off(folder, monkeypatch):
    seconds = dict.fromkeys(access.SECONDS, 0.2)
    monkeypatch.setattr(access, "SECONDS", seconds)
    head = b"POST /v1/predict HTTP/1.1\r\nhost: localhost\r\n"
    with listening(folder) as address:
        with connected(address, b"GET / HTTP/1.1\r\nx: " + b"x" * 100_000) as one:
            assert one.recv(100).startswith(b"HTTP/1.1 4")
        with connected(address, head) as one:
            assert one.recv(100) == b""  # closed, without a word
        with connected(address, head + b"content-length: 100\r\n\r\n{") as one:
            assert b"200" not in one.recv(100)
        monkeypatch.setattr(access, "MOST_CONNECTIONS", 1)
        with connected(address, b""), connected(address, b"") as second:
            assert second.recv(100).startswith(b"HTTP/1.1 503")
        monkeypatch.setattr(access, "MOST_CONNECTIONS", 512)
        monkeypatch.setattr(access, "MOST_WATCHERS", 0)
        assert httpx2.get(f"{address}/v1/events").status_code == 503
        assert httpx2.get(f"{address}/v1/model").status_code == 200


def test_an_answer_is_not_held_back_until_its_head_is_acknowledged():
    with _listen("127.0.0.1", 0) as one:
        assert one.proto == socket.IPPROTO_TCP  # by this asyncio knows to set TCP_NODELAY


# What it tells others


def test_a_webhook_hears_of_an_alarm_once_it_is_committed(folder):
    heard = Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path = folder / "service" / "store.sqlite"
            with contextlib.closing(sqlite3.connect(path)) as store:
                lines = store.execute("SELECT content FROM events WHERE kind = 'alarm'").fetchall()
            heard.put((said, [json.loads(line) for (line,) in lines]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    receiver = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_port}/"
    with serving(folder, webhook=url) as client:
        client.app.service.alarms._enough = 0.0  # anything is enough
        rows = people(10)
        client.predict(*[row for row, _ in rows])
        client.label(*[(row["id"], label) for row, label in rows])
        said, committed = heard.get(timeout=60)
        assert said in committed
        assert (said["kind"], said["on"], said["round"]) == ("fairness", True, 4)
    receiver.shutdown()
    receiver.server_close()


# Files to deploy it


def test_the_dashboard_asks_for_metrics_that_are_there(folder):
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    with serving(folder) as client:
        rows = people(10)
        client.predict(*[row for row, _ in rows])
        client.label(*[(row["id"], label) for row, label in rows])
        client.learn()
        text = client.http.get("/metrics").text
    there = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[0] != "#"}
    wanted = set(re.findall(r"fairsaoml_\w+", asked))
    assert wanted <= there
    assert len(wanted) >= 6


def test_the_unit_and_the_container_start_it_with_options_it_has():
    unit = (DEPLOY / "fairsaoml.service").read_text()
    [start] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    container = (DEPLOY / "Containerfile").read_text().splitlines()
    words = json.loads(container[-1].removeprefix("CMD "))
    known = {f"--{name}" for name in serve.__annotations__}
    for started in (start.split(), words):
        assert started[1] == "serve"
        assert {word for word in started if word.startswith("--")} <= known
    kinds = {line.split()[0] for line in container if line and line[0] != "#"}
    assert kinds == {"FROM", "COPY", "RUN", "USER", "ENV", "EXPOSE", "CMD"}


# A model that has learned nothing yet


SCHEMA = {
    "label": {"hired": ["no", "yes"]},
    "sensitive": {"sex": ["f", "m"]},
    "columns": {
        "age": {"mean": 45, "spread": 14},
        "job": ["clerk", "boss"],
        "shift": ["day", "night"],
        "town": ["north", "south"],
    },
}


def test_a_new_model_from_a_schema_learns_from_the_first_label_on(tmp_path):
    file, folder = tmp_path / "schema.json", tmp_path / "new"
    file.write_text(json.dumps(SCHEMA))
    write_new(folder, file, task_rows=40)
    with serving(folder, task_rows=40) as client:
        rows = [
            {
                "id": n,
                "age": 20 + n,
                "job": "clerk",
                "shift": None,
                "town": "west",
                "sex": "fm"[n % 2],
            }
            for n in range(40)
        ]
        _, said = client.predict(*rows)
        assert {round(one["probability"], 3) for one in said} == {0.5}
        client.label(*[(row["id"], "yes" if row["age"] > 40 else "no") for row in rows])
        client.learn()
        young, old = client.predict({**rows[0], "id": "a"}, {**rows[39], "id": "b"})[1]
        assert young["probability"] < 0.3 < 0.7 < old["probability"]
        assert old["round"] == 1


@pytest.mark.parametrize(
    "spoil",
    [
        {"label": {"hired": ["yes"]}},
        {"columns": {}},
        {"columns": {"age": {"mean": 3}}},
        {"columns": {"age": {"mean": 3, "spread": 0}}},
        {"columns": {"job": ["a"]}},
        {"columns": {"sex": ["f", "m"]}},
        {"sensitive": 5},
    ],
)
def test_a_schema_that_says_too_little_is_refused(spoil):
    with pytest.raises(DataError, match="expected"):
        encoder_of({**SCHEMA, **spoil})


# Kills


def test_killed_twice_under_load_nothing_acknowledged_is_lost(folder):
    decided, labelled, rounds = kill_often(folder, 2, random.Random(0))
    assert min(decided, labelled, rounds) > 0
