"""The command: what is typed, what is printed where, what is left, how it ends."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tiny
from fairsaoml.cli.progress import progress
from fairsaoml.cli.tables import print_summary
from fairsaoml.evaluate.metrics import Counts, with_counts
from fairsaoml.learners import registry
from fairsaoml.runs.events import as_events
from fairsaoml.streams.catalog import CATALOG
from fairsaoml.streams.synthetic import synthetic

# Looking around


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["predict", "--help"]])
def test_help_is_shown(command, words):
    said = command(*words)
    assert said.code == 0
    assert "Usage" in said.out


def test_no_command_at_all_shows_the_help(command):
    said = command()
    assert said.code == 0
    assert said.out == command("--help").out
    assert "fairsaoml" in said.out


def test_the_version_is_shown(command):
    said = command("--version")
    assert said.code == 0
    assert said.out.startswith("fairsaoml 0.")


@pytest.mark.parametrize("words", [["runn"], ["run", "--sedes", "3"], ["report"], ["predict", "x"]])
def test_wrong_usage_exits_2(command, words):
    said = command(*words)
    assert said.code == 2
    assert said.out == ""
    assert said.err


def test_a_run_needs_a_stream(command):
    said = command("run")
    assert said.code == 2
    assert "expected a stream, got none; try `fairsaoml run synthetic`" in said.err


def test_learners_are_listed(command):
    plain, machine = command("learners"), command("learners", "--json")
    assert plain.code == machine.code == 0
    listed = json.loads(machine.out)
    assert [one["name"] for one in listed] == list(registry.registered())
    assert [one["name"] for one in listed if one["default"]] == ["fairsaoml-decoupled"]
    assert all(one["name"] in plain.out for one in listed)


def test_a_learners_settings_are_listed(command):
    plain, machine = command("learners", "fairsaoml"), command("learners", "fairsaoml", "--json")
    [listed] = json.loads(machine.out)
    config = registry.configure("fairsaoml").to_dict()
    assert {item["name"]: item["default"] for item in listed["settings"]} == config
    assert all(item["meaning"] and item["expected"] for item in listed["settings"])
    assert "meta_iterations" in plain.out
    assert "takes accuracy where 30 to 70 % of a table's first task" in plain.out


def test_an_unknown_learner_is_not_listed(command):
    said = command("learners", "fairsaom")
    assert said.code == 2
    assert "did you mean 'fairsaoml'?" in said.err


def test_streams_are_listed(command):
    plain, machine = command("streams"), command("streams", "--json")
    listed = {one["name"]: one for one in json.loads(machine.out)}
    assert list(listed) == list(CATALOG)
    assert listed["synthetic"]["settings"] == ["generator", "domains", "tasks", "rows"]
    assert "synthetic-gradual" in plain.out


# Running


def test_a_run_prints_its_summary_on_stdout_and_plain_progress_on_stderr(command, tmp_path):
    said = command("run", *tiny.options(), "--out", tmp_path / "run")
    assert said.code == 0
    assert f"{tiny.FIRST} on synthetic" in said.out
    assert "market-3" in said.out
    assert "last ten rounds" in said.out
    assert f"report: {tmp_path / 'run' / 'report.html'}" in said.out.replace("\n", "")
    lines = said.err.splitlines()
    assert lines[0].startswith("round 1/21 market-1: accuracy 0.")
    assert lines[-1].startswith("round 21/21 market-3: accuracy 0.")
    assert len(lines) < 21
    assert "\x1b" not in said.out + said.err
    assert "round 1" not in said.out


def test_a_quiet_run_for_machines_prints_json_alone(command, tmp_path, finished, learner):
    folder = tmp_path / "run"
    said = command("run", *tiny.options(learner), "--out", folder, "--quiet", "--json")
    assert said.code == 0
    assert said.err == ""
    printed = tiny.strictly(said.out)
    assert printed.pop("folder") == str(folder)
    assert printed.pop("report") == str(folder / "report.html")
    assert printed == json.loads((folder / "summary.json").read_text())
    # Same words, same seeds, same machine: the same bytes as a run from Python.
    assert tiny.lines(folder) == tiny.lines(finished)
    assert not (folder / "predictions.parquet").exists()


def test_a_run_writes_a_report_of_one_file(command, finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    said = command("report", tmp_path / "run")
    assert said.code == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert 'src="http' not in page


def test_a_report_of_several_runs_goes_where_it_is_told(command, finished, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(finished, tmp_path / name)
    out, picture = tmp_path / "both.html", tmp_path / "both.svg"
    said = command("report", tmp_path / "one", tmp_path / "two", "--out", out, "--picture", picture)
    assert said.code == 0
    assert out.exists()
    assert picture.read_text().lstrip().startswith("<")
    assert not (tmp_path / "one" / "report.html").exists()


def test_a_report_of_no_run_is_an_error(command, tmp_path):
    said = command("report", tmp_path)
    assert said.code == 1
    assert said.err.startswith("fairsaoml: expected")


def test_a_config_file_says_what_options_say_and_options_have_the_last_word(command, tmp_path):
    path = tmp_path / "run.toml"
    settings = {**tiny.STREAM, **tiny.SETTINGS["fairsaoml"], "tolerance": 0.5}
    lines = ["learner = 'fairsaoml'", "seeds = 9", "seed = 5"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    path.write_text("\n".join(lines))
    folder = tmp_path / "run"
    words = ("--config", path, "--seeds", 2, "--set", "tolerance=0.02", "--out", folder, "--quiet")
    said = command("run", "synthetic", *words)
    assert said.code == 0
    spec = json.loads((folder / "spec.json").read_text())
    assert spec["seeds"] == [5, 6]
    assert spec["learner"]["name"] == "fairsaoml"
    assert spec["learner"]["config"]["tolerance"] == 0.02
    assert spec["learner"]["config"]["hidden"] == [4]
    assert spec["stream"]["settings"] == tiny.STREAM
    assert {record["seed"] for record in tiny.records(folder)} == {5, 6}


def test_the_default_learner_is_the_decoupled_one_with_five_seeds(command, tmp_path, monkeypatch):
    from fairsaoml.runs import runner

    asked = []

    def ask(spec, folder, **options):
        asked.append((spec, folder, options))
        raise runner.RunError("enough")

    monkeypatch.setattr(runner, "run", ask)
    monkeypatch.chdir(tmp_path)
    assert command("run", "synthetic", "--save-predictions", "--force").code == 1
    [(spec, folder, options)] = asked
    assert (spec.learner, spec.seeds) == ("fairsaoml-decoupled", (0, 1, 2, 3, 4))
    assert str(folder) == "runs/synthetic-fairsaoml-decoupled"
    assert options["save_predictions"]
    assert options["force"]


@tiny.one_learner
def test_force_replaces_the_run_in_a_folder(command, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "rounds.jsonl").write_text("")
    words = ("--out", folder, "--quiet", "--force", "--save-predictions")
    assert command("run", *tiny.options(), *words).code == 0
    assert len(tiny.records(folder)) == tiny.ROUNDS * len(tiny.SEEDS)
    assert (folder / "predictions.parquet").exists()


def test_resuming_a_finished_run_says_so_and_exits_0(command, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    said = command("run", "--resume", folder, "--json")
    assert said.code == 0
    assert "is finished already" in said.err
    assert json.loads(said.out)["rounds"] == tiny.ROUNDS
    assert tiny.lines(folder) == tiny.lines(finished)


def test_resuming_where_no_run_is_exits_1(command, tmp_path):
    said = command("run", "--resume", tmp_path)
    assert said.code == 1
    assert "found no spec.json" in said.err


@pytest.mark.parametrize(
    "words", [["synthetic"], ["--seeds", "3"], ["--set", "base=3"], ["--force"], ["--out", "x"]]
)
def test_resume_takes_nothing_that_the_run_has_already(command, tmp_path, words):
    said = command("run", "--resume", tmp_path, *words)
    assert said.code == 2
    assert "give DIR alone" in said.err


def test_options_for_tables_are_for_tables(command):
    said = command("run", "synthetic", "--label", "y")
    assert said.code == 2
    assert "--label is for a table of your own, not for 'synthetic'" in said.err


# Predicting


@pytest.fixture
def new_rows(tmp_path):
    """New applicants as a file, columns in another order, and one column too many."""
    stream = synthetic(tasks=1, rows=30)
    task = next(stream.tasks(7))
    columns = dict(zip(stream.schema.features, task.x.T.tolist(), strict=True))
    path = tmp_path / "new.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", *reversed(columns)])
        for row in range(30):
            writer.writerow([f"n{row}", *(values[row] for values in reversed(columns.values()))])
    return path


def predicted(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["row", "score", "prediction"]
    assert [int(row["row"]) for row in rows] == list(range(len(rows)))
    return [(float(row["score"]), int(row["prediction"])) for row in rows]


def test_new_rows_are_scored_and_decided(command, finished, new_rows, tmp_path):
    said = command("predict", finished, new_rows)
    assert said.code == 0
    found = predicted(said.out)
    assert len(found) == 30
    assert all(0 < score < 1 and decision == (score > 0.5) for score, decision in found)

    written = command("predict", finished, new_rows, "--out", tmp_path / "out.csv", "--seed", 0)
    assert written.out == ""
    assert predicted((tmp_path / "out.csv").read_text()) == found
    other = command("predict", finished, new_rows, "--seed", 1)
    assert predicted(other.out) != found


@tiny.one_learner
def test_new_rows_get_the_score_that_the_next_round_would_have_given_them(
    command, finished, tmp_path
):
    # What is deployed after round 20 scored round 21: cut the run there and predict its rows.
    from fairsaoml.runs import runner
    from fairsaoml.runs.checkpoint import save_checkpoint
    from fairsaoml.runs.saved import load_spec
    from fairsaoml.runs.spec import Setup

    folder = tmp_path / "run"
    spec = load_spec(finished)
    game = Setup.of(spec)
    before = tiny.ROUNDS - 1

    class Enough(BaseException):
        pass

    def stop(game, played):
        if played.round == before:
            save_checkpoint(folder / "checkpoint", before, played.state, {})
            raise Enough

    with pytest.raises(Enough):
        runner.run(spec, folder, on_round=stop)
    last = list(game.stream.tasks(tiny.SEEDS[1]))[-1]
    columns = dict(zip(game.stream.schema.features, last.x.T, strict=True))
    pq.write_table(pa.table(columns), tmp_path / "new.parquet")
    said = command("predict", folder, tmp_path / "new.parquet", "--seed", tiny.SEEDS[1])
    journalled = pq.read_table(
        finished / "predictions.parquet",
        filters=[("round", "=", tiny.ROUNDS), ("seed", "=", tiny.SEEDS[1])],
    )
    scores, decisions = zip(*predicted(said.out), strict=True)
    np.testing.assert_allclose(scores, journalled["score"].to_numpy(), atol=2e-6)
    assert list(decisions) == journalled["prediction"].to_pylist()


def spoiled(path, change):
    rows = list(csv.reader(io.StringIO(path.read_text())))
    change(rows)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_new_rows_without_a_column_are_an_error_that_names_it(command, finished, new_rows):
    def rename(rows):
        rows[0][rows[0].index("income")] = "incoming"

    spoiled(new_rows, rename)
    said = command("predict", finished, new_rows)
    assert said.code == 1
    assert "income" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("value", "words"),
    [("much", "expected numbers in column 'income'"), ("", "NaN or infinity in 1 rows")],
)
def test_new_rows_with_words_or_gaps_are_an_error(command, finished, new_rows, value, words):
    def write(rows):
        rows[3][rows[0].index("income")] = value

    spoiled(new_rows, write)
    said = command("predict", finished, new_rows)
    assert said.code == 1
    assert words in said.err
    assert said.out == ""


def test_predicting_with_a_seed_that_the_run_lacks_is_wrong_usage(command, finished, new_rows):
    said = command("predict", finished, new_rows, "--seed", 9)
    assert said.code == 2
    assert "expected one of the run's seeds (0, 1), got 9" in said.err


def test_predicting_without_a_run_or_a_file_is_an_error(command, finished, new_rows, tmp_path):
    assert command("predict", tmp_path, new_rows).code == 1
    assert command("predict", finished, tmp_path / "no.csv").code in (1, 2)


# A table of one's own


def test_a_table_is_run_and_new_rows_of_it_predicted(command, tmp_path):
    random = np.random.default_rng(0)
    sex = random.choice(["f", "m"], 300)
    pay = random.normal(size=300).round(3) + (sex == "m")
    hired = np.where(pay + random.normal(size=300) > 0.5, "yes", "no")
    path = tmp_path / "jobs.csv"
    rows = [f"{a},{b},{c}" for a, b, c in zip(pay, sex, hired, strict=True)]
    path.write_text("\n".join(["pay,sex,hired", *rows]))
    folder = tmp_path / "run"
    words = ["--label", "hired", "--positive", "yes", "--sensitive", "sex", "--tasks", 5]
    for key, value in tiny.SHARED.items():
        words += ["--set", f"{key}={value}"]
    words += ["--seeds", 2, "--out", folder, "--quiet", "--json", "--save-predictions"]
    said = command("run", path, "--learner", tiny.FIRST, *words)
    assert said.code == 0
    assert json.loads(said.out)["rounds"] == 5
    table = pq.read_table(folder / "predictions.parquet")
    assert table.column_names == ["seed", "round", "row", "y", "group_sex", "score", "prediction"]
    # Real rows are the same for every seed, in the order of the file.
    of_seed = [
        pq.read_table(folder / "predictions.parquet", filters=[("seed", "=", seed)])
        for seed in (0, 1)
    ]
    for one in of_seed:
        assert one["y"].to_pylist() == (hired == "yes").astype(int).tolist()
        assert one["group_sex"].to_pylist() == sex.tolist()
    (tmp_path / "new.csv").write_text("pay\n0.1\n2.5\n")
    said = command("predict", folder, tmp_path / "new.csv")
    assert [line.split(",")[2] in ("yes", "no") for line in said.out.splitlines()[1:]] == [True] * 2


# Progress and Ctrl-C


def test_on_a_terminal_progress_is_one_live_line(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    figures = {"accuracy": 0.75, "dp_ratio": None, "eo_ratio": 0.5}
    result = SimpleNamespace(round=1, records=[{"domain": "here", **figures}])
    setup = SimpleNamespace(stream=SimpleNamespace(length=2))
    with progress(["run"], 1, quiet=False) as on_event:
        as_events(on_event)(setup, result)
    said = capsys.readouterr()
    assert said.out == ""
    assert "round 1/2 here" in said.err
    assert "accuracy 0.750 DP - EO 0.500" in said.err


def test_ctrl_c_finishes_the_round_saves_and_exits_130(tmp_path):
    folder = tmp_path / "run"
    # As many rounds as nobody waits for, in the program that is compiled already.
    endless = tiny.options(tasks=100_000)
    code = "from fairsaoml.cli import main; main()"
    words = [sys.executable, "-c", code, "run", *endless, "--out", str(folder)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        try:
            assert process.stderr.readline().startswith("round 1/300000 market-1: accuracy")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert out == ""
    manifest = json.loads((folder / "checkpoint" / "manifest.json").read_text())
    last = tiny.records(folder)[-1]["round"]
    assert manifest["round"] == last >= 1
    assert f"stopped after round {last}; continue with `fairsaoml run --resume {folder}`" in err
    assert "Traceback" not in err
    assert not (folder / "summary.json").exists()


@pytest.mark.parametrize(
    ("positive", "labels", "told"),
    [(1, 1, True), (26, 330, True), (100, 330, False), (400, 500, False), (999, 900, True)],
)
def test_a_learner_that_decides_the_same_for_everyone_is_not_passed_over(
    positive, labels, told, capsys
):
    six = Counts(rows=1000, predicted_positive=positive, y1_rows=labels, y0_rows=1000 - labels)
    block = {
        "rounds": [1, 5],
        "pooled": dict.fromkeys(("accuracy", "balanced_accuracy", "dp_ratio", "eo_ratio"), 0.9)
        | {"counts": {"sex": {"f": six._asdict(), "m": six._asdict()}}},
    }
    print_summary({"learner": "l", "stream": "s", "seeds": [0], "overall": block, "domains": []})
    assert ("at the base rate" in " ".join(capsys.readouterr().out.split())) == told


def test_a_ratio_that_is_not_known_is_followed_by_why(capsys):
    here, gone = Counts(100, 50, 40, 30, 60, 20), Counts()
    block = {"rounds": [1, 5], "pooled": with_counts({"race": {"a": here, "b": here, "c": gone}})}
    print_summary({"learner": "l", "stream": "s", "seeds": [0], "overall": block, "domains": []})
    assert "- in all rounds: race: no row in 'c'." in capsys.readouterr().out
