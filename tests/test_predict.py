"""What a run has learned is in its folder; the table it learned from may change or be gone."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tiny
from fairsaoml import load
from fairsaoml.core.errors import DataError, RunError
from fairsaoml.files import seal_of, tidy
from fairsaoml.runs import saved
from fairsaoml.runs.checkpoint import sealed
from fairsaoml.runs.folder import read_spec, write_spec
from fairsaoml.runs.runner import resume, run
from fairsaoml.runs.spec import RunSpec
from fairsaoml.serve.predict import predict_rows

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
        learner=tiny.FIRST,
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
    scores, decisions, notes, *_ = predict_rows(finished / "run", finished / name)
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
    with pytest.raises(DataError, match=r"as it was when the run began, got other rows; put"):
        resume(tmp_path / "run")
    pd.concat([table, jobs(seed=9, rows=30)]).to_csv(tmp_path / "jobs.csv", index=False)
    assert resume(tmp_path / "run")["rounds"] == 5  # as many as it had when it began


def test_a_table_is_found_where_it_was_or_beside_its_run_never_by_its_name_alone(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("FAIRSAOML_CHECKPOINT_SECONDS", "0")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    jobs().to_csv("jobs.csv", index=False)
    with pytest.raises(Stopped):
        run_table(Path(), stop_after=2)
    moved = home.rename(tmp_path / "moved")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    jobs(seed=3).to_csv("jobs.csv", index=False)  # another of that name
    table = (moved / "jobs.csv").rename(moved / "away.csv")
    with pytest.raises(DataError, match=r"expected the run's table at .*home/jobs.csv, got none"):
        resume(moved / "run")
    table.rename(moved / "jobs.csv")
    assert resume(moved / "run")["rounds"] == 5


def test_settings_are_kept_to_the_last_digit_and_a_spec_edited_by_hand_is_refused(
    finished, tmp_path
):
    folder = shutil.copytree(finished / "run", tmp_path / "run")
    path = folder / "spec.json"
    spec = json.loads(path.read_text())
    spec["learner"]["config"]["tolerance"] = 0.0123456789
    path.write_text(json.dumps(spec))
    with pytest.raises(RunError, match=r"spec.json is not what was written; put it back"):
        load(folder)
    seal = spec.pop("spec_sha256")
    for edited in (spec, {**spec, "spec_sha256": seal_of(spec)}):  # without a seal, or sealed anew
        path.write_text(json.dumps(edited))
        with pytest.raises(RunError, match="the run's checkpoint differ in learner: it was chan"):
            load(folder)
    write_spec(folder, spec)
    assert read_spec(folder)["learner"]["config"]["tolerance"] == 0.0123456789
    assert seal != seal_of(spec)


def test_other_versions_are_named(finished, monkeypatch):
    made = saved.versions("jax", "numpy")
    monkeypatch.setattr(saved, "versions", lambda *names: {**made, "jax": "99.0"})
    with pytest.warns(UserWarning, match=rf"made with jax {made['jax']} \(now 99.0\)"):
        load(finished / "run")


def test_a_run_of_before_the_spec_held_a_checksum_is_still_resumed(finished, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRSAOML_CHECKPOINT_SECONDS", "0")
    jobs().to_csv(tmp_path / "jobs.csv", index=False)
    with pytest.raises(Stopped):
        run_table(tmp_path, stop_after=3)
    for name in ("spec.json", "checkpoint/manifest.json", "checkpoint/previous.json"):
        path = tmp_path / "run" / name
        old = json.loads(path.read_text())
        del old["spec_sha256"], old["stream"]["fingerprint"], old["stream"]["path"]
        if name == "spec.json":  # it was written with seven digits
            old = tidy(old)
        path.write_text(json.dumps(sealed(old) if "manifest_sha256" in old else old))
    with pytest.warns(UserWarning, match="whether its rows have changed cannot be told"):
        resume(tmp_path / "run")
    assert tiny.lines(tmp_path / "run") == tiny.lines(finished / "run")
    assert len(predict_rows(tmp_path / "run", finished / "new.csv")[0]) == 20


def test_a_run_loads_as_a_live_model_that_decides_as_predict_does(finished):
    new = pd.read_csv(finished / "new.csv")
    scores, decisions, *_ = predict_rows(finished / "run", finished / "new.csv")
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
