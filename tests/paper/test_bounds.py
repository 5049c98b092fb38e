"""The bounds: the stream is what it claims, fits find known exponents, results are kept."""

import json

import numpy as np
import pytest
from paper.bounds import bounds_table, fit, measure_bounds, theory_stream

from paper import bounds

LEARNERS = ("fair-glc", "aod")
LENGTHS = (8, 16, 32)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A quick form: two learners, three lengths, two seeds; and what it said."""
    folder, said = tmp_path_factory.mktemp("theory"), []
    data = measure_bounds(
        learners=LEARNERS, lengths=LENGTHS, seeds=(0, 1), folder=folder, on_progress=said.append
    )
    return folder, data, said


def test_rows_are_bounded_and_classes_balanced_in_every_round():
    for task in theory_stream(40).tasks(3):
        assert np.linalg.norm(task.x, axis=1).max() <= bounds.LONGEST_ROW + 1e-6
        assert task.y.mean() == 0.5
        assert 0 < task.group.mean() < 1


def test_a_shorter_game_is_the_beginning_of_a_longer_one():
    for one, other in zip(theory_stream(10).tasks(1), theory_stream(30).tasks(1), strict=False):
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.group, other.group)


def test_the_loss_is_strongly_convex_in_every_round():
    for task in theory_stream(20).tasks(0):
        rows = np.hstack([task.x, np.ones((len(task.x), 1))])
        chance = 1 / (1 + np.exp(-bounds.RADIUS * np.linalg.norm(rows, axis=1)))  # the most extreme
        curvature = rows.T @ ((chance * (1 - chance))[:, None] * rows) / len(rows)
        assert np.linalg.eigvalsh(curvature)[0] > 1e-4


def test_no_gradient_is_longer_than_the_bound_that_steps_are_made_of():
    for task in theory_stream(20).tasks(0):
        rows = np.hstack([task.x, np.ones((len(task.x), 1))])
        assert np.linalg.norm(rows, axis=1).max() <= bounds.GRADIENT
        means = [task.x[task.group[:, 0] == g].mean(axis=0) for g in (0, 1)]
        assert np.linalg.norm(means[1] - means[0]) <= bounds.GRADIENT


@pytest.mark.parametrize("exponent", [0.25, 0.5, 1.0])
def test_fits_find_an_exponent_and_its_uncertainty(exponent):
    random, xs = np.random.default_rng(0), [2**k for k in range(1, 9)]
    values = [[3 * x**exponent * np.exp(0.1 * random.normal()) for _ in range(10)] for x in xs]
    found = fit(xs, values)
    assert found.seeds == 10
    assert abs(found.value - exponent) <= 2 * found.half_width
    assert 0 < found.half_width < 0.05


def test_what_is_mostly_not_above_zero_has_no_exponent():
    assert fit([1, 2, 4], [[-1.0, 1.0, -1.0], [1, 2, 1], [2, 4, -2]]) is None
    assert fit([1, 2, 4], [[1.0, 1.0, -1.0], [1, 2, 1], [2, 4, -2]]).seeds == 2


def test_the_quick_form_has_every_figure_of_every_learner(measured):
    _, data, said = measured
    assert list(data["learners"]) == list(LEARNERS)
    for grown in data["learners"].values():
        for key in ("fair_regret", "regret", "violation"):
            assert [row[0] for row in grown[key]["by_window"]] == [2, 4, 8, 16, 32]
            assert [row[0] for row in grown[key]["by_rounds"]] == list(LENGTHS)
            assert all(len(row) == 3 for row in grown[key]["by_window"])
        assert grown["gap_per_round"] <= 1e-5
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert any("fair-glc" in words for words in said)


def test_more_rounds_have_more_windows_to_regret(measured):
    _, data, _ = measured
    for grown in data["learners"].values():
        for key in ("fair_regret", "violation"):
            rows = np.array(grown[key]["by_rounds"])[:, 1:]
            assert (np.diff(rows, axis=0) >= -1e-9).all()  # none of them is told T


def test_who_knows_no_fairness_violates_in_proportion_to_time(measured):
    _, data, _ = measured
    found = data["learners"]["aod"]["violation"]["in_window"]
    assert found["value"] > 0.8


def test_a_second_call_only_reads(measured):
    folder, data, _ = measured
    said = []
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    again = measure_bounds(
        learners=LEARNERS, lengths=LENGTHS, seeds=(0, 1), folder=folder, on_progress=said.append
    )
    assert again == data
    assert said == []
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_what_was_measured_otherwise_is_measured_anew(measured, monkeypatch):
    folder, _, _ = measured
    spec = bounds._spec("aod", 8, 32, (0, 1))
    assert json.loads((folder / "aod-8.json").read_text())["spec"] == spec
    assert bounds._spec("aod", 8, 32, (0, 1, 2)) != spec
    monkeypatch.setattr(bounds, "NOISE", 0.5)
    assert bounds._spec("aod", 8, 32, (0, 1)) != spec


def test_the_table_has_bounds_and_measurements_side_by_side(measured):
    _, data, _ = measured
    lines = bounds_table(data).splitlines()
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    (row,) = [line for line in lines if line.startswith("| fair-glc")]
    assert "O(log T)" in row
    assert "O((T log T)^1/2)" in row
    assert "±" in row
    assert any("as its proof yields" in line and "0.50" in line for line in lines)
    printed = next(line for line in lines if "as printed" in line)
    assert printed.split("|")[-3].strip() == "0.25"
