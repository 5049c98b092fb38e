"""The settings that give the paper's readings back, against `oracles.algorithm_1`.

docs/deviations.md names these tests, departure by departure.
"""

import re
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.cli.options import parse_settings
from fairsaoml.core import buffers, experts, prior
from fairsaoml.core.primal_dual import evaluate
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, Schema
from fairsaoml.learners import registry
from fairsaoml.learners.fairsaoml import FairSAOMLConfig
from oracles.algorithm_1 import Draw, Reading, Round, algorithm_1, eq_1

FEATURES, ROWS, T = 3, 64, 6
SCHEMA = Schema(features=("a", "b", "c"), attributes=(Attribute("sex", ("f", "m")),))
READING = Reading(T=T, lambda_0=0.4)
# The paper's reading of everything that can be read otherwise.
PRINTED: dict[str, Any] = {
    "model": "logistic",
    "score": "logit",
    "gap": "drawn",
    "tolerance": READING.epsilon,
    "radius": np.sqrt(1 + 2 * READING.epsilon) - 1,
    "steps": "paper",
    "initial_primal": "centre",
    "initial_dual": READING.lambda_0,
    "inner_dual": "free",
    "gradient_bound": None,
    "meta_start": "previous",
    "meta_gradient": "stale",
    "credit_rows": "support",
    "credit_dual": "own",
    "credit_bound": None,
    "meta_primal_step": READING.eta_1,
    "meta_dual_step": READING.eta_2,
    "dual_damping": READING.delta,
    "meta_iterations": READING.N_meta,
    "horizon": T,
    "support": 10,
    "query": 10,
    "capacity": 80,
}
CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 2e-7}  # float32 against float64


def tasks() -> list[Batch]:
    """As many rows of either class, in which features tell of label and group."""
    batches = []
    for seed in range(T):
        random = np.random.default_rng(seed)
        y, group = np.arange(ROWS) % 2, random.integers(0, 2, ROWS)
        x = random.normal(size=(ROWS, FEATURES)) + 0.6 * y[:, None]
        x[:, 0] += 0.9 * group
        batches.append(
            Batch(
                x=jnp.asarray(x, jnp.float32),
                y=jnp.asarray(y, jnp.float32),
                group=jnp.asarray(group[:, None], jnp.int32),
                weight=jnp.ones(ROWS),
            )
        )
    return batches


def as_draw(batch: Batch) -> Draw:
    """Rows for the oracle: what is padded is left out, -1 and 1 for 0 and 1, a 1 for the bias."""
    there = np.asarray(batch.weight) > 0
    x = np.asarray(batch.x, np.float64)[there]
    return Draw(
        e=np.hstack([x, np.ones((len(x), 1))]),
        y=2.0 * np.asarray(batch.y)[there] - 1,
        s=2.0 * np.asarray(batch.group)[there, 0] - 1,
    )


Draws = dict[tuple[int, str, int, int], Draw]


@cache
def played(**changes: Any) -> tuple[list[Any], Draws]:
    """The library's states and weights after each round, and what it drew."""
    config = FairSAOMLConfig(**(PRINTED | changes))
    learner = registry.build("fairsaoml", config, SCHEMA)
    sizes = buffers.Sizes(config.support, config.query)

    @jax.jit
    def drawn(key: Any, samples: Any, batch: Batch, awake: Any) -> dict[str, Batch]:
        draws = experts.draw(key, samples, batch, awake)
        hands = jax.vmap(partial(buffers.deal, sizes=sizes))(draws.order)
        iterations = jnp.arange(config.meta_iterations + 1)
        pick = jax.vmap(jax.vmap(buffers.pick, in_axes=(0, 0, None)), in_axes=(None, None, 0))
        return {
            kind: pick(draws.samples, hand, iterations) for kind, hand in hands._asdict().items()
        }

    state, rounds, found, step = learner.init(jax.random.key(0)), [], {}, jax.jit(learner.step)
    for t, batch in enumerate(tasks(), start=1):
        key, round = jax.random.fold_in(jax.random.key(1), t), jnp.int32(t)
        roll = experts.roll_call(config, round, state.learned.bank.regret.shape[0], config.cover)
        for kind, all_of in drawn(key, state.learned.samples, batch, roll.awake).items():
            for n, k in np.ndindex(*all_of.y.shape[:2]):
                one = jax.tree.map(itemgetter((n, k)), all_of)
                found[t, kind, n, k] = as_draw(one)
        state, info = step(key, round, state, batch)
        rounds.append((state.learned, info))
    return rounds, found


def expected(reading: Reading, draws: Draws) -> list[Round]:
    norms = [np.linalg.norm(batch.x, axis=1).max() for batch in tasks()]
    return list(algorithm_1(reading, lambda *which: draws[which], lambda t: max(norms[:t])))


def numbers(rounds: list[Round]) -> np.ndarray:
    """All that the oracle says, in one row."""
    return np.concatenate(
        [
            [
                *one.theta,
                one.lam,
                *one.p.values(),
                *(v for E in one.experts.values() for v in E[1:]),
            ]
            for one in rounds
        ]
    )


