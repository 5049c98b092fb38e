"""Tuned alternatives: the same search as our learners', on the same rounds."""

import json

import pytest
from paper.tuning.alternatives import SPACES, tuned

import tiny
from fairsaoml.compare.alternatives import catalog, plan
from fairsaoml.streams.catalog import open_stream

SHORT = {"tasks": 1, "rows": 60}
LONGER = {**SHORT, "tasks": 2}
OPEN_STREAM = "paper.tuning.alternatives.open_stream"


@pytest.mark.parametrize("peer", catalog.CATALOG)
def test_the_librarys_defaults_are_where_tuning_looks(peer):
    space, defaults = SPACES[peer], catalog.defaults(peer)
    assert set(space) <= set(defaults)
    for name, range in space.items():
        assert range.holds(defaults[name]), name


def test_no_setting_is_chosen_on_what_comes_after_the_first_domain(tmp_path, monkeypatch):
    def turned(round, task):
        return task._replace(y=1 - task.y) if task.domain != "market-1" else task

    def trials(folder, stream):
        streams = {"synthetic": open_stream("synthetic", SHORT), "synthetic-gradual": stream}
        monkeypatch.setattr(OPEN_STREAM, lambda name, settings=None: streams[name])
        made = []
        (spec,) = plan("synthetic-gradual", ["sgd"])
        found = tuned(spec, tmp_path / folder, trials=3, on_trial=made.append)
        return found, [(trial.settings, trial.scores) for trial in made]

    plain = trials("plain", open_stream("synthetic", LONGER))
    assert len(plain[1]) == 3
    assert trials("turned", tiny.perturbed(open_stream("synthetic", LONGER), turned)) == plain


def test_tuned_rows_stand_beside_those_of_the_defaults(command, tmp_path, monkeypatch):
    small = open_stream("synthetic", SHORT)
    monkeypatch.setattr(OPEN_STREAM, lambda name, settings=None: small)
    typed = ["alternatives", "synthetic", "--alternatives", "sgd", "--trials", 4, "--json"]
    typed += ["--set", "tasks=1", "--set", "rows=60", "--out", tmp_path]
    said = command(*typed)
    assert said.code == 0, said.err
    found = json.loads(said.out)
    plain, best = found["learners"]
    assert (plain["learner"], best["learner"]) == ("sgd", "sgd-tuned")
    assert (plain["settings"], set(best["settings"])) == ({}, set(SPACES["sgd"]))
    assert found["command"].endswith("--trials 4 --set tasks=1 --set rows=60")
    assert said.err.count("sgd: trial ") == 4
    config = json.loads((tmp_path / "sgd-tuned" / "spec.json").read_text())["learner"]["config"]
    assert config["tuning_trials"] == 4
    again = command(*typed)
    assert json.loads(again.out) == found
    assert "trial" not in again.err
