"""What is the live experts' own: remembered gaps, and trust in them by the rows behind them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core.prior import deployed, no_prior
from fairsaoml.core.problem import make_problem
from fairsaoml.core.shrinkage import shrinkage, uncertainty
from fairsaoml.core.types import Attribute, Batch, Schema
from fairsaoml.learners.families.mixture import mixture_logit
from fairsaoml.learners.live import Expert, LiveConfig, take_step

SCHEMA = Schema(features=("a", "b"), attributes=(Attribute("g", ("x", "y")),))


def rows_of(groups, y=None, x=None):
    size = len(groups)
    return Batch(
        x=jnp.zeros((size, 2)) if x is None else jnp.asarray(x, jnp.float32),
        y=jnp.ones(size) if y is None else jnp.asarray(y, jnp.float32),
        group=jnp.asarray(groups, jnp.int32)[:, None],
        weight=jnp.ones(size),
    )


def problem_of(**settings):
    config = LiveConfig(model="logistic", constraints="dp", **settings)
    return config, make_problem(config, SCHEMA)


def trust_in(rows, rate=0.5, **settings):
    config, problem = problem_of(**settings)
    return shrinkage(config.gap_scale, uncertainty(problem, rows), jnp.array([rate]))


def test_trust_is_the_posterior_share_of_a_gap_given_the_rows_of_both_sides():
    rows = rows_of([0] * 25 + [1] * 25)
    # se^2 = (1/25 + 1/25) / 4 = .02, t^2 = .01; at rate .1 se^2 is nine times that
    np.testing.assert_allclose(trust_in(rows, gap_scale=0.1), [1 / 3], rtol=1e-6)
    np.testing.assert_allclose(trust_in(rows, rate=0.1, gap_scale=0.1), [1 / 19], rtol=1e-6)


@pytest.mark.parametrize("more", [1, 10, 100])
def test_more_rows_are_trusted_more_and_never_fully(more):
    few, many = (trust_in(rows_of([0, 1] * n)) for n in (more, 2 * more))
    assert 0 < few < many < 1


def test_padding_is_no_reason_for_trust():
    rows = rows_of([0, 1] * 8)
    padded = rows._replace(weight=jnp.array([1.0] * 4 + [0.0] * 12))
    np.testing.assert_array_equal(trust_in(padded), trust_in(rows_of([0, 1] * 2)))


def steps_on_noise(times, **settings):
    """The dual after draws in which groups, labels and features know nothing of each other."""
    config, problem = problem_of(tolerance=0.02, **settings)
    rng = np.random.default_rng(0)
    expert = Expert(
        primal={"weight": jnp.array([2.0, -1.0]), "bias": jnp.zeros(())},
        dual=jnp.zeros(1),
        gap=jnp.zeros(1),
    )
    step = jax.jit(
        lambda expert, rows: take_step(
            problem, config, expert, rows, deployed(no_prior(), "accuracy"), jnp.zeros(1)
        )
    )
    for _ in range(times):
        draw = rows_of(rng.integers(0, 2, 200), rng.integers(0, 2, 200), rng.normal(size=(200, 2)))
        moved = step(expert, draw)
        expert = moved._replace(primal=expert.primal)  # the scores stay fair; only the price moves
    return float(expert.dual[0])


def test_a_price_that_believes_each_draw_rises_on_noise_and_a_remembering_one_does_not():
    believing = steps_on_noise(200, gap_memory=0.0)
    remembering = steps_on_noise(200, gap_memory=0.9)
    assert believing > 1.0  # E|noise| is above the tolerance, though the groups are equal
    assert remembering < believing / 5


def test_a_draw_without_a_group_leaves_the_remembered_gap_as_it_is():
    config, problem = problem_of()
    expert = Expert(
        primal={"weight": jnp.ones(2), "bias": jnp.zeros(())},
        dual=jnp.ones(1),
        gap=jnp.array([-0.25]),
    )
    view = deployed(no_prior(), "accuracy")
    moved = take_step(problem, config, expert, rows_of([0] * 6), view, jnp.zeros(1))
    np.testing.assert_array_equal(moved.gap, expert.gap)
    assert moved.dual[0] > expert.dual[0]  # the price still speaks of the gap it remembers


def test_the_mixture_lies_between_its_experts_and_survives_certainty():
    logits = jnp.array([[-200.0, 1.0], [200.0, 3.0]])
    mixed = mixture_logit(jnp.array([0.5, 0.5]), logits)
    assert np.isfinite(mixed).all()
    assert 1.0 < mixed[1] < 3.0


def test_a_gap_counts_by_the_rate_it_is_a_gap_of():
    """A gap of .1 between rare decisions is a larger injustice than between common ones."""
    config, problem = problem_of(score="probability", gap_memory=0.0)
    view = deployed(no_prior(), "accuracy")

    def remembered(bias):
        expert = Expert(
            primal={"weight": jnp.array([1.0, 0.0]), "bias": jnp.array(bias)},
            dual=jnp.zeros(1),
            gap=jnp.zeros(1),
        )
        rows = rows_of([0, 0, 1, 1], [0, 1, 0, 1], [[0, 0], [0, 0], [0.5, 0], [0.5, 0]])
        return float(take_step(problem, config, expert, rows, view, jnp.zeros(1)).gap[0])

    low, high = 1 / (1 + np.exp([3.0, 2.5]))
    np.testing.assert_allclose(remembered(-3.0), (high - low) / (high + low), rtol=1e-4)
    assert remembered(-3.0) > remembered(0.0) > remembered(3.0) > 0
