"""Every kind of bad input has a clear error or a defined, warned behaviour."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from fairsaoml.core.errors import DataError
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.runs import spec as spec_module
from fairsaoml.runs.runner import run
from fairsaoml.runs.spec import Setup


def changed(task, **columns):
    """Some rows of a copy of the task's columns replaced: x=(rows, values)."""
    copies = {name: np.array(getattr(task, name)) for name in columns}
    for name, (where, value) in columns.items():
        copies[name][where] = value
    return task._replace(**copies)


def first_rows(task, rows):
    return task._replace(x=task.x[:rows], y=task.y[:rows], group=task.group[:rows])


ALL = slice(None)
BAD = {
    "empty at the start": (1, lambda task: first_rows(task, 0)),
    "nan": (3, lambda task: changed(task, x=((slice(0, 3), 0), np.nan))),
    "infinity": (4, lambda task: changed(task, x=((slice(0, 2), 1), -np.inf))),
    "nothing but nan": (5, lambda task: changed(task, x=(ALL, np.nan))),
    "one class": (6, lambda task: changed(task, y=(ALL, 1))),
    "one group": (7, lambda task: changed(task, group=(ALL, 0))),
    "one row": (8, lambda task: first_rows(task, 1)),
    "no row": (9, lambda task: first_rows(task, 0)),
    "unseen group": (10, lambda task: changed(task, group=(slice(0, 10), 2))),
    "unseen groups only": (11, lambda task: changed(task, group=(ALL, 2))),
    "constant feature": (12, lambda task: changed(task, x=((ALL, 0), 7.0))),
    "constant features": (13, lambda task: changed(task, x=(ALL, 1.0))),
    "huge values": (14, lambda task: changed(task, x=((slice(0, 5), 2), 1e30))),
}
ROUNDS = {name: round for name, (round, _) in BAD.items()}


def spoil(number, task):
    for round, change in BAD.values():
        if number == round:
            return change(task)
    return task


def stream_patch(change):
    """Every spec's stream with `change(round, task)` in the place of its tasks."""
    patch, original = pytest.MonkeyPatch(), spec_module.open_stream
    patch.setattr(
        spec_module,
        "open_stream",
        lambda name, settings: tiny.perturbed(original(name, settings), change),
    )
    return patch


@pytest.fixture(scope="module")
def folder(learner, tmp_path_factory):
    """A run through all of it."""
    folder = tmp_path_factory.mktemp("bad") / learner
    patch = stream_patch(spoil)
    try:
        run(tiny.spec(learner), folder, save_predictions=True)
    finally:
        patch.undo()
    return folder


@pytest.fixture(scope="module")
def line(folder):
    """The line of the first seed at the round of a kind of bad input."""
    records = [record for record in tiny.records(folder) if record["seed"] == 0]
    return lambda name: records[ROUNDS[name] - 1]


def test_a_run_through_bad_input_goes_on_to_its_end_and_learns(folder):
    records = tiny.records(folder)
    assert len(records) == tiny.ROUNDS * len(tiny.SEEDS)
    clean = [record for record in records if record["round"] > max(ROUNDS.values())]
    assert clean
    for record in clean:
        assert record["rows"] == 60
        assert record["warnings"] == []
        assert record["loss"] < 5
        assert None not in (record["violation"] + record["dual"] + record["weights"])


def test_a_run_through_bad_input_writes_no_nan(folder):
    for line in (folder / "rounds.jsonl").read_text().splitlines():
        tiny.strictly(line)
    for name in ("summary.json", "spec.json"):
        tiny.strictly((folder / name).read_text())
    scores = pq.read_table(folder / "predictions.parquet")["score"].to_numpy()
    assert np.isfinite(scores).all()


def test_rows_with_nan_are_left_out_with_a_warning(line):
    record = line("nan")
    assert record["rows"] == 57
    assert record["warnings"] == ["3 rows with NaN or infinity were left out"]
    assert record["accuracy"] is not None


def test_rows_with_infinity_are_left_out_with_a_warning(line):
    record = line("infinity")
    assert record["rows"] == 58
    assert record["warnings"] == ["2 rows with NaN or infinity were left out"]


def test_a_task_of_nothing_but_nan_is_empty(line):
    record = line("nothing but nan")
    assert record["rows"] == 0
    assert record["warnings"][0] == "60 rows with NaN or infinity were left out"
    assert "the task is empty" in record["warnings"][1]


def test_a_task_with_one_class_is_learned_from_with_a_warning_and_null_ratios(line):
    record = line("one class")
    assert "the task has one class only" in record["warnings"]
    assert record["accuracy"] is not None
    assert record["balanced_accuracy"] is None
    assert record["eo_ratio"] is record["eo_ratio_fpr"] is None
    assert "balanced_accuracy: no row with y = 0" in record["undefined"]


