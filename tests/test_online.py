"""A learner with a memory does what a run does, and goes on after being away as if it never was."""

import copy
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import tiny
from fairsaoml import open_stream
from fairsaoml.core.errors import ConfigError, DataError, RunError
from fairsaoml.core.problem import make_problem
from fairsaoml.estimators.sklearn import FairGLCClassifier
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.learners import registry
from fairsaoml.runs.checkpoint import save_checkpoint, sealed
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.saving import load

ROUNDS = 5
STREAM = open_stream("synthetic", tiny.STREAM)
TASKS = [task for task, _ in zip(STREAM.tasks(3), range(2 * ROUNDS), strict=False)]


def online(name=tiny.FIRST, seed=3, **settings):
    small = {"horizon": 4, **tiny.SETTINGS.get(name, tiny.SHARED), **settings}
    return OnlineLearner(STREAM.schema, name, tiny.accepted(name, small), seed=seed)


def same(one, other):
    """Two trees of arrays, byte by byte."""
    leaves, others = jax.tree.leaves(one), jax.tree.leaves(other)
    return len(leaves) == len(others) and all(
        np.asarray(a).dtype == np.asarray(b).dtype
        and np.shape(a) == np.shape(b)
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(leaves, others, strict=True)
    )


def memory(model):
    return model.__getstate__()["state"], model.info


def test_a_round_is_the_round_that_a_run_of_the_same_seed_plays():
    name = "fairsaoml"
    settings = {**tiny.SETTINGS[name], "horizon": 4}
    config = registry.configure(name, settings)
    problem = make_problem(config, STREAM.schema)
    learner = registry.build(name, config, STREAM.schema)
    played = prequential(STREAM, learner, problem, [3])
    model = online(name)
    for task, shown, _ in zip(TASKS, played, range(ROUNDS), strict=False):
        _, scores, decisions = shown.predictions[0]
        np.testing.assert_allclose(model.scores(task.x), scores, rtol=1e-5, atol=1e-5)
        assert (model.decide(task.x) == decisions).all()
        model.learn(task)
        np.testing.assert_allclose(model.info.dual, shown.records[0]["dual"], atol=1e-5)
    assert model.round == ROUNDS
    assert model.constraints == tuple(c.name for c in problem.constraints)


@pytest.mark.parametrize("name", ["fairsaoml", "mask-ftml", "fair-glc", "aod"])
@pytest.mark.parametrize("rounds", [0, 2])
def test_saved_and_loaded_it_goes_on_with_the_same_bytes(tmp_path, name, rounds):
    stayed = online(name)
    for task in TASKS[:rounds]:
        stayed.learn(task)
    stayed.save(tmp_path / "model")
    away = load(tmp_path / "model")
    assert type(away) is OnlineLearner
    assert same(memory(away), memory(stayed))
    for task in TASKS[rounds : rounds + 2]:
        for model in (stayed, away):
            model.learn(task)
    assert away.round == stayed.round == rounds + 2
    assert same(memory(away), memory(stayed))


def test_a_memory_that_has_grown_is_saved_as_large_as_it_is(tmp_path):
    stayed = online("aod", horizon=None)
    before = sum(leaf.nbytes for leaf in jax.tree.leaves(memory(stayed)[0]))
    stayed.round = 70_000  # as if so many rounds had been: the first storage is for 65,536
    stayed.learn(TASKS[0])
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(memory(stayed)[0])) > before
    stayed.save(tmp_path / "model")
    away = OnlineLearner.load(tmp_path / "model")
    assert same(memory(away.learn(TASKS[1])), memory(stayed.learn(TASKS[1])))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_its_own_way(duplicate):
    first = online().learn(TASKS[0])
    second = duplicate(first)
    kept = memory(first)
    second.learn(TASKS[1])
    assert same(memory(first), kept)
    assert same(memory(first.learn(TASKS[1])), memory(second))


def test_rows_of_any_number_are_scored_by_a_few_programs_and_all_alike():
    model = online().learn(TASKS[0])
    rows = np.concatenate([TASKS[1].x] * 5)
    program = model._programs.look
    whole = model.scores(rows)
    pieces = [model.scores(rows[:size]) for size in (1, 2, 33, 63, 64)]
    programs = program._cache_size()
    for size in range(1, 64):
        model.scores(rows[:size])
    assert program._cache_size() == programs
    for piece in pieces:
        np.testing.assert_allclose(piece, whole[: len(piece)], rtol=1e-6, atol=1e-6)
    assert model.scores(rows[:0]).shape == (0,)


def test_more_rows_than_are_scored_at_once_come_back_in_order():
    model = online().learn(TASKS[0])
    rows = np.repeat(TASKS[1].x, 150, axis=0)  # 9,000
    one = model.scores(TASKS[1].x)
    np.testing.assert_allclose(model.scores(rows), np.repeat(one, 150), rtol=1e-6, atol=1e-6)


def test_settings_alike_share_their_compiled_programs():
    assert online(seed=1)._programs is online(seed=2)._programs
    assert online()._programs is not online(tolerance=0.3)._programs


def test_rows_that_cannot_be_learned_from_are_refused_and_nothing_is_changed():
    model = online().learn(TASKS[0])
    kept = memory(model)
    with pytest.raises(DataError, match="expected labels 0 and 1"):
        model.learn(TASKS[1]._replace(y=TASKS[1].y + 1))
    assert same(memory(model), kept)
    assert model.round == 1


X, GROUP = TASKS[0].x[:3], TASKS[0].group[:3]


