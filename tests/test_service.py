"""The service: what is answered is kept, what is learned can be learned again, nobody gets in."""

import json
import shutil
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.core.types import Attribute, Schema, Task
from fairsaoml.evaluate.verdict import Asked
from fairsaoml.runs.learn import learn
from fairsaoml.serve import access
from fairsaoml.serve.access import read_tokens
from fairsaoml.serve.alarms import Alarms
from fairsaoml.serve.app import document
from fairsaoml.serve.predict import predict_rows
from fairsaoml.serve.reading import Reader
from fairsaoml.serve.saving import load
from fairsaoml.serve.service import Service
from fairsaoml.streams.table.kinds import fit_encoder
from fairsaoml.streams.table.roles import Label
from serving import ODD, Process, copy_of, finished_run, journal, people, replay, rules, serving


@pytest.fixture
def folder(tmp_path_factory, tmp_path):
    return copy_of(finished_run(tmp_path_factory), tmp_path / "run")


ROW = {"age": 40, "job": "nurse", "sex": "f"}


# Deciding


def test_a_text_is_a_number_where_the_table_wrote_numbers_that_way():
    table = pa.table({"pay": ["1.200,50", "0,75"] * 10})
    model = SimpleNamespace(
        encoder=fit_encoder(table),
        stream=SimpleNamespace(schema=Schema(("pay",), ())),
        online=SimpleNamespace(config=None),
        sensitive_columns=(),
        label=Label(column="y", positive="1", negative="0"),
    )
    reader = Reader(model)
    assert reader.bad_value({"pay": "3,5"}) is None
    assert reader.bad_value({"pay": 3.5}) is None
    assert "expected a number, got '3.5'" in str(reader.bad_value({"pay": "3.5"}))


def test_rows_are_decided_in_order_in_the_labels_own_words(folder):
    with serving(folder) as client:
        status, said = client.predict(*[row for row, _ in people(5)], ROW)
        assert status == 200
        assert [one["id"] for one in said[:5]] == [row["id"] for row, _ in people(5)]
        assert {one["decision"] for one in said} <= {"yes", "no"}
        assert all(0 < one["probability"] < 1 and one["round"] == 3 for one in said)
        assert len(said[5]["id"]) == 16  # given one
        _, [large, same] = client.predict({**ROW, "age": 10**30}, {**ROW, "age": 1e30})
        assert large["probability"] == same["probability"]


def test_the_same_row_again_gets_the_same_answer_and_another_row_under_its_id_a_conflict(folder):
    with serving(folder) as client:
        first = client.predict({**ROW, "id": "a"})
        assert client.predict(dict(reversed({**ROW, "id": "a"}.items()))) == first
        status, [conflict, fine] = client.predict({**ROW, "id": "a", "age": 41}, {**ROW, "id": "b"})
        assert status == 409
        assert "another row" in conflict["error"]
        assert fine["id"] == "b"
        status, [one, same, other] = client.predict(
            {**ROW, "id": 1}, {**ROW, "id": 1}, {**ROW, "id": 1, "age": 1}
        )
        assert (status, one) == (409, same)
        assert "error" in other
        assert client.get("/v1/model")[1]["counts"]["issued"] == 3


@pytest.mark.parametrize(
    ("row", "column", "words"),
    [
        ({"job": "nurse"}, "age", "got none; send null"),
        ({"age": "old", "job": "nurse"}, "age", "expected a number, got 'old'"),
        ({"age": [1], "job": "nurse"}, "age", "a list or an object"),
        ({"age": 1e999, "job": "nurse"}, "age", "64 bits"),
        ({"age": 1, "job": "nurse", "id": 10**30}, "id", "expected an id"),
        ({"age": 1, "job": "\ud800"}, "job", "half a character"),
        ({"age": 1, "job": "nurse", "more": [1e999]}, "more", "a list or an object"),
        ({"age": 1, "job": "nurse", "id": 1.5}, "id", "expected an id"),
        ({"age": 1, "job": "nurse", "id": "x" * 300}, "id", "1 to 200 letters"),
        ({"age": 1, "job": "nurse", "id": ""}, "id", "1 to 200 letters"),
        ({"age": 1, "job": "nurse", "id": "two\nlines"}, "id", "in one line"),
        (5, "", "an object"),
    ],
)
def test_a_bad_row_is_named_and_the_good_ones_are_answered(served_folder, row, column, words):
    text = json.dumps({"rows": [ROW, row, {**ROW, "age": None}]}).replace("Infinity", "1e999")
    answer = served_folder.http.post(
        "/v1/predict", content=text, headers={"content-type": "application/json"}
    )
    one, bad, other = answer.json()["decisions"]
    assert answer.status_code == 422
    assert (bad["row"], bad["column"]) == (1, column)
    assert words in bad["error"]
    assert "decision" in one
    assert "decision" in other


