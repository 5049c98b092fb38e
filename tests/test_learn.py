"""Next month's rows: a run goes on where it stopped; no row is lost, and none learned twice."""

import json
import os
import shutil
import warnings
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import tiny
from fairsaoml import FairGLCClassifier, learn, load, registered, regret, undo, write_report
from fairsaoml.core.errors import ConfigError, DataError, RunError
from fairsaoml.estimators import river
from fairsaoml.runs import runner
from fairsaoml.runs.folder import locked, read_spec
from fairsaoml.runs.learn import new_rows_of_the_table
from fairsaoml.runs.listing import list_runs
from fairsaoml.runs.runner import resume, run
from fairsaoml.runs.spec import RunSpec, Setup, stream_without_rows
from fairsaoml.serve.predict import predict_rows
from fairsaoml.streams.table.encoder import Encoder
from test_predict import jobs

ROWS = 60  # of a task
LEARNER = "fair-glc"


class Killed(BaseException):
    """What nobody catches."""


def applicants(first, rows):
    """Rows number `first` on, of one endless table."""
    parts = [
        jobs(seed=place, rows=ROWS) for place in range(first // ROWS, (first + rows) // ROWS + 1)
    ]
    table = pd.concat(parts, ignore_index=True)
    table.insert(0, "nr", np.arange(len(table)) + first // ROWS * ROWS + 1000)
    return table.iloc[first % ROWS :][:rows].reset_index(drop=True)


def run_on(table, folder, *, cut=None, save_predictions=True):
    """A run on a table in folder/jobs.csv, in folder/run."""
    folder.mkdir(exist_ok=True)
    table.to_csv(folder / "jobs.csv", index=False)
    spec = RunSpec(
        stream=str(folder / "jobs.csv"),
        stream_settings={
            "label": "hired",
            "positive": "yes",
            "sensitive": "sex",
            "drop": ["nr"],
            **({"rows": ROWS} if cut is None else cut),
        },
        learner=LEARNER,
        learner_settings=tiny.GOLDEN[LEARNER],
        seeds=(0, 1),
    )
    run(spec, folder / "run", save_predictions=save_predictions)
    return folder / "run"


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Three tasks."""
    return run_on(applicants(0, 180), tmp_path_factory.mktemp("begun"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Six tasks, as if all rows had been there from the beginning."""
    return run_on(applicants(0, 360), tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(begun, tmp_path):
    shutil.copytree(begun.parent, tmp_path / "home")
    return tmp_path / "home" / "run"


def require_the_same(folder, whole, rounds=6):
    assert tiny.lines(folder) == tiny.lines(whole, until=rounds)
    ours, theirs = (pq.read_table(one / "predictions.parquet") for one in (folder, whole))
    assert ours.equals(theirs.slice(0, ours.num_rows))
    assert (
        pq.read_table(folder / "predictions.parquet", columns=["round"])["round"][-1].as_py()
        == rounds
    )


def test_a_run_that_learns_more_rows_is_the_run_that_had_them_from_the_beginning(folder, whole):
    done = learn(folder, applicants(180, 100))
    assert done[:5] == (100, 0, 60, 1, 40)
    require_the_same(folder, whole, rounds=4)
    done = learn(folder, applicants(280, 80))
    assert done[:5] == (80, 0, 120, 2, 0)
    require_the_same(folder, whole)
    assert done.summary == runner.read_json(whole / "summary.json") | {
        "stream": done.summary["stream"]
    }
    assert sorted(os.listdir(folder / "learned")) == [
        "undo-0002",
        "waiting-0001.parquet",
        "waiting-0002.parquet",
    ]


def test_rows_learned_before_are_skipped_with_a_count(folder, whole):
    applicants(180, 60).to_csv(folder / "april.csv", index=False)
    assert learn(folder, folder / "april.csv")[:5] == (60, 0, 60, 1, 0)
    assert learn(folder, folder / "april.csv")[:5] == (60, 60, 0, 0, 0)
    # A table that has grown begins with what was learned, table after table.
    assert learn(folder, folder.parent / "jobs.csv")[:5] == (180, 180, 0, 0, 0)
    applicants(0, 360).to_csv(folder / "grown.csv", index=False)
    assert learn(folder, folder / "grown.csv")[:5] == (360, 240, 120, 2, 0)
    assert tiny.lines(folder) == tiny.lines(whole)


def test_with_an_id_known_rows_are_skipped_wherever_they_stand(folder, whole):
    assert learn(folder, applicants(150, 90), id="nr")[:5] == (90, 30, 60, 1, 0)
    mixed = pd.concat([applicants(240, 70), applicants(200, 30), applicants(240, 70)])
    assert learn(folder, mixed)[:5] == (170, 100, 60, 1, 10)
    with pytest.raises(ConfigError, match="expected --id nr as before, got 'pay'"):
        learn(folder, mixed, id="pay")
    assert learn(folder, applicants(300, 60))[:5] == (60, 10, 60, 1, 0)
    assert tiny.lines(folder) == tiny.lines(whole)


def test_the_last_learn_can_be_taken_back_once(folder, whole):
    before = tiny.lines(folder), (folder / "summary.json").read_bytes()
    learn(folder, applicants(180, 100))
    undo(folder)
    assert (tiny.lines(folder), (folder / "summary.json").read_bytes()) == before
    with pytest.raises(RunError, match=r"found none; only the last one can be taken back"):
        undo(folder)
    learn(folder, applicants(180, 100))
    learn(folder, applicants(280, 80))
    undo(folder)
    require_the_same(folder, whole, rounds=4)
    assert learn(folder, applicants(280, 80))[:5] == (80, 0, 120, 2, 0)
    require_the_same(folder, whole)


@pytest.mark.parametrize("name", registered())
def test_no_learner_is_told_how_long_a_table_is_today(begun, name):
    short = stream_without_rows(read_spec(begun)["stream"])
    spec = RunSpec(stream="jobs.csv", learner=name)
    configs = [Setup.of(spec, replace(short, length=rounds)).config for rounds in (3, 300)]
    assert configs[0] == configs[1]


def test_a_run_cut_by_time_goes_on_along_the_calendar(tmp_path):
    days = pd.date_range("2024-01-01", periods=80, freq="D")
    table = applicants(0, 240).assign(day=np.repeat(days, 3).astype(str))
    cut = {"every": "20D", "time": "day"}
    entire = run_on(table, tmp_path / "entire", cut=cut)
    part = run_on(table[:120], tmp_path / "part", cut=cut)
    done = learn(part, table[120:200].sample(frac=1, random_state=0))
    assert done[:5] == (80, 0, 60, 1, 20)  # the newest window may go on
    assert learn(part, table[200:])[:5] == (40, 0, 0, 0, 60)
    assert [line["round"] for line in tiny.records(part)][-1] == 3
    ours, theirs = tiny.records(part), tiny.records(entire)
    for one, other in zip(ours, theirs, strict=False):
        assert one["rows"] == other["rows"]
        assert one["counts"] == other["counts"]


def test_a_run_cut_into_tasks_goes_on_with_as_many_rows_a_task(tmp_path, whole):
    folder = run_on(applicants(0, 180), tmp_path, cut={"tasks": 3})
    assert learn(folder, applicants(180, 180))[:5] == (180, 0, 180, 3, 0)
    assert tiny.lines(folder) == tiny.lines(whole)


def test_rows_that_cannot_be_learned_change_nothing(folder):
    def content():
        return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}

    before = content()
    for rows, words in [
        (applicants(180, 60).drop(columns="pay"), "expected a column 'pay'"),
        (applicants(180, 60).assign(hired="maybe"), "expected the label 'hired'"),
        (applicants(180, 61).replace({"hired": {"no": "never"}}), "expected the label 'hired'"),
    ]:
        with pytest.raises(DataError, match=words):
            learn(folder, rows)
    with pytest.raises(DataError, match="expected an id in every row"):
        learn(folder, applicants(180, 60).assign(nr=None), id="nr")
    with locked(folder), pytest.raises(RunError, match="another process is working in"):
        learn(folder, applicants(180, 60))
    assert content() == before


def test_only_a_finished_run_on_a_table_learns_more(folder, finished):
    with pytest.raises(RunError, match=r"expected a run on a table in .*, got one on synthetic"):
        learn(finished, applicants(0, 60))
    (folder / "summary.json").unlink()
    with pytest.raises(RunError, match=r"has not finished; continue it first with .*--resume"):
        learn(folder, applicants(180, 60))


def test_the_live_model_is_the_one_that_has_learned_more(folder, whole):
    learn(folder, applicants(180, 180))
    ours, theirs = load(folder), load(whole)
    assert ours.n_rounds_ == theirs.n_rounds_ == 6
    rows = applicants(0, 50)
    assert ours.decision_function(rows).tolist() == theirs.decision_function(rows).tolist()


def test_what_was_taken_back_is_said(command, folder):
    learn(folder, applicants(180, 100))
    learn(folder, applicants(180, 220))  # of which 100 are known
    said = command("learn", folder, "--undo")
    assert said.code == 0
    words = "taken back: 120 new rows and 2 rounds; the run has 4 rounds again, and 40 rows waiting"
    assert words in said.err
    assert learn(folder, applicants(180, 110)).waiting == 50
    said = command("learn", folder, "--undo", "--json")
    words = "taken back: 10 new rows and 0 rounds; the run has 4 rounds again, and 40 rows waiting"
    assert words in said.err
    assert json.loads(said.out)["rounds"] == 4


def test_a_table_that_has_grown_is_known(tmp_path):
    folder = run_on(applicants(0, 180), tmp_path, save_predictions=False)
    path = tmp_path / "jobs.csv"
    assert new_rows_of_the_table(folder) == (path, 0)
    applicants(0, 200).to_csv(path, index=False)
    assert new_rows_of_the_table(folder) == (path, 20)
    learn(folder, path)
    assert new_rows_of_the_table(folder) == (path, 0)
    applicants(60, 200).to_csv(path, index=False)
    assert new_rows_of_the_table(folder) == (path, None)


def test_runs_are_listed_with_what_became_of_them(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "home" / "deep" / "stopped")
    (tmp_path / "home" / "deep" / "stopped" / "summary.json").unlink()
    shutil.copytree(folder, tmp_path / "home" / "broken")
    (tmp_path / "home" / "broken" / "spec.json").write_text("{")
    listed = {one["name"]: one for one in list_runs(tmp_path / "home")}
    assert listed.keys() == {"run", "deep/stopped", "broken"}
    assert (listed["run"]["stream"], listed["run"]["learner"]) == ("jobs.csv", LEARNER)
    assert (listed["run"]["rounds"], listed["deep/stopped"]["rounds"]) == (3, 3)
    assert listed["run"]["verdict"] in ("fair", "not fair", "not enough rows to tell")
    assert listed["deep/stopped"]["verdict"] == "not finished"
    assert listed["broken"]["verdict"] == "damaged"


# Killed at any moment


def replayed(folder, tmp_path, monkeypatch):
    """Learn once; then let every learn be that one again, so that what is at test is the disk."""
    played, real = [], runner.prequential

    def record(*arguments, **options):
        for one in real(*arguments, **options):
            played.append(one._replace(state=jax.device_get(one.state)))
            yield one

    monkeypatch.setattr(runner, "prequential", record)
    shutil.copytree(folder, tmp_path / "once")
    learn(tmp_path / "once", applicants(180, 100))

    def again(*_, after, **__):
        return (one for one in played if one.round > after)

    monkeypatch.setattr(runner, "prequential", again)
    return played


def test_a_learn_or_undo_that_dies_at_any_call_that_changes_a_file_is_finished_or_never_was(
    folder, whole, tmp_path, monkeypatch
):
    monkeypatch.setenv(runner.INTERVAL, "0")
    played = replayed(folder, tmp_path, monkeypatch)
    calls, dies_at = 0, None
    real = {
        name: getattr(os, name)
        for name in ("write", "replace", "rename", "unlink", "mkdir", "ftruncate")
    }

    def watched(name):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if dies_at is not None and calls >= dies_at:
                raise Killed
            return real[name](*arguments, **options)

        return call

    for name in real:
        monkeypatch.setattr(os, name, watched(name))
    rows = applicants(180, 100)

    def died(act, at):
        nonlocal calls, dies_at
        calls, dies_at = 0, at
        try:
            act()
        except Killed:
            return True
        finally:
            dies_at = None
        return False

    done, at = False, 0
    while not done:
        at += 3
        one = tmp_path / str(at)
        shutil.copytree(folder, one)
        done = not died(lambda: learn(one, rows), at)  # noqa: B023
        assert tiny.lines(one) == tiny.lines(whole, until=4)[: len(tiny.lines(one))]
        again = learn(one, rows)
        assert again.known in (0, 100)
        require_the_same(one, whole, rounds=4)
        assert again.waiting == 40
        died(lambda: undo(one), at)  # noqa: B023
        resume(one)  # whatever comes next finishes it
        assert tiny.lines(one) == tiny.lines(whole, until=len(tiny.lines(one)) // 2)
        assert len(tiny.lines(one)) in (6, 8)
        assert learn(one, rows).known in (0, 100)
        require_the_same(one, whole, rounds=4)
        shutil.rmtree(one)
    assert at > 30
    assert len(played) == 1


def test_a_record_that_was_edited_is_refused(folder):
    learn(folder, applicants(180, 60))
    record = json.loads((folder / "learned.json").read_text())
    record["calls"] = []
    (folder / "learned.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match=r"learned.json is not what was written"):
        learn(folder, applicants(240, 60))


def test_a_model_trained_in_python_saves_to_a_folder_that_learns_and_predicts(tmp_path):
    rows = applicants(0, 180)
    model = FairGLCClassifier(model="logistic", random_state=0)
    groups = rows[["sex"]]
    model.fit(rows[["pay"]], rows["hired"], sensitive_features=groups)
    model.save_run(tmp_path / "run", label="hired", task_rows=ROWS)
    ours = load(tmp_path / "run")
    new = applicants(180, 70)
    assert ours.predict(new).tolist() == model.predict(new[["pay"]]).tolist()
    scores, *_ = predict_rows(tmp_path / "run", new_file(tmp_path, new))
    np.testing.assert_allclose(scores, model.predict_proba(new[["pay"]])[:, 1], rtol=1e-5)
    assert learn(tmp_path / "run", new[:20])[:5] == (20, 0, 0, 0, 20)
    assert learn(tmp_path / "run", new[20:])[:5] == (50, 0, 60, 1, 10)
    first = new[:60]
    model.partial_fit(first[["pay"]], first["hired"], sensitive_features=first[["sex"]])
    later = load(tmp_path / "run")
    assert later.n_rounds_ == model.n_rounds_
    np.testing.assert_allclose(later.dual_, model.dual_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        later.decision_function(new), model.decision_function(new[["pay"]]), rtol=1e-3, atol=1e-4
    )
    assert write_report([tmp_path / "run"], tmp_path / "report.html").exists()
    undo(tmp_path / "run")
    assert load(tmp_path / "run").predict(new).tolist() == ours.predict(new).tolist()


@pytest.fixture
def from_python(tmp_path):
    """A model from Python, of four tasks of 45 rows."""
    rows = applicants(0, 180)
    model = FairGLCClassifier(model="logistic", random_state=0, task_size=45)
    model.fit(rows[["pay"]], rows["hired"], sensitive_features=rows[["sex"]])
    model.save_run(tmp_path / "run", label="hired")
    return model, tmp_path / "run"


def test_a_model_from_python_says_what_it_has_not(from_python, command, tmp_path):
    _, folder = from_python
    with pytest.raises(RunError, match=r"expected at least one round in .*got none"):
        regret(folder, comparator=False)
    with pytest.raises(RunError, match=r"a model without a stream.*`fairsaoml learn"):
        resume(folder)
    [listed] = list_runs(folder)
    assert (listed["rounds"], listed["verdict"]) == (0, "no rounds yet")
    new = new_file(tmp_path, applicants(180, 40))
    for known in (0, 40):
        said = command("learn", folder, new, "--quiet")
        assert f"40 rows: {known} were given before and skipped; 0 learned" in said.err
        assert "40 wait for the next file (a task has 45)" in said.err
    assert learn(folder, applicants(220, 5)).rounds == 1
    with pytest.raises(RunError, match="whose rows are kept, got a model from Python"):
        regret(folder)
    assert regret(folder, comparator=False)["run"] == str(folder)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"label": "pay"}, ConfigError, "label must be the name of a column of its own; got 'pay'"),
        ({"label": "sex"}, ConfigError, "got 'sex', beside the columns pay, sex"),
        ({"label": ""}, ConfigError, "got ''"),
        ({"label": 3}, ConfigError, "got 3"),
        ({"task_rows": 0}, ConfigError, "task_rows must be a whole number >= 1 .*; got 0"),
        ({"task_rows": 1.5}, ConfigError, "got 1.5"),
        ({}, RunError, "already holds a run; replace it with force=True"),
    ],
)
def test_a_model_is_not_saved_as_what_cannot_go_on(from_python, settings, error, words):
    model, folder = from_python
    with pytest.raises(error, match=words):
        model.save_run(folder if error is RunError else folder.with_name("other"), **settings)
    assert not folder.with_name("other").exists()


