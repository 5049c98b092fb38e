"""The decoupled learner: heads and multipliers against oracles, and what it promises."""

import jax
import numpy as np
import pytest

from fairsaoml.core import fair_rule, feature_maps, heads, roster, row_sample, rule_solver
from fairsaoml.core.errors import ConfigError
from fairsaoml.core.types import Attribute, Batch, Schema, Task
from fairsaoml.learners import registry
from fairsaoml.serve.online import OnlineLearner
from oracles import decoupled as oracle

SCHEMA = Schema(("merit", "proxy", "noise"), (Attribute("group", ("one", "other")),))


def people(seed, rows=200, gap=2.0, base=0.0, columns=3, share=0.5):
    """Rows whose second column tells the group, and whose labels favour one group."""
    random = np.random.default_rng(seed)
    group = (random.random(rows) < share).astype(np.int32)
    x = random.normal(size=(rows, columns)).astype(np.float32)
    x[:, 1] += 3 * group
    chance = 1 / (1 + np.exp(-(1.2 * x[:, 0] + gap * (group - 0.5) + base)))
    y = (random.random(rows) < chance).astype(np.float32)
    return Batch(x=x, y=y, group=group[:, None], weight=np.ones(rows, np.float32))


def test_the_heads_are_the_oracle_s():
    """Five rounds of two heads, the label's and a group's among rows of a label, by family."""
    who = roster.roster((0, 1))
    state = heads.new_heads(who, 3)
    width = 1 + 3 + feature_maps.width()
    keeps = np.asarray(roster.KEEPS, float)
    families = [np.flatnonzero(who.family == family) for family in range(len(who.longest))]
    seen = [4 if own[0] < who.linear else width for own in families]
    past = [oracle.nothing(len(own), size) for own, size in zip(families, seen, strict=True)]
    for round in range(1, 6):
        batch = people(round)
        state = heads.set_map(state, batch.x, batch.weight)
        said = heads.look(who, state, batch.x)
        features = said.features.T.astype(float)
        target = np.stack([batch.y, batch.group[:, 0].astype(np.float32)])
        weight = np.stack([batch.weight, batch.weight * batch.y])
        state = heads.learn(who, state, said, batch.y, target, weight)
        blocks, begin = [], 1
        for size in (3, *feature_maps.blocks(state.map)):
            blocks.append((begin, begin + size))
            begin += size
        ours = state.experts
        for family, (own, size) in enumerate(zip(families, seen, strict=True)):
            head, mix = who.head[own[0]], np.asarray(state.share[own], float)
            past[family] = theirs = oracle.solve_experts(
                past[family],
                features[:, :size],
                target[head].astype(float),
                weight[head].astype(float),
                keeps[who.memory[own]],
                mix / mix.sum(),
                [block for block in blocks if block[1] <= size],
                # Families of the rich map take turns.
                size == 4 or crew_of(who, family).turn == (round - 1) % 2,
            )
            place = family, round
            assert np.asarray(ours.rows[own]) == pytest.approx(theirs.rows), place
            assert np.asarray(ours.bend[own]) == pytest.approx(theirs.bend, rel=1e-2), place
            assert np.allclose(ours.theta[own, :size], theirs.theta, atol=2e-2), place
            assert np.allclose(ours.ridge[family, :size], theirs.ridge, rtol=2e-2), place


def crew_of(who, family):
    (crew,) = [c for c in who.crews if c.families.start <= family < c.families.stop]
    return crew


def solved(rows=8000, ratio=0.9, **changes):
    """A rule solved on a sample whose probabilities are known, and the sample."""
    batch = people(7, rows)
    group = batch.group[:, 0]
    chance = 1 / (1 + np.exp(-(1.2 * batch.x[:, 0] + 0.6 * (batch.x[:, 1] - 1.5))))
    other = 1 / (1 + np.exp(-(3 * batch.x[:, 1] - 4.5)))
    given = np.stack([1 - other, other])
    joint = np.concatenate([chance * given, (1 - chance) * given])
    layout = fair_rule.layout_of([{"tpr": 1, "fpr": 0}], [2])
    given_rows = {
        "weight": batch.weight,
        "chance": chance.astype(np.float32),
        "joint": joint.astype(np.float32),
        "y": batch.y,
        "group": batch.group,
    }
    fresh_rows = np.full(4, 50, np.float32)
    rule = fair_rule.new_rule(layout)._replace(fresh_rows=fresh_rows, **changes)
    for _ in range(3):
        rule = rule_solver.solve(
            layout, rule, ratio=ratio, decision="accuracy", kept=np.float32(0.9), **given_rows
        )
    return rule, given_rows, group