@pytest.fixture(scope="module")
def served_folder(tmp_path_factory):
    """One service for what changes nothing."""
    run = finished_run(tmp_path_factory)
    with serving(copy_of(run, tmp_path_factory.mktemp("shared") / "run")) as client:
        yield client


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("{", "application/json", 400),
        ('{"rows": 5}', "application/json", 400),
        ("[]", "application/json", 400),
        ('{"rows": [{"age": NaN, "job": "x"}]}', "application/json", 400),
        ("[" * 100_000, "application/json", 400),
        ('{"rows": []}', "text/plain", 415),  # what a page elsewhere could send unasked
        ('{"rows": []}', "application/json", 200),
        ("", "application/x-ndjson", 200),
    ],
)
def test_what_is_no_request_is_told_so(served_folder, body, kind, status):
    answer = served_folder.http.post("/v1/predict", content=body, headers={"content-type": kind})
    assert answer.status_code == status


def test_rows_may_come_as_lines_and_are_answered_as_lines(served_folder):
    body = "\n".join(json.dumps(row) for row, _ in people(3, seed=5))
    answer = served_folder.http.post(
        "/v1/predict", content=body, headers={"content-type": "application/x-ndjson"}
    )
    assert [json.loads(line)["id"] for line in answer.text.splitlines()] == ["5-0", "5-1", "5-2"]


def test_too_many_rows_or_bytes_are_refused(served_folder, monkeypatch):
    monkeypatch.setattr(access, "MOST_ROWS", 2)
    assert served_folder.predict(ROW, ROW, ROW)[0] == 413
    monkeypatch.setattr(access, "BODY_BYTES", 10)
    assert served_folder.predict(ROW)[0] == 413


# Labels and learning


def test_labels_are_counted_once_corrected_while_open_and_late_after(folder):
    now = [0.0]
    with serving(folder, clock=lambda: now[0], task_rows=2, wait_seconds=10.0) as client:
        client.predict(*[{**ROW, "id": id} for id in ("a", "b")])
        now[0] = 5.0
        client.predict(*[{**ROW, "id": id} for id in ("c", "d")])
        assert client.label(("a", "yes"))["taken"] == 1
        assert client.label(("a", "yes"))["repeated"] == ["a"]
        assert client.label(("a", "no"))["corrected"] == 1
        assert client.label(("x", "yes"), ("b", "maybe"))["unknown"] == ["x"]
        now[0] = 11.0
        said = client.label(("b", "yes"), ("a", "yes"))
        assert (said["taken"], said["late"]) == (1, ["b", "a"])
        client.label(("c", "no"), ("d", "no"))
        client.learn()
        counts = client.get("/v1/model")[1]["counts"]
        assert (counts["labelled"], counts["late"], counts["corrected"]) == (4, 1, 1)
        assert [line["rows"] for line in client.get("/v1/rounds")[1]["rounds"]] == [1, 3]
        said = client.get("/v1/decisions/a")[1]
        assert said["label"] == "no"
        assert (said["decision"] == "yes") == (said["probability"] > said["why"]["threshold"])
        assert set(said["why"]["features"]) <= set(client.app.service.live.schema.features)


