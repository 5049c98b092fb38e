"""The six competitors against their NumPy versions, round by round, and the laws each must keep."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairsaoml.core import buffers, coin_betting, doubling_cover, experts, task_memory
from fairsaoml.core.config import DrawingConfig, LearnerConfig
from fairsaoml.core.errors import ConfigError
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Batch, Learner
from fairsaoml.learners import cbce as cbce_module
from fairsaoml.learners import fair_aogd, fair_glc, registry
from fairsaoml.learners.aod import AODConfig
from fairsaoml.learners.cbce import CBCEConfig
from fairsaoml.learners.fair_aogd import FairAOGDConfig
from fairsaoml.learners.fair_fml import FairFMLConfig
from fairsaoml.learners.fair_glc import FairGLCConfig
from fairsaoml.learners.mask_ftml import MaskFTMLConfig
from oracles.aod import aod_round, aod_start, aod_weights
from oracles.batch import as_batch
from oracles.cbce import Bettor, cbce_round, cbce_start, cbce_weights, containing
from oracles.descending_experts import average
from oracles.fair_aogd import aogd_move
from oracles.fair_glc import glc_move
from oracles.lagrangian import Problem, log_odds
from oracles.meta_leader import Config, adapted, meta_leader_move
from oracles.network import logits
from oracles.prior import running_prior
from test_against_oracles import (
    DRIFT,
    QUICK,
    as_pair,
    assert_same_pair,
    both_problems,
    flat,
    level_of,
    rate,
    rows,
    scattered,
    schema,
    tasks,
)

SMALL = {"hidden": (4,), "meta_iterations": 3, "support": 8, "capacity": 16}
LEADER = SMALL | {"query": 6, "tasks_kept": 3}
ROUNDS = 5
ROWS = 120  # of a task: whatever runs the same learner runs the same program

BLIND: dict[str, Any] = {
    "mask-ftml": MaskFTMLConfig(model="logistic", **LEADER),
    "aod": AODConfig(model="logistic", horizon=20, **SMALL),
    "cbce": CBCEConfig(model="logistic", horizon=None, **SMALL),
}

# model, notion, levels of the attributes, settings
FAIR_CASES = {
    "logistic, m=1": ("logistic", "dp", (2,), {}),
    "logistic, m=3, in a ball, threshold 0.4": (
        "logistic",
        "dp",
        (3,),
        {"radius": 0.5, "decision": 0.4},
    ),
    "mlp, m=3, logits": ("mlp", "dp+eo", (2,), {"score": "logit"}),
}


def games(config: LearnerConfig, rounds: int, levels: tuple[int, ...]) -> Iterator[tuple]:
    """Round, key, task and class prior, as a run would bring them."""
    rates: list[float] = []
    for t, batch in enumerate(tasks(levels, rounds), start=1):
        rates.append(rate(batch))
        prior = running_prior(rates, config.prior_discount)
        yield t, jax.random.fold_in(jax.random.key(1), t), batch, prior


def compiled(learner: Learner) -> Learner:
    """Each part as one program: operation by operation takes longer to compile."""
    parts = {name: getattr(learner, name) for name in ("scores", "adapt", "step")}
    programs = {name: jax.jit(part, compiler_options=QUICK) for name, part in parts.items()}
    return learner._replace(**programs)


@cache
def blind(name: str) -> tuple[LearnerConfig, Learner]:
    """A small learner that does not look at groups, compiled once for all tests that ask for it."""
    config = BLIND[name]
    return config, compiled(registry.build(name, config, schema((2,))))


@partial(jax.jit, static_argnums=2)
def round_draws(key: Any, batch: Batch, config: DrawingConfig) -> Batch:
    pool, iterations = experts.draw_round(key, batch, config), jnp.arange(config.meta_iterations)
    return jax.vmap(lambda n: buffers.take(pool, n))(iterations)


def draws_of(config: DrawingConfig, key: Any, batch: Batch) -> list[Any]:
    """The draws that `step` will take with this key, for the oracle."""
    drawn = round_draws(key, batch, config)
    return [as_batch(level_of(drawn, n)) for n in range(config.meta_iterations)]


def assert_same_scores(
    learner: Learner, state: Any, theirs: Problem, theta: Any, batch: Batch, prior: float
) -> None:
    by_hand = logits(theta, np.array(batch.x, np.float64), theirs.widths) + log_odds(prior)
    np.testing.assert_allclose(learner.scores(state, batch.x), by_hand, **DRIFT)


def at_a_scattered_pair(
    name: str, config: LearnerConfig, levels: tuple[int, ...], field: str
) -> tuple[Problem, Learner, Any, Any]:
    """The oracle's problem, the learner, and both states, away from zero."""
    ours, theirs = both_problems(config, levels)
    learner, pair = compiled(registry.build(name, config, ours.schema)), scattered(ours, 7)
    state = learner.init(jax.random.key(0))
    learned = pair if field == "pair" else state.learned._replace(**{field: pair})
    state = state._replace(learned=learned)
    return theirs, learner, state, as_pair(pair)


