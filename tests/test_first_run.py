"""The first run on a table of one's own: what it decides, what it says, what it keeps."""

import csv
import html
import io
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairsaoml.core.errors import ConfigError
from fairsaoml.files import read_json
from fairsaoml.runs.runner import run
from fairsaoml.runs.spec import RunSpec, Setup, by_costs, suggested_decision
from fairsaoml.serve import predict
from fairsaoml.streams.table.kinds import fit_encoder


def loans(path, rows=300, positive=0.13, seed=0):
    """Loans of which a share defaults; the column `sign` tells a little."""
    random = np.random.default_rng(seed)
    bad = random.random(rows) < positive
    sign = bad + random.normal(size=rows)
    sex = random.choice(["f", "m"], rows)
    lines = [f"{s:.4f},{x},{'yes' if b else 'no'}" for s, x, b in zip(sign, sex, bad, strict=True)]
    path.write_text("\n".join(["sign,sex,default", *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("share", "rule"),
    [
        (0.02, "balanced"),
        (0.29, "balanced"),
        (0.3, "accuracy"),
        (0.7, "accuracy"),
        (0.9, "balanced"),
    ],
)
def test_a_label_that_is_neither_rare_nor_common_is_decided_at_one_half(share, rule):
    assert suggested_decision(share) == rule


def test_costs_make_a_threshold():
    assert by_costs(1, 1) == 0.5
    assert by_costs(5, None) == pytest.approx(5 / 6)
    assert by_costs(None, 9) == pytest.approx(0.1)
    for wrong in ((0, None), (-1, 1), (None, float("inf")), (float("nan"), 1)):
        with pytest.raises(ConfigError, match="--cost-false-"):
            by_costs(*wrong)


def setup(path, **settings):
    table = {"label": "default", "sensitive": "sex", "rows": 100}
    return Setup.of(RunSpec(stream=str(path), stream_settings=table, learner_settings=settings))


def test_the_decision_is_chosen_from_the_first_task_unless_one_is_asked_for(tmp_path):
    rare = loans(tmp_path / "rare.csv")
    assert setup(rare).config["decision"] == "balanced"
    assert setup(loans(tmp_path / "even.csv", positive=0.5)).config["decision"] == "accuracy"
    assert setup(rare, decision=0.4).problem.decision == 0.4
    # Only the first task counts: what comes later must not change what was decided before.
    lines = rare.read_text().splitlines()
    rare.write_text("\n".join(lines[:101] + [line.replace(",no", ",yes") for line in lines[101:]]))
    assert setup(rare).config["decision"] == "balanced"


def test_a_folder_keeps_the_decision_that_was_chosen(tmp_path):
    spec = RunSpec(
        stream=str(loans(tmp_path / "rare.csv")),
        stream_settings={"label": "default", "sensitive": "sex", "rows": 100},
    )
    chosen = Setup.of(spec)
    saved = json.loads(json.dumps(spec.to_json(chosen)))
    again = Setup.of(RunSpec.from_json(saved), chosen.stream, saved["learner"]["config"])
    assert again.problem.decision == "balanced"
    # A run of an earlier version decided at one half, and goes on so.
    old = saved["learner"]["config"] | {"decision": "accuracy"}
    assert Setup.of(RunSpec.from_json(saved), chosen.stream, old).problem.decision == "accuracy"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--decision", "0.5", "--cost-false-positive", "5"], "expected --decision or costs, got"),
        (["--decision", "fair"], "decision must be one of accuracy, balanced, or a number"),
        (["--decision", "1e999"], "decision must be one of accuracy, balanced, or a number"),
        (["--cost-false-positive", "0"], "--cost-false-positive must be above 0"),
        (["--favourable", "perhaps"], "favourable must be yes or no, got 'perhaps'"),
        (["--time-format", "day"], "unknown time format 'day'"),
    ],
)
def test_options_that_make_no_sense_are_refused(command, tmp_path, options, words):
    path = loans(tmp_path / "loans.csv")
    said = command("run", path, "--label", "default", "--sensitive", "sex", *options)
    assert (said.code, said.out) == (2, "")
    assert words in said.err
    assert "Traceback" not in said.err


