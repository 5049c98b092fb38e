"""The library against the independent NumPy versions in `oracles`, piece by piece, then by rounds.

The oracles are written from the paper's equations, in float64; the library runs in float32.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml import buffers, experts, intervals, weights
from fairsaoml.config import LearnerConfig
from fairsaoml.fairness import make_constraints
from fairsaoml.learners.fairsaoml import FairSAOMLConfig, fairsaoml
from fairsaoml.learners.live import LiveConfig, live
from fairsaoml.primal_dual import evaluate, lagrangian, make_problem, project
from fairsaoml.prior import Deployed, restore
from fairsaoml.types import Attribute, Batch, PrimalDual, Problem, Schema
from oracles import fairness as oracle_fairness
from oracles import intervals as oracle_intervals
from oracles import lagrangian as oracle
from oracles import live as oracle_live
from oracles import paper as oracle_paper
from oracles import weights as oracle_weights
from oracles.batch import as_batch
from oracles.prior import running_prior

FEATURES = 4
HIDDEN = (5, 3)
PRIOR = 0.3
FLOAT32: dict[str, Any] = {
    "rtol": 2e-5,
    "atol": 2e-6,
}  # rounding of a few hundred float32 operations


def schema(levels: tuple[int, ...]) -> Schema:
    return Schema(
        features=tuple(f"x{i}" for i in range(FEATURES)),
        attributes=tuple(
            Attribute(f"a{i}", tuple(f"l{j}" for j in range(n))) for i, n in enumerate(levels)
        ),
    )


def rows(seed: int, levels: tuple[int, ...], count: int = 60, padding: int = 8) -> Batch:
    """Rows in which features tell of label and group, some groups are unseen, some are padding."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, count).astype(np.float32)
    group = np.stack([random.integers(0, n + 1, count) for n in levels], axis=1)
    x = random.normal(size=(count, FEATURES)) + 0.5 * y[:, None]
    x[:, 0] += 0.8 * group[:, 0]
    weight = (np.arange(count) < count - padding).astype(np.float32)
    return Batch(
        x=jnp.asarray(x, jnp.float32),
        y=jnp.asarray(y),
        group=jnp.asarray(group, jnp.int32),
        weight=jnp.asarray(weight),
    )


# Intervals and weights


@pytest.mark.parametrize("base", [2, 3, 5])
@pytest.mark.parametrize("horizon", [1, 2, 3, 18, 27, 90])
def test_the_cover_is_the_set_of_eq_5(horizon: int, base: int) -> None:
    ours = {k: set(level) for k, level in enumerate(intervals.cover(horizon, base))}
    assert ours == oracle_intervals.agc(horizon, base)


@pytest.mark.parametrize("base", [2, 3])
def test_the_levels_that_start_are_the_target_set_of_eq_6(base: int) -> None:
    horizon = 40
    cover = oracle_intervals.agc(horizon, base)
    for t in range(1, horizon + 1):
        chosen = oracle_intervals.targets(cover, t)
        assert intervals.starts(t, base, len(cover)) == sorted(chosen)
        for k, family in chosen.items():
            assert family == {intervals.interval(t, k, base, horizon)}


@pytest.mark.parametrize("base", [2, 3])
def test_levels_join_an_endless_stream_when_the_oracle_says(base: int) -> None:
    lengths = intervals.lengths(8, base)
    for t in range(1, 70):
        present = oracle_intervals.present_levels(t, None, base)
        assert [k for k in range(8) if intervals.is_present(t, lengths[k])] == present
        assert intervals.levels_needed(t, base) == len(present)
        awake = oracle_intervals.awake_levels(t, None, base)
        assert intervals.starts(t, base, len(present)) == awake


CREDITS = np.array(
    [
        (0, 0),
        (0.5, 0.5),
        (1, 1),
        (1.5, 2.5),
        (3, 3),
        (40, 41),
        (90, 100),
        (-7, 7),
        (-0.2, 9),
        (2, 30),
    ]
)


