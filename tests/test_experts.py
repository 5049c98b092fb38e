"""The bank of experts: who wakes, what is inherited, how it grows, what never gets in."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core import buffers, experts
from fairsaoml.core.config import IntervalConfig
from fairsaoml.core.fairness import make_constraints
from fairsaoml.core.learner import all_finite, flags, pinned_rounds
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, PrimalDual, Problem, Schema, Task
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.learners import registry
from fairsaoml.learners.fairsaoml import FairSAOMLConfig
from fairsaoml.streams.stream import Stream

SCHEMA = Schema(features=("a", "b"), attributes=(Attribute("sex", ("f", "m")),))
SMALL = {"model": "logistic", "meta_iterations": 1, "support": 2, "capacity": 4}


def pair_of(value):
    return PrimalDual(primal={"weight": jnp.full(2, value)}, dual=jnp.full(1, value))


def bank_of(levels=3):
    """Expert k is at k + 1 and has credit 10 (k + 1)."""
    bank = experts.bank_of(pair_of(0.0), levels)
    marks = jnp.arange(1.0, levels + 1)
    pair = jax.tree.map(lambda leaf: leaf + marks[:, None], bank.pair)
    return bank._replace(pair=pair, regret=10 * marks, abs_regret=20 * marks)


def rows(count=20, seed=0, y=None, group=None, weight=None):
    random = np.random.default_rng(seed)
    y = np.arange(count) % 2 if y is None else np.full(count, y)
    group = np.arange(count) // 2 % 2 if group is None else np.full(count, group)
    return Batch(
        x=jnp.asarray(random.normal(size=(count, 2)), jnp.float32),
        y=jnp.asarray(y, jnp.float32),
        group=jnp.asarray(group[:, None], jnp.int32),
        weight=jnp.ones(count) if weight is None else jnp.asarray(weight, jnp.float32),
    )


# Waking


def test_doubling_blocks_join_at_their_length_whether_the_horizon_is_known_or_not():
    for config in (IntervalConfig(), IntervalConfig(horizon=30)):
        roll_call = jax.jit(partial(experts.roll_call, config, levels=4, cover="doubling"))
        rolls = [roll_call(jnp.int32(t)) for t in range(1, 13)]
        for t, roll in enumerate(rolls, start=1):
            assert roll.present.tolist() == [t >= size for size in (1, 2, 4, 8)]
            assert roll.awake.tolist() == [t >= size and t % size == 0 for size in (1, 2, 4, 8)]
            assert not roll.promoted.any()


@pytest.mark.parametrize("base", [2, 3])
def test_dynamic_intervals_start_in_every_round_and_about_log_t_are_kept(base):
    levels, start = 4, np.zeros(4, np.int32)
    config = IntervalConfig(base=base)
    promote = jax.jit(experts.promote)
    roll_call = jax.jit(partial(experts.roll_call, config, levels=levels, cover="dynamic"))
    for t in range(1, 60):
        roll = roll_call(jnp.int32(t))
        start = np.where(roll.awake, np.int32(t), promote(start, roll.promoted))
        assert roll.awake.tolist() == [True, False, False, False]
        kept = start[np.asarray(roll.present)].tolist()
        assert kept[0] == t
        assert kept == sorted(set(kept), reverse=True)  # no expert twice, older ones higher up
        ages = [t - first for first in kept[1:]]
        assert all(age < 2 * base**k for k, age in enumerate(ages, start=1))
        assert int(roll.present_count) == 1 + sum(t > base**k for k in range(1, levels))


def test_waking_experts_restart_from_the_pair_and_sleepers_stay():
    woken = experts.wake(bank_of(), pair_of(-1.0), jnp.array([True, True, False]), reset=False)
    assert woken.pair.primal["weight"].tolist() == [[-1, -1], [-1, -1], [3, 3]]
    assert woken.pair.dual.tolist() == [[-1], [-1], [3]]


def test_waking_experts_inherit_their_levels_credit():
    woken = experts.wake(bank_of(), pair_of(-1.0), jnp.array([True, True, False]), reset=False)
    assert woken.regret.tolist() == [10, 20, 30]
    assert woken.abs_regret.tolist() == [20, 40, 60]


def test_with_reset_waking_experts_start_without_credit():
    woken = experts.wake(bank_of(), pair_of(-1.0), jnp.array([True, True, False]), reset=True)
    assert woken.regret.tolist() == [0, 0, 30]
    assert woken.abs_regret.tolist() == [0, 0, 60]


@pytest.mark.parametrize(
    ("horizon", "round", "present", "awake"),
    [
        (16, 1, 4, 4),
        (16, 2, 4, 1),
        (16, 5, 4, 3),
        (None, 1, 1, 1),
        (None, 2, 1, 1),
        (None, 3, 2, 2),
        (None, 4, 2, 1),
        (None, 5, 3, 3),
        (None, 9, 4, 4),
    ],
)
def test_the_roll_of_a_round(horizon, round, present, awake):
    roll = experts.roll_call(IntervalConfig(horizon=horizon), jnp.int32(round), levels=4)
    assert roll.present.tolist() == [level < present for level in range(4)]
    assert roll.awake.tolist() == [level < awake for level in range(4)]
    assert (roll.present_count, roll.awake_count) == (present, awake)


def test_a_waking_levels_sample_holds_this_round_only_and_a_sleepers_its_whole_interval():
    config = FairSAOMLConfig(capacity=64, horizon=4)
    samples = experts.samples_of(config, SCHEMA, levels=2)
    draw = jax.jit(experts.draw)
    for number, awake in ((1, [True, True]), (2, [True, False])):
        batch = rows(seed=number)._replace(x=jnp.full((20, 2), float(number)))
        key = jax.random.key(number)
        samples = draw(key, samples, batch, jnp.array(awake)).samples
    held, x = np.asarray(buffers.is_held(samples.priority)), np.asarray(samples.x)
    seen = [set(x[level, ..., 0][held[level]].tolist()) for level in (0, 1)]
    assert seen == [{2.0}, {1.0, 2.0}]


# Growing


def test_storage_is_the_levels_of_the_horizon_or_sixteen():
    assert experts.storage(IntervalConfig(horizon=18)) == 4
    assert experts.storage(IntervalConfig(horizon=243, base=3)) == 5
    assert experts.storage(IntervalConfig()) == 16


def test_room_is_doubled_at_the_round_in_which_a_ninth_level_joins():
    config = IntervalConfig(base=2)
    assert [experts.room_for(config, round, 8) for round in (1, 256, 257)] == [8, 8, 16]
    assert experts.room_for(config, 2**16 + 1, 16) == 32
    assert experts.room_for(config, 2**16 + 1, 8) == 32  # rounds may be skipped on a resume
    assert experts.room_for(IntervalConfig(horizon=4), 10**6, 2) == 2


def grown(name):
    """A learner of an endless stream with its state at round 2^16, every level marked."""
    config = registry.configure(name, SMALL)
    built = registry.build(name, config, SCHEMA)
    state = built.init(jax.random.key(0))
    return built, state._replace(
        learned=state.learned._replace(
            bank=state.learned.bank._replace(regret=jnp.arange(1.0, 17.0))
        )
    )


def test_a_bank_grows_to_twice_its_levels_when_one_more_joins_and_keeps_what_it_has():
    built, state = grown("fairsaoml")
    assert built.grow(state, 2**16) is state
    state, wide = state.learned, built.grow(state, 2**16 + 1).learned
    assert wide.bank.regret.tolist() == [*range(1, 17), *[0] * 16]
    before, after = jax.tree.leaves(state.bank.pair), jax.tree.leaves(wide.bank.pair)
    for old, new in zip(before, after, strict=True):
        assert new.shape == (32, *old.shape[1:])
        np.testing.assert_array_equal(new[:16], old)
    assert wide.samples.priority.shape[0] == 32
    assert not buffers.is_held(wide.samples.priority[16:]).any()


def test_levels_join_an_endless_stream_awake_and_absent_ones_are_left_out(monkeypatch):
    monkeypatch.setattr(experts, "FIRST_LEVELS", 2)  # a small program; the second joins at round 3
    config = registry.configure("fairsaoml", SMALL)
    built = registry.build("fairsaoml", config, SCHEMA)
    tasks = [Task(*(np.asarray(leaf) for leaf in rows(seed=seed)[:3])) for seed in range(3)]
    stream = Stream(name="endless", schema=SCHEMA, tasks=lambda seed: iter(tasks))
    records, held = [], []
    for played in prequential(stream, built, make_problem(config, SCHEMA), seeds=[0]):
        records += played.records
        held.append(
            buffers.is_held(played.state.learned.samples.priority[0]).sum(axis=(1, 2)).tolist()
        )
    assert [len(record["weights"]) for record in records] == [1, 1, 2]
    assert [record["awake"] for record in records] == [[0], [0], [0, 1]]
    assert all(sum(record["weights"]) == pytest.approx(1, abs=1e-5) for record in records)
    full = 2 * SMALL["capacity"]  # of both classes
    assert [one[0] for one in held] == [full] * 3
    assert held[2] == [full, full]


# Guarding


def test_a_state_with_nan_is_not_taken():
    assert all_finite(bank_of())
    assert not all_finite(bank_of()._replace(regret=jnp.array([1.0, jnp.nan, 2.0])))


def test_a_state_with_an_infinite_pair_is_not_taken():
    assert not jax.jit(all_finite)(experts.bank_of(pair_of(jnp.inf), 3))


def flags_of(batch, pinned=0, finite=True, attributes=SCHEMA.attributes):
    schema = SCHEMA._replace(attributes=attributes)
    problem = Problem(None, None, make_constraints("dp", schema, 0.0), schema)
    raised = flags(problem, batch, jnp.int32(pinned), jnp.array(finite))
    return {name for name, value in raised.items() if value}


def test_flags_are_raised_by_what_they_name():
    assert flags_of(rows()) == set()
    assert flags_of(rows(y=1)) == flags_of(rows(y=0)) == {"one_class"}
    assert flags_of(rows(group=0)) == flags_of(rows(group=1)) == {"one_group"}
    assert flags_of(rows(group=2)) == set()  # unseen only: no constraint speaks of anyone
    assert flags_of(rows(weight=np.zeros(20))) == {"empty"}
    assert flags_of(rows(), finite=False) == {"not_finite"}
    assert flags_of(rows(), pinned=9) == set()
    assert flags_of(rows(), pinned=10) == {"dual_pinned"}


def test_a_missing_level_of_many_raises_one_group():
    race = (Attribute("race", ("x", "y", "z")),)
    assert flags_of(rows(), attributes=race) == {"one_group"}  # there are x and y, but no z


def test_pinned_rounds_count_violations_without_a_price_in_a_row():
    def after(pinned, dual, violation):
        found = pinned_rounds(jnp.int32(pinned), jnp.array(dual), jnp.array(violation))
        return int(found)

    assert after(3, [0.0], [0.1]) == 4
    assert after(3, [0.1], [0.1]) == 0
    assert after(3, [0.0], [-0.1]) == 0
    assert after(3, [0.5, 0.0], [0.2, 0.1]) == 4  # one of several is enough
