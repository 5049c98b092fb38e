"""Regret on windows: its laws, the command, the picture."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny
from fairsaoml import AdaptiveFairClassifier, learn
from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.evaluate.measures import loss_and_violation
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.evaluate.regret import pool
from fairsaoml.evaluate.regret.comparator import best_models
from fairsaoml.evaluate.regret.regret import (
    LossSeries,
    chosen_windows,
    journal_series,
    largest_regret,
    proven_growth,
    regret,
    worst,
)
from fairsaoml.evaluate.regret.rounds import deployment, linear_rounds, window_sums
from fairsaoml.evaluate.seeds import stacked
from fairsaoml.report.regret import regret_picture
from fairsaoml.runs.runner import run
from fairsaoml.runs.spec import Setup
from fairsaoml.streams.stream import checked

LINEAR = {"model": "logistic", "score": "logit", "constraints": "dp"}
SHORT = {"tasks": 3, "rows": 60}  # nine rounds


def linear_spec(learner, **settings):
    own = {**tiny.SHARED, **LINEAR, **settings}
    return replace(
        tiny.spec(),
        learner=learner,
        stream_settings=SHORT,
        learner_settings=own,
        seeds=(0,),
    )


def tasks_of(game, seed):
    stream = game.stream
    return [checked(task, stream.schema, t) for t, task in enumerate(stream.tasks(seed), 1)]


@pytest.fixture(scope="module")
def linear_run(tmp_path_factory):
    """A short run with the linear model and gaps of logits."""
    folder = tmp_path_factory.mktemp("regret") / "run"
    run(linear_spec(tiny.FIRST), folder)
    return folder


@pytest.fixture(scope="module")
def one_pair():
    """A game of a learner that is one linear model: its config, tasks, states and records."""
    game = Setup.of(linear_spec("fair-glc", radius=2.0, decision="balanced"))
    begun, records, points = None, [], [np.zeros(11)]
    for played in prequential(game.stream, game.learner, game.problem, [0], state=begun):
        records += played.records
        primal = played.state.learned.primal
        points.append(np.append(np.asarray(primal["weight"][0]), primal["bias"][0]))
    return game, tasks_of(game, 0), records, points


def test_loss_and_violation_of_the_comparator_are_those_of_the_journal(one_pair):
    game, tasks, records, points = one_pair
    rounds = linear_rounds(tasks, game.problem, game.config)
    for t, record in enumerate(records):
        rows = slice(rounds.first[t], rounds.first[t + 1])
        score = rounds.x[rows] @ points[t] + rounds.offset[rows]
        loss = rounds.weight[rows] @ (np.logaddexp(0, score) - rounds.y[rows] * score)
        assert record["loss"] == pytest.approx(loss, rel=1e-5)
        gap = np.abs(rounds.terms[t] @ points[t]) - rounds.allowed[t]
        assert record["violation"] == pytest.approx(gap, abs=1e-5)


def test_a_comparator_has_no_regret_against_itself(one_pair):
    game, tasks, _, _ = one_pair
    rounds = linear_rounds(tasks, game.problem, game.config)
    for fair in (True, False):
        best = best_models(rounds, rounds.number, radius=2.0, fair=fair)
        theta = best.point[0]
        score = rounds.x @ theta + rounds.offset
        losses = rounds.weight * (np.logaddexp(0, score) - rounds.y * score)
        loss = np.add.reduceat(losses, rounds.first[:-1])
        assert largest_regret(loss, best).value == pytest.approx(0, abs=1e-9)


def test_the_pool_is_measured_by_the_same_functions(one_pair):
    game, tasks, records, points = one_pair
    shift, threshold = deployment(tasks, game.config)
    for t, record in enumerate(records):
        batch = stacked(tasks[t : t + 1], 64)
        batch = jax.tree.map(lambda leaf: leaf[0], batch)
        weight, bias = points[t][:-1].astype(np.float32), np.float32(points[t][-1])
        scores = jnp.asarray(batch.x @ weight + bias + np.float32(shift[t]))
        loss, violation = loss_and_violation(
            game.problem, scores, scores - jnp.float32(threshold[t]), batch
        )
        assert record["loss"] == pytest.approx(float(loss), rel=1e-5)
        assert record["violation"] == pytest.approx(violation.tolist(), abs=1e-5)


def test_regret_is_the_definition_window_by_window(one_pair):
    game, tasks, records, _ = one_pair
    played = journal_series(records, 0)
    rounds = linear_rounds(tasks, game.problem, game.config)
    found = regret(
        [played],
        lambda seed: tasks,
        game.problem,
        game.config,
        seeds=[0],
        windows=[2, 5],
        shared=False,
    )
    for entry in found["windows"]:
        length = entry["window"]
        for key, fair in (("fair_regret", True), ("regret", False)):
            best = best_models(rounds, length, radius=2.0, fair=fair)
            regrets = [
                sum(played.loss[s : s + length]) - best.loss[s] for s in range(9 - length + 1)
            ]
            assert entry[key]["mean"] == pytest.approx(max(regrets), abs=2e-5 * length)
            first, last = entry[key]["rounds"]
            assert first == int(np.argmax(regrets)) + 1
            assert last == first + length - 1
        sums = [sum(played.violation[s : s + length, 0]) for s in range(9 - length + 1)]
        (violation,) = entry["violation"].values()
        assert violation["mean"] == pytest.approx(max(sums))
    assert found["comparator"]["kind"] == "exact"
    assert found["comparator"]["gap_per_round"] <= 1e-5
    assert found["comparator"]["largest_excess"] == 0
    assert found["static"]["regret"]["rounds"] == [1, 9]


def test_to_be_compared_with_the_fair_is_never_harder(one_pair):
    game, tasks, records, _ = one_pair
    found = regret(
        [journal_series(records, 0)],
        lambda seed: tasks,
        game.problem,
        game.config,
        seeds=[0],
        windows=chosen_windows("all", 9),
        shared=True,
    )
    assert [entry["window"] for entry in found["windows"]] == list(range(1, 10))
    for entry in found["windows"]:
        slack = 1e-5 * entry["window"]
        assert entry["fair_regret"]["mean"] <= entry["regret"]["mean"] + slack
    assert found["static"]["fair_regret"]["mean"] < found["static"]["regret"]["mean"] - 0.01


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.integers(1, 16))
def test_the_worst_window_is_the_largest_sum(values, length):
    length = min(length, len(values))
    sums = [sum(values[s : s + length]) for s in range(len(values) - length + 1)]
    largest = worst(window_sums(np.array(values), length), length)
    assert largest.value == pytest.approx(max(sums), abs=1e-9)
    assert sums[largest.first - 1] == pytest.approx(max(sums), abs=1e-9)
    assert largest.last - largest.first + 1 == length


@pytest.mark.parametrize("asked", ["0", "10", "1,x", "", "-1"])
def test_windows_that_cannot_be_are_refused(asked):
    with pytest.raises(ConfigError, match="expected window lengths from 1 to 9"):
        chosen_windows(asked, 9)


def test_the_proof_yields_more_than_is_printed_for_long_windows():
    short, long = proven_growth(1024, 1), proven_growth(1024, 1024)
    assert short["violation"] > short["violation_of_proof"]
    assert long["violation"] < long["violation_of_proof"]
    assert long["loss"] == pytest.approx((1024 * np.log(1024)) ** 0.5)


def test_the_command_says_what_it_compared_with(linear_run, command, tmp_path):
    picture = tmp_path / "regret.svg"
    said = command("regret", linear_run, "--windows", "1,3", "--picture", picture)
    assert said.code == 0, said.err
    for words in ("FairSAR", "SAR", "dp[group=minority]", "duality gap", "Static regret"):
        assert words.split()[0] in said.out
    assert "nan" not in said.out
    drawn = picture.read_text()
    assert drawn.startswith("<svg")
    for words in ("SAR", "(τ log T)^½", "(τ T log T)^¼", "T^¼ τ^½ (proof)"):
        assert words in drawn


def test_the_command_gives_machines_the_same(linear_run, command):
    said = command("regret", linear_run, "--windows", "all", "--json")
    assert said.code == 0, said.err
    found = tiny.strictly(said.out)
    assert [entry["window"] for entry in found["windows"]] == list(range(1, 10))
    assert found["comparator"]["kind"] == "exact"
    assert found["form"] == "zero-shot"
    adapted = tiny.strictly(
        command("regret", linear_run, "--windows", "2", "--adapted", "--json").out
    )
    assert adapted["form"] == "adapted"
    journal = tiny.records(linear_run)
    sums = [
        sum(line["adapted"]["violation"][0] for line in journal[s : s + 2]) for s in range(9 - 1)
    ]
    (violation,) = adapted["windows"][0]["violation"].values()
    assert violation["mean"] == pytest.approx(max(sums), rel=1e-5)


def test_without_a_comparator_the_violations_are_the_same(linear_run, command):
    options = ("regret", linear_run, "--windows", "1,4", "--json")
    whole, half = (
        tiny.strictly(command(*options, *more).out) for more in ((), ("--no-comparator",))
    )
    assert half["comparator"] is None
    for one, other in zip(whole["windows"], half["windows"], strict=True):
        assert one["violation"] == other["violation"]
        assert "regret" not in other
    assert "Sums of violations only" in command("regret", linear_run, "--no-comparator").out


def test_what_is_no_picture_and_no_run_is_refused(linear_run, command, tmp_path):
    said = command("regret", linear_run, "--picture", tmp_path / "regret.png")
    assert said.code == 1
    assert ".svg" in said.err
    assert command("regret", tmp_path).code == 1
    assert command("regret", linear_run, "--windows", "99").code == 2
    assert "base learner" in command("regret", linear_run, "--adapting").err  # fair-glc has none


def test_an_old_journal_has_no_adapted_loss(linear_run):
    lines = tiny.records(linear_run)
    for line in lines:
        del line["adapted"]["loss"]
    with pytest.raises(DataError, match="run it anew"):
        journal_series(lines, 0, adapted=True)


@tiny.one_learner
def test_where_the_problem_is_not_convex_a_stand_in_is_used_and_it_is_said(
    finished, command, monkeypatch
):
    monkeypatch.setattr(pool, "STEPS", 20)
    monkeypatch.setattr(pool, "MOST_WINDOWS", 4)
    found = tiny.strictly(command("regret", finished, "--windows", "1,21", "--json").out)
    assert found["comparator"]["kind"] == "approximate"
    assert "FairSAR is a lower bound" in found["comparator"]["words"]
    assert found["comparator"]["gap_per_round"] <= 1e-5  # without constraints it is convex
    assert found["comparator"]["largest_excess"] == 0
    for entry in found["windows"]:
        assert entry["fair_regret"]["mean"] <= entry["regret"]["mean"]
        assert entry["fair_regret"]["low"] <= entry["fair_regret"]["high"]


def test_a_picture_leaves_out_what_a_logarithm_cannot_show():
    figure = {"mean": -1.0, "low": -1.0, "high": -1.0, "rounds": [1, 1]}
    growth = proven_growth(4, 2)
    entries = [
        {"window": n, "fair_regret": figure, "regret": figure, "violation": {}, "proven": growth}
        for n in (1, 2)
    ]
    measured = {
        "windows": entries,
        "constraints": [],
        "comparator": {},
        "learner": "l",
        "stream": "s",
        "rounds": 4,
        "seeds": [0],
        "form": "zero-shot",
    }
    drawn = regret_picture(measured)
    assert "nothing above zero" in drawn
    assert "NaN" not in drawn


def test_a_comparator_that_adapts_is_charged_as_the_learner_is(monkeypatch):
    """Eq. 4 with G_t on both sides: the learner's own points, measured as comparators."""
    game = Setup.of(linear_spec("mask-ftml", constraints="none", inner_primal_step=2.0))
    tasks, points, adapted = tasks_of(game, 0), [], []
    for played in prequential(game.stream, game.learner, game.problem, [0]):
        adapted.append(played.records[0]["adapted"])
        points.append(jax.tree.map(lambda leaf: leaf[0], played.state.learned.meta.primal))
    charged = jax.jit(pool.adapting_models(game.learner, game.problem, game.config, tasks, 0))
    batches = stacked(tasks, 64)
    for t, theta in enumerate(points[:-1], start=1):
        rows = jax.tree.map(lambda leaf: leaf[t], batches)  # noqa: B023
        loss, _ = charged(theta, jnp.int32(t), rows)
        assert float(loss) == pytest.approx(adapted[t]["loss"], rel=1e-5)
    monkeypatch.setattr(pool, "STEPS", 1)
    monkeypatch.setattr(pool, "SHARES", (0.0,))  # so that every model of the pool is theta = 0
    still = jax.tree.map(jnp.zeros_like, points[0])
    losses = [
        float(charged(still, jnp.int32(t), jax.tree.map(lambda leaf: leaf[t], batches))[0])  # noqa: B023
        for t in range(9)
    ]
    found = regret(
        [LossSeries(loss=np.zeros(9), violation=np.zeros((9, 0)))],
        lambda seed: tasks,
        game.problem,
        game.config,
        seeds=[0],
        windows=[9],
        shared=True,
        adapted=True,
        adapting=game.learner,
    )
    assert found["static"]["fair_regret"]["mean"] == pytest.approx(-sum(losses), rel=1e-5)
    assert found["comparator"]["adapts"]