def test_the_multipliers_reach_the_dual_s_minimum():
    """The Newton steps of two rounds end within 1e-3 of what a solver makes of the dual itself."""
    random = np.random.default_rng(0)
    row = np.full(500, 1 / 500)
    accuracy = random.normal(size=500)
    lean = random.normal(size=(2, 500)) + 0.6 * accuracy
    lean = np.concatenate([lean, -lean])
    problem = (row, accuracy, lean, np.ones((4, 500)), np.full(4, 0.05), np.full(4, 2e-3))
    terms = np.concatenate([accuracy[None], -lean, 0.05 * np.ones((4, 500))])
    objective = rule_solver.Dual(
        *(part.astype(np.float32) for part in (row, terms, np.full(4, 2e-3)))
    )
    multiplier = np.zeros(4, np.float32)
    for _ in range(2):  # rounds: each begins where the one before has ended
        for stage in range(len(rule_solver.STAGES)):
            multiplier = objective.minimised(multiplier, stage)
    ours = oracle.dual(np.asarray(multiplier, float), *problem)
    best = oracle.best_dual(np.asarray(multiplier, float), *problem)
    assert best <= ours + 1e-9
    assert ours - best < 1e-3
    assert oracle.dual(np.zeros(4), *problem) - best > 0.01  # there was something to solve


@pytest.mark.parametrize("ratio", [0.8, 0.95])
def test_the_rule_keeps_the_ratio_on_its_sample(ratio):
    rule, given, group = solved(ratio=ratio)
    decided = np.asarray(fair_rule.margins(rule, given["chance"], given["joint"])) > 0
    blind = np.asarray(given["chance"]) > 0.5

    def worst(decisions):
        rates = [
            [decisions[(group == g) & (given["y"] == label)].mean() for g in (0, 1)]
            for label in (1, 0)
        ]
        return min(min(pair) / max(pair) for pair in rates)

    assert worst(decided) > ratio - 0.04
    assert worst(blind) < 0.75


def test_corrections_that_contradict_each_other_do_not_make_everybody_negative():
    """Both groups cannot be above their centre; a rule that knows less of the row has no gap."""
    rule, given, _ = solved(rows=2000, bias=np.full(4, 0.3, np.float32))
    decided = fair_rule.margins(rule, given["chance"], given["joint"]) > 0
    assert 0.25 < decided.mean() < 0.75


def test_without_a_notion_the_rule_is_the_threshold():
    layout = fair_rule.layout_of([], [2])
    rule = fair_rule.new_rule(layout)
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    chance = np.repeat(np.array([0.4999, 0.5001], np.float32), 100)
    margins = fair_rule.margins(rule, chance, np.zeros((0, 200), np.float32), x)
    assert np.array_equal(margins > 0, chance > 0.5)  # whatever their lots


def test_a_lot_is_a_row_s_own_and_even():
    """Of rows with few distinct values too; where fairness adds nothing, it counts for nothing."""
    random = np.random.default_rng(0)
    x = (random.random((20_000, 14)) > 0.5).astype(np.float32)
    lots = fair_rule.lots(x)
    assert np.array_equal(lots, fair_rule.lots(np.where(x == 0, np.float32(-0.0), x)))
    assert np.array_equal(lots[::7], fair_rule.lots(x[::7]))
    part = 1 / (1 + np.exp(-lots))
    assert np.abs(np.histogram(part, 10, (0, 1))[0] / 20_000 - 0.1).max() < 0.01
    assert np.abs([np.corrcoef(part, column)[0, 1] for column in x.T]).max() < 0.03


def test_where_fairness_outweighs_the_probability_lots_decide_a_share():
    """Rows on the threshold itself: as many are taken as the smooth rule of the dual takes."""
    layout = fair_rule.layout_of([{"dp": None}], [2])
    rule = fair_rule.new_rule(layout)._replace(coefficient=np.array([-0.29, 0], np.float32))
    x = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    joint = np.tile(np.array([[1], [0]], np.float32), (1, 5000))
    chance = np.full(5000, 0.8, np.float32)  # a margin of .3 - .29
    margins = fair_rule.margins(rule, chance, joint, x)
    expected = 1 / (1 + np.exp(-0.01 * fair_rule.SHARPNESS))
    assert (margins > 0).mean() == pytest.approx(expected, abs=0.02)


