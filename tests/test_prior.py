"""What is deployed is calibrated, and the constraint speaks of the decisions made (D25)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core import prior
from fairsaoml.core.primal_dual import move
from fairsaoml.core.prior import Prior
from fairsaoml.core.problem import balanced_loss
from fairsaoml.core.types import Batch


def batch_of(y, weight=None):
    y = jnp.asarray(y, jnp.float32)
    return Batch(
        x=jnp.zeros((len(y), 1)),
        y=y,
        group=jnp.zeros((len(y), 1), jnp.int32),
        weight=jnp.ones(len(y)) if weight is None else jnp.asarray(weight, jnp.float32),
    )


def after(*tasks, discount=0.7):
    found = prior.no_prior()
    for y in tasks:
        found = prior.observe(found, batch_of(y), discount)
    return found


FIFTH = Prior(rates=jnp.array(0.2), tasks=jnp.array(1.0))
FIFTH_LOGIT = np.log(0.2 / 0.8)


def test_the_running_prior_is_the_discounted_mean_of_the_tasks_base_rates():
    found = after([1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0])
    by_hand = (0.25 * 0.49 + 0.5 * 0.7 + 0.375) / (0.49 + 0.7 + 1)
    assert prior.base_rate(found) == pytest.approx(by_hand, rel=1e-5)


def test_before_any_task_odds_are_even_and_nothing_is_added():
    assert prior.base_rate(prior.no_prior()) == 0.5
    assert prior.log_odds(prior.no_prior()) == 0


def test_an_empty_task_and_padding_do_not_move_the_prior():
    once = after([1, 0, 0, 0])
    again = prior.observe(once, batch_of([1, 1], weight=[0, 0]), 0.7)
    assert jax.tree.map(float, again) == jax.tree.map(float, once)
    padded = prior.observe(prior.no_prior(), batch_of([1, 0, 0, 0, 1], [1, 1, 1, 1, 0]), 0.7)
    assert jax.tree.map(float, padded) == jax.tree.map(float, once)


def test_the_log_odds_stay_finite_where_a_class_was_never_seen():
    assert prior.log_odds(after([0, 0, 0])) == pytest.approx(np.log(0.001 / 0.999), rel=1e-4)
    assert prior.log_odds(after([1, 1])) == pytest.approx(np.log(0.999 / 0.001), rel=1e-4)


def test_a_score_trained_on_balanced_loss_is_calibrated_once_the_prior_is_added():
    # One feature that says nothing: the balanced optimum is logit 0, the truth is the base rate.
    y = np.arange(50) < 10
    rows = batch_of(y)
    bias = jnp.array(0.3)
    for _ in range(100):
        slope = jax.grad(lambda b: balanced_loss(jnp.full(50, 1.0) * b, rows))(bias)
        bias = move(bias, slope, 1.0)
    deployed = bias + prior.log_odds(after(y))
    assert jax.nn.sigmoid(deployed) == pytest.approx(0.2, abs=1e-3)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [("accuracy", 0.0), ("balanced", FIFTH_LOGIT), (0.5, 0.0), (0.3, np.log(0.3 / 0.7))],
)
def test_the_threshold_of_a_decision(decision, expected):
    assert prior.threshold(FIFTH, decision) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("decision", ["accuracy", "balanced", 0.3])
def test_the_constraint_sees_positive_scores_exactly_where_the_decision_is_positive(decision):
    model_logits = jnp.linspace(-4, 4, 33)
    seen = model_logits + prior.deployed(FIFTH, decision).shift
    deployed = model_logits + prior.log_odds(FIFTH)
    # Not the point on the threshold itself, where rounding decides.
    clear = jnp.abs(deployed - prior.threshold(FIFTH, decision)) > 1e-5
    decided = deployed > prior.threshold(FIFTH, decision)
    assert bool(jnp.all((seen > 0)[clear] == decided[clear]))


def test_a_balanced_decision_needs_no_shift():
    assert prior.deployed(FIFTH, "balanced").shift == pytest.approx(0, abs=1e-6)


def test_restored_weights_give_the_classes_the_priors_mass():
    rows = batch_of([1, 1, 1, 1, 0, 0, 0, 0, 1], weight=[1] * 8 + [0])
    restored = prior.restore(rows, jnp.array(0.2))
    mass = np.asarray(restored.weight)
    assert mass[:4].sum() == pytest.approx(0.2, rel=1e-5)
    assert mass[4:8].sum() == pytest.approx(0.8, rel=1e-5)
    assert mass[8] == 0  # padding stays padding


def test_restoring_one_class_alone_keeps_it_finite():
    mass = np.asarray(prior.restore(batch_of([1, 1]), jnp.array(0.2)).weight)
    np.testing.assert_allclose(mass, [0.1, 0.1], rtol=1e-5)
    nobody = prior.restore(batch_of([1, 0], weight=[0, 0]), jnp.array(0.2))
    assert not np.asarray(nobody.weight).any()