# One pair, no memory: FairAOGD and FairGLC


def follow_pair(name: str, config: LearnerConfig, levels: tuple[int, ...], move: Callable) -> None:
    theirs, learner, state, shadow = at_a_scattered_pair(name, config, levels, "pair")
    for t, key, batch, prior in games(config, ROUNDS, levels):
        for draw in draws_of(config, key, batch):
            shadow = move(theirs, t=t, pair=shadow, draw=draw, prior=prior)
        state, info = learner.step(key, jnp.int32(t), state, batch)
        assert_same_pair(state.learned, shadow)
        np.testing.assert_allclose(info.dual, shadow.dual, **DRIFT)
        assert_same_scores(learner, state, theirs, shadow.primal, batch, prior)
    for _ in range(config.meta_iterations):
        shadow = move(theirs, t=t + 1, pair=shadow, draw=as_batch(batch), prior=prior)
    assert_same_pair(learner.adapt(state, batch).learned, shadow)


@pytest.mark.parametrize("case", FAIR_CASES)
def test_fair_aogd_agrees_with_its_update_rule_round_by_round(case: str) -> None:
    model, notion, levels, options = FAIR_CASES[case]
    bounds = {"domain_bound": 0.3, "gradient_bound": 1.0}
    config = FairAOGDConfig(model=model, constraints=notion, **(SMALL | bounds | options))
    scales = (config.domain_bound, config.gradient_bound, config.decay)
    move = partial(aogd_move, scales=scales, radius=config.radius)
    follow_pair("fair-aogd", config, levels, move)


@pytest.mark.parametrize("case", FAIR_CASES)
def test_fair_glc_agrees_with_its_update_rule_round_by_round(case: str) -> None:
    model, notion, levels, options = FAIR_CASES[case]
    config = FairGLCConfig(model=model, constraints=notion, gradient_bound=1.5, **(SMALL | options))
    scales = (config.convexity, config.gradient_bound)
    follow_pair("fair-glc", config, levels, partial(glc_move, scales=scales, radius=config.radius))


def test_fair_aogds_steps_follow_their_sequences() -> None:
    config = FairAOGDConfig()
    R, G, b = config.domain_bound, config.gradient_bound, config.decay
    assert b == pytest.approx(2 / 3)
    t = np.arange(1, 200)
    found = jax.vmap(partial(fair_aogd.sequences, config))(jnp.asarray(t, jnp.int32))
    np.testing.assert_allclose(found.primal, R / G * t ** (-2 / 3), rtol=1e-5)
    np.testing.assert_allclose(found.damping, 6 * R * G * t ** (-2 / 3), rtol=1e-5)
    np.testing.assert_allclose(found.dual * found.damping, 1 / (t + 1), rtol=1e-5)


