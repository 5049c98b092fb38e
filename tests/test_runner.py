"""A run on disk: all of it is there, and a killed one ends up the same as one never killed."""

import json
import os
import shlex
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from signal import SIGINT, raise_signal

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from fairsaoml.cli.options import parse_settings
from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.metrics import FIGURES
from fairsaoml.evaluate.summary import summarise
from fairsaoml.evaluate.verdict import Asked
from fairsaoml.runs import runner
from fairsaoml.runs import spec as spec_module
from fairsaoml.runs.folder import free_folder, locked, prepared
from fairsaoml.runs.runner import Interrupted, resume, run
from fairsaoml.runs.spec import RunSpec, split_settings

KEYS = {
    *("round", "seed", "domain", "rows", *FIGURES, "attributes", "undefined", "insufficient"),
    *("counts", "loss", "violation", "dual", "weights", "awake", "warnings", "adapted", "seconds"),
    "chances",
}


class Killed(BaseException):
    """What nobody catches."""


def content(folder):
    """Every file's bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


# What a run leaves


def test_a_run_leaves_its_files_and_nothing_else(finished):
    last = f"{tiny.ROUNDS:08d}"
    names = set(content(finished)) - {"checkpoint/previous.json"}
    assert {name for name in names if not name.startswith("checkpoint/state-")} == {
        *("spec.json", "rounds.jsonl", "summary.json", "predictions.parquet", ".lock"),
        "checkpoint/manifest.json",
    }
    assert f"checkpoint/state-{last}.safetensors" in names


def test_the_journal_has_one_line_for_each_round_and_seed_in_order(finished):
    records = tiny.records(finished)
    expected = [(round, seed) for round in range(1, tiny.ROUNDS + 1) for seed in tiny.SEEDS]
    assert [(record["round"], record["seed"]) for record in records] == expected
    assert all(set(record) == KEYS for record in records)


def test_no_file_holds_nan(finished):
    for line in (finished / "rounds.jsonl").read_text().splitlines():
        tiny.strictly(line)
    for name in ("spec.json", "summary.json", "checkpoint/manifest.json"):
        tiny.strictly((finished / name).read_text())
    scores = pq.read_table(finished / "predictions.parquet")["score"].to_numpy()
    assert np.isfinite(scores).all()


def test_weights_are_shares_of_the_levels_and_awake_levels_a_prefix(finished, learner):
    for record in tiny.records(finished):
        assert len(record["weights"]) == tiny.LEVELS[learner]
        assert sum(record["weights"]) == pytest.approx(1, abs=1e-5)
        assert record["awake"] == list(range(len(record["awake"])))
        assert all(value >= 0 for value in record["dual"])


def test_all_rows_are_scored_and_nine_tenths_of_them_after_adapting(finished):
    def rows(figures):
        return sum(level["rows"] for level in figures["counts"]["group"].values())

    for record in tiny.records(finished):
        assert (record["rows"], rows(record), rows(record["adapted"])) == (60, 60, 54)


def test_the_summary_is_that_of_the_journal_and_knows_what_is_achievable(finished):
    summary = tiny.strictly((finished / "summary.json").read_text())
    content = json.loads((finished / "spec.json").read_text())
    spec = RunSpec.from_json(content)
    again = summarise(
        tiny.records(finished),
        learner=spec.learner,
        stream=spec.stream,
        seeds=spec.seeds,
        asked=Asked.of(content),
    )
    known = [domain.pop("best") for domain in summary["domains"]]
    assert all(0.5 < best["fair_accuracy"] <= best["accuracy"] < 1 for best in known)
    assert summary == runner.read_json(write(again, finished.parent / "again.json"))


def write(value, path):
    runner.write_json(path, value)
    return path


def test_predictions_are_the_decisions_that_the_journal_counts(finished):
    table = pq.read_table(finished / "predictions.parquet")
    assert table.column_names == [
        *("seed", "round", "row", "y", "group_group", "score", "prediction"),
    ]
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    assert ((columns["score"] > 0.5) == columns["prediction"]).all()
    assert len(table) == 60 * tiny.ROUNDS * len(tiny.SEEDS)
    for record in tiny.records(finished):
        here = (columns["round"] == record["round"]) & (columns["seed"] == record["seed"])
        assert columns["row"][here].tolist() == list(range(60))
        for level, counts in record["counts"]["group"].items():
            group = here & (columns["group_group"] == level)
            y, decided = columns["y"][group], columns["prediction"][group]
            assert counts == {
                "rows": group.sum(),
                "predicted_positive": decided.sum(),
                "y1_rows": y.sum(),
                "true_positive": (y & decided).sum(),
                "y0_rows": (1 - y).sum(),
                "false_positive": ((1 - y) & decided).sum(),
            }


def test_a_spec_says_all_that_is_needed_to_repeat_the_run(finished, learner):
    written = tiny.strictly((finished / "spec.json").read_text())
    assert RunSpec.from_json(written) == tiny.spec(learner)
    assert set(written["versions"]) == {"fairsaoml", "jax", "numpy", "python"}
    config = written["learner"]["config"]
    assert config.get("horizon", tiny.ROUNDS) == tiny.ROUNDS  # a finite stream's length
    assert written["stream"]["length"] == tiny.ROUNDS


def test_the_command_in_a_spec_is_the_one_that_repeats_it():
    spec = tiny.spec(learner_settings={"hidden": [5, 3], "radius": None, "constraints": "dp+eo"})
    program, verb, stream, *options = shlex.split(spec.command)
    given = dict(zip(options[::2], options[1::2], strict=True))
    pairs = [
        value for name, value in zip(options[::2], options[1::2], strict=True) if name == "--set"
    ]
    of_stream, of_learner = split_settings(stream, given["--learner"], parse_settings(pairs))
    assert (program, verb) == ("fairsaoml", "run")
    assert (int(given["--seeds"]), int(given["--seed"])) == (2, 0)
    assert (
        RunSpec(
            stream=stream,
            learner=given["--learner"],
            stream_settings=of_stream,
            learner_settings=of_learner,
            seeds=tiny.SEEDS,
        )
        == spec
    )


# Killed and gone on with


def at(round, act):
    """A callback that acts after a round was journalled, before it is saved."""

    def on_round(game, played):
        if played.round == round:
            act()

    return on_round


def kill():
    raise Killed


def test_a_run_killed_interrupted_and_damaged_ends_the_same_as_one_never_touched(
    finished, learner, tmp_path, monkeypatch
):
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)  # keep every round
    folder = tmp_path / "run"
    with pytest.raises(Killed):
        run(tiny.spec(learner), folder, save_predictions=True, on_round=at(4, kill))
    assert runner.read_json(folder / "checkpoint/manifest.json")["round"] == 3
    assert len(tiny.lines(folder)) == 8  # round 4 was journalled, but not saved

    with pytest.raises(Interrupted, match=r"stopped after round 9; continue with .*--resume"):
        resume(folder, on_round=at(9, lambda: raise_signal(SIGINT)))
    assert runner.read_json(folder / "checkpoint/manifest.json")["round"] == 9
    assert tiny.lines(folder) == tiny.lines(finished, until=9)
    assert not (folder / "summary.json").exists()

    state = folder / "checkpoint/state-00000009.safetensors"
    state.write_bytes(state.read_bytes()[:-1])
    with open(folder / "rounds.jsonl", "ab") as journal:
        journal.write(b'{"round":10,"se')  # torn
    with pytest.warns(UserWarning, match="trying the previous one"):
        summary = resume(folder)

    assert tiny.lines(folder) == tiny.lines(finished)
    assert summary == runner.read_json(finished / "summary.json")
    ours, theirs = (pq.read_table(one / "predictions.parquet") for one in (folder, finished))
    assert ours.equals(theirs)
    assert not (folder / ".predictions").exists()


@tiny.one_learner
def test_a_run_killed_in_its_first_round_starts_over(finished, learner, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Killed):
        run(tiny.spec(learner), folder, on_round=at(1, kill))
    assert not (folder / "checkpoint").exists()
    with pytest.raises(Killed):
        resume(folder, on_round=at(3, kill))
    assert tiny.lines(folder) == tiny.lines(finished, until=3)


def test_a_run_killed_while_it_tidies_up_keeps_its_predictions(finished, tmp_path):
    folder = copied(finished, tmp_path)
    (folder / "summary.json").unlink()
    parts = folder / ".predictions"
    parts.mkdir()
    rows = pq.read_table(folder / "predictions.parquet").slice(0, 60)
    pq.write_table(rows, parts / f"{tiny.ROUNDS:08d}.parquet")  # the only part left
    resume(folder)
    assert (folder / "summary.json").read_bytes() == (finished / "summary.json").read_bytes()
    assert pq.read_table(folder / "predictions.parquet").equals(
        pq.read_table(finished / "predictions.parquet")
    )
    assert not parts.exists()


def test_resuming_a_finished_run_returns_its_summary_and_touches_nothing(finished, tmp_path):
    folder = copied(finished, tmp_path)
    before = content(folder)
    assert resume(folder) == runner.read_json(finished / "summary.json")
    assert content(folder) == before


def test_a_torn_summary_is_written_again(finished, tmp_path):
    folder = copied(finished, tmp_path)
    whole = (folder / "summary.json").read_bytes()
    (folder / "summary.json").write_bytes(whole[:100])
    resume(folder)
    assert (folder / "summary.json").read_bytes() == whole


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path):
    with pytest.raises(RunError, match=r"expected a run in .*, found no spec.json; start it with"):
        resume(tmp_path)


@pytest.mark.parametrize(
    ("spec", "words"),
    [('{"schema": 99}', "expected a spec of schema 1, got 99"), ('{"sch', "is damaged")],
)
def test_a_spec_that_cannot_be_read_is_an_error(tmp_path, spec, words):
    (tmp_path / "spec.json").write_text(spec)
    with pytest.raises(RunError, match=words):
        resume(tmp_path)


def patched_stream(monkeypatch, change):
    """Let every spec's stream be `change(stream)`."""
    original = spec_module.open_stream
    monkeypatch.setattr(
        spec_module, "open_stream", lambda name, settings: change(original(name, settings))
    )


