"""A checkpoint is exact, never half written, and the one before is there when it is damaged."""

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tiny
from fairsaoml import load as load_model
from fairsaoml.core import fair_rule, roster
from fairsaoml.core.errors import FairSAOMLError, RunError
from fairsaoml.core.types import Attribute, PrimalDual, Schema, Task
from fairsaoml.report import write_report
from fairsaoml.runs import checkpoint as module
from fairsaoml.runs import migrations
from fairsaoml.runs.checkpoint import load_checkpoint, save_checkpoint, sealed, structured
from fairsaoml.runs.runner import resume
from fairsaoml.serve.online import OnlineLearner

PEOPLE = Schema(("merit", "pay", "age"), (Attribute("sex", ("f", "m")),))


def state_of(value):
    pair = PrimalDual(
        primal=[{"weight": jnp.full((2, 3), value), "bias": jnp.array(value)}], dual=jnp.zeros(0)
    )
    return {"pair": pair, "rounds": jnp.int32(value), "odd": jnp.array([jnp.inf, -0.0, 1e-45])}


def same(one, other):
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        (np.asarray(a).dtype, np.shape(a)) == (np.asarray(b).dtype, np.shape(b))
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in leaves
    )


@pytest.fixture
def folder(tmp_path):
    """Checkpoints after rounds 3, 5 and 8."""
    for round in (3, 5, 8):
        save_checkpoint(tmp_path / "checkpoint", round, state_of(round), {"learner": "l"})
    return tmp_path / "checkpoint"


def load(folder):
    return load_checkpoint(folder, jax.eval_shape(lambda: state_of(1.0)))


def test_a_state_comes_back_bit_by_bit(folder):
    found = load(folder)
    assert found.round == 8
    assert same(found.state, state_of(8))


def test_the_last_two_states_are_kept_and_no_more(folder):
    names = sorted(path.name for path in folder.iterdir())
    states = ["state-00000005.safetensors", "state-00000008.safetensors"]
    assert names == ["manifest.json", "previous.json", *states]


def test_where_nothing_was_kept_there_is_no_checkpoint(tmp_path):
    assert load(tmp_path / "checkpoint") is None


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def remove(path):
    path.unlink()


def scribble(path):
    path.write_text("[]")


STATE, MANIFEST = "state-00000008.safetensors", "manifest.json"
DAMAGES = [
    (STATE, cut),
    (STATE, flip),
    (STATE, remove),
    (MANIFEST, cut),
    (MANIFEST, scribble),
]


@pytest.mark.parametrize(("file", "damage"), DAMAGES)
def test_a_damaged_checkpoint_is_known_and_the_one_before_is_used_with_a_warning(
    folder, file, damage
):
    damage(folder / file)
    with pytest.warns(UserWarning, match=r"damaged .* trying the previous one"):
        found = load(folder)
    assert found.round == 5
    assert same(found.state, state_of(5))


@pytest.mark.parametrize(("file", "damage"), DAMAGES)
def test_after_a_damaged_checkpoint_the_next_ones_are_whole_again(folder, file, damage):
    damage(folder / file)
    save_checkpoint(folder, 9, state_of(9), {})
    assert load(folder).round == 9


@pytest.mark.parametrize("damage", [cut, scribble])
def test_a_damaged_manifest_does_not_push_out_a_whole_one(folder, damage):
    damage(folder / MANIFEST)
    save_checkpoint(folder, 9, state_of(9), {})
    cut(folder / "state-00000009.safetensors")
    with pytest.warns(UserWarning, match="trying the previous one"):
        assert load(folder).round == 5


@pytest.mark.filterwarnings("ignore:the checkpoint of")
def test_where_no_checkpoint_is_whole_the_error_names_each(folder):
    cut(folder / STATE)
    cut(folder / "state-00000005.safetensors")
    with pytest.raises(RunError, match=r"manifest\.json: .*previous\.json: .*--force"):
        load(folder)


def test_killed_between_state_and_manifest_the_state_before_counts(folder, monkeypatch):
    def killed(path, content, name):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.files, "write_sealed", killed)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(folder, 9, state_of(9), {})
    assert load(folder).round == 8


