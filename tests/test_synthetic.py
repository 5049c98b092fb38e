"""The synthetic stream keeps its promises, and its known truth is true."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression

from fairsaoml.core.errors import ConfigError
from fairsaoml.streams import synthetic as module
from fairsaoml.streams.synthetic import environments, synthetic

GENERATORS = range(10)
MANY = 40_000  # rows: a share is known to .0025, a group's rate to about .004


def domains_of(generator, *, seed=0, rows=MANY, **settings):
    """Each domain as one big task."""
    stream = synthetic(generator=generator, tasks=1, rows=rows, **settings)
    return list(stream.tasks(seed))


def base_rates(task):
    return [task.y[task.group[:, 0] == level].mean() for level in (0, 1)]


def folded(rates):
    return min(rates) / max(rates)


def ratios(task, decision):
    """DP, TPR and FPR ratio of a decision, from its rows."""
    group = task.group[:, 0]
    chosen = [np.ones(len(group), bool), task.y == 1, task.y == 0]
    return [folded([decision[rows & (group == g)].mean() for g in (0, 1)]) for rows in chosen]


def test_the_default_stream_is_three_domains_of_thirty_tasks_of_a_thousand_rows():
    stream = synthetic()
    tasks = list(stream.tasks(0))
    assert [task.domain for task in tasks] == [f"market-{d}" for d in (1, 2, 3) for _ in range(30)]
    assert stream.length == len(tasks)
    assert stream.seeded
    assert len(stream.schema.features) == 10
    for task in tasks:
        assert task.x.shape == (1000, 10)
        assert task.x.dtype == np.float32
        assert task.group.shape == (1000, 1)
        assert set(np.unique(task.y)) == {0, 1}
        assert set(np.unique(task.group)) == {0, 1}


@pytest.mark.parametrize("generator", GENERATORS)
def test_shares_base_rates_and_gaps_lie_in_the_promised_bands(generator):
    for environment in environments(generator, 3):
        assert 0.3 < environment.share < 0.5
        assert 0.35 < environment.base_rate < 0.6
        assert 0.08 < abs(environment.gap) < 0.2
    for task, environment in zip(domains_of(generator), environments(generator, 3), strict=True):
        majority, minority = base_rates(task)
        assert task.group.mean() == pytest.approx(environment.share, abs=0.01)
        assert task.y.mean() == pytest.approx(environment.base_rate, abs=0.01)
        assert minority - majority == pytest.approx(environment.gap, abs=0.02)


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_favoured_group_changes_at_every_change(generator):
    signs = [np.sign(np.diff(base_rates(task))[0]) for task in domains_of(generator)]
    assert signs in ([1, -1, 1], [-1, 1, -1])


@pytest.mark.parametrize("generator", GENERATORS)
def test_an_unconstrained_learner_amplifies_the_gap_and_fails_after_a_change(generator):
    tasks = domains_of(generator, rows=20_000)
    truth = synthetic(generator=generator).best
    fresh = domains_of(generator, seed=1, rows=20_000)
    for d, (task, test) in enumerate(zip(tasks, fresh, strict=True)):
        model = LogisticRegression().fit(task.x, task.y)
        decision = model.predict(test.x)
        best = truth[test.domain]["accuracy"]
        assert ratios(test, decision)[0] < 0.62
        # Nobody beats the truth by more than luck; a linear model comes near it.
        assert best - 0.03 < (decision == test.y).mean() < best + 0.01
        if d + 1 < len(fresh):
            later = fresh[d + 1]
            assert (model.predict(later.x) == later.y).mean() < 0.6  # always-yes has about .54


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_fair_and_useful_rule_exists_in_every_domain(generator):
    for best in synthetic(generator=generator).best.values():
        assert 0.78 < best["accuracy"] < 0.88
        assert 0.02 < best["accuracy"] - best["fair_accuracy"] < 0.06
        assert best["fair_balanced_accuracy"] > 0.74


def test_features_are_standardised_at_every_moment_of_both_streams():
    for gradual in (False, True):
        stream = synthetic(generator=3, gradual=gradual, tasks=4, rows=20_000)
        for task in stream.tasks(0):
            assert np.abs(task.x.mean(axis=0)).max() < 0.04
            assert np.abs(task.x.std(axis=0) - 1).max() < 0.03


def test_a_round_depends_on_generator_seed_and_round_alone():
    def rounds(**settings):
        seed = settings.pop("seed", 0)
        return [task.x for task in synthetic(rows=50, **settings).tasks(seed)]

    first = rounds(tasks=4)
    assert all(np.array_equal(a, b) for a, b in zip(first, rounds(tasks=4), strict=True))
    # A stream that ends sooner is a prefix: nothing is read from the rounds that follow.
    shorter = rounds(tasks=4, domains=2)
    assert all(np.array_equal(a, b) for a, b in zip(shorter, first, strict=False))
    for other in (rounds(tasks=4, seed=1), rounds(tasks=4, generator=1)):
        assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert not any(np.array_equal(a, b) for a, b in pairwise(first))


def test_the_seed_draws_rows_and_no_coefficients():
    one, other = (domains_of(0, seed=seed) for seed in (0, 1))
    for a, b in zip(one, other, strict=True):
        means = [[task.x[task.y == y].mean(axis=0) for y in (0, 1)] for task in (a, b)]
        assert np.abs(np.subtract(*means)).max() < 0.05


def test_a_gradual_stream_moves_in_small_steps_and_settles_at_the_same_truth():
    jumping, gradual = (synthetic(gradual=g, tasks=12, rows=4000) for g in (False, True))
    assert (jumping.name, gradual.name) == ("synthetic", "synthetic-gradual")
    drift = list(gradual.tasks(0))
    model = LogisticRegression().fit(drift[11].x, drift[11].y)
    accuracy = np.array([(model.predict(task.x) == task.y).mean() for task in drift[12:24]])
    assert accuracy[0] > 0.75  # the old model still serves in the first round of the way
    assert accuracy[6:].max() < 0.55  # and no longer in the settled half
    assert np.diff(accuracy).min() > -0.2
    settled = [i for i in range(36) if i < 12 or i % 12 >= 6]
    for index, (a, b) in enumerate(zip(jumping.tasks(0), drift, strict=True)):
        assert np.array_equal(a.x, b.x) == (index in settled)
    assert gradual.best == jumping.best


def posterior(environment, x):
    """P(recorded y, s | x), exactly, for standardised features x: (y, s, row)."""
    center, deviation = environment.moments
    raw = x * deviation + center
    density = [
        [multivariate_normal(mean).pdf(raw) for mean in means] for means in environment.means
    ]
    true = environment.masses[:, :, None] * np.array(density)
    recorded = 0.97 * true + 0.03 * true[::-1]
    return recorded / recorded.sum(axis=(0, 1))


def test_the_truth_is_that_of_the_four_gaussians():
    environment = environments(2, 1)[0]
    task = domains_of(2, domains=1, rows=500)[0]
    mean, deviation = environment.moments
    joint = module._joint(environment.masses, environment.means, task.x * deviation + mean)
    expected = posterior(environment, task.x)
    assert joint / joint.sum(axis=(0, 1)) == pytest.approx(expected, abs=1e-9)


def test_the_posterior_is_calibrated_on_drawn_rows():
    task = domains_of(5, domains=1, rows=100_000)[0]
    chance = posterior(environments(5, 1)[0], task.x)
    for claimed, seen in ((chance[1].sum(axis=0), task.y), (chance[:, 1].sum(axis=0), task.group)):
        for low in np.arange(0.05, 0.95, 0.1):
            rows = (claimed >= low) & (claimed < low + 0.1)
            assert seen[rows].mean() == pytest.approx(claimed[rows].mean(), abs=0.03)


@pytest.mark.parametrize("generator", [0, 7])
def test_the_known_truth_is_the_optimum_and_is_attained_on_fresh_rows(generator):
    """The oracle knows neither grid nor linear program: it minimises the Lagrangian dual, which
    bounds every rule from above, on drawn rows in ten dimensions, and then plays its rule."""
    stream = synthetic(generator=generator)
    training = domains_of(generator, seed=10, rows=60_000)
    fresh = domains_of(generator, seed=11, rows=60_000)
    for task, test, environment in zip(training, fresh, environments(generator, 3), strict=True):
        best = stream.best[task.domain]
        masses = np.array(environment.masses)
        noise = module.LABEL_NOISE
        masses = (1 - noise) * masses + noise * masses[::-1]

        def terms(x, environment=environment, masses=masses):
            """Per row: what accepting it gains, and what it adds to each of the six limits."""
            chance = posterior(environment, x)
            groups = [
                (chance.sum(axis=0) / masses.sum(axis=0)[:, None], 0.85),
                (chance[1] / masses[1][:, None], 0.8),
                (chance[0] / masses[0][:, None], 0.8),
            ]
            gain = chance[1].sum(axis=0) - chance[0].sum(axis=0)
            return gain, np.array([r * q[i] - q[1 - i] for q, r in groups for i in (0, 1)])

        gain, limits = terms(task.x)

        def dual(price, gain=gain, limits=limits):
            net = gain - price @ limits
            return np.maximum(net, 0).mean(), -(limits * (net > 0)).mean(axis=1)

        solution = minimize(dual, np.full(6, 0.05), jac=True, bounds=[(0, None)] * 6)
        reject_all = masses[0].sum()
        assert reject_all + np.maximum(gain, 0).mean() == pytest.approx(best["accuracy"], abs=0.005)
        assert reject_all + solution.fun == pytest.approx(best["fair_accuracy"], abs=0.005)

        gain, limits = terms(test.x)
        decision = gain - solution.x @ limits > 0
        assert (decision == test.y).mean() == pytest.approx(best["fair_accuracy"], abs=0.008)
        balanced = np.mean([(decision == test.y)[test.y == y].mean() for y in (0, 1)])
        assert balanced == pytest.approx(best["fair_balanced_accuracy"], abs=0.01)
        parity, true_positive, false_positive = ratios(test, decision)
        assert parity > 0.85 - 0.02
        assert min(true_positive, false_positive) > 0.8 - 0.04


def test_the_truth_does_not_hang_on_the_width_of_the_grid(monkeypatch):
    environment = environments(1, 1)[0]
    coarse = module.best_achievable(environment)
    monkeypatch.setattr(module, "CELL", module.CELL / 2)
    assert module.best_achievable(environment) == pytest.approx(coarse, abs=1e-3)


def test_the_truth_is_computed_only_when_asked_for_and_once(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "best_achievable", lambda environment: asked.append(1) or {})
    stream = synthetic(generator=12345)
    assert len(stream.best) == 3
    assert asked == []
    for same in (stream, stream, synthetic(generator=12345, rows=60)):
        assert same.best["market-2"] == {}
    assert asked == [1]
    with pytest.raises(KeyError):
        stream.best["market-4"]


@pytest.mark.parametrize(
    "setting", [{"generator": -1}, {"rows": 0}, {"tasks": 2.5}, {"domains": True}]
)
def test_a_setting_that_makes_no_stream_is_refused_in_words(setting):
    (name,) = setting
    with pytest.raises(ConfigError, match=f"{name} must be a whole number >= .* got .*; use"):
        synthetic(**setting)


def test_a_seed_below_zero_is_refused_in_words():
    with pytest.raises(ConfigError, match="seed must be a whole number >= 0, got -1; use"):
        next(synthetic().tasks(-1))
