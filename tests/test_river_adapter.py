"""River's estimators: rows one by one are the same rounds, wherever the groups come from."""

import warnings

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from river import compose, evaluate, metrics, preprocessing
from tools.estimators import EXPECTED_FAILURES, QUICK, RIVER_TASK, check_river

from fairsaoml.estimators import sklearn
from fairsaoml.estimators.river import FairGLCClassifier
from fairsaoml.serve import saving

TASK = 60
RANDOM = np.random.default_rng(0)
SEX = np.where(RANDOM.random(4 * TASK) < 0.5, "f", "m")
X = np.stack([RANDOM.normal(size=4 * TASK), (SEX == "m") + RANDOM.normal(size=4 * TASK)], axis=1)
Y = X[:, 0] + 0.5 * X[:, 1] > 0.25
ROWS = [{"merit": float(merit), "proxy": float(proxy)} for merit, proxy in X]
FRAME = pd.DataFrame(X, columns=["merit", "proxy"], index=range(7, 7 + len(X)))


def quick(**changes):
    """The cheapest learner that knows fairness, where the learner is no matter."""
    return FairGLCClassifier(**{**QUICK, "task_size": TASK, "seed": 0, **changes})


def taught(model=None, rows=ROWS, labels=Y, groups=SEX):
    model = quick() if model is None else model
    for x, y, sex in zip(rows, labels, groups, strict=True):
        model.learn_one(x, y, sensitive_features=sex)
    return model


def memory(model):
    """All that a model has learned, as bytes."""
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model._online._saved().arrays)]


@pytest.mark.filterwarnings("ignore:FairGLCClassifier learns without fairness")
@pytest.mark.filterwarnings("ignore:features that the first task did not show")
def test_rivers_own_checks_pass():
    results = list(check_river(FairGLCClassifier(**QUICK, task_size=RIVER_TASK)))
    assert len(results) > 40
    assert {one.name for one in results if one.status != "passed"} == set(EXPECTED_FAILURES), (
        results
    )


def test_rows_one_by_one_are_the_rounds_that_scikit_learns_estimator_learns():
    model = taught()
    other = sklearn.FairGLCClassifier(**QUICK, random_state=0)
    for first in range(0, len(Y), TASK):
        part = slice(first, first + TASK)
        other.partial_fit(X[part], Y[part], sensitive_features=SEX[part])
    assert memory(model) == memory(other)
    shares = [model.predict_proba_one(row)[True] for row in ROWS[:9]]
    np.testing.assert_allclose(shares, other.predict_proba(X[:9])[:, 1], rtol=1e-6)
    assert [model.predict_one(row) for row in ROWS[:9]] == other.predict(X[:9]).tolist()


def test_it_learns_and_deals_the_price_of_unfairness():
    model = taught()
    assert (
        np.mean([model.predict_one(row) == label for row, label in zip(ROWS, Y, strict=True)]) > 0.8
    )
    assert (model._online.info.dual > 0).any()
    assert model._online.constraints == ("dp[sensitive_feature_0=m]",)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
@pytest.mark.parametrize("size", [1, 45, 240])
def test_rows_in_dataframes_are_the_same_rows(make, size):
    model = quick()
    for first in range(0, len(Y), size):
        part = slice(first, first + size)
        model.learn_many(
            make({"merit": X[part, 0], "proxy": X[part, 1]}),
            make({"y": Y[part]})["y"],
            sensitive_features=SEX[part],
        )
    assert memory(model) == memory(taught())


def test_columns_that_are_called_by_numbers_are_columns():
    model = quick(sensitive=(7,))
    model.learn_many(pd.DataFrame({0: X[:, 0], 1: X[:, 1], 7: SEX}), Y)
    assert list(model._slots) == [0, 1]
    assert memory(model) == memory(taught())


def test_a_moment_is_no_feature():
    with pytest.raises(ValueError, match=r"Timestamp to float: .* the feature 'when'"):
        quick().learn_many(FRAME.assign(when=pd.Timestamp("2020-01-01")), Y)


def test_predictions_are_of_the_kind_of_the_dataframe():
    model = taught()
    decided, shares = model.predict_many(FRAME), model.predict_proba_many(FRAME)
    assert decided.index.equals(FRAME.index)
    assert shares.columns.tolist() == [False, True]
    assert decided.tolist() == [model.predict_one(row) for row in ROWS]
    arrow = model.predict_proba_many(pa.table({"merit": X[:, 0], "proxy": X[:, 1]}))
    np.testing.assert_array_equal(arrow["True"].to_numpy(), shares[True].to_numpy())


# Where the groups come from


def items_with_groups_beside():
    for x, y, sex in zip(ROWS, Y, SEX, strict=True):
        yield x, y, {"sensitive_features": {"sex": sex}}


def items_with_groups_inside():
    for x, y, sex in zip(ROWS, Y, SEX, strict=True):
        yield {**x, "sex": sex}, y


def test_groups_beside_a_row_and_in_a_row_are_the_same_groups():
    beside, inside = quick(), quick(sensitive="sex")
    several = quick(sensitive=("sex",))
    for x, y, more in items_with_groups_beside():
        beside.learn_one(x, y, **more)
    for x, y in items_with_groups_inside():
        inside.learn_one(x, y)
    several.learn_many(FRAME.assign(sex=SEX), pd.Series(Y))
    assert memory(beside) == memory(inside) == memory(several)
    assert list(inside._slots) == ["merit", "proxy"]
    assert inside.predict_one({**ROWS[0], "sex": "x"}) == beside.predict_one(ROWS[0])
    with pytest.raises(ValueError, match="got both"):
        inside.learn_one({**ROWS[0], "sex": "f"}, True, sensitive_features="f")