def test_a_round_learned_anew_does_not_write_over_the_state_before(folder):
    save_checkpoint(folder, 8, state_of(80), {})
    assert same(load(folder).state, state_of(80))
    flip(folder / json.loads((folder / MANIFEST).read_text())["file"])
    with pytest.warns(UserWarning, match="trying the previous one"):
        assert same(load(folder).state, state_of(8))


def test_a_manifest_keeps_every_digit_of_a_setting(folder):
    save_checkpoint(folder, 9, state_of(9), {"tolerance": 0.1 + 0.2})
    assert json.loads((folder / MANIFEST).read_text())["tolerance"] == 0.1 + 0.2


def test_a_checkpoint_of_a_newer_schema_is_refused(folder):
    manifest = json.loads((folder / MANIFEST).read_text())
    newer = sealed({**manifest, "schema": manifest["schema"] + 1})
    (folder / MANIFEST).write_text(json.dumps(newer))
    with pytest.raises(RunError, match=r"newer fairsaoml: upgrade"):
        load(folder)


@pytest.mark.filterwarnings("ignore:the checkpoint of")
def test_a_checkpoint_of_another_learner_is_no_checkpoint_of_this_one(folder):
    like = jax.eval_shape(lambda: {**state_of(1.0), "more": jnp.zeros(2)})
    with pytest.raises(RunError, match="another learner, or another version"):
        load_checkpoint(folder, like)


OLD_RUNS = Path(__file__).parent / "old_runs"  # stopped after five rounds, by 0.1.0 (schema 2)


def test_a_run_of_a_retired_learner_is_reported_on_and_goes_on_nowhere(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(OLD_RUNS / "fairsaoml-live", folder)
    assert "fairsaoml-live" in write_report([folder], tmp_path / "report.html").read_text()
    for use in (resume, load_model):
        with pytest.raises(FairSAOMLError, match=r"fairsaoml-live was replaced by .* revision"):
            use(folder)


@pytest.mark.parametrize("learner", ["fair-glc", "aod"])
def test_a_run_of_an_older_version_goes_on_where_it_stopped(learner, tmp_path):
    shutil.copytree(OLD_RUNS / learner, tmp_path / "run")
    resume(tmp_path / "run")
    ours = tiny.records(tmp_path / "run")
    theirs = [
        json.loads(line) for line in (OLD_RUNS / learner / "whole.jsonl").read_text().splitlines()
    ]
    assert len(ours) == len(theirs)
    stopped = len(tiny.records(OLD_RUNS / learner))
    # Its last round is decided by the checkpoint of before it, and learned with today's draws.
    for one, other in zip(ours[:stopped], theirs, strict=False):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-3)
    for one, other in zip(ours[: stopped - 2], theirs, strict=False):
        assert one["dual"] == pytest.approx(other["dual"], rel=1e-2, abs=1e-4)
        assert one["weights"] == pytest.approx(other["weights"], rel=1e-2, abs=1e-4)
    assert all(np.isfinite(one["loss"]) for one in ours)


def test_a_rule_of_before_tilts_decides_as_it_did():
    """Schema 3: the default learner's rule had no `tilt`."""
    before = {".learned.rule.coefficient": np.ones((1, 4), np.float32), ".round": np.int32(3)}
    _, arrays = module.MIGRATIONS[3]({}, before)
    assert arrays[".learned.rule.tilt"].tolist() == [[0.0] * 4]
    assert {name: arrays[name] for name in before} == before
    rule = fair_rule.new_rule(fair_rule.layout_of([{"tpr": 1, "fpr": 0}], [2]))
    rule = rule._replace(coefficient=jnp.array([0.5, -0.5, 0.2, -0.2]))
    joint, chance = jnp.array([[0.1], [0.2], [0.3], [0.4]]), jnp.array([0.7])
    added = 0.1 * 0.5 - 0.2 * 0.5 + 0.3 * 0.2 - 0.4 * 0.2
    assert fair_rule.margins(rule, chance, joint)[0] == pytest.approx(0.2 + added)


