"""The oracles against themselves: hand-written gradients, hand-counted intervals, known corners."""

import numpy as np
import pytest

from oracles import paper
from oracles.batch import Batch, Vector
from oracles.fairness import comparisons, gaps, prior_weights, sharpness, violations
from oracles.intervals import agc, awake_levels, present_levels, targets
from oracles.lagrangian import (
    Problem,
    class_mean_loss,
    constraint_values,
    lagrangian,
    lagrangian_gradient,
    loss_value,
)
from oracles.weights import adanormalhedge

PRIOR = 0.3
PROBLEMS = [
    Problem((4, 1), (2,), "dp"),
    Problem((4, 1), (3,), "dp", score="logit"),
    Problem((4, 5, 3, 1), (2,), "dp+eo", decision="balanced"),
    Problem((4, 5, 3, 1), (2, 3), "eo", decision=0.4),
    Problem((4, 3, 1), (3,), "dp", score="decision"),
]


def rows(seed: int, levels: tuple[int, ...], count: int = 40) -> Batch:
    random = np.random.default_rng(seed)
    weight = np.ones(count)
    weight[-5:] = 0.0
    return Batch(
        x=random.normal(size=(count, 4)),
        y=random.integers(0, 2, count).astype(float),
        group=np.stack([random.integers(0, n + 1, count) for n in levels], axis=1),  # unseen too
        weight=weight,
    )


def pair(problem: Problem, seed: int) -> paper.Pair:
    random = np.random.default_rng(seed)
    return paper.Pair(
        random.normal(size=problem.parameter_count), random.uniform(size=problem.constraint_count)
    )


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_gradient_by_hand_is_the_slope_of_the_lagrangian(problem: Problem) -> None:
    for seed in range(3):
        batch, (theta, dual) = rows(seed, problem.levels), pair(problem, seed)
        by_hand = lagrangian_gradient(problem, theta, dual, batch, PRIOR)
        held = paper.HeldSharpness()
        lagrangian(problem._replace(sharpen=held.note), theta, dual, batch, PRIOR)

        def value(
            theta: Vector,
            held: paper.HeldSharpness = held,
            dual: Vector = dual,
            batch: Batch = batch,
        ) -> float:
            there = problem._replace(sharpen=held.again())
            return lagrangian(there, theta, dual, batch, PRIOR)

        slope = paper.central_differences(value, theta)
        np.testing.assert_allclose(by_hand, slope, rtol=1e-6, atol=1e-8)


def test_eq_1_is_the_gap_between_group_means() -> None:
    batch = rows(0, (3,), count=80)
    z = np.random.default_rng(1).normal(size=len(batch.y))
    found = comparisons("dp+eo", (3,))
    gap = gaps(z, batch, found, "logit", PRIOR, 0.0)
    g = violations(gap, 0.05)
    weight = prior_weights(batch, PRIOR)
    for i, comparison in enumerate(found):
        code = batch.group[:, 0]
        among = {"all": code < 3, "positives": (code < 3) & (batch.y == 1)}
        among["negatives"] = (code < 3) & (batch.y == 0)
        member = among[comparison.rows] & (code == comparison.level)
        rest = among[comparison.rows] & (code != comparison.level)
        by_hand = np.average(z[member], weights=weight[member]) - np.average(
            z[rest], weights=weight[rest]
        )
        assert gap.value[i] == pytest.approx(by_hand, abs=1e-12)
        assert g[i] == pytest.approx(abs(by_hand) - 0.05, abs=1e-12)
    assert (gap.value < 0).any()
    assert (gap.value > 0).any()


def test_a_constant_score_is_fair_and_an_empty_group_says_nothing() -> None:
    batch = rows(0, (2,))
    found = comparisons("eo", (2,))
    for score in ("probability", "decision", "logit"):
        gap = gaps(np.ones(len(batch.y)), batch, found, score, PRIOR, 0.4)
        np.testing.assert_allclose(violations(gap, 0.02), -0.02, atol=1e-15)
    alone = batch._replace(group=np.where(batch.y[:, None] == 1, 0, batch.group))
    gap = gaps(np.arange(40.0), alone, found, "logit", PRIOR, 0.0)
    assert gap.known.tolist() == [False, True]
    assert violations(gap, 0.02)[0] == 0.0
    assert not gap.slope[0].any()
    assert gap.value[1] != 0.0


def test_the_decision_score_knows_every_row_that_weighs_and_no_other() -> None:
    batch, z = rows(0, (2,)), np.random.default_rng(2).normal(size=40)
    weight = prior_weights(batch, PRIOR)
    # 100,000 rows in the weights' proportion: their plain standard deviation is the weighted one.
    many = np.repeat(z + 0.4, np.rint(1e5 * weight).astype(int))
    assert sharpness(z + 0.4, weight) == pytest.approx(3 / many.std(), rel=1e-3)

    def first_gap(z: Vector) -> float:
        return float(gaps(z, batch, comparisons("eo", (2,)), "decision", PRIOR, 0.4).value[0])

    padding, unseen = batch.weight == 0, (batch.weight > 0) & (batch.group[:, 0] == 2)
    assert first_gap(np.where(padding, 9.0, z)) == first_gap(z)
    assert first_gap(np.where(unseen, 9.0, z)) != first_gap(z)