@pytest.mark.parametrize("seeds", [3, (), "01"])
def test_seeds_are_a_list(seeds):
    with pytest.raises(ConfigError, match="seeds must be a list of numbers"):
        RunSpec(stream="synthetic", seeds=seeds)


def test_one_folder_is_reported_on_by_its_name_as_text(folder, tmp_path):
    assert write_report(str(folder), tmp_path / "report.html").exists()


def test_a_loaded_model_still_knows_how_large_its_tasks_were(from_python, tmp_path):
    model, folder = from_python
    model.save(tmp_path / "model")
    load(tmp_path / "model").save_run(folder, force=True)
    assert read_spec(folder)["stream"]["cut"]["rows"] == 45


KINDS = {
    "integers": ([0, 1], int),
    "signs": ([-1, 1], int),
    "booleans": ([False, True], bool),
    "numbers": ([0.0, 1.0], float),
    "words": (["no", "yes"], str),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_predicts_labels_of_the_type_that_was_learned(tmp_path, kind):
    (no, yes), type_ = KINDS[kind]
    rows = applicants(0, 180)
    rows["hired"] = [yes if word == "yes" else no for word in rows["hired"]]
    model = FairGLCClassifier(model="logistic", random_state=0)
    model.fit(rows[["pay"]], rows["hired"], sensitive_features=rows[["sex"]])
    model.save_run(tmp_path / "saved", label="hired")
    stream = {"label": "hired", "sensitive": "sex", "rows": ROWS}
    for ending in ("csv", "parquet"):
        name = tmp_path / f"rows.{ending}"
        getattr(rows, f"to_{ending}")(name, index=False)
        spec = RunSpec(stream=str(name), stream_settings=stream, learner="aod", seeds=(0,))
        run(spec, tmp_path / ending)
    for folder in ("saved", "csv", "parquet"):
        ours = load(tmp_path / folder)
        found = {type(label) for label in ours.predict(rows).tolist()}
        assert found == {int if (folder, kind) == ("csv", "numbers") else type_}  # 1.0 is 1 there
        assert np.mean(ours.predict(rows) == rows["hired"]) > 0.7
        assert ours.partial_fit(rows).n_rounds_ > 1
        if kind in ("integers", "booleans"):  # what equals is the same label
            for other in (int, bool, float):
                labels = rows["hired"].astype(other)
                ours.partial_fit(rows.drop(columns="hired"), labels)
                assert ours.takes_label(other(yes))
            with pytest.raises(DataError, match="got also '2'"):
                ours.partial_fit(rows.drop(columns="hired"), [2] * len(rows))


def test_a_column_of_nothing_that_can_be_read_is_warned_of_once(from_python):
    model, rows = load(from_python[1]), applicants(180, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(rows)
        model.predict(rows.assign(pay=["?!", *rows["pay"][1:]]))  # some are to be expected
    with pytest.warns(UserWarning, match="nothing in the column 'pay' is as the run knows it"):
        model.predict(rows.assign(pay="much"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(rows.assign(pay="much"))
    assert "such as 'much'" in model.notes_[0]


def test_a_folder_of_before_predicts_texts(tmp_path):
    rows = applicants(0, 180)
    model = FairGLCClassifier(model="logistic", random_state=0)
    model.fit(rows[["pay"]], rows["hired"] == "yes", sensitive_features=rows[["sex"]])
    model.save_run(tmp_path / "run", label="hired")
    spec = read_spec(tmp_path / "run")
    assert spec["stream"]["encoder"]["label"].pop("type") == "boolean"
    assert Encoder.from_json(spec["stream"]["encoder"]).label.values == ("False", "True")


def new_file(folder, rows):
    rows.to_csv(folder / "new.csv", index=False)
    return folder / "new.csv"


def test_a_river_model_saves_to_such_a_folder_and_what_has_no_rounds_says_so(command, tmp_path):
    model = river.FairGLCClassifier(
        model="logistic", seed=0, task_size=90, sensitive="sex", classes=("no", "yes")
    )
    with pytest.raises(RunError, match="has learned a task, got none"):
        model.save_run(tmp_path / "run")
    for row in applicants(0, 180).to_dict("records"):
        model.learn_one({"pay": row["pay"], "sex": row["sex"]}, row["hired"])
    model.save_run(tmp_path / "run", label="hired", task_rows=ROWS)
    new = applicants(180, ROWS)
    decided = [model.predict_one({"pay": pay}) for pay in new["pay"]]
    assert load(tmp_path / "run").predict(new).tolist() == decided
    said = command("report", tmp_path / "run")
    assert said.code == 1
    assert "give a model from Python new rows with `fairsaoml learn`" in said.err
    assert command("learn", tmp_path / "run", new_file(tmp_path, new), "--quiet").code == 0
    assert command("report", tmp_path / "run").code == 0
    model.save(tmp_path / "model")
    said = command("predict", tmp_path / "model", new_file(tmp_path, new))
    assert said.code == 1
    assert "`model.save_run(folder)`, which is for the commands" in said.err
