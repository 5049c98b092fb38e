"""The exact comparator against a general solver, its proofs, and the pool that stands in for it."""

from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Schema, Task
from fairsaoml.evaluate.regret import quadratic
from fairsaoml.evaluate.regret.comparator import best_models
from fairsaoml.evaluate.regret.pool import best_of_pool, fit_pool
from fairsaoml.evaluate.regret.rounds import deployment, linear_rounds
from oracles.comparator import best_model, mean_loss

FEATURES = 3
SCHEMA = Schema(
    features=tuple("abc"), attributes=(Attribute(name="group", levels=("first", "second")),)
)
LABELS = {"none": (), "dp": (None,), "eo": (1, 0)}


def some_tasks(rounds=6, rows=40, seed=0, lacking=None):
    """Tasks whose second group scores higher; task `lacking` has no row of it."""
    random = np.random.default_rng(seed)
    tasks = []
    for t in range(rounds):
        group = random.integers(0, 2, rows) if t != lacking else np.zeros(rows, int)
        x = random.normal(size=(rows, FEATURES)) + 0.6 * group[:, None] * [1, 0.5, 0]
        y = (x @ [1.0, -0.5, 0.3 * (t % 3)] + 1.5 * random.normal(size=rows) > 0.3).astype(int)
        tasks.append(Task(x=x.astype(np.float32), y=y, group=group[:, None]))
    return tasks


def problem_of(**settings):
    config = LearnerConfig(model="logistic", score="logit", **settings)
    return make_problem(config, SCHEMA), config.to_dict()


def rounds_of(tasks, **settings):
    problem, config = problem_of(**settings)
    return linear_rounds(tasks, problem, config)


def offsets_of(tasks, discount=0.7):
    """Log-odds of the discounted class prior before each task, written out."""
    rates, total, offsets = 0.0, 0.0, []
    for task in tasks:
        rate = np.clip(rates / total, 1e-3, 1 - 1e-3) if total else 0.5
        offsets.append(np.log(rate / (1 - rate)))
        rates, total = discount * rates + task.y.mean(), discount * total + 1
    return offsets


@pytest.mark.parametrize(
    ("notion", "radius", "every_round"),
    [
        *product(["none", "dp", "eo"], [None, 0.7], [False]),
        ("dp", None, True),
        ("eo", 0.7, True),
    ],
)
def test_it_equals_a_general_solver(notion, radius, every_round):
    tasks = some_tasks(lacking=2)
    rounds = rounds_of(tasks, constraints=notion, tolerance=0.1)._replace(every_round=every_round)
    offsets = offsets_of(tasks)
    plain = [(task.x.astype(float), task.y, task.group[:, 0]) for task in tasks]
    for length in (1, 3, 6):
        best = best_models(rounds, length, radius=radius, fair=True, tolerance=1e-7)
        assert best.gap.max() <= 1e-7
        for s in best.start:
            window = slice(s, s + length)
            theta, loss = best_model(
                plain[window],
                offsets[window],
                labels=LABELS[notion],
                tolerance=0.1,
                radius=radius,
                every_round=every_round,
            )
            assert best.loss[s] == pytest.approx(loss, abs=2e-6 * length)
            np.testing.assert_allclose(best.point[s], theta, atol=5e-3)


def test_the_loss_is_that_of_the_point_and_the_constraints_are_kept():
    tasks = some_tasks()
    rounds = rounds_of(tasks, constraints="eo", tolerance=0.05)
    best = best_models(rounds, 4, radius=0.5, fair=True)
    offsets = offsets_of(tasks)
    for w, s in enumerate(best.start):
        total = sum(
            mean_loss(best.point[w], tasks[t].x, tasks[t].y, offsets[t]) for t in range(s, s + 4)
        )
        assert best.loss[w] == pytest.approx(total, rel=1e-5)
    assert (best.violation <= 0).all()
    assert (np.linalg.norm(best.point, axis=1) <= 0.5 + 1e-12).all()