def test_padding_and_the_unseen_group_change_nothing() -> None:
    problem = PROBLEMS[3]
    batch, (theta, dual) = rows(0, problem.levels), pair(problem, 0)
    kept = batch.weight > 0
    trimmed = Batch(batch.x[kept], batch.y[kept], batch.group[kept], batch.weight[kept])
    assert lagrangian(problem, theta, dual, batch, PRIOR) == pytest.approx(
        lagrangian(problem, theta, dual, trimmed, PRIOR), abs=1e-13
    )
    unseen = batch.group[:, 0] == 2
    moved = batch._replace(x=np.where(unseen[:, None], 9.0, batch.x))
    one = problem._replace(levels=(2,))
    np.testing.assert_allclose(
        constraint_values(one, theta, batch, PRIOR), constraint_values(one, theta, moved, PRIOR)
    )
    assert loss_value(one, theta, batch) != loss_value(one, theta, moved)


def test_one_class_has_its_own_mean_and_no_rows_have_no_loss() -> None:
    z = np.array([0.0, 2.0])
    batch = Batch(np.zeros((2, 1)), np.ones(2), np.zeros((2, 1), dtype=int), np.ones(2))
    assert class_mean_loss(z, batch)[0] == pytest.approx(np.log1p(np.exp(-z)).mean())
    empty, slope = class_mean_loss(z, batch._replace(weight=np.zeros(2)))
    assert empty == 0.0
    assert not slope.any()


def test_the_intervals_of_the_papers_figure() -> None:
    intervals = agc(18, 2)
    assert [len(intervals[k]) for k in range(4)] == [18, 9, 5, 3]
    assert all((17, 18) in intervals[k] for k in (1, 2, 3))
    assert targets(intervals, 5) == {0: {(5, 5)}, 1: {(5, 6)}, 2: {(5, 8)}}
    assert awake_levels(1, 18, 2) == [0, 1, 2, 3]
    # Horizon unknown: level 2 of base 3 joins in round 10, and is awake in it.
    assert present_levels(9, None, 3) == [0, 1]
    assert present_levels(10, None, 3) == awake_levels(10, None, 3) == [0, 1, 2]


def test_the_two_forms_of_the_weights_by_hand() -> None:
    credits = {0: (2.0, 2.0), 1: (0.0, 0.0)}
    ahead, behind = np.exp(1.0), np.exp(1.0 / 3)  # Phi(3, 3) and Phi(1, 1)
    fresh = np.exp(1.0 / 3) - 1
    paper_form = (ahead - behind) / (ahead - behind + fresh)
    original = (ahead - np.exp(1.0 / 9)) / (ahead - np.exp(1.0 / 9) + fresh)
    assert adanormalhedge(credits)[0] == pytest.approx(paper_form)
    assert adanormalhedge(credits, "original")[0] == pytest.approx(original)


def rounds_of_draws(
    problem: Problem, levels: list[int], count: int, seed: int
) -> list[dict[int, Batch]]:
    return [
        {k: rows(1000 * seed + 10 * n + k, problem.levels) for k in levels} for n in range(count)
    ]


def one_round(problem: Problem, config: paper.Config, state: paper.State, t: int) -> paper.State:
    levels = present_levels(t, config.horizon, config.base)
    return paper.fairsaoml_round(
        problem,
        config,
        state,
        t,
        supports=rounds_of_draws(problem, levels, 2, t),
        queries=rounds_of_draws(problem, levels, 2, 100 + t),
        credit_queries=rounds_of_draws(problem, levels, 1, 200 + t)[0],
        prior=PRIOR,
    )


@pytest.mark.parametrize("problem", [PROBLEMS[0], PROBLEMS[2]])
def test_all_meta_gradients_agree_without_a_base_learner_while_all_are_awake(
    problem: Problem,
) -> None:
    ends = []
    for mode in ("exact", "first-order", "stale"):
        config = paper.Config(horizon=8, inner_steps=0, meta_gradient=mode)
        ends.append(one_round(problem, config, paper.State(pair(problem, 5), {}), 1).meta)
    for end in ends[1:]:
        np.testing.assert_allclose(end.primal, ends[0].primal, atol=1e-8)
        np.testing.assert_allclose(end.dual, ends[0].dual, atol=1e-8)


def test_the_meta_gradients_differ_once_experts_adapt_and_sleep() -> None:
    problem = PROBLEMS[2]
    ends = []
    for mode in ("exact", "first-order", "stale"):
        state = paper.State(pair(problem, 5), {})
        for t in (1, 2):
            state = one_round(problem, paper.Config(horizon=8, meta_gradient=mode), state, t)
        assert sorted(state.experts) == [0, 1, 2]
        ends.append(state.meta.primal)
    for one in range(3):
        assert np.abs(ends[one] - ends[one - 1]).max() > 1e-4


def test_sleepers_keep_their_pair_and_all_are_credited() -> None:
    problem, config = PROBLEMS[0], paper.Config(horizon=8)
    before = one_round(problem, config, paper.State(pair(problem, 5), {}), 1)
    after = one_round(problem, config, before, 2)
    np.testing.assert_array_equal(after.experts[2].pair.primal, before.experts[2].pair.primal)
    assert np.abs(after.experts[0].pair.primal - before.experts[0].pair.primal).max() > 0
    assert all(after.experts[k].abs_regret > before.experts[k].abs_regret for k in range(3))