def test_tasks_may_be_smaller_after_a_restart(folder):
    sizes = []
    for task_rows, count in ((10, 5), (3, 4)):
        service = Service(folder, rules(task_rows=task_rows))
        service.decide([[row for row, _ in people(count, seed=count)]])
        sizes.append([size for (size,) in service.tasks.query("SELECT size FROM tasks")])
        service.close()
    assert sizes == [[5], [5, 3, 1]]


def play(client, count, seed=0):
    """People are decided, and labelled the last ones first."""
    rows = people(count, seed)
    client.predict(*[row for row, _ in rows])
    client.label(*[(row["id"], label) for row, label in reversed(rows)])
    client.learn()


def test_records_replayed_through_the_library_give_the_same_rounds(folder):
    with serving(folder) as client:
        play(client, 35)
        assert client.predict({**ROW, "id": "one"})[1][0]["round"] == 6
    with serving(folder) as client:  # a restart
        assert client.get("/v1/model")[1]["round"] == 6
        client.label(("one", "yes"))
        play(client, 30, seed=1)
    lines = journal(folder)
    assert [line["round"] for line in lines] == list(range(4, 10))
    again = replay(folder)
    times = {"seconds", "at", "task", "late", "unlabelled", "why"}
    assert [{k: v for k, v in line.items() if k not in times} for line in lines] == [
        {k: v for k, v in line.items() if k not in times} for line in again
    ]


def test_a_round_learned_before_a_kill_and_not_saved_is_learned_again_to_the_same(folder):
    with serving(folder) as client:
        save = client.app.service.save
        client.app.service.save = lambda live: None  # as if killed before
        play(client, 20)
        expected = client.predict({**ROW, "id": "after"})[1][0]
        client.app.service.save = save
    with serving(folder) as client:
        client.learn()
        assert client.predict(ROW)[1][0]["probability"] == expected["probability"]
        assert len(client.get("/v1/rounds")[1]["rounds"]) == 2