def test_a_stream_of_unknown_length_is_saved_at_its_end(tmp_path, monkeypatch):
    patched_stream(monkeypatch, lambda stream: replace(stream, length=None))
    run(tiny.spec(), tmp_path / "run")
    manifest = runner.read_json(tmp_path / "run/checkpoint/manifest.json")
    assert manifest["round"] == tiny.ROUNDS


def test_a_stream_without_tasks_is_an_error(tmp_path, monkeypatch):
    patched_stream(monkeypatch, lambda stream: replace(stream, tasks=lambda seed: iter(())))
    with pytest.raises(RunError, match="expected at least one task in synthetic, got none"):
        run(tiny.spec(), tmp_path / "run")


# Where a run may be written


def prepare(folder, *, force=False):
    with prepared(folder, force=force):
        pass


def test_a_live_run_is_not_replaced_or_resumed_by_another(finished, tmp_path):
    folder = copied(finished, tmp_path)
    (folder / "summary.json").unlink()
    before = content(folder)
    with locked(folder):
        for act in (lambda: run(tiny.spec(), folder, force=True), lambda: resume(folder)):
            with pytest.raises(RunError, match="another process is working in"):
                act()
    assert content(folder) == before


@pytest.mark.parametrize("name", ["spec.json", "rounds.jsonl", "checkpoint", "summary.json"])
def test_a_link_in_a_runs_folder_is_not_followed(finished, tmp_path, name):
    folder = copied(finished, tmp_path)
    if name != "summary.json":
        (folder / "summary.json").unlink()
    elsewhere = (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(elsewhere)
    before = content(tmp_path)
    with pytest.raises(RunError, match=r"found a link; remove it"):
        resume(folder)
    assert content(tmp_path) == before
    prepare(folder, force=True)
    assert elsewhere.exists()


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(finished, tmp_path):
    folder = copied(finished, tmp_path)
    (folder / "spec.json").unlink()
    os.mkfifo(folder / "spec.json")
    with pytest.raises(RunError, match="expected a regular file"):
        resume(folder)


def test_a_folder_that_holds_another_run_is_kept(finished, tmp_path):
    folder = copied(finished, tmp_path)
    before = content(folder)
    with pytest.raises(RunError, match=r"already holds a run; .*--resume .*--force.*--out"):
        run(tiny.spec(), folder)
    assert content(folder) == before


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize(
    "stranger",
    ["thesis.docx", "film.part", "checkpoint/weights.bin", "deep/er/file", "report.html"],
)
def test_a_folder_with_foreign_files_is_kept_whatever_is_asked(tmp_path, force, stranger):
    path = tmp_path / stranger
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    before = content(tmp_path)
    with pytest.raises(RunError, match=r"holds a file that is no run's .* give another --out"):
        prepare(tmp_path, force=force)
    assert content(tmp_path) == before


@pytest.mark.parametrize("stranger", ["thesis.docx", "film.part", "checkpoint/weights.bin"])
def test_force_does_not_replace_a_run_that_shares_its_folder_with_foreign_files(
    finished, tmp_path, stranger
):
    folder = copied(finished, tmp_path)
    (folder / stranger).write_text("mine")
    before = content(folder)
    with pytest.raises(RunError, match="no run's"):
        prepare(folder, force=True)
    assert content(folder) == before


def test_force_removes_all_of_a_runs_own_files(finished, tmp_path):
    folder = copied(finished, tmp_path)
    (folder / ".predictions").mkdir()
    for name in ("report.html", ".rounds.jsonl.part", ".predictions/00000001.parquet"):
        (folder / name).write_text("")
    prepare(folder, force=True)
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_a_folder_killed_before_its_spec_was_whole_is_started_afresh(tmp_path):
    (tmp_path / ".spec.json.part").write_text('{"sch')
    prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(RunError, match=r"expected a folder at .*, found a file"):
        prepare(tmp_path / "run")


def test_runs_without_a_folder_get_one_each_however_close_they_start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(free_folder, ["loans-fairsaoml"] * 8))
    assert len({*folders}) == 8
    assert {str(folder) for folder in folders} >= {
        "runs/loans-fairsaoml",
        "runs/loans-fairsaoml-8",
    }
