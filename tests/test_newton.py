"""The experts that solve their interval: against SciPy, scikit-learn, and by their own laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairsaoml.core.experts import Roll
from fairsaoml.core.prior import Deployed, restore
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, Schema
from fairsaoml.learners.newton import Expert, NewtonConfig, Past, carried, newton, solve
from oracles.newton import Present, Remembered, Terms, best_fair_model, signed_relative_gaps

SCHEMA = Schema(features=("a", "b"), attributes=(Attribute("g", ("x", "y")),))
DEPLOYED = Deployed(rate=jnp.float32(0.4), shift=jnp.float32(-0.3))


def rows_of(count, seed, *, unfair=0.0):
    """Rows in which `b` is partly the group, and labels favour it by `unfair`."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, count)
    x = np.c_[rng.normal(size=count), rng.normal(size=count) + group]
    chance = 1 / (1 + np.exp(-(x[:, 0] + unfair * (x[:, 1] - 0.5))))
    y = rng.random(count) < chance
    return Batch(
        x=jnp.asarray(x, jnp.float32),
        y=jnp.asarray(y, jnp.float32),
        group=jnp.asarray(group, jnp.int32)[:, None],
        weight=jnp.ones(count),
    )


def game(**settings):
    config = NewtonConfig.from_dict({"horizon": 8, "score": "probability", **settings})
    return config, make_problem(config, SCHEMA)


def remembering(seed, constraints):
    """An expert with a past: positive curvature, a slope, gaps of some rows."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    past = Past(
        rows=50.0,
        curvature=10 * root @ root.T,
        slope=5 * rng.normal(size=3),
        weight=rng.uniform(5, 20, constraints),
        offset=rng.normal(size=constraints),
        lean=3 * rng.normal(size=(constraints, 3)),
    )
    expert = Expert(
        primal={"weight": jnp.zeros(2), "bias": jnp.zeros(())},
        multiplier=jnp.asarray(rng.normal(size=constraints) / 10, jnp.float32),
        past=jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), past),
    )
    return expert


@pytest.mark.parametrize("seed", range(4))
def test_an_expert_finds_the_minimum_that_scipy_finds(seed):
    config, problem = game(constraints="eo", newton_steps=12, penalty=2.0, tolerance=0.01)
    batch, expert = rows_of(80, seed, unfair=2.0), remembering(seed, 2)
    solved = solve(problem, config, expert, batch, DEPLOYED)
    found = np.array([solved.primal["bias"], *solved.primal["weight"]], float)
    now = Present(
        x=np.c_[np.ones(80), np.asarray(batch.x)],
        y=np.asarray(batch.y),
        group=np.asarray(batch.group[:, 0]),
        rate=0.4,
        shift=-0.3,
    )
    past = Remembered(
        *(np.asarray(leaf, float) for leaf in expert.past), np.asarray(expert.multiplier, float)
    )
    terms = Terms(ridge=1.0, penalty=2.0, tolerance=0.01, gap_scale=0.1)
    # At its solution the learner's rates are what they are; the minimum is the one given them.
    rates = signed_relative_gaps(found, now)[1]
    np.testing.assert_allclose(found, best_fair_model(now, past, terms, rates), atol=2e-3)


def test_a_matrix_and_a_vector_remember_what_a_refit_on_all_rows_finds():
    config, problem = game(constraints="none")
    learner = newton(problem, config)
    state, step = learner.init(jax.random.key(0)), jax.jit(learner.step)
    tasks = [rows_of(200, seed, unfair=1.0) for seed in range(4)]
    for round, batch in enumerate(tasks, start=1):
        state, _ = step(jax.random.key(round), jnp.int32(round), state, batch)
    longest = jax.tree.map(lambda leaf: np.asarray(leaf[-1]), state.learned.bank.pair.primal)
    x, y = (np.concatenate([np.asarray(task[i]) for task in tasks]) for i in (0, 1))
    refit = LogisticRegression(class_weight="balanced").fit(x, y)
    np.testing.assert_allclose(longest["weight"], refit.coef_[0], atol=0.03)
    np.testing.assert_allclose(longest["bias"], refit.intercept_[0], atol=0.03)


@pytest.mark.parametrize("score", ["probability", "decision"])
def test_pressed_round_after_round_a_gap_falls_to_its_tolerance(score):
    batch = rows_of(600, seed=0, unfair=1.0)

    def gap_with(constraints):
        config, problem = game(
            constraints=constraints, score=score, dual_memory=1.0, gap_scale=10.0
        )
        dp = make_problem(game(constraints="dp", score=score)[0], SCHEMA).constraints[0]
        step = jax.jit(lambda expert: solve(problem, config, expert, batch, DEPLOYED))
        begun = expert = fresh(constraints)
        for _ in range(20):  # the same rows again and again: their past would count twice
            expert = step(expert)._replace(past=begun.past)
        logits = problem.model.scores(expert.primal, batch.x) + DEPLOYED.shift
        found = dp.gap(logits, restore(batch, DEPLOYED.rate))
        return abs(found.value / (2 * found.rate)).item()

    assert gap_with("none") > 0.1
    assert gap_with("dp") == pytest.approx(0.02, abs=2e-3)


def fresh(constraints="none"):
    config, problem = game(constraints=constraints)
    expert = newton(problem, config).init(jax.random.key(0)).learned.bank.pair
    return jax.tree.map(lambda leaf: leaf[0], expert)


def test_a_waking_expert_keeps_as_much_past_as_its_own_length_is_worth():
    config, _ = game(carry=0.5)
    past = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), fresh().past._replace(rows=400.0))
    awake = jnp.array([True, True, False])
    roll = Roll(present=awake, awake=awake, present_count=jnp.int32(3), awake_count=jnp.int32(2))
    kept = carried(config, past._replace(slope=jnp.ones((3, 3))), jnp.float32(100), roll)
    # half a task of 100 rows out of 400, half of two tasks, and everything
    assert kept.rows.tolist() == [50.0, 100.0, 400.0]
    assert kept.slope[:, 0].tolist() == [0.125, 0.25, 1.0]


def test_nothing_is_random():
    config, problem = game()
    learner = newton(problem, config)
    batch, state = rows_of(50, seed=1), learner.init(jax.random.key(0))
    one, other = (learner.step(jax.random.key(k), jnp.int32(1), state, batch)[0] for k in (1, 2))
    jax.tree.map(np.testing.assert_array_equal, one, other)