def test_fair_glcs_steps_follow_their_sequences() -> None:
    config, t = FairGLCConfig(), np.arange(1, 200)
    found = jax.vmap(partial(fair_glc.sequences, config, constraints=3))(jnp.asarray(t, jnp.int32))
    np.testing.assert_allclose(1 / found.primal, config.convexity * (t + 1), rtol=1e-5)
    np.testing.assert_allclose(
        found.damping / found.primal, 4 * config.gradient_bound**2, rtol=1e-5
    )


def test_fair_glcs_dual_is_zero_whenever_the_constraint_holds() -> None:
    duals = {}
    for tolerance in (0.0, 1.0):  # |gap| of probabilities is below 1 at any theta
        config = FairGLCConfig(model="logistic", tolerance=tolerance, **SMALL)
        learner = compiled(registry.build("fair-glc", config, schema((2,))))
        state = learner.init(jax.random.key(0))
        state = state._replace(learned=scattered(make_problem(config, schema((2,))), 7))
        found = []
        for t, key, batch, _ in games(config, 4, (2,)):
            state, info = learner.step(key, jnp.int32(t), state, batch)
            found.append(float(info.dual[0]))
        duals[tolerance] = found
    assert duals[1.0] == [0.0] * 4
    assert min(duals[0.0]) > 0


# Follow the meta leader: MaskFTML and FairFML


def follow_leader(name: str, config: Any, levels: tuple[int, ...], their_config: Config) -> None:
    theirs, learner, state, shadow = at_a_scattered_pair(name, config, levels, "meta")
    sizes = buffers.Sizes(support=config.support, query=config.query)

    @jax.jit
    def draw(key: Any, memory: Any, batch: Batch) -> tuple[Any, Any]:
        draws = task_memory.draw_tasks(key, memory, batch, config.meta_iterations)
        iterations = jnp.arange(config.meta_iterations)
        return draws.chosen, jax.vmap(lambda n: task_memory.take(draws, n, sizes))(iterations)

    past = set()
    for t, key, batch, prior in games(config, ROUNDS, levels):
        chosen, drawn = draw(key, state.learned.memory, batch)
        past |= set(np.array(chosen).tolist())
        for n in range(config.meta_iterations):
            support, query = map(as_batch, level_of(drawn, n))
            shadow = meta_leader_move(theirs, their_config, shadow, support, query, prior)
        state, _ = learner.step(key, jnp.int32(t), state, batch)
        assert_same_pair(state.learned.meta, shadow)
        assert_same_scores(learner, state, theirs, shadow.primal, batch, prior)
    assert len(past) > 1  # the present task, and at least one remembered
    end = adapted(theirs, their_config, shadow, as_batch(batch), prior)
    assert_same_pair(learner.adapt(state, batch).learned.meta, end)


@pytest.mark.parametrize("meta_gradient", ["first-order", "exact"])
@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_mask_ftml_agrees_with_its_update_rule_round_by_round(
    model: str, meta_gradient: str
) -> None:
    config = MaskFTMLConfig(
        model=model, inner_steps=2, inner_primal_step=0.3, meta_gradient=meta_gradient, **LEADER
    )
    exact = meta_gradient == "exact"
    follow_leader("mask-ftml", config, (2,), Config(2, 0.3, config.meta_primal_step, exact=exact))