@pytest.mark.parametrize("form", ["paper", "original"])
def test_ada_normal_hedge_in_log_space_is_the_direct_formula(form: str) -> None:
    for chosen in ([0, 1, 2, 3], [3, 4, 7, 9], [5, 6, 9], [7, 8], [7], range(10)):
        present = np.isin(np.arange(10), chosen)
        regret, abs_regret = CREDITS.T
        ours = weights.ada_normal_hedge(
            jnp.asarray(regret, jnp.float32),
            jnp.asarray(abs_regret, jnp.float32),
            jnp.asarray(present),
            printed=form == "paper",
        )
        theirs = oracle_weights.adanormalhedge(
            {k: (regret[k], abs_regret[k]) for k in chosen}, form
        )
        np.testing.assert_allclose(
            ours, [theirs.get(k, 0.0) for k in range(10)], rtol=2e-5, atol=1e-7
        )


def test_the_discounted_hedge_is_the_direct_softmax() -> None:
    regret = np.array([0.3, -0.2, 0.0, 1.1, 5.0])
    present = np.array([True, True, True, True, False])
    ours = weights.discounted_hedge(
        jnp.asarray(regret, jnp.float32), jnp.asarray(present), rate=10.0
    )
    theirs = oracle_weights.softmax({k: regret[k] for k in range(4)}, 10.0)
    np.testing.assert_allclose(ours, [*theirs.values(), 0.0], rtol=2e-5, atol=1e-7)


# Fairness and the Lagrangian


@pytest.mark.parametrize("score", ["probability", "logit"])
@pytest.mark.parametrize("notion", ["none", "dp", "eop", "eo", "dp+eo"])
@pytest.mark.parametrize("levels", [(2,), (3,), (2, 4)])
def test_the_gap_between_means_is_eq_1_as_printed(
    levels: tuple[int, ...], notion: str, score: str
) -> None:
    constraints = make_constraints(notion, schema(levels).attributes, 0.05, score)
    comparisons = oracle_fairness.comparisons(notion, levels)
    assert len(constraints) == len(comparisons)
    for seed in range(3):
        batch = rows(seed, levels)
        z = np.random.default_rng(seed).normal(size=batch.y.shape)
        shift = 0.4
        g, slope = oracle_fairness.violations(
            z, as_batch(batch), comparisons, 0.05, score, PRIOR, shift
        )
        restored = restore(batch, jnp.float32(PRIOR))
        from_threshold = jnp.asarray(z + shift, jnp.float32)
        for i, constraint in enumerate(constraints):
            value, gradient = jax.value_and_grad(constraint.violation)(from_threshold, restored)
            np.testing.assert_allclose(value, g[i], **FLOAT32)
            np.testing.assert_allclose(gradient, slope[i], **FLOAT32)


@pytest.mark.parametrize("label", [0, 1])
def test_a_group_without_rows_contributes_nothing_in_both(label: int) -> None:
    batch = rows(0, (2,))
    batch = batch._replace(group=jnp.where(batch.y[:, None] == label, 1, batch.group))
    z = jnp.linspace(-2.0, 2.0, 60)
    g, slope = oracle_fairness.violations(
        np.array(z, np.float64),
        as_batch(batch),
        oracle_fairness.comparisons("dp+eo", (2,)),
        0.02,
        "probability",
        PRIOR,
        0.0,
    )
    restored = restore(batch, jnp.float32(PRIOR))
    ours = [
        jax.value_and_grad(constraint.violation)(z, restored)
        for constraint in make_constraints("dp+eo", schema((2,)).attributes, 0.02)
    ]
    silent = 1 if label == 1 else 2
    assert g[silent] == 0.0
    assert (g == 0).sum() == 1
    np.testing.assert_allclose([value for value, _ in ours], g, **FLOAT32)
    np.testing.assert_allclose([gradient for _, gradient in ours], slope, **FLOAT32)


def problems(
    model: str, notion: str, levels: tuple[int, ...], **settings: Any
) -> tuple[Problem, oracle.Problem]:
    """The same problem for the library and for the oracle."""
    config = LearnerConfig(model=model, hidden=HIDDEN, constraints=notion, **settings)
    return both_problems(config, levels)


