"""The library against the independent NumPy versions in `oracles`, piece by piece, then by rounds.

The oracles are written from the paper's equations, in float64; the library runs in float32.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core import buffers, experts, intervals, weights
from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.fairness import make_constraints
from fairsaoml.core.primal_dual import evaluate, lagrangian, project
from fairsaoml.core.prior import Deployed, restore
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, Learner, PrimalDual, Problem, Schema
from fairsaoml.learners.fairsaoml import FairSAOMLConfig, fairsaoml
from oracles import fairness as oracle_fairness
from oracles import intervals as oracle_intervals
from oracles import lagrangian as oracle
from oracles import paper as oracle_paper
from oracles import weights as oracle_weights
from oracles.batch import as_batch
from oracles.prior import running_prior

FEATURES = 4
HIDDEN = (4, 3)
PRIOR = 0.3
TOLERANCE = 0.05
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


# Fairness and the Lagrangian


@partial(jax.jit, static_argnums=(0, 1, 2))
def gaps_and_violations(
    notion: str, levels: tuple[int, ...], score: str, z: Any, rows: Batch
) -> list:
    """The library's gaps, violations and their slopes, by constraint."""
    return [
        (constraint.gap(z, rows), *jax.value_and_grad(constraint.violation)(z, rows))
        for constraint in make_constraints(notion, schema(levels), TOLERANCE, score)
    ]


def assert_same_gaps(
    notion: str, levels: tuple[int, ...], score: str, z: np.ndarray, batch: Batch
) -> oracle_fairness.Gaps:
    """The library's gaps are the oracle's; these come back."""
    shift = 0.4
    theirs = oracle_fairness.gaps(
        z, as_batch(batch), oracle_fairness.comparisons(notion, levels), score, PRIOR, shift
    )
    from_threshold = jnp.asarray(z + shift, jnp.float32)
    restored = restore(batch, jnp.float32(PRIOR))
    ours = gaps_and_violations(notion, levels, score, from_threshold, restored)
    assert len(ours) == len(theirs.value)
    g = oracle_fairness.violations(theirs, TOLERANCE)
    for i, (gap, violation, slope) in enumerate(ours):
        assert gap.known == theirs.known[i]
        if gap.known:
            np.testing.assert_allclose(gap.value, theirs.value[i], **FLOAT32)
        np.testing.assert_allclose(violation, g[i], **FLOAT32)
        np.testing.assert_allclose(slope, np.sign(theirs.value[i]) * theirs.slope[i], **FLOAT32)
    return theirs


@pytest.mark.parametrize("score", ["probability", "decision", "logit"])
@pytest.mark.parametrize(
    ("notion", "levels"),
    [("none", (2,)), ("dp", (2,)), ("eop", (3,)), ("eo", (2,)), ("dp+eo", (2, 4))],
)
def test_the_gap_between_means_is_eq_1_as_printed(
    levels: tuple[int, ...], notion: str, score: str
) -> None:
    for seed in range(3):
        z = np.random.default_rng(seed).normal(size=60)
        assert_same_gaps(notion, levels, score, z, rows(seed, levels))


@pytest.mark.parametrize("spread", [1e-3, 0.3, 1.0, 20.0])
def test_the_decision_score_is_as_sharp_as_the_oracles_at_any_spread(spread: float) -> None:
    z = spread * np.random.default_rng(0).normal(size=60) - 0.4
    assert_same_gaps("dp", (2,), "decision", z, rows(0, (2,)))


@pytest.mark.parametrize("label", [0, 1])
def test_a_group_without_rows_contributes_nothing_in_both(label: int) -> None:
    batch = rows(0, (2,))
    batch = batch._replace(group=jnp.where(batch.y[:, None] == label, 1, batch.group))
    theirs = assert_same_gaps("dp+eo", (2,), "decision", np.linspace(-2.0, 2.0, 60), batch)
    silent = 1 if label == 1 else 2
    assert np.flatnonzero(~theirs.known).tolist() == [silent]
    assert oracle_fairness.violations(theirs, TOLERANCE)[silent] == 0.0


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