@pytest.mark.parametrize(
    "meta_gradient", ["first-order", pytest.param("exact", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("case", FAIR_CASES)
def test_fair_fml_agrees_with_its_update_rule_round_by_round(case: str, meta_gradient: str) -> None:
    model, notion, levels, options = FAIR_CASES[case]
    config = FairFMLConfig(
        model=model,
        constraints=notion,
        inner_steps=2,
        inner_dual_step=0.4,
        dual_damping=0.5,
        meta_gradient=meta_gradient,
        **(LEADER | options),
    )
    their_config = Config(
        inner_steps=2,
        inner_primal_step=config.inner_primal_step,
        meta_primal_step=config.meta_primal_step,
        inner_dual_step=config.inner_dual_step,
        meta_dual_step=config.meta_dual_step,
        delta=config.dual_damping,
        radius=config.radius,
        exact=meta_gradient == "exact",
    )
    follow_leader("fair-fml", config, levels, their_config)


@pytest.mark.parametrize("name", BLIND)
def test_blind_learners_do_not_change_when_groups_are_permuted(name: str) -> None:
    config, learner = blind(name)
    states = [learner.init(jax.random.key(0))] * 2
    for t, key, batch, _ in games(config, 4, (2,)):
        permuted = batch._replace(group=jax.random.permutation(key, batch.group))
        assert np.any(np.array(permuted.group) != np.array(batch.group))
        states = [
            learner.step(key, jnp.int32(t), state, seen)[0]
            for state, seen in zip(states, (batch, permuted), strict=True)
        ]
        one, other = (np.array(learner.scores(state, batch.x)) for state in states)
        assert one.tobytes() == other.tobytes()
    assert np.any(one != one[0])


@pytest.mark.parametrize("name", BLIND)
def test_blind_learners_take_no_constraint(name: str) -> None:
    assert registry.configure(name).constraints == "none"
    with pytest.raises(ConfigError, match="constraints must be one of none"):
        registry.configure(name, {"constraints": "dp"})


# The memory of tasks

PAST = 12
KEYS = 4000
SIGMAS = 4.5


@partial(jax.jit, static_argnums=1)
def marked_history(key: Any, slots: int) -> tuple[Any, Any]:
    """The marks of the tasks kept after PAST tasks, and of the tasks drawn in the next round."""
    memory = task_memory.no_tasks(slots, 2, schema((2,)))

    def task(mark: Any) -> Batch:
        return Batch(
            x=jnp.full((4, 4), mark, jnp.float32),
            y=jnp.array([0.0, 1.0, 0.0, 1.0]),
            group=jnp.zeros((4, 1), jnp.int32),
            weight=jnp.ones(4),
        )

    def live_on(memory: Any, mark: Any) -> tuple[Any, None]:
        draws = task_memory.draw_tasks(jax.random.fold_in(key, mark), memory, task(mark), 1)
        return task_memory.remember(draws), None

    memory, _ = jax.lax.scan(live_on, memory, jnp.arange(1, PAST + 1))
    draws = task_memory.draw_tasks(jax.random.fold_in(key, 0), memory, task(PAST + 1), 3)
    sizes = buffers.Sizes(support=1, query=1)
    support, query = jax.vmap(lambda n: task_memory.take(draws, n, sizes))(jnp.arange(3))
    kept = jnp.where(buffers.is_held(memory.priority), memory.rows.x[:, 0, 0, 0], 0)
    return kept.astype(jnp.int32), (support.x[:, :, 0], query.x[:, :, 0])


@pytest.mark.parametrize("slots", [3, PAST + 2])
def test_the_memory_is_a_uniform_sample_of_the_past_and_draws_from_all_of_it(slots: int) -> None:
    keys = jax.random.split(jax.random.key(0), KEYS)
    kept, (support, query) = jax.vmap(lambda key: marked_history(key, slots))(keys)
    kept, support, query = map(np.array, (kept, support, query))
    held = min(slots, PAST)
    for marks in kept[:50]:
        assert len(set(marks[marks > 0])) == held  # no task twice, no slot idle
    times = np.bincount(kept[kept > 0], minlength=PAST + 1)[1:]
    chance = held / PAST
    assert np.abs(times - KEYS * chance).max() <= SIGMAS * np.sqrt(KEYS * chance * (1 - chance))
    # Both classes of both draws come from one task, and every task seen is drawn equally often.
    assert (support == support[:, :, :1]).all()
    assert (query == support).all()
    drawn = np.bincount(support[:, 0, 0].astype(int), minlength=PAST + 2)[1:]
    chance = 1 / (PAST + 1)
    assert np.abs(drawn - KEYS * chance).max() <= SIGMAS * np.sqrt(KEYS * chance * (1 - chance))


def test_the_memory_of_the_followers_does_not_grow() -> None:
    config, learner = blind("mask-ftml")
    state = learner.init(jax.random.key(0))
    shapes = jax.tree.map(jnp.shape, state)
    for t in range(1, 9):
        state, _ = learner.step(jax.random.key(t), jnp.int32(t), state, rows(t, (2,), ROWS))
        assert int(state.learned.memory.seen) == t
        assert buffers.is_held(state.learned.memory.priority).sum() == min(t, config.tasks_kept)
    assert jax.tree.map(jnp.shape, state) == shapes


# Experts on intervals: AOD and CBCE


def follow_experts(
    name: str, config: Any, rounds: int, shadow: Any, play: Callable, weigh: Callable
) -> None:
    """The library's levels against the oracle's intervals, which are in the order of levels."""
    ours, theirs = both_problems(config, (2,))
    learner = compiled(registry.build(name, config, ours.schema))
    state = learner.init(jax.random.key(0))
    theta = scattered(ours, 7).primal
    spread = experts.spread(theta, state.learned.weights.shape[0])
    state = state._replace(learned=state.learned._replace(primal=spread, origin=theta))
    shadow = shadow(flat(theta))
    for t, key, batch, prior in games(config, rounds, (2,)):
        state = learner.grow(state, t)
        p = list(weigh(shadow).values())
        shadow = play(theirs, t=t, experts=shadow, draws=draws_of(config, key, batch))
        state, info = learner.step(key, jnp.int32(t), state, batch)
        np.testing.assert_allclose(info.weights[: len(p)], p, **DRIFT)
        assert np.flatnonzero(info.present).tolist() == list(range(len(p)))
        after = weigh(shadow)
        weights = state.learned.weights
        np.testing.assert_allclose(weights[: len(after)], list(after.values()), **DRIFT)
        assert not np.any(weights[len(after) :])
        for level, expert in enumerate(shadow.values()):
            np.testing.assert_allclose(
                flat(level_of(state.learned.primal, level)), expert.theta, **DRIFT
            )
        mean = average(after, {i: expert.theta for i, expert in shadow.items()})
        assert_same_scores(learner, state, theirs, mean, batch, prior)


@pytest.mark.parametrize(
    ("model", "horizon", "options"),
    [
        ("logistic", 8, {}),
        ("mlp", 8, {"scale": 1.5, "radius": 2.5}),
        ("logistic", None, {"base": 3}),
        ("logistic", None, {}),
    ],
)
def test_aod_agrees_with_its_update_rule_round_by_round(
    model: str, horizon: int | None, options: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experts, "FIRST_LEVELS", 2)  # so that storage grows within the test
    config = AODConfig(model=model, horizon=horizon, **(SMALL | options))
    play = partial(aod_round, settings=(config.base, horizon, config.scale, config.radius))
    begin = partial(aod_start, base=config.base, horizon=horizon)
    follow_experts("aod", config, 6, begin, play, aod_weights)


@pytest.mark.parametrize("start", ["fresh", "average"])
@pytest.mark.parametrize(("model", "horizon"), [("logistic", None), ("mlp", 6)])
def test_cbce_agrees_with_its_update_rule_round_by_round(
    model: str, horizon: int | None, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cbce_module, "FIRST_LEVELS", 2)
    config = CBCEConfig(model=model, horizon=horizon, start=start, **SMALL)
    origin = flat(scattered(both_problems(config, (2,))[0], 7).primal)
    fresh = origin if start == "fresh" else None
    play = partial(cbce_round, settings=(config.scale, config.radius, fresh))
    follow_experts("cbce", config, 6, cbce_start, play, cbce_weights)


@pytest.mark.parametrize(("name", "horizon"), [("aod", 20), ("aod", None), ("cbce", None)])
def test_weights_sum_to_one_over_the_intervals_that_contain_the_round(
    name: str, horizon: int | None
) -> None:
    learner = blind(name)[1]
    if horizon != BLIND[name].horizon:
        config = registry.configure(name, {"model": "logistic", "horizon": horizon, **SMALL})
        learner = compiled(registry.build(name, config, schema((2,))))
    state = learner.init(jax.random.key(0))
    for t in range(1, 21):
        share = np.array(state.learned.weights)  # what round t is scored with
        state, info = learner.step(jax.random.key(t), jnp.int32(t), state, rows(t, (2,), ROWS))
        if name == "aod":
            inside = [horizon is not None or t > 2**k or k == 0 for k in range(len(share))]
        else:
            inside = [t >= 2**k for k in range(len(share))]
        assert np.array(info.present).tolist() == inside
        assert share.sum() == pytest.approx(1.0, abs=1e-6)
        assert not share[~np.array(inside)].any()
        assert (share >= 0).all()


def test_the_doubling_cover_is_the_set_of_its_definition() -> None:
    for t in range(1, 70):
        levels = range(doubling_cover.levels_at(t))
        starts = [doubling_cover.start_of(t, 2**k) for k in levels]
        assert [(first, first + 2**k - 1) for k, first in enumerate(starts)] == containing(t)
        assert all(doubling_cover.is_present(t, 2**k) for k in levels)
        assert not doubling_cover.is_present(t, 2 ** len(levels))
        assert [doubling_cover.is_start(t, 2**k) for k in levels] == [s == t for s in starts]


def test_cbces_first_rounds_by_hand() -> None:
    """One draw a round. Round 1: [1,1]. Round 2: [2,2], [2,3]. Round 3: [3,3], [2,3]."""
    present = jnp.array([True, True])
    wagers = coin_betting.no_wagers(2)
    # Nobody has bet: the prior alone, equal for two intervals that start at 2.
    begun = jnp.array([2, 2])
    np.testing.assert_allclose(coin_betting.coin_betting(wagers, begun, present), [0.5, 0.5])
    # The first outcome moves no wealth, for the bet on it is 0; a loss counts as 0.
    wagers = coin_betting.paid_out(wagers, jnp.array([-0.6, 0.8]))
    np.testing.assert_allclose(wagers.total, [0.0, 0.8])
    np.testing.assert_allclose(np.exp(wagers.log_wealth), [1.0, 1.0])
    # Round 3: [2,3] bets 0.8 / 2 x 1; [3,3] is new and bets nothing.
    wagers = wagers._replace(outcomes=jnp.array([0, 1]), total=jnp.array([0.0, 0.8]))
    np.testing.assert_allclose(coin_betting.bet_fraction(wagers), [0.0, 0.4])
    begun = jnp.array([3, 2])
    np.testing.assert_allclose(coin_betting.coin_betting(wagers, begun, present), [0.0, 1.0])
    # It loses 0.5: wealth 1 - 0.5 x 0.4; then bets (0.8 - 0.5) / 3 x 0.8.
    wagers = coin_betting.paid_out(wagers, jnp.array([0.5, -0.5]))
    np.testing.assert_allclose(np.exp(wagers.log_wealth), [1.0, 0.8], rtol=1e-6)
    np.testing.assert_allclose(coin_betting.bet_fraction(wagers), [0.25, 0.1], rtol=1e-6)
    # Prior 1 / (9 x 2) against 1 / (4 x 2), bets 0.25 x 1 against 0.1 x 0.8.
    mass = np.array([0.25 / 18, 0.08 / 8])
    np.testing.assert_allclose(
        coin_betting.coin_betting(wagers, begun, present), mass / mass.sum(), rtol=1e-5
    )


# In 64ths, whose sums are exact: the sign of the bet does not hang on rounding.
@given(st.lists(st.integers(-64, 64).map(lambda n: n / 64), min_size=1, max_size=60))
def test_wealth_is_never_negative_and_equals_the_plain_sum_of_wins(outcomes: list[float]) -> None:
    wagers, bettor = coin_betting.no_wagers(1), Bettor(np.zeros(0))
    for outcome in outcomes:
        wagers, bettor = coin_betting.paid_out(wagers, jnp.array([outcome])), bettor.settle(outcome)
    assert bettor.wealth > 0
    assert float(np.exp(wagers.log_wealth[0])) == pytest.approx(bettor.wealth, rel=1e-3)
    assert float(wagers.total[0]) == pytest.approx(bettor.z, abs=1e-4)