def both_problems(config: LearnerConfig, levels: tuple[int, ...]) -> tuple[Problem, oracle.Problem]:
    hidden = config.hidden if config.model == "mlp" else ()
    return make_problem(config, schema(levels)), oracle.Problem(
        widths=(FEATURES, *hidden, 1),
        levels=levels,
        notion=config.constraints,
        tolerance=config.tolerance,
        score=config.score,
        decision=config.decision,
    )


def flat(primal: Any) -> np.ndarray:
    """The parameters in the oracle's order: layer by layer, weight before bias."""
    layers = primal if isinstance(primal, list) else [primal]
    return np.concatenate(
        [np.ravel(layer[part]) for layer in layers for part in ("weight", "bias")]
    ).astype(np.float64)


def scattered(problem: Problem, seed: int) -> PrimalDual:
    """A pair away from zero: where all scores are equal, |.| in g has no slope to agree on."""
    random = np.random.default_rng(seed)
    primal = problem.model.init(jax.random.key(seed))
    return PrimalDual(
        primal=jax.tree.map(
            lambda leaf: leaf + jnp.asarray(random.normal(scale=0.5, size=leaf.shape), jnp.float32),
            primal,
        ),
        dual=jnp.asarray(random.uniform(0.1, 1.0, len(problem.constraints)), jnp.float32),
    )


@pytest.mark.parametrize("decision", ["accuracy", "balanced", 0.4])
@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_loss_violations_and_the_gradient_of_the_lagrangian_agree(
    model: str, decision: str | float
) -> None:
    ours, theirs = problems(model, "dp+eo", (2, 3), decision=decision)
    shift = oracle.threshold_shift(PRIOR, decision)
    deployed = Deployed(rate=jnp.float32(PRIOR), shift=jnp.float32(shift))
    for seed in range(3):
        batch, pair = rows(seed, (2, 3)), scattered(ours, seed)
        theta, dual = flat(pair.primal), np.array(pair.dual, np.float64)
        loss, violation = evaluate(ours, pair.primal, batch, deployed)
        np.testing.assert_allclose(
            loss, oracle.loss_value(theirs, theta, as_batch(batch)), **FLOAT32
        )
        np.testing.assert_allclose(
            violation, oracle.constraint_values(theirs, theta, as_batch(batch), PRIOR), **FLOAT32
        )

        def objective(primal: Any, pair: PrimalDual = pair, batch: Batch = batch) -> Any:
            return lagrangian(ours, pair._replace(primal=primal), batch, deployed)[0]

        np.testing.assert_allclose(
            flat(jax.grad(objective)(pair.primal)),
            oracle.lagrangian_gradient(theirs, theta, dual, as_batch(batch), PRIOR),
            **FLOAT32,
        )


def test_the_projection_is_onto_the_ball_of_the_whole_vector() -> None:
    pair = scattered(problems("mlp", "dp", (2,))[0], 0)
    for radius in (0.5, 1e3, None):
        np.testing.assert_allclose(
            flat(project(pair.primal, radius)), oracle.project(flat(pair.primal), radius), **FLOAT32
        )


# Whole rounds: both run on their own from one start, on the same draws

TWO_LEVELS, THREE = 4, 8  # horizons
ROUNDS = {
    TWO_LEVELS: 4,  # both awake in 1 and 3, one in 2 and 4
    THREE: 5,  # all awake in 1 and 5, one in 2 and 4, two in 3
}
DRIFT: dict[str, Any] = {"rtol": 5e-5, "atol": 5e-6}  # float32 rounding after five rounds of steps

SMALL: dict[str, Any] = {
    "hidden": HIDDEN,
    "meta_iterations": 3,
    "support": 8,
    "capacity": 24,
    "score": "probability",
}
PAPER_STEPS: dict[str, Any] = {
    "inner_primal_step": 0.3,
    "inner_dual_step": 0.4,
    "meta_primal_step": 0.2,
    "meta_dual_step": 0.5,
    "dual_damping": 0.2,
}
LIVE_STEPS: dict[str, Any] = {"primal_step": 0.3, "dual_step": 0.4, "dual_damping": 0.1}

