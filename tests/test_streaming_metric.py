"""A stream of batches gives what Fairlearn gives for all their rows; intervals keep their word."""

import itertools
import math
import runpy
import sys
import warnings
from pathlib import Path

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_score

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.evaluate import confidence
from fairsaoml.evaluate.confidence import Share
from fairsaoml.evaluate.metrics import MINIMUM_COUNT, Counts
from fairsaoml.evaluate.streaming import METRICS, StreamingMetric

ORACLES = {
    "accuracy": accuracy_score,
    "selection_rate": fairlearn.selection_rate,
    "true_positive_rate": fairlearn.true_positive_rate,
    "false_positive_rate": fairlearn.false_positive_rate,
    "true_negative_rate": fairlearn.true_negative_rate,
    "false_negative_rate": fairlearn.false_negative_rate,
    "precision": precision_score,
    "balanced_accuracy": balanced_accuracy_score,
    "count": fairlearn.count,
}
METHODS = ("between_groups", "to_overall")
PARITIES = (
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
)
TABLES = ("overall", "by_group")


def rows(seed, size=40, levels=(2,), skew=0.5):
    """Labels, predictions and sensitive columns; small sizes leave groups and classes empty."""
    random = np.random.default_rng(seed)
    columns = {
        f"column_{place}": random.choice(list("abcd")[:level], size)
        for place, level in enumerate(levels)
    }
    y, prediction = (random.random((2, size)) < skew).astype(int)
    return y, prediction, pd.DataFrame(columns)


def fed(metrics, batches, **settings):
    metric = StreamingMetric(metrics, **settings)
    for y, prediction, sensitive in batches:
        metric.update(y, prediction, sensitive_features=sensitive)
    return metric


def cut(batch, *places):
    """One batch as several, at these places."""
    y, prediction, sensitive = batch
    ends = [0, *sorted(places), len(y)]
    return [
        (y[begin:end], prediction[begin:end], sensitive.iloc[begin:end])
        for begin, end in itertools.pairwise(ends)
    ]


def metric_frame(metrics, batch):
    """Fairlearn's answer, without its and scikit-learn's warnings about what is undefined."""
    y, prediction, sensitive = batch
    chosen = (
        ORACLES[metrics] if isinstance(metrics, str) else {name: ORACLES[name] for name in metrics}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fairlearn.MetricFrame(
            metrics=chosen, y_true=y, y_pred=prediction, sensitive_features=sensitive
        )


def answers(frame):
    """Everything that a MetricFrame and ours are both asked."""
    return [
        *(getattr(frame, table) for table in TABLES),
        *(getattr(frame, extreme)() for extreme in ("group_min", "group_max")),
        *(getattr(frame, gap)(method=way) for gap in ("difference", "ratio") for way in METHODS),
    ]


def assert_same(ours, theirs):
    for found, expected in zip(answers(ours), answers(theirs), strict=True):
        if isinstance(expected, pd.DataFrame):
            pd.testing.assert_frame_equal(found, expected)
        elif isinstance(expected, pd.Series):
            pd.testing.assert_series_equal(found, expected, check_names=False, check_dtype=False)
        else:
            assert found == pytest.approx(expected, nan_ok=True)


shapes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "size": st.integers(1, 60),
        "levels": st.sampled_from([(1,), (2,), (4,), (2, 3), (2, 2, 3)]),
        "skew": st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    }
)


@settings(max_examples=25)  # Fairlearn takes its time
@given(shape=shapes, data=st.data())
def test_batches_give_what_fairlearn_gives_for_all_rows(shape, data):
    batch = rows(**shape)
    places = data.draw(st.lists(st.integers(0, shape["size"]), max_size=4))
    assert_same(fed(METRICS, cut(batch, *places)), metric_frame(METRICS, batch))


@pytest.mark.parametrize("name", METRICS)
def test_one_metric_by_name_answers_with_numbers_as_one_function_does(name):
    batch = rows(seed=1, levels=(3,))
    ours, theirs = fed(name, cut(batch, 13)), metric_frame(name, batch)
    assert_same(ours, theirs)
    assert ours.by_group.name == name
    for answer in (ours.overall, ours.difference(), ours.ratio("to_overall"), ours.group_max()):
        assert isinstance(answer, float | int)


