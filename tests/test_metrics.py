"""Figures equal Fairlearn's wherever both are defined; what is undefined says so."""

import json

import fairlearn.metrics as fairlearn
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from fairsaoml.core.errors import DataError
from fairsaoml.core.types import Attribute
from fairsaoml.evaluate.metrics import (
    FIGURES,
    UNSEEN,
    Counts,
    count,
    counts_to_json,
    figures,
    pooled,
)


def attribute(levels, name="group"):
    return Attribute(name=name, levels=tuple("abcd"[:levels]))


@st.composite
def decided_rows(draw, fewest=0):
    """Labels, decisions and groups; `skew` makes some groups far more often accepted."""
    levels = draw(st.integers(2, 4))
    rows = draw(st.integers(fewest, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    group = random.integers(0, levels, size=rows)
    y = (random.random(rows) < draw(st.floats(0, 1))).astype(int)
    skew = random.random(levels) * draw(st.sampled_from([0.0, 1.0, 1.5]))
    prediction = (random.random(rows) < skew[group]).astype(int)
    return levels, y, prediction, group


def figures_of(y, prediction, group, levels):
    counts = count(y, prediction, np.reshape(group, (len(y), 1)), [attribute(levels)])
    return figures(counts)


def compared(function, y, prediction, group):
    return function(y, prediction, sensitive_features=group)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(decided_rows())
def test_every_defined_figure_equals_fairlearns_and_scikit_learns(rows):
    levels, y, prediction, group = rows
    found = figures_of(y, prediction, group, levels)
    oracles = {
        "accuracy": lambda: accuracy_score(y, prediction),
        "balanced_accuracy": lambda: balanced_accuracy_score(y, prediction),
        "positive_rate": lambda: fairlearn.selection_rate(y, prediction),
        "dp_ratio": lambda: compared(fairlearn.demographic_parity_ratio, y, prediction, group),
        "dp_difference": lambda: compared(
            fairlearn.demographic_parity_difference, y, prediction, group
        ),
        "eo_ratio": lambda: compared(fairlearn.equalized_odds_ratio, y, prediction, group),
        "eo_ratio_tpr": lambda: frame(fairlearn.true_positive_rate).ratio(),
        "eo_ratio_fpr": lambda: frame(fairlearn.false_positive_rate).ratio(),
    }

    def frame(metric):
        return fairlearn.MetricFrame(
            metrics=metric, y_true=y, y_pred=prediction, sensitive_features=group
        )

    assert set(oracles) == set(FIGURES)
    for name, oracle in oracles.items():
        if found[name] is not None:
            assert found[name] == pytest.approx(oracle(), abs=1e-12), name


@settings(max_examples=150, deadline=None, derandomize=True)
@given(decided_rows())
def test_a_figure_is_none_exactly_when_a_rate_is_missing_or_all_rates_are_zero(rows):
    levels, y, prediction, group = rows
    found = figures_of(y, prediction, group, levels)

    def defined(chosen):
        groups = [prediction[chosen & (group == g)] for g in range(levels)]
        everyone = all(len(decisions) for decisions in groups)
        return everyone, everyone and any(decisions.any() for decisions in groups)

    difference, ratio = defined(np.full(len(y), True))
    true_positive, false_positive = defined(y == 1)[1], defined(y == 0)[1]
    expected = {
        "accuracy": len(y) > 0,
        "balanced_accuracy": len(set(y)) == 2,
        "positive_rate": len(y) > 0,
        "dp_ratio": ratio,
        "dp_difference": difference,
        "eo_ratio": true_positive and false_positive,
        "eo_ratio_tpr": true_positive,
        "eo_ratio_fpr": false_positive,
    }
    assert {name: found[name] is not None for name in FIGURES} == expected
    assert bool(found["undefined"]) == (not all(expected.values()))
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("decision", [0, 1])
def test_a_constant_classifier_is_visible_and_an_all_negative_one_has_no_parity_ratio(decision):
    y, group = np.tile([0, 1], 50), np.repeat([0, 1], 50)
    found = figures_of(y, np.full(100, decision), group, 2)
    assert found["positive_rate"] == decision
    assert found["balanced_accuracy"] == 0.5
    assert found["dp_difference"] == 0.0
    assert found["dp_ratio"] == (1.0 if decision else None)
    assert found["eo_ratio"] == (1.0 if decision else None)
    reasons = [
        "dp_ratio of group: 0/0, no positive decision on any row",
        "eo_ratio_tpr of group: 0/0, no positive decision on any row with y = 1",
        "eo_ratio_fpr of group: 0/0, no positive decision on any row with y = 0",
    ]
    assert found["undefined"] == ([] if decision else reasons)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(decided_rows(fewest=1), st.integers(0, 60))
def test_counts_of_two_parts_add_up_to_the_counts_of_the_whole(rows, cut):
    levels, y, prediction, group = rows
    groups = group[:, None]
    known = [attribute(levels - 1)]  # the last group is one that was never declared
    parts = [
        count(y[part], prediction[part], groups[part], known)
        for part in (slice(None, cut), slice(cut, None))
    ]
    lines = [{"counts": counts_to_json(part)} for part in parts]
    assert pooled(lines) == count(y, prediction, groups, known)


def test_rows_of_a_group_never_declared_are_counted_but_in_no_ratio():
    sex = Attribute(name="sex", levels=("f", "m"))
    y, prediction = np.array([1, 1, 0, 0]), np.array([1, 1, 1, 1])
    known = count(y, prediction, [[0], [1], [0], [1]], [sex])
    assert set(known["sex"]) == {"f", "m"}
    stranger = count([1, 0], [0, 0], [[2], [2]], [sex])
    assert stranger["sex"][UNSEEN] == Counts(rows=2, y1_rows=1, y0_rows=1)
    found = figures(pooled({"counts": counts_to_json(part)} for part in (known, stranger)))
    assert found["dp_ratio"] == 1.0
    assert found["accuracy"] == pytest.approx(3 / 6)


def test_of_several_attributes_the_worst_is_the_headline_and_each_is_listed():
    fair, unfair = Counts(40, 20, 20, 15, 20, 5), Counts(40, 10, 20, 5, 20, 5)
    mixed = Counts(40, 15, 20, 10, 20, 5)
    counts = {"sex": {"f": mixed, "m": mixed}, "race": {"a": fair, "b": unfair}}
    found = figures(counts)
    assert found["attributes"]["sex"]["dp_ratio"] == 1.0
    assert found["attributes"]["race"]["eo_ratio_tpr"] == pytest.approx(1 / 3)
    for name in ("dp_ratio", "eo_ratio", "eo_ratio_tpr", "eo_ratio_fpr"):
        assert found[name] == min(each[name] for each in found["attributes"].values())
    assert found["dp_difference"] == 0.25
    # The worst of something unknown is unknown.
    counts["race"] = {**counts["race"], "c": Counts()}
    assert figures(counts)["dp_ratio"] is None
    assert "dp_ratio of race: no row in 'c'" in figures(counts)["undefined"]
    assert figures(counts)["attributes"]["sex"]["dp_ratio"] == 1.0


def test_a_ratio_resting_on_few_positives_is_marked_and_keeps_its_value():
    counts = {"sex": {"f": Counts(40, 12, 20, 9, 20, 3), "m": Counts(40, 20, 20, 10, 20, 10)}}
    found = figures(counts, minimum_count=10)
    assert found["eo_ratio_tpr"] == pytest.approx(0.9)
    assert found["insufficient"] == [
        "eo_ratio_tpr of sex: fewer than 10 positives in 'f'",
        "eo_ratio_fpr of sex: fewer than 10 positives in 'f'",
    ]
    assert figures(counts, minimum_count=3)["insufficient"] == []


def test_a_single_group_has_no_ratio():
    found = figures({"sex": {"f": Counts(4, 2, 2, 1, 2, 1)}})
    assert found["dp_ratio"] is None
    assert found["accuracy"] == 0.5
    assert "dp_ratio of sex: one group alone cannot be compared" in found["undefined"]


def test_an_empty_task_is_counted_as_zero_and_leaves_every_figure_null():
    empty = count([], [], np.zeros((0, 1), int), [attribute(2)])
    assert empty == {"group": {"a": Counts(), "b": Counts()}}
    found = figures(empty)
    assert [found[name] for name in FIGURES] == [None] * len(FIGURES)
    assert found["undefined"][0] == "accuracy, positive_rate: no row"


def test_counts_survive_the_journal():
    counts = count([1, 0, 1], [1, 1, 0], [[0], [1], [2]], [attribute(2)])
    assert pooled([json.loads(json.dumps({"counts": counts_to_json(counts)}))]) == counts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prediction": [0.5, 1]}, "every prediction to be 0 or 1, got"),
        ({"prediction": [0]}, "one prediction per label"),
        ({"attributes": [Attribute(name="sex", levels=("f", UNSEEN))]}, "rename it"),
    ],
)
def test_rows_that_cannot_be_counted_are_refused_in_words(change, words):
    good = {"y": [0, 1], "prediction": [0, 1], "group": [[0], [1]], "attributes": [attribute(2)]}
    with pytest.raises(DataError, match=words):
        count(**{**good, **change})
