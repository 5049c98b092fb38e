"""What the reference code gets wrong and we must not: one test for each of its defects.

Others stand where they belong: an all-negative classifier (test_prequential), all rows scored
(test_prequential, test_runner), groups coded right (test_fairness), no future (test_causality).
"""

from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core import buffers, experts, prior
from fairsaoml.core.primal_dual import Steps
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, PrimalDual, Schema
from fairsaoml.learners import registry
from fairsaoml.learners.fairsaoml import FairSAOMLConfig, Given, learn

SCHEMA = Schema(features=("a", "b"), attributes=(Attribute("sex", ("f", "m")),))
LEVELS, AWAKE = 3, 2  # levels 0 and 1 are awake, level 2 sleeps
CAPACITY = 16
MODES = ("exact", "first-order", "stale")
DUAL = 0.5


def rows(seed):
    random = np.random.default_rng(seed)
    y, group = np.arange(32) % 2, np.arange(32) // 2 % 2
    x = random.normal(size=(32, 2)) + np.stack([y, group + 0.1 * seed], axis=1)
    return Batch(
        x=jnp.asarray(x, jnp.float32),
        y=jnp.asarray(y, jnp.float32),
        group=jnp.asarray(group[:, None], jnp.int32),
        weight=jnp.ones(32),
    )


def pair_of(value, dual):
    primal = {"weight": jnp.array([value, 1.0]), "bias": jnp.array(-value)}
    return PrimalDual(primal=primal, dual=jnp.array([dual]))


def stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@pytest.fixture(scope="module")
def samples():
    """Every level has rows of its own."""
    keep = jax.jit(partial(buffers.sample_of, capacity=CAPACITY))
    return stacked([keep(jax.random.key(level), rows(level)) for level in range(LEVELS)])


META = pair_of(0.2, DUAL)
PAIRS = stacked([pair_of(0.4 * (level + 1), 0.3 * (level + 1)) for level in range(LEVELS)])


@pytest.fixture(scope="module", params=MODES)
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def meta_after(mode):
    """(weights, samples) -> the meta pair after one iteration."""
    config = FairSAOMLConfig(
        model="logistic",
        horizon=8,
        meta_iterations=1,
        support=3,
        query=5,
        capacity=CAPACITY,
        meta_gradient=mode,
        tolerance=0.0,
    )
    problem = make_problem(config, SCHEMA)
    tenth, nothing = jnp.full(LEVELS, 0.1), jnp.zeros(LEVELS)
    inner = Steps(primal=tenth, dual=tenth, damping=nothing, floor=nothing)

    @jax.jit
    def meta_after(weights, samples):
        keys = jax.random.split(jax.random.key(9), LEVELS)
        orders = jax.vmap(buffers.shuffle)(keys, samples)
        everyone, awake = jnp.ones(LEVELS, bool), jnp.arange(LEVELS) < AWAKE
        given = Given(
            problem=problem,
            config=config,
            samples=samples,
            hands=jax.vmap(partial(buffers.deal, sizes=buffers.Sizes(3, 5)))(orders),
            roll=experts.Roll(everyone, awake, everyone.sum(), awake.sum(), ~everyone),
            weights=weights,
            deployed=prior.deployed(prior.no_prior(), config.decision),
            inner=inner,
        )
        return learn(given, META, PAIRS)[0]

    return meta_after


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def test_every_expert_moves_the_meta_pair_by_its_weight(meta_after, samples):
    # The reference code uses the first expert's gradient alone. A step is linear in the weights:
    # it is the mean of the steps that each expert alone would have caused.
    shares = jnp.array([0.5, 0.2, 0.3])
    alone = [flat(meta_after(one, samples)) - flat(META) for one in jnp.eye(LEVELS)]
    together = flat(meta_after(shares, samples)) - flat(META)
    np.testing.assert_allclose(together, np.asarray(shares) @ np.stack(alone), atol=2e-6)
    # Nobody says nothing, and no two say the same.
    assert min(np.abs(one).max() for one in alone) > 1e-3
    assert min(np.abs(one - other).max() for one, other in combinations(alone, 2)) > 1e-3