ONE, THREE_LEVELS, THREE_NOTIONS = ("dp", (2,)), ("dp", (3,)), ("dp+eo", (2,))


def tasks(levels: tuple[int, ...], count: int) -> list[Batch]:
    return [rows(100 + t, levels) for t in range(1, count + 1)]


draw = jax.jit(experts.draw)  # the same key gives the rows that `step` will learn from
# Takes a third off compiling, where these tests spend their time.
QUICK = {"xla_backend_optimization_level": 0}


def rate(batch: Batch) -> float:
    return float(np.average(batch.y, weights=batch.weight))


def level_of(tree: Any, level: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[level], tree)


@partial(jax.jit, static_argnums=(1, 2, 3))
def windows(draws: experts.Draws, window: Any, iterations: int, sizes: buffers.Sizes) -> Batch:
    """The draws of so many iterations, as the library takes them: iteration, then level axis."""

    def of_level(samples: Any, order: Any, iteration: Any) -> Batch:
        return window(samples, order, iteration, sizes)

    of_levels = jax.vmap(of_level, in_axes=(0, 0, None))
    return jax.vmap(of_levels, in_axes=(None, None, 0))(*draws, jnp.arange(iterations))


def batches(*arguments: Any) -> list[dict[int, oracle_paper.Batch]]:
    """`windows` for the oracle: by iteration, then by level."""
    drawn = windows(*arguments)
    iterations, levels = drawn.y.shape[:2]
    return [
        {k: as_batch(Batch(*(leaf[n, k] for leaf in drawn))) for k in range(levels)}
        for n in range(iterations)
    ]


def as_pair(pair: PrimalDual) -> oracle_paper.Pair:
    return oracle_paper.Pair(flat(pair.primal), np.array(pair.dual, np.float64))


def assert_same_pair(ours: PrimalDual, theirs: oracle_paper.Pair) -> None:
    np.testing.assert_allclose(flat(ours.primal), theirs.primal, **DRIFT)
    np.testing.assert_allclose(ours.dual, theirs.dual, **DRIFT)


def assert_same_bank(bank: Any, theirs: dict[int, oracle_paper.Expert], sizes: bool) -> None:
    for k, expert in theirs.items():
        assert_same_pair(level_of(bank.pair, k), expert.pair)
        np.testing.assert_allclose(bank.regret[k], expert.regret, **DRIFT)
        if sizes:
            np.testing.assert_allclose(bank.abs_regret[k], expert.abs_regret, **DRIFT)


def by_level(weights: dict[int, float], storage: int) -> list[float]:
    return [weights.get(k, 0.0) for k in range(storage)]


Cases = dict[str, tuple[str, tuple[str, tuple[int, ...]], dict[str, Any]]]

PAPER_CASES: Cases = {
    "logistic, m=1, exact": ("logistic", ONE, {"meta_gradient": "exact", "horizon": THREE}),
    "logistic, m=1, stale, credit reset": (
        "logistic",
        ONE,
        {"meta_gradient": "stale", "credit": "reset", "horizon": THREE},
    ),
    "logistic, m=3, exact, two inner steps": (
        "logistic",
        THREE_LEVELS,
        {"meta_gradient": "exact", "inner_steps": 2},
    ),
    "logistic, m=3, first-order, no base learner, threshold 0.4": (
        "logistic",
        THREE_LEVELS,
        {"inner_steps": 0, "decision": 0.4},
    ),
    "mlp, m=1, first-order, uniform weights": (
        "mlp",
        ONE,
        {"combiner": "uniform", "horizon": THREE},
    ),
    "mlp, m=3, exact, two inner steps, in a ball": (
        "mlp",
        THREE_NOTIONS,
        {"meta_gradient": "exact", "inner_steps": 2, "radius": 2.5},
    ),
    "mlp, m=3, first-order, two inner steps, logits, balanced decision": (
        "mlp",
        THREE_LEVELS,
        {"inner_steps": 2, "score": "logit", "decision": "balanced"},
    ),
    "mlp, m=3, stale, the original weights, the paper's steps": (
        "mlp",
        THREE_NOTIONS,
        {"meta_gradient": "stale", "combiner": "luo-schapire", "steps": "paper"},
    ),
}