def test_no_model_within_the_limits_has_less_than_the_bound():
    tasks = some_tasks(rounds=3)
    problem, config = problem_of(constraints="dp", tolerance=0.3)
    rounds = linear_rounds(tasks, problem, config)
    # Asked for little, so that the bound is far from the loss and has something to prove.
    best = best_models(rounds, 3, radius=1.0, fair=True, tolerance=0.05)
    random, offsets, kept = np.random.default_rng(1), offsets_of(tasks), 0
    for _ in range(3000):
        theta = best.point[0] + random.normal(size=FEATURES + 1) * random.choice([0.01, 0.1, 0.5])
        reach = np.abs(rounds.terms @ theta).sum(axis=0) - rounds.allowed.sum(axis=0)
        if np.linalg.norm(theta) <= 1 and (reach <= 0).all():
            kept += 1
            loss = sum(mean_loss(theta, t.x, t.y, o) for t, o in zip(tasks, offsets, strict=True))
            assert loss >= best.bound[0] - 1e-6
    assert kept > 100


def test_separable_rows_without_a_ball_come_near_zero_loss():
    x = np.array([[-1.0, 0, 0], [1.0, 0, 0]] * 20, np.float32)
    task = Task(x=x, y=(x[:, 0] > 0).astype(int), group=np.zeros((40, 1), int))
    best = best_models(rounds_of([task], constraints="none"), 1, radius=None, fair=True)
    assert 0 <= best.loss[0] <= 1e-5
    assert np.linalg.norm(best.point[0]) > 5


def test_tolerance_zero_leaves_what_has_no_gap():
    tasks = some_tasks(rounds=2)
    rounds = rounds_of(tasks, constraints="dp", tolerance=0.0)
    best = best_models(rounds, 2, radius=None, fair=True)
    assert np.abs(rounds.terms[:, 0] @ best.point[0]).sum() <= 1e-8
    free = best_models(rounds, 2, radius=None, fair=False)
    assert free.loss[0] < best.loss[0] < 2 * np.log(2)


def test_constraints_and_a_smaller_ball_only_cost():
    rounds = rounds_of(some_tasks(), constraints="dp", tolerance=0.05)
    free = best_models(rounds, 2, radius=None, fair=False)
    fair = best_models(rounds, 2, radius=None, fair=True)
    small = best_models(rounds, 2, radius=0.2, fair=True)
    assert (free.bound <= fair.loss).all()
    assert (fair.bound <= small.loss).all()
    assert fair.loss.sum() > free.loss.sum() + 0.01
    assert small.loss.sum() > fair.loss.sum() + 0.01


def test_where_it_begins_changes_no_more_than_the_gap():
    rounds = rounds_of(some_tasks(rounds=12), constraints="eo", tolerance=0.05)
    short = best_models(rounds, 3, radius=None, fair=True)
    cold = best_models(rounds, 8, radius=None, fair=True)
    warm = best_models(rounds, 8, radius=None, fair=True, near=short)
    some = best_models(rounds, 8, radius=None, fair=True, starts=np.array([1, 4]))
    assert (np.abs(cold.loss - warm.loss) <= 8 * np.maximum(cold.gap, warm.gap) + 1e-12).all()
    assert (np.abs(cold.loss[[1, 4]] - some.loss) <= 8e-5).all()


def test_adding_up_two_windows_never_beats_their_parts_without_constraints():
    rounds = rounds_of(some_tasks(rounds=8), constraints="none")
    lengths = [1, 2, 4, 8]
    best = {n: best_models(rounds, n, radius=1.0, fair=False) for n in lengths}
    for half, whole in pairwise(lengths):
        for w, s in enumerate(best[whole].start):
            parts = best[half].bound[s] + best[half].bound[s + half]
            assert best[whole].loss[w] >= parts


