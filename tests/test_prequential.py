"""One game, however it is compiled: by the round, as one scan, eagerly, padded, other seeds."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tiny
from fairsaoml.core.keys import init_key, run_keys
from fairsaoml.core.types import Batch, Learner, RoundInfo
from fairsaoml.evaluate import prequential as module
from fairsaoml.evaluate import seeds
from fairsaoml.evaluate.measures import labelled_share
from fairsaoml.evaluate.prequential import compiled, prequential, rollout
from fairsaoml.evaluate.records import finished
from fairsaoml.evaluate.round import run_round
from fairsaoml.evaluate.seeds import first_states, stacked
from fairsaoml.runs.spec import Setup
from fairsaoml.streams.stream import checked

ROUNDS = 5
ROWS = (60, 41, 64, 50, 60)  # one bucket
SEEDS = (0, 1)
CLOSE = 1e-5


def five_rounds(stream):
    """The first rounds, of several sizes."""

    def shorter(number, task):
        rows = ROWS[number - 1]
        return task._replace(x=task.x[:rows], y=task.y[:rows], group=task.group[:rows])

    def tasks(seed):
        return islice(tiny.perturbed(stream, shorter).tasks(seed), ROUNDS)

    return replace(stream, tasks=tasks, length=ROUNDS)


def game_of(learner, **settings):
    """Two levels: as small as a switch can be."""
    settings = tiny.accepted(learner, {**tiny.SETTINGS[learner], "horizon": 6, **settings})
    changes = {"stream_settings": {"tasks": 2, "rows": 64}, "learner_settings": settings}
    made = Setup.of(tiny.spec(learner, **changes))
    return replace(made, stream=five_rounds(made.stream))


@pytest.fixture(scope="module")
def game(learner):
    # A network for the learner that compiles fast; conformance has one for all of them.
    return game_of(learner, **(tiny.NETWORK if learner == tiny.FIRST else {}))


class Recorded(NamedTuple):
    records: list
    programs: list  # compiled ones, as jit keeps them


def record_game(game, seeds):
    """Play by the round; keep what was compiled for it."""
    programs = []

    def remembered(*arguments, **options):
        programs.append(compiled.__wrapped__(*arguments, **options))  # not shared with others
        return programs[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "compiled", remembered)
        rounds = list(prequential(game.stream, game.learner, game.problem, seeds))
    return Recorded([record for played in rounds for record in played.records], programs)


@pytest.fixture(scope="module")
def recorded(game, learner):
    """Compiled as outside the tests: all others are compared with the optimiser's work.

    It takes long to compile with: the other learner's is compared in a slow test.
    """
    with tiny.optimised() if learner == tiny.FIRST else nullcontext():
        return record_game(game, SEEDS)


@pytest.fixture(scope="module")
def reference(recorded):
    return recorded.records


def of_seed(records, seed):
    return [record for record in records if record["seed"] == seed]


def assert_same(ours, theirs, where="records"):
    """Equal to 1e-5, whole numbers and words exactly, times apart."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), where
        for key in ours.keys() - {"seconds"}:
            assert_same(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), where
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(one, other, f"{where}[{index}]")
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, abs=CLOSE, rel=CLOSE), where
    else:
        assert ours == theirs, where


def test_a_rollout_is_the_same_game(game, reference):
    rounds = rollout(game.stream, game.learner, game.problem, SEEDS)
    assert_same([record for played in rounds for record in played.records], reference)


@pytest.mark.slow  # the quicker learner's reference is the optimiser's work in every test here
@pytest.mark.parametrize("learner", ["fairsaoml"], indirect=True, scope="session")
def test_the_optimiser_plays_the_same_game(game, reference):
    with tiny.optimised():
        assert_same(record_game(game, SEEDS).records, reference)


def test_another_number_of_seeds_and_another_padding_are_the_same_game(
    game, reference, monkeypatch
):
    monkeypatch.setattr(seeds, "SMALLEST_BUCKET", 128)
    assert_same(record_game(game, [1]).records, of_seed(reference, 1))


@pytest.mark.slow  # every operation is compiled for itself; conformance has the like
@tiny.one_learner
def test_the_game_without_compilation_is_the_same_game(game, reference):
    [key] = run_keys([0])
    # `adapt` is left out: it takes the steps that `step` takes.
    learner = game.learner._replace(adapt=lambda state, support: state)
    records = []
    with jax.disable_jit():
        state = learner.init(init_key(key))
        for number, task in enumerate(game.stream.tasks(0), start=1):
            task = checked(task, game.stream.schema, number)
            batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), stacked([task], 64))
            state, outcome = run_round(learner, game.problem, key, jnp.int32(number), state, batch)
            outcome = jax.tree.map(np.asarray, outcome)
            records += finished(
                number, [task], [outcome], state, game.stream.schema, [0], seconds=0.0
            ).records
    expected = of_seed(reference, 0)
    assert_same(*([{**line, "adapted": {}} for line in lines] for lines in (records, expected)))


def test_a_learners_program_is_compiled_once_for_all_rounds_of_a_bucket(recorded):
    assert [len(program.programs) for program in recorded.programs] == [1]


def lowered(game, round_axis):
    """The vmapped program of a round as text, before the compiler has seen it."""
    keys = run_keys(SEEDS)
    state = jax.eval_shape(lambda: first_states(game.learner, SEEDS))
    tasks = [next(game.stream.tasks(seed)) for seed in SEEDS]
    batch = stacked([checked(task, game.stream.schema, 1) for task in tasks], 64)
    if round_axis is None:
        program = compiled(game.learner, game.problem, shared=False)
        return program.lower(keys, np.int32(1), state, batch).as_text()
    one = partial(run_round, game.learner, game.problem)
    program = jax.jit(jax.vmap(one, in_axes=(0, round_axis, 0, 0)))
    return program.lower(keys, np.ones(len(SEEDS), np.int32), state, batch).as_text()


