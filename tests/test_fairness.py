"""The smooth gap is Eq. 1, for any notion, attribute and level, and nothing else moves it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsaoml.core.fairness import make_constraints
from fairsaoml.core.types import Attribute, Batch, Schema

SEX = Attribute("sex", ("f", "m"))
RACE = Attribute("race", ("x", "y", "z"))
TOLERANCE = 0.02
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def rows(seed, count=40, attributes=(SEX,), unseen=False):
    """Random rows: every class has rows of every group."""
    random = np.random.default_rng(seed)
    group = [
        random.permutation(np.arange(count) % (len(levels) + unseen)) for _, levels in attributes
    ]
    return Batch(
        x=jnp.zeros((count, 1)),
        y=jnp.asarray(random.permutation(np.arange(count) % 2), jnp.float32),
        group=jnp.asarray(np.stack(group, axis=1), jnp.int32),
        weight=jnp.ones(count),
    )


def scores_of(seed, count=40):
    return jnp.asarray(np.random.default_rng(seed + 1000).normal(size=count), jnp.float32)


def violations(notion, attributes, scores, batch, **options):
    constraints = make_constraints(notion, Schema((), tuple(attributes)), TOLERANCE, **options)
    return np.array([c.violation(scores, batch) for c in constraints])


def literal(h, s, where):
    """|mean((s' - p1) / (p1 (1 - p1)) h)| - eps over the rows spoken of (Eq. 1, D6), in float64."""
    h, s = np.asarray(h, np.float64)[where], np.asarray(s, np.float64)[where]
    p1 = s.mean()
    return abs(((s - p1) / (p1 * (1 - p1)) * h).mean()) - TOLERANCE


@given(st.floats(-20, 20, width=32), st.integers(0, 9))
@pytest.mark.parametrize("notion", ["dp", "eop", "eo", "dp+eo"])
def test_the_violation_of_a_constant_score_is_minus_the_tolerance(notion, value, seed):
    found = violations(notion, [SEX], jnp.full(40, value), rows(seed))
    # Means of equal numbers may round in the last place, no more.
    np.testing.assert_allclose(found, -TOLERANCE, rtol=1e-5)


@pytest.mark.parametrize("value", [-3.0, 0.0, 5.0])
def test_the_violation_of_a_constant_score_is_exactly_minus_the_tolerance_on_even_groups(value):
    batch = rows(0, count=64)  # sums of 32 equal numbers do not round
    found = violations("dp", [SEX], jnp.full(64, value), batch)
    assert found.tolist() == [np.float32(-TOLERANCE)]


@pytest.mark.parametrize("seed", range(5))
def test_demographic_parity_is_the_literal_form_of_eq_1(seed):
    batch, scores = rows(seed), scores_of(seed)
    everyone = np.ones(40, bool)
    expected = literal(jax.nn.sigmoid(scores), batch.group[:, 0], everyone)
    np.testing.assert_allclose(violations("dp", [SEX], scores, batch), [expected], **CLOSE)


@pytest.mark.parametrize("seed", range(5))
def test_groups_coded_zero_and_one_are_what_the_formula_wants(seed):
    # The formula is printed for s in {-1, 1} as (s + 1) / 2; fed with {0, 1} it would give
    # something else, and the gap of a constant would not be zero.
    batch, scores = rows(seed), scores_of(seed)
    s = np.asarray(batch.group[:, 0])
    h = np.asarray(jax.nn.sigmoid(scores), np.float64)
    found = violations("dp", [SEX], scores, batch)[0] + TOLERANCE
    assert found == pytest.approx(abs(h[s == 1].mean() - h[s == 0].mean()), rel=1e-4)
    halved = (s + 1) / 2
    p1 = halved.mean()
    miscoded = abs(((halved - p1) / (p1 * (1 - p1)) * h).mean())
    assert found != pytest.approx(miscoded, rel=1e-2)


@pytest.mark.parametrize("seed", range(5))
def test_equal_opportunity_is_the_gap_among_positives_with_their_own_group_share(seed):
    batch, scores = rows(seed), scores_of(seed)
    expected = literal(jax.nn.sigmoid(scores), batch.group[:, 0], np.asarray(batch.y) == 1)
    np.testing.assert_allclose(violations("eop", [SEX], scores, batch), [expected], **CLOSE)


@pytest.mark.parametrize("seed", range(5))
def test_equalized_odds_is_the_gap_among_positives_and_the_gap_among_negatives(seed):
    batch, scores = rows(seed), scores_of(seed)
    expected = [
        literal(jax.nn.sigmoid(scores), batch.group[:, 0], np.asarray(batch.y) == label)
        for label in (1, 0)
    ]
    np.testing.assert_allclose(violations("eo", [SEX], scores, batch), expected, **CLOSE)


def test_a_notion_names_its_constraints():
    def names(notion):
        return [c.name for c in make_constraints(notion, Schema((), (SEX, RACE)), TOLERANCE)]

    races = [f"race={level}" for level in "xyz"]
    assert names("none") == []
    assert names("dp") == ["dp[sex=m]", *(f"dp[{race}]" for race in races)]
    assert names("eop") == ["tpr[sex=m]", *(f"tpr[{race}]" for race in races)]
    assert names("eo") == names("eop") + [name.replace("tpr", "fpr") for name in names("eop")]
    assert names("dp+eo") == names("dp") + names("eo")
    assert names("eo+dp") == names("eo") + names("dp")
    assert names("eop+eo") == names("eo")  # what both ask for is asked for once


@pytest.mark.parametrize("seed", range(3))
def test_many_attributes_and_levels_each_stand_against_the_rest(seed):
    batch, scores = rows(seed, count=60, attributes=(SEX, RACE)), scores_of(seed, 60)
    h, everyone = jax.nn.sigmoid(scores), np.ones(60, bool)
    sex, race = np.asarray(batch.group).T
    expected = [literal(h, sex == 1, everyone)] + [
        literal(h, race == level, everyone) for level in range(3)
    ]
    np.testing.assert_allclose(violations("dp", [SEX, RACE], scores, batch), expected, **CLOSE)


def test_the_two_levels_of_one_attribute_need_one_constraint_only():
    batch, scores = rows(1), scores_of(1)
    swapped = batch._replace(group=1 - batch.group)
    assert violations("eo", [SEX], scores, batch) == pytest.approx(
        violations("eo", [SEX], scores, swapped), rel=1e-6
    )


@pytest.mark.parametrize("notion", ["dp", "eo"])
def test_unseen_rows_change_nothing(notion):
    batch = rows(2, count=60, attributes=(RACE,), unseen=True)
    scores = scores_of(2, 60)
    known = np.asarray(batch.group[:, 0]) < 3
    without = batch._replace(weight=jnp.asarray(known, jnp.float32))
    wild = jnp.where(known, scores, 1e3)
    np.testing.assert_array_equal(
        violations(notion, [RACE], scores, batch), violations(notion, [RACE], scores, without)
    )
    np.testing.assert_array_equal(
        violations(notion, [RACE], scores, batch), violations(notion, [RACE], wild, batch)
    )


@pytest.mark.parametrize("notion", ["dp", "eo"])
def test_padding_changes_nothing(notion):
    batch, scores = rows(3), scores_of(3)
    padded = jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, 24)] + [(0, 0)] * (leaf.ndim - 1)), batch)
    wild = jnp.concatenate([scores, jnp.full(24, 50.0)])
    np.testing.assert_allclose(
        violations(notion, [SEX], wild, padded),
        violations(notion, [SEX], scores, batch),
        rtol=1e-6,
    )