def test_what_the_service_learned_is_not_left_out_in_silence(folder, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("age,job,sex,hired\n40,nurse,f,yes\n")
    with serving(folder) as client:
        play(client, 35)
    newer = "has learned to round 6, this is the run's own model of round 3"
    with pytest.warns(UserWarning, match=newer):
        predict_rows(folder, rows)
    with pytest.warns(UserWarning, match=newer):
        load(folder)
    with pytest.raises(RunError, match=r"service in .* that has learned to round 6, the run to 3"):
        learn(folder, rows)
    shutil.rmtree(folder / "service")
    assert learn(folder, rows).waiting == 1


def test_a_group_may_come_with_the_label(folder):
    with serving(folder) as client:
        rows = people(10)
        client.predict(*[{**row, "sex": None} for row, _ in rows])
        labels = [{"id": row["id"], "label": label, "group": row["sex"]} for row, label in rows]
        client.post("labels", {"labels": labels})
        client.learn()
        [line] = client.get("/v1/rounds")[1]["rounds"]
        assert sum(six["rows"] for six in line["counts"]["sex"].values()) == 10
        assert set(line["counts"]["sex"]) == {"f", ODD}


def test_labels_that_never_come_are_not_waited_for_and_are_counted_and_warned_of(folder):
    with serving(folder) as client:
        rows = people(20)
        for row, _ in rows[:10]:
            row["sex"] = f"{row['id']} is no group"  # what clients make up is not counted by name
        said = client.predict(*[row for row, _ in rows])[1]
        declined = [one["id"] for one in said if one["decision"] == "no"]
        assert client.post("never", {"ids": [*declined, "x"]})[1] == {
            "taken": len(declined),
            "unknown": ["x"],
        }
        client.label(*[(row["id"], label) for row, label in rows if row["id"] not in declined])
        client.learn()
        content = client.get("/v1/model")[1]
        assert content["counts"]["never"] == len(declined)
        by_group = content["never"]["counts"]["sex"]["no"]
        assert sum(by_group.values()) == len(declined)
        assert {"unknown"} < set(by_group) <= {"f", ODD, "unknown"}
        assert "Only rows decided 'yes' get labels" in content["never"]["warning"]
        assert content["counts"]["waiting"] == 0


def test_an_erased_person_is_nowhere_in_the_folder(folder):
    with serving(folder) as client:
        client.predict({**ROW, "id": "gone-for-good", "job": "astronaut"}, {**ROW, "id": "b"})
        assert client.post("erase", {"ids": ["gone-for-good"]})[1]["erased"] == 1
        assert client.get("/v1/decisions/gone-for-good")[0] == 404
        for path in (folder / "service").iterdir():
            if path.is_file():
                assert b"astronaut" not in path.read_bytes()
                assert b"gone-for-good" not in path.read_bytes()


def test_old_rows_leave_and_the_store_stays_bounded(folder):
    now = [0.0]
    with serving(folder, clock=lambda: now[0], retain_seconds=50.0) as client:
        for turn in range(3):
            now[0] = turn * 100.0
            play(client, 10, seed=turn)
        client.app.service._tidy_at = 0.0
        client.app.service.tick()
        [(rows,)] = client.app.service.tasks.query("SELECT count(*) FROM rows")
        assert rows == 10
        [(events,)] = client.app.service.tasks.query("SELECT count(*) FROM events")
        assert events == 1
        assert len(client.get("/v1/rounds")[1]["rounds"]) == 3  # the journal stays


# What can go wrong


def test_a_full_disk_is_507_and_decisions_go_on(folder):
    with serving(folder) as client:
        first = client.predict({**ROW, "id": "a"})[1]
        query = client.app.service.tasks.query
        [(pages,)] = query("PRAGMA page_count")
        query(f"PRAGMA max_page_count={pages}")
        status, said = client.predict(*[row for row, _ in people(500)])
        assert status == 507
        assert all(one["recorded"] is False and one["decision"] for one in said)
        assert "make room" in said[0]["error"]
        assert client.predict({**ROW, "id": "a"}) == (200, first)
        query("PRAGMA max_page_count=1000000")
        assert client.predict(*[row for row, _ in people(500)])[0] == 200
        assert client.get("/v1/model")[1]["counts"]["issued"] == 501


def test_a_second_service_on_a_folder_is_refused(folder):
    with (
        serving(folder),
        pytest.raises(RunError, match="another process is working in"),
    ):
        Service(folder, rules())


def test_a_folder_without_a_run_is_left_as_it_is(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RunError, match="start it with `fairsaoml run"):
            Service(folder, rules())
    assert not list(tmp_path.iterdir())


def test_a_damaged_store_is_refused_and_the_last_model_offered(folder):
    with serving(folder) as client:
        play(client, 10)
    path = folder / "service" / "store.sqlite"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(RunError, match=r"damaged.*service/model"):
        Service(folder, rules())
    assert path.stat().st_size == 5000


# Who may do what


TOKENS = {"decide": "d" * 20, "label": "l" * 20, "read": "r" * 20}
LABEL_ROUTES = ("/v1/labels", "/v1/never", "/v1/erase")
ALLOWED = {"/v1/predict": "decide", **dict.fromkeys(LABEL_ROUTES, "label")}


def test_every_route_wants_its_own_token(folder):
    with serving(folder, tokens=TOKENS) as client:
        for endpoint_path, operations in document()["paths"].items():
            for method in operations:
                path = endpoint_path.replace("{id}", "a").replace("{model}", "run")
                scope = ALLOWED.get(path, "read")
                if path == "/v1/events" or not operations[method].get("security"):
                    continue
                statuses = {}
                for name in (*TOKENS, None):
                    headers = {"authorization": f"Bearer {TOKENS[name]}"} if name else {}
                    answer = client.http.request(method, path, headers=headers)
                    statuses[name] = answer.status_code
                refused = {name for name, status in statuses.items() if status == 401}
                assert refused == {None, *TOKENS} - {scope}, path
        for path in ("/v2/health/live", "/v2/health/ready", "/", "/openapi.json"):
            assert client.http.get(path).status_code == 200


def test_a_page_from_elsewhere_may_call_it_only_where_that_was_asked_for(folder, served_folder):
    asks = {"access-control-request-method": "POST", "origin": "https://page.example"}
    with serving(folder, tokens=TOKENS, origin="https://page.example") as client:
        for asked, origin, allowed in (
            (client, "https://page.example", "https://page.example"),
            (client, "https://other.example", None),
            (served_folder, "https://page.example", None),
        ):
            answer = asked.http.options("/v1/predict", headers={**asks, "origin": origin})
            assert answer.headers.get("access-control-allow-origin") == allowed


def test_without_tokens_only_this_machine_by_its_own_name_is_served(folder):
    with serving(folder, host="evil.example") as client:
        assert client.get("/v1/model")[0] == 403
        assert client.predict(ROW)[0] == 403


def test_an_address_that_others_reach_needs_tokens(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"expected tokens to listen on 0\.0\.0\.0"):
        read_tokens(None, "0.0.0.0")
    file = tmp_path / "tokens"
    file.write_text("decide=short\n")
    with pytest.raises(ConfigError, match="at least 16 letters"):
        read_tokens(file, "0.0.0.0")
    file.write_text("\n".join(f"{scope}={token}" for scope, token in TOKENS.items()))
    assert read_tokens(file, "0.0.0.0") == TOKENS
    for scope, token in TOKENS.items():
        monkeypatch.setenv(f"FAIRSAOML_TOKEN_{scope.upper()}", token)
    assert read_tokens(None, "0.0.0.0") == TOKENS


# What it tells


def test_the_document_describes_every_route_and_every_answer(folder):
    with serving(folder) as client:
        play(client, 20)
        described = {
            (path, method)
            for path, operations in document()["paths"].items()
            for method in operations
        }
        routes = {
            (route.path.replace(":path}", "}"), method.lower())
            for route in client.app.router.routes
            for method in route.methods - {"HEAD"}
        }
        assert described == routes
        for path, operations in document()["paths"].items():
            schema = (
                operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
            )
            required = schema.get("application/json", {}).get("schema", {}).get("required", [])
            if required:
                content = client.get(path.replace("{id}", "0-1"))[1]
                assert set(required) <= content.keys(), path


def test_fairness_says_which_group_and_how_sure(folder):
    with serving(folder) as client:
        assert client.get("/v1/fairness")[1]["verdict"] is None
        play(client, 40)
        said = client.get("/v1/fairness?window=3")[1]
        assert said["rounds"] == [5, 7]
        assert "by sex" in said["verdict"]["sentence"]
        rate = said["groups"]["sex"]["f"]["selection_rate"]
        assert rate["low"] <= rate["rate"] <= rate["high"]
        assert client.get("/v1/fairness?window=x")[0] == 422
        text = client.http.get("/metrics").text
        assert 'fairsaoml_rate{attribute="sex",group="f",rate="selection_rate"}' in text
        assert 'fairsaoml_rows_total{what="labelled"} 40.0' in text
        assert "0-1" not in text


def test_in_a_process_of_its_own_it_serves_tells_of_rounds_and_stops_when_told(folder):
    process = Process(folder, "--rows", "10")
    http, rows = process.http, people(20)
    assert http.get("/v2/models/run/ready").status_code == 200
    with http.stream("GET", "/v1/events?after=0") as events:
        heard = events.iter_lines()
        http.post("/v1/predict", json={"rows": [row for row, _ in rows]})
        labels = [{"id": row["id"], "label": label} for row, label in rows]
        http.post("/v1/labels", json={"labels": labels})
        first = next(line for line in heard if line.startswith("data: "))
        assert json.loads(first[6:])["round"] == 4
    with http.stream("GET", "/v1/events", headers={"last-event-id": "1"}) as events:
        again = next(line for line in events.iter_lines() if line.startswith("data: "))
        assert json.loads(again[6:])["round"] == 5  # whoever comes back has missed nothing
    assert process.stop() == 0
    assert [line["round"] for line in journal(folder)] == [4, 5]


def test_alarms_are_recorded_with_their_round_and_survive_a_restart(folder):
    with serving(folder) as client:
        client.app.service.alarms._enough = 0.0  # anything is enough
        play(client, 10)
        on = client.get("/v1/fairness")[1]["alarms"]
        assert on
        assert all("gets fewer" in one["message"] for one in on.values())
    with serving(folder) as client:
        assert client.get("/v1/fairness")[1]["alarms"] == on


# Alarms


SCHEMA = Schema(features=("merit",), attributes=(Attribute("sex", ("f", "m")),))


def first_alarm(seed, ratio, rounds, kind="fairness", moved=0.0):
    """The round in which a stream of 200 rows a round, of this true ratio, raises an alarm."""
    draw = np.random.default_rng(seed)
    alarms = Alarms(SCHEMA, Asked(("dp",), 0.9))
    for round in range(1, rounds + 1):
        group = (draw.random(200) < 0.5).astype(int)
        decided = draw.random(200) < np.where(group == 0, ratio * 0.5, 0.5)
        x = draw.normal(size=(200, 1)).astype(np.float32) + (moved if round > rounds // 2 else 0)
        task = Task(x=x, y=decided * 1.0, group=group[:, None])
        raised = alarms.after_round(task, decided, {"round": round})
        if any(one.kind == kind and one.on for one in raised):
            return round
    return None


def test_of_100_fair_streams_at_most_five_ever_alarm():
    assert sum(first_alarm(seed, 1.0, 100) is not None for seed in range(100)) <= 5


def test_a_true_ratio_of_seven_tenths_is_found_within_twenty_rounds():
    found = [first_alarm(seed, 0.7, 20) for seed in range(20)]
    assert None not in found


def test_an_alarm_ends_when_it_is_fair_again():
    draw = np.random.default_rng(0)
    alarms = Alarms(SCHEMA, Asked(("dp",), 0.9))
    seen = []
    for round in range(1, 60):
        group = np.arange(200) % 2
        decided = draw.random(200) < np.where((group == 0) & (round < 20), 0.3, 0.5)
        task = Task(x=np.zeros((200, 1), np.float32), y=decided * 1.0, group=group[:, None])
        alarms = Alarms(SCHEMA, Asked(("dp",), 0.9), json.loads(json.dumps(alarms.state)))
        seen += [(one.on, round) for one in alarms.after_round(task, decided, {})]
    assert [on for on, _ in seen] == [True, False]
    assert seen[0][1] < 10 < 20 < seen[1][1] < 40
    assert not alarms.on


def test_inputs_that_move_are_noticed_and_steady_ones_are_not():
    assert first_alarm(0, 1.0, 60, kind="drift", moved=0.5) in (31, 40)
    false = [first_alarm(seed, 1.0, 60, kind="drift") is not None for seed in range(40)]
    assert sum(false) <= 0.05 * len(false)


def test_labels_that_stop_are_noticed_and_so_is_their_return():
    alarms = Alarms(SCHEMA, Asked(("dp",), 0.9))
    assert not alarms.after_silence(50.0, 1.0, waiting=5, about={})
    assert not alarms.after_silence(500.0, 1.0, waiting=0, about={})
    [begun] = alarms.after_silence(500.0, 1.0, waiting=5, about={})
    assert "No label has come for 8 minutes; 5 decisions wait." in begun.message
    assert not alarms.after_silence(600.0, 1.0, waiting=5, about={})
    [ended] = alarms.after_silence(1.0, 1.0, waiting=5, about={})
    assert not ended.on


def test_nothing_of_a_request_reaches_the_store_as_sql(folder):
    with serving(folder) as client:
        name = "'); DROP TABLE rows; --"
        client.predict({**ROW, "id": name, "job": name, "sex": name})
        assert client.get(f"/v1/decisions/{name}")[1]["row"]["job"] == name
    with closing(sqlite3.connect(folder / "service" / "store.sqlite")) as store:
        assert store.execute("SELECT count(*) FROM rows").fetchone() == (1,)