def test_an_empty_task_costs_nothing_and_is_no_obstacle():
    tasks = some_tasks(rounds=3)
    empty = Task(x=np.zeros((0, 3), np.float32), y=np.zeros(0, int), group=np.zeros((0, 1), int))
    with_it = rounds_of([*tasks, empty], constraints="dp", tolerance=0.1)
    best = best_models(with_it, 4, radius=None, fair=True)
    without = best_models(
        rounds_of(tasks, constraints="dp", tolerance=0.1), 3, radius=None, fair=True
    )
    assert best.loss[0] == pytest.approx(without.loss[0], abs=1e-4)
    alone = best_models(with_it, 1, radius=None, fair=True)
    assert alone.loss[3] == 0


@pytest.mark.parametrize(("decision", "expected"), [("accuracy", 0.0), (0.75, np.log(3))])
def test_the_threshold_is_the_one_that_was_deployed(decision, expected):
    labels = ([1, 0, 0, 0, 0], [], [1, 1, 0, 0, 0])
    tasks = [Task(x=None, y=np.array(y), group=None) for y in labels]
    shift, threshold = deployment(tasks, {"prior_discount": 0.5, "decision": decision})
    np.testing.assert_allclose(threshold, expected, rtol=1e-6)
    assert shift[1] == shift[2] == pytest.approx(np.log(0.2 / 0.8), rel=1e-5)


def test_quadratic_programs_satisfy_their_optimality_conditions():
    random = np.random.default_rng(3)
    root = random.normal(size=(4, 5, 5))
    hessian, linear = root @ np.swapaxes(root, 1, 2) + np.eye(5), random.normal(size=(4, 5)) * 3
    terms, most = random.normal(size=(4, 6, 2, 5)), np.full((4, 2), 0.5)
    for radius in (None, 0.1):
        limits = quadratic.Limits(terms, most, radius)
        found = quadratic.minimise(hessian, linear, limits, 1e-10)
        slope = np.einsum("wij,wj->wi", hessian, found.point) + linear
        slope += np.einsum("wtc,wtcp->wp", found.signed, terms) + found.ball[:, None] * found.point
        np.testing.assert_allclose(slope, 0, atol=1e-8)
        reach = np.abs(np.einsum("wtcp,wp->wtc", terms, found.point)).sum(axis=1)
        assert (reach <= most + 1e-12).all()
        assert (np.abs(found.signed) <= found.price[:, None] + 1e-9).all()
        assert (found.price * (most - reach)).max() <= 1e-8
        assert ((found.price > 0.01).any(axis=1) | (found.ball > 0.01)).all()  # something binds


def pool_of(tasks, windows=(1, 3), **settings):
    config = LearnerConfig(**settings)
    problem, plain = make_problem(config, SCHEMA), config.to_dict()
    return fit_pool(tasks, problem, plain, windows), problem, plain


def test_the_pool_keeps_constraints_and_is_near_what_is_known_to_be_best():
    tasks = some_tasks(rounds=3, rows=40)
    settings = {"model": "logistic", "score": "logit", "constraints": "dp", "tolerance": 0.2}
    pool, problem, config = pool_of(tasks, **settings)
    rounds = linear_rounds(tasks, problem, config)
    for fair in (True, False):
        stand_in = best_of_pool(pool, 3, fair=fair)
        best = best_models(rounds, 3, radius=None, fair=fair)
        assert best.bound[0] - 1e-4 <= stand_in.loss[0] <= best.loss[0] + 0.15
    assert (best_of_pool(pool, 2, fair=True).violation <= 0).all()


def test_a_network_has_fair_stand_ins_for_every_window():
    tasks = some_tasks(rounds=3, rows=40)
    pool, _, _ = pool_of(tasks, model="mlp", hidden=(4,), constraints="eo", radius=3.0)
    for length in (1, 2, 3):
        best = best_of_pool(pool, length, fair=True)
        assert len(best.loss) == 3 - length + 1
        assert (best.violation <= 0).all()
        assert (best.loss >= best_of_pool(pool, length, fair=False).loss).all()
        assert (best.loss < 0.75 * length).all()


def test_nothing_is_left_in_double_precision():
    rounds_of(some_tasks(rounds=1), constraints="dp")
    assert jnp.zeros(1).dtype == jnp.float32
    assert not jax.config.jax_enable_x64
