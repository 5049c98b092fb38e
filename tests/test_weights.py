"""Weights are a distribution over the experts present, and what the formulas say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairsaoml.core import weights
from fairsaoml.core.weights import uniform

# As one program: operation by operation takes longer to compile.
ada_normal_hedge = jax.jit(weights.ada_normal_hedge, static_argnames="printed")
LEVELS = 5
FINITE = st.floats(-1e4, 1e4, width=32)
CREDIT = arrays(np.float32, LEVELS, elements=FINITE)
PRESENT = arrays(bool, LEVELS).filter(np.any)


def combiners(regret, abs_regret, present):
    regret, abs_regret = jnp.asarray(regret), jnp.asarray(abs_regret)
    present = jnp.asarray(present)
    yield ada_normal_hedge(regret, abs_regret, present, printed=True)
    yield ada_normal_hedge(regret, abs_regret, present, printed=False)
    yield uniform(present)


@given(CREDIT, CREDIT, PRESENT)
def test_weights_sum_to_one_over_the_present_and_are_zero_elsewhere(regret, more, present):
    for found in combiners(regret, np.abs(regret) + np.abs(more), present):
        assert np.isclose(found.sum(), 1, atol=1e-5)
        assert (np.asarray(found) >= 0).all()
        assert not np.asarray(found)[~present].any()


def potential(regret, abs_regret):
    """Phi of Eq. 9 with its corners (D12), in float64."""
    if regret <= 0 or abs_regret <= 0:
        return 1.0
    return np.exp(regret**2 / (3 * abs_regret))


def direct(regret, abs_regret, *, printed):
    masses = [
        (potential(r + 1, c + 1) - potential(r - 1, c - 1 if printed else c + 1)) / 2
        for r, c in zip(regret.astype(float), abs_regret.astype(float), strict=True)
    ]
    masses = np.maximum(masses, 0)
    return masses / masses.sum() if masses.sum() else np.full(LEVELS, 1 / LEVELS)


@pytest.mark.parametrize("printed", [True, False])
@given(regret=arrays(np.float32, LEVELS, elements=st.floats(-30, 30, width=32)))
def test_log_space_is_the_direct_formula_where_that_does_not_overflow(printed, regret):
    # C >= |R| always holds; a little more so that both forms differ.
    abs_regret = np.abs(regret) + np.float32(0.5)
    ours = ada_normal_hedge(
        jnp.asarray(regret), jnp.asarray(abs_regret), jnp.ones(LEVELS, bool), printed=printed
    )
    np.testing.assert_allclose(ours, direct(regret, abs_regret, printed=printed), atol=2e-4)


def test_the_two_forms_differ():
    regret, abs_regret = jnp.array([5.0, 2.0]), jnp.array([6.0, 9.0])
    present = jnp.ones(2, bool)
    printed = ada_normal_hedge(regret, abs_regret, present, printed=True)
    original = ada_normal_hedge(regret, abs_regret, present, printed=False)
    assert abs(printed[0] - original[0]) > 0.01


def test_credit_of_ten_thousand_stays_finite():
    regret = jnp.array([1e4, 1e4 - 1, 0.0, -1e4])
    found = ada_normal_hedge(regret, jnp.full(4, 1e4), jnp.ones(4, bool))
    assert bool(jnp.isfinite(found).all())
    assert found[0] > found[1] > 0
    assert found[3] == 0


def test_a_better_expert_never_weighs_less():
    regret = jnp.linspace(-20, 20, 41)
    found = ada_normal_hedge(regret, jnp.full(41, 21.0), jnp.ones(41, bool), printed=False)
    assert bool((jnp.diff(found) >= -1e-7).all())


PRESENT_TWO = jnp.array([True, False, True])
HALVES = [0.5, 0.0, 0.5]


@pytest.mark.parametrize("printed", [True, False])
def test_before_any_credit_weights_are_uniform(printed):
    zero = jnp.zeros(3)
    assert ada_normal_hedge(zero, zero, PRESENT_TWO, printed=printed).tolist() == HALVES


@pytest.mark.parametrize("printed", [True, False])
def test_where_all_masses_are_zero_weights_are_uniform(printed):
    bad = jnp.full(3, -9.0)
    assert ada_normal_hedge(bad, -bad, PRESENT_TWO, printed=printed).tolist() == HALVES
