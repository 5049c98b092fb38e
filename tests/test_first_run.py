"""The first run on a table of one's own: what it decides, what it says, what it keeps."""

import json

import numpy as np
import pytest

from fairsaoml.core.errors import ConfigError
from fairsaoml.runs.decision import by_costs, suggested_decision
from fairsaoml.runs.spec import RunSpec, Setup


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