@pytest.mark.parametrize(
    ("model", "score", "decision"),
    [("logistic", "decision", 0.4), ("mlp", "probability", "accuracy"), ("mlp", "logit", 0.4)],
)
def test_loss_violations_and_the_gradient_of_the_lagrangian_agree(
    model: str, score: str, decision: str | float
) -> None:
    ours, theirs = problems(model, "dp+eo", (2, 3), score=score, decision=decision)
    shift = oracle.threshold_shift(PRIOR, decision)
    deployed = Deployed(rate=jnp.float32(PRIOR), shift=jnp.float32(shift))

    def objective(primal: Any, pair: PrimalDual, batch: Batch) -> Any:
        return lagrangian(ours, pair._replace(primal=primal), batch, deployed)

    gradient_of = jax.jit(jax.grad(objective, has_aux=True))
    loss_of = jax.jit(lambda primal, batch: evaluate(ours, primal, batch, deployed)[0])
    for seed in range(3):
        batch, pair = rows(seed, (2, 3)), scattered(ours, seed)
        theta, dual = flat(pair.primal), np.array(pair.dual, np.float64)
        gradient, violation = gradient_of(pair.primal, pair, batch)
        np.testing.assert_allclose(
            loss_of(pair.primal, batch),
            oracle.loss_value(theirs, theta, as_batch(batch)),
            **FLOAT32,
        )
        np.testing.assert_allclose(
            violation, oracle.constraint_values(theirs, theta, as_batch(batch), PRIOR), **FLOAT32
        )
        np.testing.assert_allclose(
            flat(gradient),
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

HORIZON, ROUNDS = 4, 4  # two levels: both awake in 1 and 3, one in 2 and 4
DRIFT: dict[str, Any] = {"rtol": 5e-5, "atol": 5e-6}  # float32 rounding after five rounds of steps

SMALL: dict[str, Any] = {
    "hidden": HIDDEN,
    "meta_iterations": 2,
    "support": 8,
    "capacity": 48,
    "horizon": HORIZON,
}
PAPER_STEPS: dict[str, Any] = {
    "query": 10,
    "inner_primal_step": 0.1,
    "inner_dual_step": 0.2,
    "meta_primal_step": 0.15,
    "meta_dual_step": 0.3,
    "dual_damping": 0.2,
}

Question = tuple[str, tuple[int, ...]]  # notion, levels of the attributes
ONE, THREE_LEVELS, THREE_NOTIONS = ("dp", (2,)), ("dp", (3,)), ("dp+eo", (2,))


def tasks(levels: tuple[int, ...], count: int) -> list[Batch]:
    return [rows(100 + t, levels, count=120) for t in range(1, count + 1)]


draw = jax.jit(experts.draw)  # the same key gives the rows that `step` will learn from
# Compiling is where these tests spend their time; this takes two thirds off it.
QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


class Players(NamedTuple):
    """The library's learner, compiled, and what its oracle needs."""

    learner: Learner
    ours: Problem
    theirs: oracle.Problem


@cache
def players(config: FairSAOMLConfig, levels: tuple[int, ...]) -> Players:
    """Compiled once for all tests that ask for the same."""
    ours, theirs = both_problems(config, levels)
    learner = fairsaoml(ours, config)
    parts = {name: getattr(learner, name) for name in ("scores", "adapt", "step")}
    compiled = {name: jax.jit(part, compiler_options=QUICK) for name, part in parts.items()}
    return Players(learner._replace(**compiled), ours, theirs)


def rate(batch: Batch) -> float:
    return float(np.average(batch.y, weights=batch.weight))


def level_of(tree: Any, level: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[level], tree)


@partial(jax.jit, static_argnums=(1, 2, 3))
def windows(draws: experts.Draws, kind: str, iterations: int, sizes: buffers.Sizes) -> Batch:
    """The draws of so many iterations, as the library takes them: iteration, then level axis."""

    def of_level(samples: Any, order: Any, iteration: Any) -> Batch:
        return buffers.pick(samples, getattr(buffers.deal(order, sizes), kind), iteration)

    of_levels = jax.vmap(of_level, in_axes=(0, 0, None))
    return jax.vmap(of_levels, in_axes=(None, None, 0))(*draws, jnp.arange(iterations))


def batches(*arguments: Any) -> list[dict[int, oracle_paper.Batch]]:
    """`windows` for the oracle: by iteration, then by level."""
    drawn = jax.tree.map(np.asarray, windows(*arguments))
    iterations, levels = drawn.y.shape[:2]
    return [
        {k: as_batch(jax.tree.map(itemgetter((n, k)), drawn)) for k in range(levels)}
        for n in range(iterations)
    ]


def as_pair(pair: PrimalDual) -> oracle_paper.Pair:
    return oracle_paper.Pair(flat(pair.primal), np.array(pair.dual, np.float64))


def assert_same_pair(ours: PrimalDual, theirs: oracle_paper.Pair) -> None:
    np.testing.assert_allclose(flat(ours.primal), theirs.primal, **DRIFT)
    np.testing.assert_allclose(ours.dual, theirs.dual, **DRIFT)


def by_level(values: dict[int, float], storage: int) -> list[float]:
    return [values.get(k, 0.0) for k in range(storage)]


def assert_same_credit(bank: experts.Bank, theirs: dict[int, Any]) -> None:
    """R and C of all levels; those that have not joined have none."""
    for ours, name in ((bank.regret, "regret"), (bank.abs_regret, "abs_regret")):
        credit = {k: getattr(expert, name) for k, expert in theirs.items()}
        np.testing.assert_allclose(ours, by_level(credit, len(ours)), **DRIFT)


def same_settings(kind: Any, config: LearnerConfig) -> Any:
    """The oracle's settings, which have the library's names."""
    return kind(**{name: getattr(config, name) for name in kind._fields})


class Turn(NamedTuple):
    """A round as both are given it."""

    t: int
    key: Any
    batch: Batch
    prior: float
    seen: list[Batch]  # the tasks so far


def turns(config: LearnerConfig, stream: Sequence[Batch]) -> Iterator[Turn]:
    rates: list[float] = []
    for t, batch in enumerate(stream, start=1):
        if batch.weight.any():
            rates.append(rate(batch))
        prior = running_prior(rates, config.prior_discount)
        yield Turn(t, jax.random.fold_in(jax.random.key(1), t), batch, prior, [*stream[:t]])


def draws_of(config: Any, turn: Turn, state: Any, kind: str, iterations: int) -> list:
    """What the library will draw in this turn, for the oracle."""
    roll = experts.roll_call(config, jnp.int32(turn.t), state.learned.bank.regret.shape[0])
    draws = draw(turn.key, state.learned.samples, turn.batch, roll.awake)
    sizes = buffers.Sizes(support=config.support, query=getattr(config, "query", 0))
    return batches(draws, kind, iterations, sizes)


def assert_same_roll(config: Any, turn: Turn, info: Any) -> None:
    interval = (turn.t, config.horizon, config.base)
    assert np.flatnonzero(info.present).tolist() == oracle_intervals.present_levels(*interval)
    assert np.flatnonzero(info.awake).tolist() == oracle_intervals.awake_levels(*interval)


def follow_paper(
    config: FairSAOMLConfig, levels: tuple[int, ...], stream: Sequence[Batch]
) -> list[Any]:
    """Run the paper's learner and its oracle side by side; every round must agree.

    Gives back the library's states, the first one included.
    """
    learner, ours, theirs = players(config, levels)
    settings = same_settings(oracle_paper.Config, config)
    pair = scattered(ours, 7)
    state = learner.init(jax.random.key(0))
    bank = experts.bank_of(pair, state.learned.bank.regret.shape[0])
    state = state._replace(learned=state.learned._replace(meta=pair, bank=bank))
    shadow = oracle_paper.State(as_pair(pair), {})
    states = [state]

    for turn in turns(config, stream):
        t, key, batch, prior, seen = turn
        state = learner.grow(state, t)
        iterations = config.meta_iterations
        supports = draws_of(config, turn, state, "support", iterations)
        *queries, fresh = draws_of(config, turn, state, "query", iterations + 1)
        if config.steps == "paper":
            norm = max(np.linalg.norm(past.x[past.weight > 0], axis=1).max() for past in seen)
            eta = oracle_paper.paper_scale(config.tolerance, FEATURES, norm)
            settings = settings._replace(inner_primal_step=eta, inner_dual_step=eta)
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
            empty=not batch.weight.any(),
        )
        state, info = learner.step(key, jnp.int32(t), state, batch)

        assert_same_roll(config, turn, info)
        np.testing.assert_allclose(info.weights, by_level(share, len(info.weights)), **DRIFT)
        assert_same_pair(state.learned.meta, shadow.meta)
        for k, expert in shadow.experts.items():
            assert_same_pair(level_of(state.learned.bank.pair, k), expert.pair)
        assert_same_credit(state.learned.bank, shadow.experts)
        np.testing.assert_allclose(
            learner.scores(state, batch.x),
            oracle_paper.scores(theirs, shadow, np.array(batch.x, np.float64), prior),
            **DRIFT,
        )
        states.append(state)

    adapted = oracle_paper.base_learner(theirs, settings, 0, shadow.meta, as_batch(batch), prior)
    assert_same_pair(learner.adapt(state, batch).learned.meta, adapted)
    return states