def test_a_group_that_came_later_is_named_with_what_to_do_at_the_end_and_on_the_page(
    command, tmp_path
):
    path = loans(tmp_path / "loans.csv")
    lines = path.read_text().splitlines()
    lines[201:211] = [re.sub(",[fm],", ",new one,", line) for line in lines[201:211]]
    path.write_text("\n".join(lines))
    asked = ("run", path, "--label", "default", "--sensitive", "sex", "--rows", 100, "--seeds", 1)
    told = (
        "Of sex the first task did not have 'new one' (10 rows since round 3): compared with "
        "nobody. To compare it from then on, run again with --known-groups 'sex=new one'."
    )
    said = command(*asked, "--out", tmp_path / "run")
    assert told in " ".join(said.out.split())
    page = html.unescape((tmp_path / "run" / "report.html").read_text())
    assert told in page
    assert "have no known sex" not in page
    said = command(*asked, "--out", tmp_path / "told", "--known-groups", "sex=new one")
    assert "did not have" not in said.out
    counts = read_json(tmp_path / "told" / "summary.json")["overall"]["pooled"]["counts"]
    assert counts["sex"]["new one"]["rows"] == 10


def test_who_names_no_columns_of_a_wide_table_is_told_a_guess_and_how_many_there_are(
    command, tmp_path
):
    path = tmp_path / "wide.csv"
    names = [f"f{number}" for number in range(290)]
    rows = [",".join([*["1"] * 290, sex, hired]) for sex in "fm" for hired in ("yes", "no")]
    path.write_text("\n".join([",".join([*names, "sex", "Hired?"]), *rows]))
    said = command("run", path)
    assert said.code == 2
    assert "f18, f19 and 272 more); a guess from names" in said.err
    assert said.err.endswith("first rows: --label 'Hired?' --sensitive sex\n")


# Decisions on new rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of the default learner on three tasks; look, do not touch."""
    home = tmp_path_factory.mktemp("loans")
    spec = RunSpec(
        stream=str(loans(home / "loans.csv")),
        stream_settings={"label": "default", "sensitive": "sex", "rows": 100},
        seeds=(0,),
    )
    run(spec, home / "run")
    return home / "run"


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_decisions_keep_columns_explain_themselves_and_speak_the_labels_words(
    command, folder, tmp_path
):
    new = loans(tmp_path / "new.csv", rows=20, seed=5)
    said = command("predict", folder, new, "--keep", "sex,sign", "--explain")
    assert said.code == 0
    rows = rows_of(said.out)
    plain = rows_of(command("predict", folder, new).out)
    came = rows_of(new.read_text())
    assert {row["prediction"] for row in rows} <= {"yes", "no"}
    for row, bare, origin in zip(rows, plain, came, strict=True):
        assert (row["score"], row["prediction"]) == (bare["score"], bare["prediction"])
        assert (row["sex"], row["sign"]) == (origin["sex"], origin["sign"])
        needed = float(row["threshold"])
        assert (row["prediction"] == "yes") == (float(row["score"]) > needed)
        moved = float(row["without_fairness"]) + float(row["moved_by:sex"])
        assert moved == pytest.approx(needed, abs=1e-4)
        assert row["because"].startswith("sign ")


def test_decisions_are_written_as_the_ending_says_and_read_from_standard_input(
    command, folder, tmp_path, monkeypatch
):
    new = loans(tmp_path / "new.csv", rows=20, seed=5)
    typed = rows_of(command("predict", folder, new).out)
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        assert command("predict", folder, new, "--out", tmp_path / name).code == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [str(line["score"]) for line in lines] == [row["score"] for row in typed]
    assert rows_of((tmp_path / "out.csv").read_text()) == typed
    for content in (new.read_bytes(), (tmp_path / "out.parquet").read_bytes()):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        said = command("predict", folder, "-")
        assert said.out == "" if content.startswith(b"PAR1") else rows_of(said.out) == typed
    assert "expected a column 'sign'" in said.err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--out", "out.txt"], 2, "expected a file ending in .csv, .jsonl, .parquet"),
        (["--keep", "sexx"], 1, "expected a column 'sexx' in the new rows, got none; did you mean"),
        (["--seed", "7"], 2, "expected one of the run's seeds (0), got 7"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(command, folder, tmp_path, options, code, words):
    said = command("predict", folder, loans(tmp_path / "new.csv", rows=5), *options)
    assert (said.code, said.out) == (code, "")
    assert words in said.err


def test_the_parts_of_a_column_are_one_reason():
    encoder = fit_encoder(pa.table({"job": ["a", "b", "c"] * 9, "pay": np.linspace(0, 1, 27)}))
    names, parts = predict._of_columns(SimpleNamespace(encoder=encoder), np.arange(5.0)[None])
    assert names == ["job", "pay"]
    assert parts.tolist() == [[0 + 1 + 2 + 3, 4]]