def test_a_task_with_one_group_is_learned_from_with_a_warning_and_null_ratios(line):
    record = line("one group")
    assert any("lacks a group" in warning for warning in record["warnings"])
    assert record["accuracy"] is not None
    assert record["dp_ratio"] is record["dp_difference"] is record["eo_ratio"] is None
    assert "dp_ratio of group: no row in 'minority'" in record["undefined"]
    assert set(record["violation"]) == {0}


def test_a_task_with_one_row_is_scored(line):
    record = line("one row")
    assert record["rows"] == 1
    assert record["accuracy"] in (0, 1)
    assert record["adapted"]["accuracy"] is None  # its only row is the labelled tenth
    assert "the task has one class only" in record["warnings"]


@pytest.mark.parametrize("name", ["no row", "empty at the start"])
def test_a_task_without_rows_is_counted_and_wakes_levels_but_teaches_nothing(line, learner, name):
    record = line(name)
    assert record["rows"] == 0
    assert record["warnings"] == ["the task is empty: nothing learned, figures are null"]
    assert record["accuracy"] is record["loss"] is record["dp_ratio"] is None
    assert "accuracy, positive_rate: no row" in record["undefined"]
    assert record["awake"] == list(range(tiny.LEVELS[learner]))  # rounds 1 and 9 start all


def test_a_group_never_seen_before_is_counted_and_in_no_ratio(line):
    record = line("unseen group")
    counts = record["counts"]["group"]
    assert counts["not known"]["rows"] == 10
    assert sum(level["rows"] for level in counts.values()) == record["rows"] == 60
    assert record["warnings"] == []
    rates = [
        counts[level]["predicted_positive"] / counts[level]["rows"]
        for level in ("majority", "minority")
    ]
    expected = min(rates) / max(rates) if max(rates) else None
    assert record["dp_ratio"] == (None if expected is None else pytest.approx(expected, rel=1e-6))


def test_groups_never_seen_before_alone_leave_every_ratio_undefined(line):
    record = line("unseen groups only")
    assert record["counts"]["group"]["not known"]["rows"] == 60
    assert record["accuracy"] is not None
    assert record["dp_ratio"] is None
    assert set(record["violation"]) == {0}


@pytest.mark.parametrize("name", ["constant feature", "constant features"])
def test_a_constant_feature_is_learned_from_like_any_other(line, name):
    record = line(name)
    assert record["rows"] == 60
    assert record["warnings"] == []
    assert record["loss"] is not None


def test_huge_values_are_clipped_with_a_warning_that_names_the_feature(line):
    record = line("huge values")
    assert record["rows"] == 60
    [warning] = record["warnings"]
    assert warning == "values beyond +-100 were clipped in credit_years; scale the features"


ERRORS = {
    "a label that is not binary": (
        lambda task: changed(task, y=(0, 2)),
        r"round 3: expected labels 0 and 1, got 0, 1, 2; say which value is positive",
    ),
    "a label that is missing": (
        lambda task: task._replace(y=np.where(np.arange(60) == 0, np.nan, task.y)),
        r"round 3: expected labels 0 and 1, got 0.0, 1.0, nan",
    ),
    "a wrong number of features": (
        lambda task: task._replace(x=task.x[:, :9]),
        r"round 3: expected rows of 10 features, got shape \(60, 9\)",
    ),
    "a wrong number of labels": (
        lambda task: task._replace(y=task.y[:59]),
        r"round 3: expected 60 labels and 60 x 1 group codes, got \(59,\) and \(60, 1\)",
    ),
    "a group code out of range": (
        lambda task: changed(task, group=(0, 3)),
        r"round 3: expected codes 0 to 2 for 'group' \(the last is 'not known'\), got 0, 1, 3",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_learned_from_is_an_error_that_says_what_was_expected(name):
    change, words = ERRORS[name]
    game = Setup.of(tiny.spec())
    stream = tiny.perturbed(game.stream, lambda number, task: change(task) if number == 3 else task)
    # As if gone on with after round 2, so that nothing needs to be compiled.
    rounds = prequential(stream, game.learner, game.problem, tiny.SEEDS, state=object(), after=2)
    with pytest.raises(DataError, match=words):
        next(rounds)


def test_an_error_in_the_midst_of_a_run_keeps_the_rounds_before_it(tmp_path):
    wrong, _ = ERRORS["a wrong number of features"]
    patch = stream_patch(lambda number, task: wrong(task) if number == 3 else task)
    try:
        with pytest.raises(DataError, match="round 3"):
            run(tiny.spec(), tmp_path / "run")
    finally:
        patch.undo()
    assert [record["round"] for record in tiny.records(tmp_path / "run")] == [1, 1, 2, 2]


# What people type


def refused(said, code, *words):
    """An error of one line on stderr, nothing on stdout, no traceback."""
    assert said.code == code
    assert said.out == ""
    assert said.err.startswith("fairsaoml: ")
    assert said.err.count("\n") == 1
    for word in words:
        assert word in said.err
    return True


def test_an_unknown_stream(command):
    assert refused(
        command("run", "synthetik"), 2, "unknown stream 'synthetik'", "did you mean 'synthetic'?"
    )
    assert refused(command("run", "xyz"), 2, "unknown stream 'xyz'", "known: ", "synthetic-gradual")


def test_an_unknown_learner(command):
    said = command("run", "synthetic", "--learner", "fair-glk")
    assert refused(said, 2, "unknown learner 'fair-glk'", "did you mean 'fair-glc'?")


def test_an_unknown_setting(command):
    said = command("run", "synthetic", "--set", "raito=0.9")
    assert refused(said, 2, "unknown setting 'raito'", "did you mean 'ratio'?")
    said = command("run", "synthetic", "--set", "generater=1")
    assert refused(said, 2, "unknown setting 'generater'", "did you mean 'generator'?")


def test_a_setting_that_is_no_setting(command):
    said = command("run", "synthetic", "--set", "tolerance")
    assert refused(said, 2, "expected --set key=value, got 'tolerance'")


def test_a_setting_out_of_range(command):
    assert refused(
        command("run", "synthetic", "--set", "ratio=-1"),
        2,
        "ratio must be a number >= 0.01",
        "got -1",
    )
    assert refused(command("run", "synthetic", "--set", "rows=0"), 2, "rows must be")
    assert refused(command("run", "synthetic", "--seeds", "0"), 2, "seeds must be")
    assert refused(command("run", "synthetic", "--seed", "-1"), 2, "seed must be")
    assert refused(command("run", "synthetic", "--seed", str(2**40)), 2, "seed must be")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raito = 0.9", "unknown setting 'raito'; did you mean 'ratio'?"),
        ("sedes = 3", "unknown setting 'sedes'; did you mean 'seeds'?"),
        ("lerner = 'fairsaoml'", "unknown setting 'lerner'; did you mean 'learner'?"),
        ("tolerance = ", "is not TOML"),
        ("seeds = 'five'", "seeds must be a whole number"),
        ("learner = 'fairsaom'", "unknown learner 'fairsaom'; did you mean 'fairsaoml'?"),
        ("[learner]\ntolerance = 0.1", "got a section [learner]"),
    ],
)
def test_a_config_file_with_a_typo(command, tmp_path, text, words):
    path = tmp_path / "run.toml"
    path.write_text(text)
    said = command("run", "synthetic", "--config", path)
    assert said.code == 2
    assert words in said.err
    assert "Traceback" not in said.err