def test_a_sample_keeps_the_newest_rows_and_thins_large_tasks():
    sample = row_sample.empty(3, [2])
    for round in range(20):
        batch = people(round, rows=700)
        sample = row_sample.add(sample, batch, batch.x.T, np.float32(round))
    usual = sample.usual
    assert set(np.unique(usual.born)) == set(range(16, 20))  # four tasks of 512 rows fit
    assert float(usual.weight.sum()) == pytest.approx(4 * 700, rel=1e-5)
    for slot in (0, 700, 2047):  # what is known of a row stays together, round the ring's end too
        of_task = people(int(usual.born[slot]), rows=700)
        features = np.concatenate(usual.features, axis=1)[:, slot]
        (row,) = np.flatnonzero((of_task.x == features).all(1))
        assert (of_task.y[row], of_task.group[row]) == (usual.y[slot], usual.group[slot])
    assert float(sample.rare.weight.sum()) == 0


def test_a_sample_keeps_rare_groups_longer_and_gives_them_no_more_weight():
    sample = row_sample.empty(3, [2])
    for round in range(40):
        batch = people(round, rows=600, share=0.02)
        sample = row_sample.add(sample, batch, batch.x.T, np.float32(round))
    rare = sample.rare
    assert set(np.unique(rare.born[rare.weight > 0])) == set(range(40))
    assert set(np.unique(rare.group[rare.weight > 0])) == {1}
    rows = row_sample.rows(sample)
    weight = row_sample.weights(rows, np.ones(len(rows.y), np.float32))
    share = weight[rows.group[:, 0] == 1].sum() / weight.sum()
    assert share == pytest.approx(0.02, abs=0.01)


def learner_of(**settings):
    config = registry.configure("fairsaoml-decoupled", settings)
    return registry.build("fairsaoml-decoupled", config, SCHEMA)


def prequential_run(batches, **settings):
    """Decisions and probabilities before each round was learned from."""
    learner = learner_of(**settings)
    state = learner.init(None)
    seen = []
    for round, batch in enumerate(batches, 1):
        state, info, shown = learner.turn(None, np.int32(round), state, batch)
        seen.append((shown.margins > 0, shown.scores, info))
    return seen


def ratios(batches, shown):
    """TPR and FPR ratio and accuracy, pooled."""
    decided = np.concatenate([one[0] for one in shown])
    y = np.concatenate([batch.y for batch in batches])
    group = np.concatenate([batch.group[:, 0] for batch in batches])
    rates = [[decided[(group == g) & (y == label)].mean() for g in (0, 1)] for label in (1, 0)]
    return [min(pair) / max(pair) for pair in rates], (decided == y).mean()


BATCHES = [people(t, rows=256, gap=2.0 if t < 20 else -2.0) for t in range(40)]


@pytest.fixture(scope="module")
def fair():
    """Twenty rounds that favour one group, twenty that favour the other."""
    return prequential_run(BATCHES)


def test_what_is_asked_for_is_got_and_a_change_is_survived(fair):
    """EO comes near what was asked, whichever group is favoured."""
    batches = BATCHES
    blind = prequential_run(batches, constraints="none")
    for begin, end in ((8, 20), (28, 40)):
        asked, accuracy = ratios(batches[begin:end], fair[begin:end])
        unasked, _ = ratios(batches[begin:end], blind[begin:end])
        assert min(asked) > 0.85
        assert min(unasked) < 0.7
        assert accuracy > 0.65


def test_probabilities_are_calibrated(fair):
    chance = 1 / (1 + np.exp(-np.concatenate([one[1] for one in fair[5:20]])))
    y = np.concatenate([batch.y for batch in BATCHES[5:20]])
    bins = np.minimum((10 * chance).astype(int), 9)
    errors = [
        abs(chance[bins == b].mean() - y[bins == b].mean()) * (bins == b).mean()
        for b in np.unique(bins)
    ]
    assert sum(errors) < 0.03


def learned(batches, **settings):
    """The learner and its state after rounds."""
    learner = learner_of(**settings)
    state = learner.init(None)
    for round, batch in enumerate(batches, 1):
        state, _ = learner.step(None, np.int32(round), state, batch)
    return learner, state


def test_a_round_changes_no_state_but_returns_one_and_shows_what_it_decided_with():
    """Who has kept a state can go on from it again: to the byte."""
    batches = [people(t, rows=256) for t in range(4)]
    learner, state = learned(batches[:3])
    kept = jax.tree.map(np.copy, state)
    shown = learner.show(state, batches[3].x, batches[3].group)
    first, again = (learner.turn(None, np.int32(4), state, batches[3]) for _ in range(2))
    for one, other in ((kept, state), (first, again), (shown, first[2])):
        jax.tree.map(np.testing.assert_array_equal, one, other)