@pytest.mark.parametrize(
    ("x", "group", "words"),
    [
        (np.c_[X, X], None, "rows of the 10 features of the schema, got shape"),
        (X[:, :1], None, r"got shape \(3, 1\)"),
        (X[0], None, "give a table"),
        (np.where(np.arange(3)[:, None] == 1, np.nan, X), None, "in 1 rows, the first is row 1"),
        (-np.inf * np.abs(X), None, "in 3 rows, the first is row 0"),
        ([["a", "b"]], None, "expected rows of numbers .could not convert"),
        (X, GROUP[:2], "expected 3 x 1 group codes"),
        (X, GROUP[:, 0], "expected 3 x 1 group codes"),
        (X, GROUP + 9, "the last is 'not known'"),
        (X, GROUP - 2, "the last is 'not known'"),
    ],
)
def test_rows_that_do_not_fit_the_schema_are_not_decided(x, group, words):
    model = online("fair-glc").learn(TASKS[0])
    for ask in (model.decide, model.explain):
        with pytest.raises(DataError, match=words):
            ask(x, group)


@pytest.mark.parametrize("seed", [-1, 2**32, "a", 1.5, None])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number from 0 to 4294967295; got"):
        online(seed=seed)


def test_what_is_no_task_is_not_learned():
    with pytest.raises(DataError, match="expected a Task, got tuple; give Task"):
        online().learn((TASKS[0].x, TASKS[0].y, TASKS[0].group))


def test_what_a_round_lacks_is_said():
    task = TASKS[0]._replace(y=np.ones_like(TASKS[0].y))
    assert online().learn(task).notes == ("the task has one class only",)


# The folder


@pytest.fixture
def folder(tmp_path):
    """A model saved after its first and after its second round."""
    model = online("fair-glc")
    for task in TASKS[:2]:
        model.learn(task).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_manifest_says_what_is_in_the_folder(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["kind"] == "online.OnlineLearner"
    assert (manifest["round"], manifest["learner"], manifest["seed"]) == (2, "fair-glc", 3)
    assert manifest["config"] == online("fair-glc").config.to_dict()
    assert {"fairsaoml", "jax", "numpy", "python", "scikit-learn"} == set(manifest["versions"])
    assert not any(path.suffix in (".pkl", ".pickle") for path in folder.iterdir())


def test_a_damaged_model_is_known_and_the_one_before_is_used(folder):
    state = folder / "state-00000002.safetensors"
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="damaged"):
        assert load(folder).round == 1


@pytest.mark.filterwarnings("ignore:the checkpoint of")
def test_where_no_model_is_whole_the_error_says_so(folder):
    for state in folder.glob("state-*"):
        state.write_bytes(b"")
    with pytest.raises(RunError, match="no intact checkpoint"):
        load(folder)


def test_an_empty_place_holds_no_model(tmp_path):
    with pytest.raises(RunError, match=r"expected a saved model in .*, found none"):
        load(tmp_path / "nowhere")


def test_a_model_is_loaded_by_its_own_class_only(folder):
    with pytest.raises(RunError, match=r"expected a sklearn\.FairGLCClassifier"):
        FairGLCClassifier.load(folder)


@pytest.mark.parametrize("kind", ["os.system", "online.Programs", "sklearn.validate_data", "x"])
def test_a_manifest_cannot_have_just_anything_loaded(folder, kind):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(sealed({**manifest, "kind": kind})))
    with pytest.raises(RunError, match="expected a model of this package"):
        load(folder)


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    model = online("fair-glc")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "love.txt").write_text("dear")
    with pytest.raises(RunError, match=r"found 'love\.txt'; give a path of its own"):
        model.save(tmp_path / "letters")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="found a file"):
        model.save(tmp_path / "file")
    save_checkpoint(tmp_path / "checkpoint", 1, {"x": np.ones(1)}, {})  # a run's
    with pytest.raises(RunError, match=r"found 'manifest\.json'"):
        model.save(tmp_path / "checkpoint")


def test_programs_for_less_room_are_dropped_once_they_are_outgrown():
    model = online("aod", horizon=None)
    model.learn(TASKS[0])
    model.round = 2**16  # the last that the first storage has room for
    model.learn(TASKS[1])
    assert len(model.info.weights) == 32
    assert len(model._programs.step.programs) == 1


def test_threads_in_one_estimator_learn_one_after_another():
    task = TASKS[0]

    def learned(workers):
        model = FairGLCClassifier(random_state=0, model="logistic")
        with ThreadPoolExecutor(workers) as pool:
            calls = [
                pool.submit(model.partial_fit, task.x, task.y, sensitive_features=task.group[:, 0])
                for _ in range(6)
            ]
            for call in calls:
                call.result()
        return model

    one, many = learned(1), learned(6)
    assert many.n_rounds_ == 6  # none was lost, the first call's included
    assert same(memory(one._online), memory(many._online))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_a_fork_after_jax_has_started_is_refused_and_does_not_hang():
    model = online().learn(TASKS[0])
    child = os.fork()
    if not child:
        try:
            model.learn(TASKS[1])
        except RunError as error:
            os._exit(7 if "forked after JAX had begun to compute" in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


IN_A_POOL_OF_TWO = """
import numpy as np
from fairsaoml import Attribute, Schema, Task
from fairsaoml.serve.online import OnlineLearner

chance = np.random.default_rng(0)
names = tuple(f"x{column}" for column in range(111))
model = OnlineLearner(Schema(features=names, attributes=(Attribute("group", ("a", "b")),)))
for _ in range(20):
    x, group = chance.standard_normal((2048, 111)), chance.integers(0, 2, (2048, 1))
    model.learn(Task(x, (x[:, 0] > 0).astype(int), group))
print(model.round)
"""


def test_rounds_of_the_default_end_where_the_machine_has_two_cores():
    """Matrices factored as two batches in a pool of two threads waited for each other for good."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_POOL_OF_TWO],
        env={**os.environ, "PJRT_NPROC": "2"},
        capture_output=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.split() == [b"20"]