def assert_agrees(changes: dict[str, Any], reading: Reading) -> None:
    rounds, draws = played(**changes)
    for (state, info), theirs in zip(rounds, expected(reading, draws), strict=True):
        meta, bank = state.meta, state.bank
        theta = np.append(meta.primal["weight"], meta.primal["bias"])
        np.testing.assert_allclose(theta, theirs.theta, **CLOSE)
        np.testing.assert_allclose(meta.dual, [theirs.lam], **CLOSE)
        for k, E in theirs.experts.items():
            np.testing.assert_allclose(info.weights[k], theirs.p[k], **CLOSE)
            np.testing.assert_allclose(bank.pair.primal["weight"][k], E.theta[:-1], **CLOSE)
            np.testing.assert_allclose(bank.pair.dual[k], [E.lam], **CLOSE)
            np.testing.assert_allclose([bank.regret[k], bank.abs_regret[k]], [E.R, E.C], **CLOSE)


def test_every_setting_at_the_papers_reading_is_algorithm_1_as_printed() -> None:
    assert_agrees({}, READING)


def test_the_readings_that_are_the_defaults_are_those_of_the_second_oracle() -> None:
    defaults = FairSAOMLConfig()
    names = ("meta_start", "inner_dual", "credit_rows", "credit_dual", "credit_bound")
    changes = {name: getattr(defaults, name) for name in (*names, "meta_gradient")}
    reading = READING._replace(
        gradient=defaults.meta_gradient,
        iterations_from=defaults.meta_start,
        inner_dual=defaults.inner_dual,
        credit_rows=defaults.credit_rows,
        credit_dual=defaults.credit_dual,
        credit_bound=defaults.credit_bound,
    )
    assert_agrees(changes, reading)


def test_first_order_takes_a_sleepers_slope_at_the_meta_theta_and_its_violation_at_its_own() -> (
    None
):
    changes = {"meta_gradient": "first-order", "meta_start": "current", "cover": "doubling"}
    reading = READING._replace(gradient="first-order", iterations_from="current", cover="doubling")
    assert_agrees(changes, reading)


@pytest.mark.parametrize(
    "other",
    [
        {"gradient": "exact"},
        {"iterations_from": "current"},
        {"inner_dual": "clipped", "lambda_0": 0.0},
        {"credit_rows": "query"},
        {"credit_dual": "meta"},
        {"credit_bound": 1e-3},
        {"lambda_0": 0.0},
        {"ball": False},
        {"cover": "doubling"},
    ],
    ids=str,
)
def test_the_agreement_would_break_with_any_other_reading(other: dict[str, Any]) -> None:
    draws = played()[1]
    base = READING._replace(lambda_0=other.get("lambda_0", READING.lambda_0))
    one = numbers(expected(READING if "inner_dual" not in other else base, draws))
    another = numbers(expected(READING._replace(**other), draws))
    assert one.shape != another.shape or not np.allclose(one, another, **CLOSE)


@pytest.mark.parametrize("rate", [0.35, 0.65])
def test_logits_on_rows_as_drawn_are_eq_1_as_printed(rate: float) -> None:
    config = FairSAOMLConfig(**PRINTED)
    problem = make_problem(config, SCHEMA)
    batch = tasks()[0]
    seen = prior.Prior(rates=jnp.float32(rate), tasks=jnp.float32(1))
    theta = np.array([0.7, -0.2, 0.4, 0.3])
    primal = {"weight": jnp.asarray(theta[:3], jnp.float32), "bias": jnp.float32(theta[3])}
    paper = eq_1(theta, as_draw(batch), config.tolerance)
    for gap, same in (("drawn", True), ("deployed", False)):
        deployed = prior.deployed(seen, "balanced", gap)
        ours = float(evaluate(problem, primal, batch, deployed)[1][0])
        assert (abs(ours - paper) < 1e-5) == same


def test_a_network_starts_at_the_centre_of_the_ball_if_asked() -> None:
    config = FairSAOMLConfig(initial_primal="centre", initial_dual=0.3, hidden=(4,))
    state = registry.build("fairsaoml", config, SCHEMA).init(jax.random.key(0))
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(state.learned.meta.primal))
    np.testing.assert_allclose(state.learned.meta.dual, [0.3])


def test_every_departure_names_settings_and_tests_that_are_there() -> None:
    here = Path(__file__).parent
    text = (here.parent / "docs" / "deviations.md").read_text(encoding="utf-8")
    of_learner = text[text.index("## `fairsaoml`\n") : text.index("## FairSAR")]
    settings = re.findall(r"`(\w+=[\w.-]+)`", of_learner)
    assert {"gap=drawn", "meta_start=previous", "credit_rows=support"} <= set(settings)
    for one in settings:
        registry.configure("fairsaoml", parse_settings([one]))
    sources = "".join(path.read_text(encoding="utf-8") for path in here.glob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources, name
    for file in re.findall(r"`(test_\w+\.py)`", text):
        assert (here / file).exists(), file