def test_a_config_file_that_is_not_there(command, tmp_path):
    assert refused(
        command("run", "synthetic", "--config", tmp_path / "no.toml"), 2, "expected a TOML file at"
    )
    assert refused(command("run", "synthetic", "--config", tmp_path), 2, "expected a TOML file at")


def test_an_output_folder_that_already_holds_another_run(command, finished):
    before = (finished / "rounds.jsonl").read_bytes()
    said = command("run", "synthetic", "--out", finished, "--quiet")
    assert refused(said, 1, "already holds a run", "--resume", "--force", "--out")
    assert (finished / "rounds.jsonl").read_bytes() == before


def test_an_output_folder_with_foreign_files(command, tmp_path):
    (tmp_path / "thesis.docx").write_text("mine")
    said = command("run", "synthetic", "--out", tmp_path, "--force", "--quiet")
    assert refused(said, 1, "holds a file that is no run's (thesis.docx)")
    assert (tmp_path / "thesis.docx").read_text() == "mine"


def test_a_file_with_a_label_that_is_not_binary(command, tmp_path):
    path = tmp_path / "loans.csv"
    rows = [f"{number},{'ab'[number % 2]},{number % 3}" for number in range(60)]
    path.write_text("\n".join(["age,sex,grade", *rows]) + "\n")
    words = ("--label", "grade", "--sensitive", "sex", "--out", tmp_path / "run", "--quiet")
    said = command("run", path, *words)
    assert said.code == 1
    assert said.err.startswith("fairsaoml: ")
    assert "grade" in said.err
    assert not Path(tmp_path / "run").exists()


def test_a_file_of_which_no_column_is_named(command, tmp_path):
    path = tmp_path / "loans.csv"
    path.write_text("age,sex,grade\n1,f,0\n")
    said = command("run", path, "--out", tmp_path / "run")
    assert refused(
        said,
        2,
        "which column of",
        "--label COLUMN --sensitive COLUMN (its columns: age, sex, grade)",
    )


def test_a_file_that_is_not_there(command, tmp_path):
    (tmp_path / "loans.csv").write_text("age\n")
    for verb in ("run", "compare", "peers"):
        said = command(verb, tmp_path / "loan.csv")
        assert refused(said, 1, "loan.csv, got no such file; did you mean", "loans.csv")


def test_a_summary_of_a_run_through_bad_input_says_how_many_rounds_it_skipped(folder):
    overall = json.loads((folder / "summary.json").read_text())["overall"]
    empty = ("empty at the start", "nothing but nan", "no row")
    assert overall["skipped"]["accuracy"] == len(empty) * len(tiny.SEEDS)
    assert overall["mean"]["accuracy"] is not None