Cases = dict[str, tuple[str, Question, dict[str, Any]]]

PAPER_CASES: Cases = {
    "logistic, m=1, exact": ("logistic", ONE, {"meta_gradient": "exact"}),
    "logistic, m=1, stale, credit reset": (
        "logistic",
        ONE,
        {"meta_gradient": "stale", "credit": "reset"},
    ),
    "logistic, m=3, exact, two inner steps, decisions": (
        "logistic",
        THREE_LEVELS,
        # Sharpened scores, differentiated twice, blow rounding up: smaller steps.
        {
            "meta_gradient": "exact",
            "inner_steps": 2,
            "score": "decision",
            "inner_primal_step": 0.05,
            "meta_primal_step": 0.05,
        },
    ),
    "logistic, m=3, first-order, no base learner, threshold 0.4": (
        "logistic",
        THREE_LEVELS,
        {"inner_steps": 0, "decision": 0.4},
    ),
    "mlp, m=1, first-order, uniform weights, decisions": (
        "mlp",
        ONE,
        {"combiner": "uniform", "score": "decision"},
    ),
    "mlp, m=3, exact, two inner steps, in a ball": (
        "mlp",
        THREE_NOTIONS,
        {"meta_gradient": "exact", "inner_steps": 2, "radius": 2.5},
    ),
    "mlp, m=3, first-order, two inner steps, logits, balanced decision": (
        "mlp",
        THREE_LEVELS,
        {"inner_steps": 2, "score": "logit", "decision": "balanced", "gradient_bound": 1.0},
    ),
    "mlp, m=3, stale, the original weights, the paper's steps": (
        "mlp",
        THREE_NOTIONS,
        {"meta_gradient": "stale", "combiner": "luo-schapire", "steps": "paper"},
    ),
}


