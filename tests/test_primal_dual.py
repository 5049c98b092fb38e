"""How a pair moves: down the Lagrangian, then up it, as Eq. 10 to 12 and a hand can tell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core import prior
from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.primal_dual import (
    Steps,
    evaluate,
    lagrangian,
    primal_dual_step,
    project,
    run_base_learner,
    start,
)
from fairsaoml.core.problem import balanced_loss, make_problem
from fairsaoml.core.types import Attribute, Batch, PrimalDual, Schema

SCHEMA = Schema(features=("a", "b"), attributes=(Attribute("sex", ("f", "m")),))
EVEN = prior.deployed(prior.no_prior(), "accuracy")


def problem_of(**settings):
    return make_problem(LearnerConfig(model="logistic", **settings), SCHEMA)


def rows(seed=0, count=40):
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(count) % 2)
    group = random.permutation(np.arange(count) % 2)
    x = random.normal(size=(count, 2)) + np.stack([y, 2 * group], axis=1)
    return Batch(
        x=jnp.asarray(x, jnp.float32),
        y=jnp.asarray(y, jnp.float32),
        group=jnp.asarray(group[:, None], jnp.int32),
        weight=jnp.ones(count),
    )


def pair_of(dual):
    return PrimalDual(
        primal={"weight": jnp.array([0.5, 1.0]), "bias": jnp.array(-0.2)},
        dual=jnp.asarray(dual, jnp.float32),
    )


def flat(primal):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(primal)])


def test_a_pair_starts_without_a_price_on_unfairness():
    pair = start(problem_of(constraints="dp+eo"), jax.random.key(0))
    assert pair.dual.tolist() == [0.0, 0.0, 0.0]
    assert start(problem_of(constraints="none"), jax.random.key(0)).dual.shape == (0,)


def test_the_balanced_loss_is_the_mean_of_the_class_means():
    logits = jnp.array([2.0, -1.0, 0.5, 0.0])
    batch = rows()._replace(y=jnp.array([1.0, 1.0, 1.0, 0.0]), weight=jnp.array([1.0, 1, 0, 1]))
    by_hand = (np.mean([np.log1p(np.exp(-2)), np.log1p(np.exp(1))]) + np.log(2)) / 2
    assert balanced_loss(logits, batch) == pytest.approx(by_hand, rel=1e-5)


def test_the_loss_of_one_class_is_that_classes_mean():
    batch = rows()._replace(y=jnp.ones(2), weight=jnp.ones(2))
    by_hand = np.mean([np.log1p(np.exp(-2)), np.log1p(np.exp(1))])
    assert balanced_loss(jnp.array([2.0, -1.0]), batch) == pytest.approx(by_hand, rel=1e-5)


def test_the_loss_of_no_rows_is_zero_and_pulls_nowhere():
    batch = rows()._replace(weight=jnp.zeros(40))
    value, slope = jax.value_and_grad(balanced_loss)(jnp.linspace(-3, 3, 40), batch)
    assert value == 0
    assert not np.asarray(slope).any()


def test_the_lagrangian_adds_each_violation_at_its_price():
    problem, batch, pair = problem_of(constraints="eo"), rows(), pair_of([0.3, 2.0])
    loss, violation = evaluate(problem, pair.primal, batch, EVEN)
    value, beside = lagrangian(problem, pair, batch, EVEN)
    assert value == pytest.approx(float(loss + 0.3 * violation[0] + 2.0 * violation[1]), rel=1e-6)
    assert beside.tolist() == violation.tolist()


def test_without_constraints_the_lagrangian_is_the_loss():
    problem, batch, pair = problem_of(constraints="none"), rows(), pair_of([])
    value, violation = lagrangian(problem, pair, batch, EVEN)
    assert value == balanced_loss(problem.model.scores(pair.primal, batch.x), batch)
    assert violation.shape == (0,)


def test_the_violation_is_that_of_the_deployed_decision():
    # With 10 % positives, decisions at 0.5 are all but negative: the gap shrinks with them.
    problem, batch, pair = problem_of(constraints="dp"), rows(), pair_of([0.0])
    rare = prior.Prior(rates=jnp.array(0.1), tasks=jnp.array(1.0))
    by_decision = {
        decision: evaluate(problem, pair.primal, batch, prior.deployed(rare, decision))[1][0]
        for decision in ("accuracy", "balanced")
    }
    assert by_decision["accuracy"] < by_decision["balanced"]


def test_a_step_goes_down_in_theta_then_up_in_lambda_at_the_new_theta():
    problem, batch, pair = problem_of(constraints="dp"), rows(), pair_of([0.7])
    steps = Steps(primal=0.1, dual=0.5, damping=0.01)
    slope = jax.grad(lambda p: lagrangian(problem, pair._replace(primal=p), batch, EVEN)[0])(
        pair.primal
    )
    moved = primal_dual_step(problem, pair, batch, EVEN, steps)
    np.testing.assert_allclose(flat(moved.primal), flat(pair.primal) - 0.1 * flat(slope), rtol=1e-5)
    fresh = evaluate(problem, moved.primal, batch, EVEN)[1]
    old = evaluate(problem, pair.primal, batch, EVEN)[1]
    np.testing.assert_allclose(moved.dual, 0.7 + 0.5 * (fresh - 0.01 * 0.7), rtol=1e-6)
    assert abs(float((fresh - old)[0])) > 1e-4  # or the test could not tell


def test_the_dual_is_clipped_at_zero():
    problem, batch = problem_of(constraints="dp", tolerance=5.0), rows()
    moved = primal_dual_step(problem, pair_of([0.1]), batch, EVEN, Steps(0.1, 1.0, 0.0))
    assert moved.dual.tolist() == [0.0]


def test_steps_with_a_price_make_the_model_fairer():
    problem, batch = problem_of(constraints="dp"), rows(count=200)
    pair = pair_of([0.0])
    before = evaluate(problem, pair.primal, batch, EVEN)[1][0]
    after = run_base_learner(problem, pair, batch, EVEN, Steps(0.1, 0.5, 0.0), times=100)
    assert before > 0.2
    assert evaluate(problem, after.primal, batch, EVEN)[1][0] < before / 4


def test_no_base_learner_step_is_the_identity():
    problem, batch, pair = problem_of(), rows(), pair_of([0.4])
    same = run_base_learner(problem, pair, batch, EVEN, Steps(0.1, 0.1, 0.0), times=0)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), same, pair))


def test_two_base_learner_steps_are_one_after_another():
    problem, batch, steps = problem_of(), rows(), Steps(0.1, 0.1, 0.0)
    both = run_base_learner(problem, pair_of([0.4]), batch, EVEN, steps, times=2)
    once = primal_dual_step(problem, pair_of([0.4]), batch, EVEN, steps)
    twice = primal_dual_step(problem, once, batch, EVEN, steps)
    np.testing.assert_allclose(flat(both), flat(twice), rtol=1e-5)


def test_a_step_on_no_rows_moves_nothing():
    problem, pair = problem_of(constraints="dp+eo"), pair_of([0.4, 0.0, 0.1])
    nobody = rows()._replace(weight=jnp.zeros(40))
    same = primal_dual_step(problem, pair, nobody, EVEN, Steps(0.1, 0.1, 0.0))
    np.testing.assert_array_equal(flat(same), flat(pair))


@pytest.mark.parametrize("radius", [0.1, 1.0, 100.0])
def test_projection_scales_the_whole_vector_onto_the_ball_or_leaves_it(radius):
    primal = {"weight": jnp.array([[3.0, -4.0]]), "bias": jnp.array(12.0)}  # norm 13
    found = flat(project(primal, radius))
    np.testing.assert_allclose(found, flat(primal) * min(1, radius / 13), rtol=1e-6)


def test_without_a_radius_nothing_is_projected_and_zero_stays_zero():
    primal = {"weight": jnp.full(3, 1e6)}
    assert project(primal, None) is primal
    assert flat(project({"weight": jnp.zeros(3)}, 1.0)).tolist() == [0.0, 0.0, 0.0]


def test_a_step_is_projected_only_where_it_is_asked_to_be():
    problem, batch, steps = problem_of(), rows(), Steps(0.1, 0.1, 0.0)
    inside = primal_dual_step(problem, pair_of([0.4]), batch, EVEN, steps, radius=0.5)
    assert np.linalg.norm(flat(inside.primal)) == pytest.approx(0.5, rel=1e-5)
    free = primal_dual_step(problem, pair_of([0.4]), batch, EVEN, steps)
    assert np.linalg.norm(flat(free.primal)) > 0.9