def test_experts_of_before_shared_curvature_say_what_they_said_and_remember_it():
    """Schema 4: every head of the default learner had a matrix, and a slope at 0."""
    random = np.random.default_rng(0)
    heads, memories, width = 3, 2, 4
    half = random.normal(size=(1, heads, memories, width, width))
    curvature = (half @ half.swapaxes(-1, -2)).astype(np.float32)
    theta, slope = random.normal(size=(2, 1, heads, memories, width)).astype(np.float32)
    rows = np.array([[100.0, 200.0], [30.0, 50.0], [70.0, 150.0]], np.float32)[None]
    experts = ".learned.heads.linear"
    before = {
        ".learned.heads.log_weights": np.zeros((1, heads, memories), np.float32),
        f"{experts}.rows": rows,
        f"{experts}.curvature": curvature,
        f"{experts}.theta": theta,
        f"{experts}.slope": slope,
    }
    _, arrays = module.MIGRATIONS[4]({}, before)
    assert arrays[f"{experts}.theta"] is theta
    past = np.einsum("shkde,shke->shkd", curvature, theta) - slope
    assert np.allclose(arrays[f"{experts}.slope"], past, atol=1e-5)
    worth = arrays[f"{experts}.bend"][:, 0] / arrays[f"{experts}.mass"][:, 0]
    ours = worth[..., None, None] * arrays[f"{experts}.products"][:, 0]
    assert np.allclose(ours, curvature[:, 0], rtol=1e-4)
    assert arrays[f"{experts}.mass"].tolist() == [rows[0].tolist()]


def seven_experts_a_head(named):
    """What the state of schema 6 was: of the same experts, with others that are gone since."""
    who, old = roster.roster((0, 1, 2)), dict(named)
    heads, experts = ".learned.heads", ".learned.heads.experts"
    kept = {
        name: old.pop(f"{experts}.{name}") for name in ("rows", "bend", "slope", "theta", "ridge")
    }
    crews = {
        name: [old.pop(f"{experts}.{name}[{crew}]") for crew in range(3)]
        for name in ("products", "mass")
    }
    log_share, columns = np.log(old.pop(f"{heads}.share")), crews["products"][0].shape[1]
    shares = np.full((3, 7), -np.inf, np.float32)
    for of, memories, first, width in (
        ("linear", 5, 0, columns),
        ("rich", 2, 3, kept["theta"].shape[1]),
    ):
        mine = {
            **{name: np.zeros((3, memories), np.float32) for name in ("rows", "bend", "mass")},
            **{name: np.zeros((3, memories, width), np.float32) for name in ("slope", "theta")},
            "ridge": np.zeros((3, width), np.float32),
            "products": np.zeros((3, memories, width, width), np.float32),
        }
        for one, (head, memory) in enumerate(zip(who.head, who.memory, strict=True)):
            if (one < who.linear) == (of == "linear"):
                place = head, memory - first
                for name in ("rows", "bend"):
                    mine[name][place] = kept[name][one]
                for name in ("slope", "theta"):
                    mine[name][place] = kept[name][one, :width]
                mine["ridge"][head] = kept["ridge"][who.family[one], :width]
                shares[head, memory if of == "linear" else memory + 2] = log_share[one]
        for crew, *matrices in zip(who.crews, *crews.values(), strict=True):
            if (crew.turn is None) == (of == "linear"):
                for name, values in zip(crews, matrices, strict=True):
                    mine[name][crew.kind, crew.memory - first] = values
        old |= {f"{heads}.{of}.{name}": values for name, values in mine.items()}
    for ring, segments in (("usual", 4), ("rare", 1)):
        name = f".learned.sample.{ring}.features"
        parts = [old.pop(f"{name}[{segment}]") for segment in range(segments)]
        old[name] = np.concatenate(parts, axis=1)
    return old | {f"{heads}.log_weights": shares}