def test_the_round_is_never_batched_so_that_no_seed_waits_for_another():
    game = game_of("fairsaoml")
    anybody = "applies stablehlo.or across"  # how the loop of a batch asks whether anyone goes on
    loops = 4  # over the awake, over the asleep, and over those who draw supports and queries
    alone, batched = (lowered(game, round_axis=axis).count(anybody) for axis in (None, 0))
    assert batched == alone + loops  # what it is guarded against


# What is scored (D18), seen with a learner that only counts its rounds


def counting_learner(bias=0.0):
    """Its state is the number of rounds it has learned from; so are its scores, plus a bias."""

    def info():
        nothing = jnp.zeros(0)
        flags = dict.fromkeys(
            ("empty", "one_class", "one_group", "dual_pinned", "not_finite"), jnp.array(False)
        )
        return RoundInfo(jnp.ones(1), jnp.ones(1, bool), jnp.ones(1, bool), nothing, flags)

    return Learner(
        init=lambda key: jnp.zeros(()),
        scores=lambda state, x: jnp.full(x.shape[0], bias) + state,
        margins=lambda state, x, group=None: jnp.full(x.shape[0], bias) + state,
        adapt=lambda state, support: state + 1000 * support.weight.sum(),
        step=lambda key, round, state, batch: (state + 1, info()),
    )


@pytest.fixture
def simple():
    """A problem without constraints and a stream of two buckets."""
    settings = {**tiny.SHARED, "constraints": "none"}
    changes = {"stream_settings": {"tasks": 2, "rows": 70}, "learner_settings": settings}
    game = Setup.of(tiny.spec(**changes))
    sizes = [70, 64, 10, 65, 1, 70]

    def shorter(number, task):
        rows = sizes[number - 1]
        return task._replace(x=task.x[:rows], y=task.y[:rows], group=task.group[:rows])

    return replace(game, stream=tiny.perturbed(game.stream, shorter), learner=counting_learner())


def test_there_is_one_compilation_for_each_padding_bucket(simple):
    recorded = record_game(simple, SEEDS)
    assert len(recorded.records) == 6 * len(SEEDS)
    assert [len(program.programs) for program in recorded.programs] == [2]  # 64 and 128


def test_a_task_is_scored_with_what_was_learned_before_it(simple):
    for played in prequential(simple.stream, simple.learner, simple.problem, SEEDS):
        for _, scores, _ in played.predictions:
            assert set(scores.tolist()) == {played.round - 1}


def test_going_on_after_a_round_plays_the_rounds_that_are_left(simple):
    state = jnp.full(len(SEEDS), 4.0)
    rounds = prequential(simple.stream, simple.learner, simple.problem, SEEDS, state=state, after=4)
    assert [(played.round, float(played.state[0])) for played in rounds] == [(5, 5.0), (6, 6.0)]


def test_a_learner_is_asked_to_make_room_before_each_round(simple):
    learner = simple.learner._replace(grow=lambda state, round: state + 100.0 * (round == 3))
    rounds = prequential(simple.stream, learner, simple.problem, SEEDS)
    assert [float(played.predictions[0][1][0]) for played in rounds] == [0, 1, 102, 103, 104, 105]


def test_all_rows_are_scored_and_nine_tenths_of_them_after_adapting(simple):
    def rows(figures):
        return sum(level["rows"] for level in figures["counts"]["group"].values())

    for record in record_game(simple, SEEDS).records:
        tenth = -(-record["rows"] // 10)
        assert rows(record) == record["rows"]
        assert rows(record["adapted"]) == record["rows"] - tenth


def test_nobody_accepted_is_no_parity(simple):
    # The reference code calls an all-negative classifier perfectly fair.
    game = replace(simple, learner=counting_learner(bias=-100.0))
    for record in record_game(game, [0]).records:
        assert record["positive_rate"] == 0
        assert record["dp_ratio"] is None
        assert record["eo_ratio"] is None
        assert any(reason.startswith("dp_ratio") for reason in record["undefined"])


def batch_of(rows, slots):
    return Batch(
        x=np.arange(slots, dtype=np.float32)[:, None],
        y=(np.arange(slots) % 2).astype(np.float32),
        group=np.zeros((slots, 1), np.int32),
        weight=(np.arange(slots) < rows).astype(np.float32),
    )


def share_of(seed, rows, slots):
    """The labelled share of a batch, by one program for all that have so many slots."""
    return jax.device_get(share(jax.random.key(seed), batch_of(rows, slots)))


share = jax.jit(labelled_share)


@pytest.mark.parametrize(
    ("rows", "labelled"), [(64, 7), (60, 6), (41, 5), (11, 2), (10, 1), (1, 1), (0, 0)]
)
def test_a_tenth_is_labelled_and_the_rest_held_out(rows, labelled):
    support, held_out = share_of(0, rows, slots=64)
    taken = set(support.x[support.weight > 0, 0].astype(int))
    assert len(taken) == labelled
    assert taken | set(np.flatnonzero(held_out)) == set(range(rows))
    assert not taken & set(np.flatnonzero(held_out))


def test_the_labelled_tenth_does_not_depend_on_padding():
    one, other = (share_of(1, 60, slots)[1] for slots in (64, 128))
    np.testing.assert_array_equal(one, other[:64])