@pytest.mark.parametrize("level", range(LEVELS))
def test_every_experts_rows_reach_the_meta_pair(meta_after, samples, mode, level):
    shares = jnp.full(LEVELS, 1 / LEVELS)
    other = samples._replace(x=samples.x.at[level].multiply(-2.0))
    before, after = meta_after(shares, samples), meta_after(shares, other)
    moved = np.abs(flat(before.primal) - flat(after.primal)).max() > 1e-4
    # With exact gradients a sleeper is a constant, and reaches the dual only (D3).
    assert moved == (mode != "exact" or level < AWAKE)
    assert abs(float(before.dual[0] - after.dual[0])) > 1e-5


def test_the_dual_is_not_zeroed_in_the_meta_step(meta_after, samples):
    after = meta_after(jnp.full(LEVELS, 1 / LEVELS), samples)
    # With tolerance 0 every violation is positive: the price rises from where it was.
    assert DUAL < float(after.dual[0]) < DUAL + 0.1


# Steps that explode


HUGE = {"fairsaoml": {"meta_primal_step": 1e6}, "aod": {"scale": 1e6}}  # the most they may be


@pytest.fixture(scope="module", params=HUGE)
def exploded(request):
    """A learner whose steps leave all bounds: its state before and after a round, and its info."""
    settings = {"model": "logistic", "horizon": 1, "capacity": CAPACITY, "support": 3}
    config = registry.configure(request.param, {**settings, **HUGE[request.param]})
    built = registry.build(request.param, config, SCHEMA)
    before = built.init(jax.random.key(0))
    wide = rows(0)._replace(x=1e35 * rows(0).x)
    after, info = jax.jit(built.step)(jax.random.key(1), jnp.int32(1), before, wide)
    return before, after, info


def test_an_update_that_is_not_finite_is_not_made_and_says_so(exploded):
    before, after, info = exploded
    assert info.flags["not_finite"]
    assert after.round == 1  # the round took place, and taught nothing
    np.testing.assert_array_equal(flat(after._replace(round=before.round)), flat(before))


def test_an_update_that_was_not_made_is_not_reported(exploded):
    assert np.isfinite(exploded[2].dual).all()


# Seeds beside each other


SEEDS, ROUNDS = 4, 20


def test_what_a_seed_does_does_not_depend_on_the_seeds_beside_it():
    small = {"model": "logistic", "meta_iterations": 2, "support": 4, "query": 4, "capacity": 8}
    built = registry.build("fairsaoml", FairSAOMLConfig(horizon=ROUNDS, **small), SCHEMA)
    keys = jax.random.split(jax.random.key(0), SEEDS)
    step = jax.jit(built.step)
    step_together = jax.jit(jax.vmap(built.step, in_axes=(0, None, 0, None)))
    together = jax.jit(jax.vmap(built.init))(keys)
    alone = [
        jax.tree.map(lambda leaf, at=at: leaf[at], jax.device_get(together)) for at in range(SEEDS)
    ]
    for t in range(1, ROUNDS + 1):
        batch, turn = rows(t), jax.random.split(jax.random.key(t), SEEDS)
        together, _ = step_together(turn, jnp.int32(t), together, batch)
        pairs = zip(turn, alone, strict=True)
        alone = [step(key, jnp.int32(t), state, batch)[0] for key, state in pairs]
    theirs = stacked([state.learned.meta for state in alone])
    np.testing.assert_allclose(flat(together.learned.meta), flat(theirs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", registry.registered())
def test_where_nobody_s_group_is_known_a_round_is_still_learned(name):
    """Traced where it can be: what goes wrong without a group does so where shapes are made."""
    alone = Schema(features=SCHEMA.features, attributes=())
    known = registry.configure(name).to_dict()
    config = registry.configure(name, {"constraints": "none"} if "constraints" in known else {})
    learner = registry.build(name, config, alone)
    shapes = (lambda function, *of: function(*of)) if learner.turn else jax.eval_shape
    state = shapes(learner.init, jax.random.key(0))
    batch = jax.tree.map(np.asarray, rows(0))._replace(group=np.zeros((32, 0), np.int32))
    after, _ = shapes(learner.step, jax.random.key(0), np.int32(1), state, batch)
    assert jax.tree.structure(after) == jax.tree.structure(state)