def test_experts_of_before_that_are_gone_leave_their_share_and_rows_are_kept_as_features():
    """Schema 5: eight linear experts a head, and a sample of columns; schema 6: seven experts."""
    random = np.random.default_rng(0)
    online = OnlineLearner(PEOPLE)
    columns = len(PEOPLE.features)
    for _ in range(4):
        x = random.normal(size=(60, columns)).astype(np.float32)
        online.learn(Task(x, x[:, 0] > 0, random.integers(0, 2, (60, 1))))
    state = jax.tree.map(np.copy, online.state)
    ridge = state.learned.heads.experts.ridge
    ridge[3] = ridge[5]  # the first head's experts on the richer features had one together
    named = {
        jax.tree_util.keystr(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(state)
    }
    seven = seven_experts_a_head(named)
    before = {name: leaf[None] for name, leaf in seven.items() if ".relus." not in name}
    heads = ".learned.heads"
    del before[f"{heads}.turn"]
    places = [0, 1, 3, 5, 7]
    for name in ("rows", "bend", "products", "mass", "slope", "theta"):
        ours = before[f"{heads}.linear.{name}"]
        old = np.zeros((*ours.shape[:2], 8, *ours.shape[3:]), np.float32)
        old[:, :, places] = ours
        before[f"{heads}.linear.{name}"] = old
    shares = np.full((1, 3, 10), -np.inf, np.float32)
    shares[:, :, [*places, 8, 9]] = before[f"{heads}.log_weights"]
    shares[:, :, 4] = shares[:, :, 5]  # half of the next longer one's share is another's
    shares[:, :, [4, 5]] -= np.log(np.float32(2))
    before[f"{heads}.log_weights"] = shares
    relus = state.learned.heads.map.relus
    direction = np.zeros((1, columns, len(relus.column)), np.float32)
    direction[0, relus.column, np.arange(len(relus.column))[:, None]] = relus.size
    before |= {f"{heads}.map.direction": direction, f"{heads}.map.offset": relus.offset[None]}
    # The newest rows lie at the end of a ring and at its beginning.
    for name, capacity in (("usual", 3072), ("rare", 1024)):
        ring = f".learned.sample.{name}"
        del before[f"{ring}.features"]
        for part in ("y", "group", "weight", "born"):
            ours = before[f"{ring}.{part}"]
            old = np.zeros((1, capacity, *ours.shape[2:]), ours.dtype)
            old[:, : ours.shape[1]] = ours
            before[f"{ring}.{part}"] = np.roll(old, -100, axis=1)
        before[f"{ring}.x"] = np.zeros((1, capacity, columns), np.float32)
        before[f"{ring}.next"] = np.array([capacity - 100], np.int32)
    before[".learned.sample.usual.x"][0, -100:] = x[0]
    _, between = module.MIGRATIONS[5]({}, before)
    assert set(between) == set(seven)
    features = between[".learned.sample.usual.features"][0]
    assert features.shape == seven[".learned.sample.usual.features"].shape
    assert np.array_equal(features[1 : 1 + columns, 0], x[0])
    assert not features[:, 240:].any()
    _, after = module.MIGRATIONS[6]({}, between)
    assert set(after) == set(named)
    for name, values in named.items():
        if name.endswith((".turn", ".next", ".share")) or ".features" in name or ".relus." in name:
            continue
        assert np.array_equal(after[name][0], values), name
    assert np.allclose(after[f"{heads}.share"][0], named[f"{heads}.share"], atol=1e-2)
    assert after[".learned.sample.usual.next"] == [240]
    online.state = jax.tree.map(lambda leaf: leaf[0], structured(after, online.state))
    kept = OnlineLearner(PEOPLE)
    kept.state = state
    assert np.allclose(online.scores(x), kept.scores(x), atol=2e-2)


@pytest.mark.parametrize(
    ("levels", "counts", "kinds"),
    [
        ([2], [[4, 4]], (0, 1, 2)),
        ([3, 2], [[9, 0, 0], [5, 4, 0]], (0, 1, 1, 1, 2, 2, 2, 1, 2)),
        ([2, 3], [[9, 0, 0], [5, 4, 0]], (0, 1, 2, 1, 1, 1, 2, 2, 2)),
        ([], np.zeros((0, 0)), (0,)),
    ],
)
def test_kinds_of_heads_are_known_though_groups_were_not_seen(levels, counts, kinds):
    rows = np.array([10.0, 7.0, 3.0])[np.array(kinds)]
    state = {
        "heads.log_weights": np.zeros((len(kinds), 7)),
        "heads.linear.rows": np.stack([np.zeros_like(rows), rows], axis=1),
        "sample.counts": np.array(counts, np.float32),
    }
    assert migrations._kinds(state) == kinds
