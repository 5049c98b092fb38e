"""What a run has learned is in its folder; the table it learned from may change or be gone."""

import json

import numpy as np
import pandas as pd
import pytest

import tiny
from fairsaoml import load
from fairsaoml.core.errors import DataError
from fairsaoml.runs.predict import predict_rows
from fairsaoml.runs.runner import resume, run
from fairsaoml.runs.spec import RunSpec

ROLES = {"label": "hired", "positive": "yes", "sensitive": "sex", "rows": 60}


def jobs(seed=0, rows=300, shift=0.0):
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], rows)
    pay = random.normal(size=rows) + (sex == "m") + shift
    place = random.choice(["north", "south", "west"], rows)
    hired = np.where(pay - shift + random.normal(size=rows) > 0.5, "yes", "no")
    return pd.DataFrame({"pay": pay, "place": place, "sex": sex, "hired": hired})


class Stopped(BaseException):
    """Stands for a kill."""


def run_table(folder, *, stop_after=None):
    """A run on folder/jobs.csv in folder/run."""
    spec = RunSpec(
        stream=str(folder / "jobs.csv"),
        stream_settings=ROLES,
        learner="fairsaoml-live",
        learner_settings=tiny.SHARED,
        seeds=(0,),
    )

    def stop(setup, result):
        if result.round == stop_after:
            raise Stopped

    return run(spec, folder / "run", on_round=stop)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    jobs().to_csv(folder / "jobs.csv", index=False)
    run_table(folder)
    jobs(seed=1, rows=20).drop(columns=["sex", "hired"]).to_csv(folder / "new.csv", index=False)
    return folder


def test_a_table_that_changed_moved_or_went_gives_the_same_scores(finished, tmp_path):
    def scores():
        return predict_rows(finished / "run", finished / "new.csv")[0].tolist()

    before = scores()
    assert len(set(before)) > 1
    table = (finished / "jobs.csv").read_text()
    jobs(seed=5, shift=100.0).to_csv(finished / "jobs.csv", index=False)
    assert scores() == before
    (finished / "jobs.csv").rename(tmp_path / "elsewhere.csv")
    assert scores() == before
    (finished / "jobs.csv").write_text(table)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet"])
def test_a_file_without_rows_gives_no_scores_and_a_note(finished, name):
    empty = jobs(rows=0)
    if name.endswith("csv"):
        empty.to_csv(finished / name, index=False)
    else:
        empty.to_parquet(finished / name, index=False)
    scores, decisions, notes = predict_rows(finished / "run", finished / name)
    assert (len(scores), len(decisions)) == (0, 0)
    assert notes == (f"{finished / name} has a header and no rows",)


def test_a_resumed_run_takes_its_encoder_from_its_spec_to_the_last_digit(
    finished, tmp_path, monkeypatch
):
    monkeypatch.setenv("FAIRSAOML_CHECKPOINT_SECONDS", "0")
    jobs().to_csv(tmp_path / "jobs.csv", index=False)
    with pytest.raises(Stopped):
        run_table(tmp_path, stop_after=3)
    # Were anything fitted again, it would fail here.
    monkeypatch.setattr("fairsaoml.streams.table.fitting.fit_encoder", None)
    resume(tmp_path / "run")
    assert tiny.lines(tmp_path / "run") == tiny.lines(finished / "run")


def test_a_run_is_not_resumed_on_other_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRSAOML_CHECKPOINT_SECONDS", "0")
    table = jobs()
    table.to_csv(tmp_path / "jobs.csv", index=False)
    with pytest.raises(Stopped):
        run_table(tmp_path, stop_after=2)
    changed = table.copy()
    changed.loc[59, "hired"] = "no" if table.loc[59, "hired"] == "yes" else "yes"
    changed.to_csv(tmp_path / "jobs.csv", index=False)
    with pytest.raises(DataError, match=r"as it was when the run began, got other rows in its fir"):
        resume(tmp_path / "run")
    table.to_csv(tmp_path / "jobs.csv", index=False)
    assert resume(tmp_path / "run")["rounds"] == 5


def test_a_run_of_before_the_spec_held_a_checksum_is_still_resumed(finished, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRSAOML_CHECKPOINT_SECONDS", "0")
    jobs().to_csv(tmp_path / "jobs.csv", index=False)
    with pytest.raises(Stopped):
        run_table(tmp_path, stop_after=3)
    path = tmp_path / "run" / "spec.json"
    spec = json.loads(path.read_text())
    del spec["stream"]["first_task"]
    for column in spec["stream"]["encoder"]["columns"]:  # it was written with seven digits
        column.update({k: float(f"{v:.7g}") for k, v in column.items() if isinstance(v, float)})
    path.write_text(json.dumps(spec))
    resume(tmp_path / "run")
    assert tiny.lines(tmp_path / "run") == tiny.lines(finished / "run")
    assert len(predict_rows(tmp_path / "run", finished / "new.csv")[0]) == 20


def test_a_run_loads_as_a_live_model_that_decides_as_predict_does(finished):
    new = pd.read_csv(finished / "new.csv")
    scores, decisions, _ = predict_rows(finished / "run", finished / "new.csv")
    model = load(finished / "run")
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], scores, rtol=1e-5)
    assert model.predict(new).tolist() == np.where(decisions, "yes", "no").tolist()
    assert model.predict(new.to_dict("records")).tolist() == model.predict(new).tolist()
    last = tiny.records(finished / "run")[-1]
    assert (model.dual_.tolist(), model.weights_.tolist()) == (last["dual"], last["weights"])
    assert model.n_rounds_ == 5


def test_a_live_model_learns_the_next_round_as_the_run_would_have(finished, tmp_path):
    table = pd.concat([jobs(), jobs(seed=7, rows=60)])
    table.to_csv(tmp_path / "jobs.csv", index=False)
    run_table(tmp_path)
    model, longer = load(finished / "run"), load(tmp_path / "run")
    rest = table[300:]
    model.partial_fit(rest.drop(columns="hired"), rest["hired"])
    assert model.n_rounds_ == longer.n_rounds_ == 6
    np.testing.assert_allclose(model.dual_, longer.dual_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(table), longer.decision_function(table), rtol=1e-3, atol=1e-4
    )