def test_groups_beside_a_row_go_through_a_pipeline_and_progressive_validation():
    model = preprocessing.StandardScaler() | quick()
    metric = evaluate.progressive_val_score(items_with_groups_beside(), model, metrics.Accuracy())
    learner = model["FairGLCClassifier"]
    assert learner._online.round == 4
    assert learner._online.schema.attributes[0] == ("sex", ("f", "m"))
    assert metric.get() > 0.6


def test_groups_in_a_row_go_through_a_pipeline_around_its_other_steps():
    scaled = compose.Discard("sex") | preprocessing.StandardScaler()
    model = (scaled + compose.Select("sex")) | quick(sensitive="sex")
    metric = evaluate.progressive_val_score(items_with_groups_inside(), model, metrics.ROCAUC())
    assert model["FairGLCClassifier"]._online.schema.attributes[0] == ("sex", ("f", "m"))
    assert metric.get() > 0.6


def test_to_learn_without_fairness_is_said():
    model = quick()
    with pytest.warns(
        UserWarning, match="learns without fairness: name the `sensitive` keys"
    ) as told:
        model.learn_many(FRAME, Y)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(constraints="none").learn_many(FRAME, Y)


@pytest.mark.filterwarnings("ignore:sensitive feature 'sensitive_feature_0'. 'missing'")
def test_rows_without_a_group_are_learned_from_all_the_same():
    model = taught()
    for row, label in zip(ROWS[:TASK], Y[:TASK], strict=True):
        model.learn_one(row, label)
    assert model._online.round == 5


# Features that come and go


def test_the_order_of_features_is_no_matter():
    turned = [dict(reversed(row.items())) for row in ROWS]
    assert memory(taught(rows=turned)) == memory(taught())


@pytest.mark.parametrize("nothing", [None, float("nan"), float("inf")])
def test_a_feature_without_a_value_is_at_its_mean(nothing):
    model = taught()
    mean = {"merit": X[:TASK, 0].mean(), "proxy": 1.0}
    expected = model.predict_proba_one(mean)[True]
    assert model.predict_proba_one({"proxy": 1.0})[True] == pytest.approx(expected, rel=1e-6)
    shown = model.predict_proba_one({"merit": nothing, "proxy": 1.0})[True]
    assert shown == pytest.approx(expected, rel=1e-6)


def later(model):
    """Two tasks, of which the second has a feature more."""
    for place, (row, label, sex) in enumerate(zip(ROWS, Y, SEX, strict=True)):
        extra = {"late": 3.0 * label} if place >= TASK else {}
        model.learn_one({**row, **extra}, label, sensitive_features=sex)
    return model


def test_a_feature_that_turns_up_later_is_left_out_and_said():
    with pytest.warns(UserWarning, match="did not show are left out: late"):
        model = later(quick())
    assert memory(model) == memory(taught())


def test_a_feature_that_turns_up_later_takes_a_place_that_was_kept():
    model = later(quick(spare_features=1))
    assert list(model._slots) == ["merit", "proxy", "late"]
    low, high = (model.predict_proba_one({**ROWS[0], "late": value})[True] for value in (0, 3))
    assert high > low + 0.05


def test_a_text_is_no_feature():
    with pytest.raises(ValueError, match=r"could not convert str to float: 'Paris', .* 'city'"):
        quick().learn_one({"city": "Paris"}, True)
    with pytest.raises(ValueError, match="OneHotEncoder"):
        quick().learn_many(pd.DataFrame({"city": ["Paris"]}), [True])


# Labels


def test_before_anything_is_learned_all_is_even():
    model = quick()
    assert model.predict_proba_one(ROWS[0]) == {False: 0.5, True: 0.5}
    assert model.predict_one(ROWS[0]) is False
    model = quick(classes=("no", "yes"))
    assert model.predict_proba_one(ROWS[0]) == {"no": 0.5, "yes": 0.5}


def test_labels_are_whatever_they_are():
    words = np.where(Y, "yes", "no").tolist()
    model = taught(labels=words)
    assert memory(model) == memory(taught())
    assert set(model.predict_proba_one(ROWS[0])) == {"no", "yes"}
    assert model.predict_one({"merit": 3.0, "proxy": 1.0}) == "yes"
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        model.learn_one(ROWS[0], "maybe", sensitive_features="f")


def test_the_positive_label_is_the_last_that_is_named():
    words = np.where(Y, "granted", "refused").tolist()
    model = taught(quick(classes=("refused", "granted")), labels=words)
    assert memory(model) == memory(taught())


def test_one_word_alone_is_no_label():
    with pytest.raises(ValueError, match="one class only: 'yes'; name both in `classes`"):
        taught(labels=["yes"] * len(Y))
    taught(labels=[True] * len(Y))  # River's booleans need not be seen to be known


# Away and back


@pytest.mark.parametrize("rows", [0, 20, TASK, 2 * TASK + 7])
def test_saved_amid_a_task_it_goes_on_with_the_same_bytes(tmp_path, rows):
    stayed = taught(quick(known_groups=["x"]), ROWS[:rows], Y[:rows], SEX[:rows])
    stayed.save(tmp_path / "model")
    away = saving.load(tmp_path / "model")
    assert type(away) is FairGLCClassifier
    assert repr(away) == repr(stayed)
    for model in (stayed, away):
        taught(model, ROWS[rows:], Y[rows:], SEX[rows:])
    assert away._online.round == 4
    assert memory(away) == memory(stayed)
    assert away.predict_proba_one(ROWS[0]) == stayed.predict_proba_one(ROWS[0])