def test_a_model_from_python_begins_with_the_round_that_its_folder_begins_with(tmp_path, command):
    random = np.random.default_rng(0)
    x, sex = random.normal(size=(400, 2)), random.choice(["f", "m"], 400)
    rows = {"a": x[:, 0], "b": x[:, 1], "sex": sex, "y": x[:, 0] > 0}
    table = pd.DataFrame(rows)
    model = AdaptiveFairClassifier(task_size=100)
    model.fit(table[["a", "b"]][:200], table["y"][:200], sensitive_features=table["sex"][:200])
    model.save_run(tmp_path / "run", label="y", task_rows=100)
    refused = command("regret", tmp_path / "run").err
    assert "got none" in refused
    assert f"`fairsaoml learn {tmp_path / 'run'} FILE`" in refused
    learn(tmp_path / "run", table[200:])
    asked = ("regret", tmp_path / "run", "--windows", "1,2", "--no-comparator")
    said = command(*asked, "--json")
    assert said.code == 0, said.err
    measured = tiny.strictly(said.out)
    first, last = tiny.records(tmp_path / "run")[0]["round"], model.n_rounds_ + 2
    for figure in measured["windows"][1]["violation"].values():
        assert figure["rounds"] == [first, last] == [3, 4]
    assert "rounds of the largest" in " ".join(command(*asked).out.split())
    assert "got a model from Python" in command("regret", tmp_path / "run").err


def test_an_empty_task_is_charged_nothing():
    lines = [{"seed": 0, "round": 1, "loss": None, "violation": [0.0]}]
    played = journal_series(lines, 0)
    assert isinstance(played, LossSeries)
    assert played.loss.tolist() == [0.0]