def test_rows_decided_before_they_are_learned_from_are_learned_the_same():
    """The latest look is kept: it may not be used for other rows, or after learning."""
    told, asked = (OnlineLearner(SCHEMA, "fairsaoml-decoupled") for _ in range(2))
    for round in range(1, 4):
        batch = people(round)
        task = Task(batch.x, batch.y, batch.group)
        told.learn(task)
        x = batch.x.copy()
        before = asked.margins(x)
        x += 1.0
        assert not np.array_equal(asked.margins(x), before) or round == 1
        x -= 1.0
        asked.margins(batch.x)
        asked.learn(task)
        assert np.array_equal(asked.margins(batch.x), told.margins(batch.x))


def test_the_sample_keeps_what_rows_looked_like_and_says_of_them_what_it_says_of_new_ones():
    _, state = learned([people(t, rows=300) for t in range(4)])
    who = roster.roster((0, 1, 2))
    kept, segments = state.learned.heads, state.learned.sample.usual.features
    features = np.concatenate(segments, axis=1)[:, 900:1200]
    fresh = heads.look(who, kept, people(3, rows=300).x)
    assert np.array_equal(features, fresh.features)
    assert np.allclose(heads.probabilities(who, kept, [features]), fresh.chance, atol=1e-6)


def test_a_task_without_rows_teaches_nothing_first_or_later():
    """Rows are not padded: none is none."""
    nothing = jax.tree.map(lambda leaf: leaf[:0], people(0))
    learner, state = learned([nothing])
    assert learner.show(state, nothing.x, None).margins.shape == (0,)
    batches = [people(t, rows=64) for t in range(3)]
    (_, with_gaps), (_, without) = learned([nothing, *batches, nothing]), learned(batches)
    jax.tree.map(np.testing.assert_array_equal, with_gaps.learned, without.learned)


def test_a_decision_is_explained_by_its_threshold():
    learner, state = learned([people(t, rows=256) for t in range(6)])
    batch = people(99, rows=256)
    said, shown = learner.explain(state, batch.x), learner.show(state, batch.x, None)
    scores, margins, plain, threshold = shown
    assert np.allclose(said.threshold, threshold, atol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, said.shown, shown)
    assert np.allclose(said.probability, 1 / (1 + np.exp(-scores)), atol=1e-5)
    decided = np.asarray(margins) > 0
    clear = np.abs(margins) > 1e-4
    assert np.array_equal((said.probability > said.threshold)[clear], decided[clear])
    moved = said.threshold - said.plain_threshold
    assert said.moved_by.shape == (256, 2)
    assert np.allclose(said.moved_by.sum(1), moved, atol=1e-5)
    assert np.abs(moved).max() > 0.05  # there was something to move
    assert np.allclose(plain, said.probability - said.plain_threshold, atol=1e-6)
    # The columns' parts are most of what tells rows apart, and merit counts more than noise.
    whole = said.contribution.sum(1)
    assert np.corrcoef(whole, scores)[0, 1] > 0.98
    assert np.abs(said.contribution[:, 0]).mean() > 5 * np.abs(said.contribution[:, 2]).mean()


def test_only_who_is_aware_looks_at_the_group():
    """A row whose group nobody knows is decided as by a learner that never looks."""
    batches = [people(t, rows=256) for t in range(6)]
    fresh = people(99, rows=256)
    other, unknown = 1 - fresh.group, np.full_like(fresh.group, 2)
    for aware in (False, True):
        learner, state = learned(batches, **({"aware": True} if aware else {}))
        margins = learner.margins
        as_is, as_other, as_unknown, without = (
            np.asarray(margins(state, fresh.x, group))
            for group in (fresh.group, other, unknown, None)
        )
        assert np.array_equal(as_is, as_other) != aware
        assert np.array_equal(as_unknown, without)
    assert np.array_equal(without, np.asarray(margins(state, fresh.x)))


def test_settings_of_before_that_did_nothing_are_read_and_not_offered():
    entry = registry.entry("fairsaoml-decoupled")
    old = {"hidden": [40, 40], "model": "logistic", "tolerance": 0.1, "radius": None, "ratio": 0.8}
    assert entry.config.from_dict(old, saved=True) == entry.config(ratio=0.8)
    with pytest.raises(ConfigError, match="unknown setting 'hidden'"):
        entry.config.from_dict(old)
    assert set(entry.settings) == {"constraints", "decision", "ratio", "aware"}


def test_a_notion_that_excludes_the_first_is_left_out_and_decisions_stay_apart():
    """Base rates far apart: no informative rule has both demographic parity and equalized odds."""
    batches = [people(t, rows=256, gap=4.0) for t in range(12)]
    shown = prequential_run(batches, constraints="eo+dp")
    last = np.concatenate([one[0] for one in shown[6:]])
    assert 0.2 < last.mean() < 0.8
    assert all(bool(one[2].flags["excluded"]) for one in shown[6:])