def paper_case(case: str) -> tuple[FairSAOMLConfig, tuple[int, ...]]:
    model, (notion, levels), options = PAPER_CASES[case]
    settings = SMALL | PAPER_STEPS | options
    return FairSAOMLConfig(model=model, constraints=notion, **settings), levels


@pytest.mark.parametrize("case", PAPER_CASES)
def test_fairsaoml_agrees_with_algorithm_1_round_by_round(case: str) -> None:
    config, levels = paper_case(case)
    follow_paper(config, levels, tasks(levels, ROUNDS))


# Unusual streams, on programs compiled above: three levels of one attribute

THREE = paper_case("logistic, m=3, first-order, no base learner, threshold 0.4")


def emptied(batch: Batch) -> Batch:
    return batch._replace(weight=jnp.zeros_like(batch.weight))


def test_past_its_horizon_the_cover_goes_on_with_the_levels_it_has() -> None:
    config, levels = THREE
    states = follow_paper(config, levels, tasks(levels, HORIZON + 3))
    assert all(len(state.learned.bank.regret) == 2 for state in states)


def test_a_round_that_lacks_a_group_leaves_its_gaps_unknown() -> None:
    config, levels = THREE
    stream = tasks(levels, ROUNDS)
    lacking = stream[1]._replace(group=jnp.where(stream[1].group == 2, 0, stream[1].group))
    # What the shortest interval draws from in round 2.
    theirs = players(config, levels).theirs
    gap = oracle.gaps_at(theirs, np.ones(FEATURES + 1), as_batch(lacking), PRIOR)
    assert gap.known.tolist() == [True, True, False]
    follow_paper(config, levels, [stream[0], lacking, *stream[2:]])


def test_an_empty_task_wakes_levels_and_teaches_nothing() -> None:
    config, levels = THREE
    stream = tasks(levels, ROUNDS)
    states = follow_paper(config, levels, [*stream[:1], emptied(stream[1]), *stream[2:]])
    before, after = states[1:3]
    # Level 0 wakes, level 1 sleeps; neither learns from what it has stored.
    sleeping = partial(level_of, level=1)
    for unchanged in (
        lambda state: (state.learned.bank.regret, state.learned.bank.abs_regret, state.prior),
        lambda state: (sleeping(state.learned.bank.pair), sleeping(state.learned.samples)),
        lambda state: getattr(state.learned, "meta", ()),
    ):
        jax.tree.map(np.testing.assert_array_equal, unchanged(after), unchanged(before))
    assert not level_of(buffers.is_held(after.learned.samples.priority), 0).any()


@pytest.mark.parametrize("silent", [(), (3,)], ids=["every task has rows", "task 3 is empty"])
def test_levels_join_an_endless_stream_as_in_the_oracle(
    silent: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experts, "FIRST_LEVELS", 2)  # so that storage grows within the test
    endless = SMALL | {"model": "logistic", "constraints": "dp", "horizon": None}
    stream = [
        emptied(task) if t in silent else task for t, task in enumerate(tasks((2,), 6), start=1)
    ]
    states = follow_paper(FairSAOMLConfig(**(endless | PAPER_STEPS)), (2,), stream)
    assert [len(state.learned.bank.regret) for state in states] == [2, 2, 2, 2, 2, 4, 4]