@pytest.mark.parametrize("group", [0, 1, 2], ids=["f", "m", "unseen"])
@pytest.mark.parametrize("notion", ["dp", "eo"])
def test_one_group_alone_contributes_zero_and_pulls_nowhere(notion, group):
    batch, scores = rows(4), scores_of(4)
    alone = batch._replace(group=jnp.full_like(batch.group, group))
    for constraint in make_constraints(notion, Schema((), (SEX,)), TOLERANCE):
        value, slope = jax.value_and_grad(lambda s, c=constraint: c.violation(s, alone))(scores)
        assert value == 0
        assert not np.asarray(slope).any()


def test_an_empty_batch_contributes_zero_and_pulls_nowhere():
    batch, scores = rows(4), scores_of(4)
    nobody = batch._replace(weight=jnp.zeros(40))
    for constraint in make_constraints("dp+eo", Schema((), (SEX,)), TOLERANCE):
        value, slope = jax.value_and_grad(lambda s, c=constraint: c.violation(s, nobody))(scores)
        assert value == 0
        assert not np.asarray(slope).any()


def test_a_group_without_positives_switches_off_the_true_positive_gap_only():
    batch, scores = rows(5), scores_of(5)
    odd = batch._replace(y=jnp.where(batch.group[:, 0] == 1, 0.0, batch.y))
    among_positives, among_negatives = violations("eo", [SEX], scores, odd)
    assert among_positives == 0
    assert among_negatives != 0


def test_the_gap_of_logits_is_theirs_and_not_that_of_probabilities():
    batch, scores = rows(6), scores_of(6)
    expected = literal(scores, batch.group[:, 0], np.ones(40, bool))
    found = violations("dp", [SEX], scores, batch, score="logit")
    np.testing.assert_allclose(found, [expected], **CLOSE)
    assert found[0] != pytest.approx(violations("dp", [SEX], scores, batch)[0])