def same_settings(kind: Any, config: LearnerConfig) -> Any:
    """The oracle's settings, which have the library's names."""
    return kind(**{name: getattr(config, name) for name in kind._fields})


def follow_paper(config: FairSAOMLConfig, levels: tuple[int, ...], rounds: int) -> None:
    """Run the paper's learner and its oracle side by side; every round must agree."""
    ours, theirs = both_problems(config, levels)
    learner, settings = fairsaoml(ours, config), same_settings(oracle_paper.Config, config)
    step = jax.jit(learner.step, compiler_options=QUICK)
    pair = scattered(ours, 7)
    state = learner.init(jax.random.key(0))
    state = state._replace(meta=pair, bank=experts.bank_of(pair, state.bank.regret.shape[0]))
    shadow = oracle_paper.State(as_pair(pair), {})
    sizes = buffers.Sizes(support=config.support, query=config.query)
    rates: list[float] = []
    largest_norm = 0.0

    for t, batch in enumerate(tasks(levels, rounds), start=1):
        key = jax.random.fold_in(jax.random.key(1), t)
        state = learner.grow(state, t)
        storage = state.bank.regret.shape[0]
        roll = experts.roll_call(config, jnp.int32(t), storage)
        draws = draw(key, state.samples, batch, roll.awake)
        supports = batches(draws, buffers.take_support, config.meta_iterations, sizes)
        *queries, fresh = batches(draws, buffers.take_query, config.meta_iterations + 1, sizes)
        rates.append(rate(batch))
        norms = np.linalg.norm(batch.x, axis=1)[np.array(batch.weight) > 0]
        largest_norm = max(largest_norm, norms.max())
        if config.steps == "paper":
            eta = oracle_paper.paper_scale(config.tolerance, FEATURES, largest_norm)
            settings = settings._replace(inner_primal_step=eta, inner_dual_step=eta)
        prior = running_prior(rates, config.prior_discount)
        share = oracle_paper.weigh(oracle_paper.wake(settings, shadow, t), settings.combiner)

        shadow = oracle_paper.fairsaoml_round(
            theirs,
            settings,
            shadow,
            t,
            supports=supports,
            queries=queries,
            credit_queries=fresh,
            prior=prior,
        )
        state, info = step(key, jnp.int32(t), state, batch)

        np.testing.assert_allclose(info.weights, by_level(share, storage), **DRIFT)
        assert_same_pair(state.meta, shadow.meta)
        assert_same_bank(state.bank, shadow.experts, sizes=True)
        assert np.flatnonzero(info.present).tolist() == sorted(shadow.experts)
        np.testing.assert_allclose(
            learner.scores(state, batch.x),
            oracle_paper.scores(theirs, shadow, np.array(batch.x, np.float64), prior),
            **DRIFT,
        )

    adapted = oracle_paper.base_learner(theirs, settings, 0, shadow.meta, as_batch(batch), prior)
    assert_same_pair(learner.adapt(state, batch).meta, adapted)


@pytest.mark.parametrize("case", PAPER_CASES)
def test_fairsaoml_agrees_with_algorithm_1_round_by_round(case: str) -> None:
    model, (notion, levels), options = PAPER_CASES[case]
    settings = SMALL | PAPER_STEPS | {"query": 10, "horizon": TWO_LEVELS} | options
    config = FairSAOMLConfig(model=model, constraints=notion, **settings)
    follow_paper(config, levels, ROUNDS[settings["horizon"]])