@given(shape=shapes, way=st.sampled_from(METHODS), parity=st.sampled_from(PARITIES))
def test_parities_are_fairlearns_whichever_metrics_were_asked_for(shape, way, parity):
    batch = y, prediction, sensitive = rows(**shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = getattr(fairlearn, parity)(
            y, prediction, sensitive_features=sensitive, method=way
        )
    found = getattr(fed("count", cut(batch, len(y) // 2)), parity)(method=way)
    assert found == pytest.approx(expected, nan_ok=True)


def test_every_metric_named_has_an_oracle():
    assert set(ORACLES) == set(METRICS)


@settings(max_examples=25)  # Fairlearn takes its time
@given(shapes, shapes)
def test_a_reverted_batch_leaves_no_trace_but_its_groups_places(kept, shape):
    shape = {**shape, "levels": kept["levels"]}
    stays, goes = rows(**kept), rows(**shape)
    y, prediction, sensitive = goes
    metric = fed(METRICS, [stays, goes])
    metric.revert(y, prediction, sensitive_features=sensitive)
    before = fed(METRICS, [stays]).counts
    left = metric.counts
    assert {group: found for group, found in left.items() if found.rows} == before
    assert {found for group, found in left.items() if group not in before} <= {Counts()}
    # What is compared passes over the empty places.
    theirs = metric_frame(METRICS, stays)
    for way in METHODS:
        for gap in ("difference", "ratio"):
            pd.testing.assert_series_equal(
                getattr(metric, gap)(way), getattr(theirs, gap)(method=way)
            )


def test_a_batch_may_be_reverted_row_by_row_and_in_any_order():
    y, prediction, sensitive = batch = rows(seed=5, levels=(2, 2))
    metric = fed(METRICS, [batch])
    for place in np.random.default_rng(0).permutation(len(y)):
        row = slice(place, place + 1)
        metric.revert(y[row], prediction[row], sensitive_features=sensitive.iloc[row])
    assert set(metric.counts.values()) == {Counts()}


@pytest.mark.parametrize(
    ("y", "prediction", "group"),
    [
        ([1, 1, 1], [1, 1, 1], list("aaa")),  # more rows than there were
        ([1], [0], ["a"]),  # as many rows with y = 1 are there, but none of them was rejected
        ([0], [0], ["b"]),  # nor was anyone right to be
        ([1, 1], [1, 1], ["a", "c"]),  # a group never seen, after one that can go
    ],
)
def test_more_reverted_than_was_there_is_an_error_and_nothing_is_lost(y, prediction, group):
    metric = StreamingMetric()
    metric.update([1, 1, 0], [1, 1, 1], sensitive_features=["a", "a", "b"])
    before = metric.counts
    with pytest.raises(DataError, match="nothing was taken out"):
        metric.revert(y, prediction, sensitive_features=group)
    assert metric.counts == before


@settings(max_examples=25)  # Fairlearn takes its time
@given(st.integers(1, 4), st.integers(0, 6), shapes)
def test_a_window_is_the_last_batches_and_nothing_else(window, number, shape):
    batches = [rows(**{**shape, "seed": shape["seed"] + place}) for place in range(number + 1)]
    metric = fed(METRICS, batches, window=window)
    theirs = metric_frame(METRICS, [*map(together, zip(*batches[-window:], strict=True))])
    for way in METHODS:
        pd.testing.assert_series_equal(metric.difference(way), theirs.difference(method=way))
    pd.testing.assert_series_equal(metric.overall, theirs.overall)
    here = metric.by_group.dropna()
    pd.testing.assert_frame_equal(here, theirs.by_group.dropna(), check_index_type=False)


def together(parts):
    whole = pd.concat if isinstance(parts[0], pd.DataFrame) else np.concatenate
    return whole(list(parts))


def test_a_window_takes_batches_out_by_itself_so_nobody_else_may():
    metric = StreamingMetric(window=2)
    metric.update([1], [1], sensitive_features=["a"])
    with pytest.raises(ConfigError, match="window=None"):
        metric.revert([1], [1], sensitive_features=["a"])
    assert metric.counts == {"a": Counts(1, 1, 1, 1, 0, 0)}


def test_a_group_absent_from_a_batch_keeps_its_place_and_is_nan_not_zero():
    metric = StreamingMetric("selection_rate", window=1)
    metric.update([1, 0, 1], [1, 0, 1], sensitive_features=["a", "b", "c"])
    metric.update([1, 0], [1, 0], sensitive_features=["c", "a"])
    assert metric.by_group.index.tolist() == ["a", "b", "c"]
    assert metric.by_group.isna().tolist() == [False, True, False]
    assert metric.counts["b"] == Counts()
    assert metric.undefined == ["selection_rate of 'b': no row"]
    assert metric.difference() == 1.0  # Fairlearn's: of those who are there
    ours = metric.difference_interval()
    assert (ours.value, ours.high) == (None, 1.0)
    assert ours.undefined == "selection_rate: no row in 'b'"


def test_combinations_never_seen_have_a_place_as_in_fairlearn_but_make_no_gap_unknown():
    sensitive = pd.DataFrame({"sex": ["f", "f", "m"], "race": ["x", "y", "x"]})
    metric = fed("accuracy", [([1, 0, 1], [1, 0, 0], sensitive)])
    assert math.isnan(metric.by_group["m", "y"])
    assert metric.difference_interval().value == 1.0
    assert metric.undefined == ["accuracy of ('m', 'y'): no row"]


def test_what_fairlearn_calls_zero_for_want_of_rows_is_named():
    metric = StreamingMetric(["true_positive_rate", "precision", "balanced_accuracy"])
    metric.update([1, 1, 0, 0], [1, 0, 0, 0], sensitive_features=["a", "a", "b", "b"])
    assert metric.by_group.loc["b"].tolist() == [0.0, 0.0, 1.0]
    assert metric.undefined == [
        "true_positive_rate of 'b': no row with y = 1",
        "precision of 'b': no row decided positive",
        "balanced_accuracy of 'a': no row with y = 0",
        "balanced_accuracy of 'b': no row with y = 1",
    ]
    gap = metric.difference_interval("true_positive_rate")
    assert gap.value is None
    assert gap.undefined == "true_positive_rate: no row with y = 1 in 'b'"
    assert metric.figures()["eo_ratio_tpr"] is None


def test_before_the_first_row_everything_is_undefined_and_nothing_fails():
    metric = StreamingMetric("accuracy")
    assert len(metric.by_group) == 0
    for answer in (metric.overall, metric.difference(), metric.ratio(), metric.group_min()):
        assert math.isnan(answer)
    gap = metric.ratio_interval()
    assert (gap.value, gap.low, gap.high) == (None, 0.0, 1.0)
    assert gap.undefined == "accuracy: one group alone cannot be compared"
    assert metric.figures()["accuracy"] is None
    metric.update([], [], sensitive_features=[])
    assert metric.counts == {}


def test_figures_are_those_of_a_round_column_by_column():
    y, prediction, sensitive = batch = rows(seed=2, size=200, levels=(2, 3))
    found = fed("count", [batch]).figures()
    for column in sensitive:
        alone = fed("count", [(y, prediction, sensitive[column])])
        parity = found["attributes"][column]
        assert parity["dp_ratio"] == pytest.approx(alone.demographic_parity_ratio())
        assert parity["eo_ratio"] == pytest.approx(alone.equalized_odds_ratio())
    assert found["accuracy"] == pytest.approx(accuracy_score(y, prediction))
    assert found["dp_ratio"] == min(each["dp_ratio"] for each in found["attributes"].values())


@pytest.mark.parametrize("pos_label", ["yes", True, 2, 1.0])
def test_labels_may_be_any_two_values(pos_label):
    other = {"yes": "no", True: False, 2: -2}.get(pos_label, -1)
    y, prediction, sensitive = rows(seed=3)
    words = np.array([other, pos_label])
    ours = fed(METRICS, [(words[y], words[prediction], sensitive)], pos_label=pos_label)
    assert ours.counts == fed(METRICS, [(y, prediction, sensitive)]).counts


@pytest.mark.parametrize(
    "form",
    [
        lambda frame: frame,
        lambda frame: {name: frame[name].tolist() for name in frame},
        lambda frame: frame[frame.columns[::-1]],
        lambda frame: __import__("pyarrow").Table.from_pandas(frame),
    ],
    ids=["dataframe", "dictionary", "columns in another order", "arrow"],
)
def test_named_columns_come_in_any_form(form):
    y, prediction, sensitive = batch = rows(seed=4, levels=(2, 3))
    metric = fed("count", [batch])
    metric.revert(y, prediction, sensitive_features=form(sensitive))
    assert set(metric.counts.values()) == {Counts()}


@pytest.mark.parametrize(
    "form", [list, np.array, pd.Series, lambda column: np.array(column)[:, None]]
)
@pytest.mark.parametrize("column", [["f", "m", "f"], [3, 10, 3], [True, False, True], [0.5, 2, 2]])
def test_a_column_without_a_name_is_called_what_fairlearn_calls_it(form, column):
    y, prediction = np.array([1, 0, 1]), np.array([1, 1, 0])
    ours = StreamingMetric(METRICS)
    ours.update(y, prediction, sensitive_features=form(column))
    assert_same(ours, metric_frame(METRICS, (y, prediction, form(column))))


def test_groups_that_cannot_be_sorted_are_still_told_apart():
    metric = StreamingMetric("count")
    metric.update([1, 1, 1], [1, 1, 1], sensitive_features=["a", 1, 2])
    assert {group: found.rows for group, found in metric.counts.items()} == {1: 1, "a": 1, 2: 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y_true": [1, 0]}, "got 2 labels, 3 predictions"),
        ({"y_pred": [1, 0]}, "got 3 labels, 2 predictions"),
        ({"sensitive_features": {"sex": ["f", "m"]}}, "sensitive features for 2 rows"),
        ({"sensitive_features": {"age": [1, 2, 3]}}, "expected the sensitive columns sex"),
        ({"sensitive_features": {"sex": ["f", None, "m"]}}, "every row of sex, got None"),
        ({"sensitive_features": {"sex": [1.0, math.nan, 2.0]}}, "every row of sex, got nan"),
        ({"sensitive_features": pd.DataFrame({"sex": ["f", pd.NA, "m"]})}, "every row of sex"),
        ({"sensitive_features": np.zeros((3, 1, 1))}, r"got shape \(3, 1, 1\)"),
        ({"y_true": [1, 2, 1], "y_pred": [1, 2, 2]}, "one other label, got 0, 2 besides it"),
        ({"y_true": [1, 0, 2]}, "pos_label=1 and one other label, got 0, 2 besides it"),
        ({"y_pred": [1, 0, math.nan]}, "labels and predictions, got nan"),
    ],
)
def test_a_batch_with_a_fault_is_refused_in_words_and_leaves_no_trace(change, words):
    good = {"y_true": [1, 0, 1], "y_pred": [1, 1, 0], "sensitive_features": {"sex": list("ffm")}}
    metric = StreamingMetric(window=3)
    metric.update(**good)
    before = metric.counts
    with pytest.raises(DataError, match=words):
        metric.update(**{**good, **change})
    assert metric.counts == before
    metric.update(**good)
    assert metric.counts["f"].rows == 2 * before["f"].rows


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metrics": "acuracy"}, "did you mean 'accuracy'"),
        ({"metrics": ["count", "auc"]}, "unknown metric 'auc'"),
        ({"metrics": []}, "got none"),
        ({"window": 0}, "window of 1 batch or more, got 0"),
        ({"window": 2.5}, "window of 1 batch or more, got 2.5"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        StreamingMetric(**settings)


@pytest.mark.parametrize("metric", ["count", "balanced_accuracy", None])
def test_intervals_are_for_rates(metric):
    asked = StreamingMetric(["accuracy", "count"])
    with pytest.raises(ConfigError, match="expected a rate for an interval"):
        asked.difference_interval(metric)
    with pytest.raises(ConfigError, match="between_groups"):
        asked.difference(method="pairwise")
    with pytest.raises(ConfigError, match="level between 0 and 1"):
        fed("accuracy", [rows(seed=0)]).ratio_interval(level=95)


def test_without_pandas_one_metric_can_be_asked_and_all_that_is_ours(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    metric = StreamingMetric("accuracy")
    metric.update([1, 0], [1, 1], sensitive_features=["a", "b"])
    assert (metric.overall, metric.difference(), metric.group_min()) == (0.5, 1.0, 0.0)
    assert metric.difference_interval().value == 1.0
    assert metric.figures()["accuracy"] == 0.5
    with pytest.raises(ConfigError, match=r"pip install 'fairsaoml\[fairlearn\]'"):
        _ = metric.by_group
    with pytest.raises(ConfigError, match="expected pandas to be installed"):
        _ = StreamingMetric(["accuracy", "count"]).overall


def test_few_rows_are_marked_and_keep_their_value_and_interval():
    metric = StreamingMetric("true_positive_rate")
    few = MINIMUM_COUNT - 1
    y = [1] * few + [1] * 40 + [0] * 40
    prediction = [1, 0] + [1] * (few - 2) + [1, 0] * 20 + [1] * 40
    metric.update(y, prediction, sensitive_features=["a"] * few + ["b"] * 80)
    difference, ratio = metric.difference_interval(), metric.ratio_interval()
    assert difference.insufficient == "true_positive_rate: fewer than 10 rows with y = 1 in 'a'"
    assert ratio.insufficient == "true_positive_rate: fewer than 10 positives in 'a'"
    assert difference.value == pytest.approx(metric.difference())
    assert ratio.value == pytest.approx(metric.ratio())
    assert metric.difference_interval(minimum_count=few).insufficient == ""


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=5))
def test_an_interval_is_always_defined_and_holds_the_value(groups):
    metric = StreamingMetric("selection_rate", window=1)
    # The first batch gives every group its place, the second may have no rows of some.
    everyone = list(range(len(groups)))
    metric.update([0] * len(groups), [0] * len(groups), sensitive_features=everyone)
    sizes = [hits + misses for hits, misses in groups]
    metric.update(
        np.zeros(sum(sizes), int),
        np.repeat([1, 0] * len(groups), np.ravel(groups)),
        sensitive_features=np.repeat(everyone, sizes),
    )
    for gap in (metric.difference_interval(), metric.ratio_interval()):
        assert 0 <= gap.low <= gap.high <= 1
        assert (gap.value is None) == bool(gap.undefined)
        if gap.value is not None:
            assert gap.low - 1e-9 <= gap.value <= gap.high + 1e-9


# Newcombe (1998), Statistics in Medicine 17, table II, method 10.
PUBLISHED = [
    ((56, 70), (48, 80), 0.0524, 0.3339),
    ((9, 10), (3, 10), 0.1705, 0.8090),
    ((6, 7), (2, 7), 0.0582, 0.8062),
    ((5, 56), (0, 29), -0.0381, 0.1926),
    ((0, 10), (0, 20), -0.1611, 0.2775),
    ((0, 10), (0, 10), -0.2775, 0.2775),
    ((10, 10), (0, 20), 0.6791, 1.0000),
    ((10, 10), (0, 10), 0.6075, 1.0000),
]


@pytest.mark.parametrize(("one", "other", "low", "high"), PUBLISHED)
def test_differences_have_the_published_intervals(one, other, low, high):
    found = confidence.difference_interval(Share(*one), Share(*other))
    assert found == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("one", [(0, 9), (1, 9), (5, 9), (9, 9), (30, 200)])
@pytest.mark.parametrize("other", [(1, 7), (4, 7), (7, 7), (60, 90)])
def test_a_ratios_interval_is_where_the_likelihood_test_of_scores_accepts(one, other):
    """Koopman's statistic from its definition: Pearson's chi-squared at the best fit."""

    def chi_squared(ratio):
        hits, wholes = np.array([one[0], other[0]]), np.array([one[1], other[1]])
        second = np.linspace(0, min(1, 1 / ratio), 400_001)[1:-1]
        rates = np.stack([ratio * second, second])
        with np.errstate(divide="ignore", invalid="ignore"):
            likelihood = np.sum(
                hits[:, None] * np.log(rates) + (wholes - hits)[:, None] * np.log1p(-rates), axis=0
            )
        fit = rates[:, np.argmax(likelihood)]
        return np.sum((hits - wholes * fit) ** 2 / (wholes * fit * (1 - fit)))

    low, high = confidence.ratio_interval(Share(*one), Share(*other))
    limit = confidence._deviations(0.95) ** 2
    for end, inside in ((low, 1.02), (high, 1 / 1.02)):
        if 0 < end < math.inf:
            assert chi_squared(end * inside) < limit < chi_squared(end / inside)


SMALL = [(5, 5), (5, 20), (10, 10), (10, 30)]


@pytest.mark.parametrize("sizes", SMALL)
@pytest.mark.parametrize(
    ("interval", "truth"),
    [
        (confidence.difference_interval, lambda p, q: p - q),
        (confidence.ratio_interval, lambda p, q: p / q),
    ],
    ids=["difference", "ratio"],
)
def test_intervals_of_small_groups_hold_in_19_of_20_cases_by_enumeration(sizes, interval, truth):
    """Exact: every outcome of both groups, weighed by how likely it is under each true pair."""
    one, other = sizes
    outcomes = [[interval(Share(i, one), Share(j, other)) for j in range(other + 1)]
                for i in range(one + 1)]  # fmt: skip
    low, high = np.moveaxis(np.array(outcomes), -1, 0)
    grid = np.linspace(0.03, 0.97, 24)
    held = []
    for p, q in itertools.product(grid, grid):
        likely = np.outer(binomial(one, p), binomial(other, q))
        value = truth(p, q)
        held.append(likely[(low <= value + 1e-9) & (value - 1e-9 <= high)].sum())
    assert np.mean(held) > 0.95
    assert np.min(held) > 0.85  # counts come in steps: in the corners no interval can be exact


def binomial(size, rate):
    hits = np.arange(size + 1)
    ways = np.array([math.comb(size, hit) for hit in hits])
    return ways * rate**hits * (1 - rate) ** (size - hits)


@pytest.mark.parametrize(
    "rates", [(0.2, 0.2, 0.2), (0.1, 0.5, 0.52), (0.9, 0.88, 0.3, 0.31)], ids=str
)
def test_intervals_of_the_widest_gap_hold_though_the_groups_are_chosen_by_the_data(rates):
    random = np.random.default_rng(0)
    sizes = np.array([15, 40, 90, 25])[: len(rates)]
    trials, held, naive = 400, np.zeros(2), 0
    for hits in random.binomial(sizes, rates, size=(trials, len(rates))).tolist():
        groups = [Share(*each) for each in zip(hits, sizes.tolist(), strict=True)]
        low, high = confidence.largest_difference_interval(groups)
        held[0] += low <= max(rates) - min(rates) <= high
        low, high = confidence.smallest_ratio_interval(groups)
        held[1] += low <= min(rates) / max(rates) <= high
        most, least = (pick(groups, key=lambda group: group.rate) for pick in (max, min))
        naive += confidence.difference_interval(most, least).low <= max(rates) - min(rates)
    assert (held / trials > 0.95).all()
    if len(set(rates)) == 1:  # why the correction is needed: nothing is there to be found
        assert naive / trials < 0.95


def test_a_higher_level_and_fewer_rows_make_wider_intervals():
    for interval in (confidence.largest_difference_interval, confidence.smallest_ratio_interval):
        many, few = [Share(90, 200), Share(30, 100)], [Share(9, 20), Share(3, 10)]
        surer, usual, fewer = interval(many, 0.99), interval(many), interval(few)
        assert surer.low < usual.low < usual.high < surer.high
        assert fewer.low < usual.low < usual.high < fewer.high


def test_the_order_of_the_groups_makes_no_difference_to_their_gap():
    groups = [Share(9, 10), Share(3, 10), Share(5, 6)]
    for interval in (confidence.largest_difference_interval, confidence.smallest_ratio_interval):
        expected = pytest.approx(interval(groups))
        assert all(interval(order) == expected for order in itertools.permutations(groups))


def test_a_group_without_rows_opens_one_end_only():
    known, unknown = [Share(90, 100), Share(20, 100)], Share(0, 0)
    difference = confidence.largest_difference_interval(known)
    ratio = confidence.smallest_ratio_interval(known)
    assert confidence.largest_difference_interval([*known, unknown]) == (difference.low, 1.0)
    assert confidence.smallest_ratio_interval([*known, unknown]) == (0.0, ratio.high)
    assert confidence.wilson(unknown) == (0.0, 1.0)


def test_the_example_runs_and_finds_the_drift(capsys):
    example = Path(__file__).parent.parent / "examples" / "streaming_metric.py"
    runpy.run_path(str(example), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert all("not sure" in line for line in said[:10])
    assert said[19].endswith("unfair")


@pytest.mark.parametrize("groups", [[], {"sex": [], "age": []}])
def test_of_an_empty_first_batch_nothing_is_known_by_group(groups):
    metric = StreamingMetric("selection_rate")
    metric.update([], [], sensitive_features=groups)
    assert len(metric.by_group) == 0
    assert np.isnan(metric.ratio())