def test_fairsaoml_agrees_while_levels_join_an_endless_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(experts, "FIRST_LEVELS", 2)  # so that storage grows within the test
    config = FairSAOMLConfig(
        model="logistic", constraints="dp", query=10, horizon=None, **(SMALL | PAPER_STEPS)
    )
    follow_paper(config, (2,), 6)


LIVE_CASES: Cases = {
    "logistic, m=3, in a ball, printed weights": (
        "logistic",
        THREE_LEVELS,
        {"radius": 0.5, "combiner": "ada-normal-hedge"},
    ),
    "mlp, m=1, uniform weights, in a ball": ("mlp", ONE, {"combiner": "uniform", "radius": 2.5}),
    "mlp, m=3": ("mlp", THREE_NOTIONS, {}),
    "mlp, m=3, logits, balanced decision": (
        "mlp",
        THREE_LEVELS,
        {"score": "logit", "decision": "balanced"},
    ),
}


def follow_live(config: LiveConfig, levels: tuple[int, ...], rounds: int) -> None:
    """Run the live experts and their oracle side by side; every round must agree."""
    ours, theirs = both_problems(config, levels)
    learner, settings = live(ours, config), same_settings(oracle_live.Config, config)
    step = jax.jit(learner.step, compiler_options=QUICK)
    pair = scattered(ours, 7)
    state = learner.init(jax.random.key(0))
    spread = experts.spread(pair, state.weights.shape[0])
    expert = state.bank.pair._replace(primal=spread.primal, dual=spread.dual)
    state = state._replace(bank=state.bank._replace(pair=expert))
    shadow = oracle_live.first_state(settings, as_pair(pair))
    sizes = buffers.Sizes(support=config.support, query=0)
    rates: list[float] = []

    for t, batch in enumerate(tasks(levels, rounds), start=1):
        key = jax.random.fold_in(jax.random.key(1), t)
        state = learner.grow(state, t)
        storage = state.weights.shape[0]
        roll = experts.roll_call(config, jnp.int32(t), storage)
        draws = draw(key, state.samples, batch, roll.awake)
        rates.append(rate(batch))
        prior = running_prior(rates, config.prior_discount)
        deployed = oracle_live.weigh(settings, shadow.experts)

        shadow = oracle_live.live_round(
            theirs,
            settings,
            shadow,
            t,
            as_batch(batch),
            draws=batches(draws, buffers.take_support, config.meta_iterations, sizes),
            prior=prior,
        )
        state, info = step(key, jnp.int32(t), state, batch)

        assert np.flatnonzero(info.present).tolist() == sorted(shadow.experts)
        np.testing.assert_allclose(info.weights, by_level(deployed, storage), **DRIFT)
        # C plays no part in the discounted hedge.
        assert_same_bank(state.bank, shadow.experts, sizes=config.combiner != "discounted-hedge")
        np.testing.assert_allclose(
            state.weights,
            by_level(oracle_live.weigh(settings, shadow.experts), storage),
            **DRIFT,
        )
        x = np.array(batch.x, np.float64)
        np.testing.assert_allclose(
            learner.scores(state, batch.x),
            oracle_live.scores(theirs, settings, shadow, x, prior),
            **DRIFT,
        )

    adapted = oracle_live.adapt(
        theirs, settings, shadow, as_batch(batch), config.meta_iterations, prior
    )
    assert_same_bank(learner.adapt(state, batch).bank, adapted.experts, sizes=False)


@pytest.mark.parametrize("case", LIVE_CASES)
def test_the_live_experts_agree_with_their_oracle_round_by_round(case: str) -> None:
    model, (notion, levels), options = LIVE_CASES[case]
    settings = SMALL | LIVE_STEPS | {"horizon": THREE} | options
    follow_live(LiveConfig(model=model, constraints=notion, **settings), levels, ROUNDS[THREE])


def test_the_live_experts_agree_while_levels_join_an_endless_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(experts, "FIRST_LEVELS", 2)  # so that storage grows within the test
    config = LiveConfig(model="logistic", constraints="dp", **(SMALL | LIVE_STEPS))
    follow_live(config, (2,), 6)
