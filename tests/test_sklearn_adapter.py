"""The estimators keep scikit-learn's contract, and the fairness they promise survives the way."""

import inspect
import warnings

import jax
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tools.estimators import EXPECTED_FAILURES, QUICK, SHORT

from fairsaoml.core.errors import ConfigError
from fairsaoml.estimators import river, sklearn
from fairsaoml.estimators.sklearn import (
    FairGLCClassifier,
    FairSAOMLClassifier,
    OnlineClassifier,
)
from fairsaoml.learners.registry import BUILTIN, DEFAULT
from fairsaoml.serve import saving

SMALL = {**QUICK, **SHORT}  # one program for all rounds, small enough to be compiled often


@pytest.mark.filterwarnings("ignore:FairGLCClassifier learns without fairness")
@parametrize_with_checks(
    [FairGLCClassifier(**QUICK)], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("module", [sklearn, river])
def test_every_learner_has_its_class(module):
    classes = [getattr(module, name) for name in module.__all__]
    named = {cls.__name__: cls for cls in classes if hasattr(cls, "_learner")}
    expected = {entry.estimator: learner for learner, entry in BUILTIN.items()}
    expected["AdaptiveFairClassifier"] = DEFAULT
    assert {name: cls._learner for name, cls in named.items()} == expected
    for cls in named.values():
        config = BUILTIN[cls._learner].config()
        assert cls()._config() == config
        assert cls(decision=0.3)._config() == type(config)(decision=0.3)
        assert [*inspect.signature(cls).parameters] == [*cls._parameter_fields]
        for name in cls._parameter_fields:
            assert f"    {name} : default " in cls.__doc__


def test_a_learner_of_ones_own_gets_its_class_in_a_line():
    class Mine(OnlineClassifier, learner="aod"):
        pass

    assert Mine(tolerance=0.5).get_params()["tolerance"] == 0.5
    assert Mine.__doc__.startswith("Experts on a dense geometric cover")


# Rows: merit decides, and a proxy of the group; the groups' base rates differ


def rows(count=240, seed=0):
    random = np.random.default_rng(seed)
    sex = np.where(random.random(count) < 0.5, "f", "m")
    merit = random.normal(size=count)
    proxy = (sex == "m") + 0.3 * random.normal(size=count)
    y = merit + 1.5 * (sex == "m") + 0.3 * random.normal(size=count) > 0.75
    x = np.stack([merit, proxy, random.normal(size=count)], axis=1)
    return x, np.where(y, "yes", "no"), sex


X, Y, SEX = rows()
HALF = slice(120)  # as large as the tasks that `fit` makes of all rows: it runs the same program


def quick(**changes):
    """The cheapest learner that knows fairness, where the learner is no matter."""
    return FairGLCClassifier(**{**QUICK, "random_state": 0, **changes})


def memory(model):
    """All that a model has learned, as bytes."""
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model._online._saved().arrays)]


def fitted(**changes):
    return quick(**changes).fit(X, Y, sensitive_features=SEX)


def test_fit_is_partial_fit_task_by_task():
    settings = {**SMALL, "model": "mlp", "hidden": (4,), "horizon": 4, "random_state": 1}
    whole = FairSAOMLClassifier(task_size=60, **settings).fit(X, Y, sensitive_features=SEX)
    parts = FairSAOMLClassifier(**settings)
    for first in range(0, 240, 60):
        part = slice(first, first + 60)
        parts.partial_fit(X[part], Y[part], sensitive_features=SEX[part])
    assert whole.n_rounds_ == parts.n_rounds_ == 4
    assert memory(whole) == memory(parts)
    assert (whole.predict_proba(X) == parts.predict_proba(X)).all()


def test_the_gap_between_groups_is_smaller_than_without_the_constraint():
    def gap(constraints):
        model = quick(constraints=constraints, task_size=240)
        for _ in range(12):
            model.partial_fit(X, Y, sensitive_features=SEX)
        chosen = model.predict(X) == "yes"
        return abs(chosen[SEX == "m"].mean() - chosen[SEX == "f"].mean())

    assert gap("dp") < 0.5 * gap("none")


def test_what_was_learned_can_be_looked_at():
    model = FairSAOMLClassifier(**QUICK, constraints="eo", horizon=4, random_state=0)
    model.fit(X, Y, sensitive_features=SEX)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    assert model.n_rounds_ == 2
    assert model.groups_ == {"sensitive_feature_0": ("f", "m")}
    assert model.constraints_ == ("tpr[sensitive_feature_0=m]", "fpr[sensitive_feature_0=m]")
    assert model.dual_.shape == (2,)
    assert (model.dual_ >= 0).all()
    assert model.weights_.shape == (2,)
    assert model.weights_.sum() == pytest.approx(1)
    assert model.score(X, Y) == accuracy_score(Y, model.predict(X))


def test_before_fit_nothing_is_there_to_be_looked_at():
    for name in ("n_rounds_", "groups_", "constraints_", "dual_", "weights_", "notes_", "classes_"):
        assert not hasattr(quick(), name)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        quick().predict(X)
    with pytest.raises(NotFittedError):
        quick().save("nowhere")


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [False, True], [7.0, 9.0], ["a", "b"]])
def test_labels_are_whatever_they_are(labels):
    y = np.array(labels)[(Y == "yes").astype(int)]
    model = quick().fit(X, y, sensitive_features=SEX)
    assert model.classes_.tolist() == labels
    assert model.classes_.dtype == y.dtype
    plain = np.array(labels)[(fitted().predict(X) == "yes").astype(int)]
    assert (model.predict(X) == plain).all()


@pytest.mark.parametrize(
    "groups",
    [
        np.where(SEX == "f", 1, 2),
        (SEX == "m").tolist(),
        pd.Series(SEX, index=range(100, 340)),
        pd.Series(SEX, dtype="category"),
        pa.array(SEX),
        SEX[:, None],
        np.array([1 if one == "f" else "m" for one in SEX], dtype=object),
    ],
    ids=["ints", "bools", "series", "category", "arrow", "column", "mixed"],
)
def test_groups_are_whatever_they_are(groups):
    model = quick().fit(X, Y, sensitive_features=groups)
    np.testing.assert_array_equal(model.predict_proba(X), fitted().predict_proba(X))


FRAME = {"merit": X[:, 0], "proxy": X[:, 1], "noise": X[:, 2]}
GROUPS = {"sex": SEX, "age": np.array(["old", "young", "mid"])[np.arange(240) % 3]}


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table], ids=["pandas", "pyarrow"])
def test_a_dataframe_of_any_kind_is_the_same_rows(make):
    plain = quick().fit(X, Y, sensitive_features=np.stack([*GROUPS.values()], axis=1))
    model = quick().fit(make(FRAME), make({"y": Y})["y"], sensitive_features=make(GROUPS))
    assert model.feature_names_in_.tolist() == [*FRAME]
    assert model.groups_ == {"sex": ("f", "m"), "age": ("mid", "old", "young")}
    assert model.dual_.shape == (4,)  # one for two groups, one each for three
    assert (model.predict_proba(make(FRAME)) == plain.predict_proba(X)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(make({name: FRAME[name] for name in ("proxy", "merit", "noise")}))


def test_polars_too():
    model = quick().fit(polars.DataFrame(FRAME), Y, sensitive_features=polars.DataFrame(GROUPS))
    assert model.feature_names_in_.tolist() == [*FRAME]


def test_sensitive_columns_are_known_by_name_whatever_their_order():
    table = pd.DataFrame(GROUPS)
    one, other = quick(), quick()
    for model, second in ((one, table), (other, table[["age", "sex"]])):
        model.partial_fit(X[HALF], Y[HALF], sensitive_features=table[HALF])
        model.partial_fit(X[HALF], Y[HALF], sensitive_features=second[HALF])
    assert (one.predict_proba(X) == other.predict_proba(X)).all()
    with pytest.raises(ValueError, match="expected the sensitive features sex, age"):
        one.partial_fit(X, Y, sensitive_features=table[["sex"]])


# Groups that come, and groups that do not


ANCIENT = {"hidden": (8,), "known_groups": {"age": ["ancient"]}, "tolerance": 0.1 + 0.2}


def test_a_group_that_comes_later_is_unseen_and_in_no_constraint():
    model, other = fitted(), fitted()
    sex = SEX[HALF]
    model.partial_fit(X[HALF], Y[HALF], sensitive_features=np.where(sex == "f", "f", None))
    with pytest.warns(UserWarning, match=r"'x' was not known .* counted apart") as told:
        other.partial_fit(X[HALF], Y[HALF], sensitive_features=np.where(sex == "f", "f", "x"))
    assert told[0].filename == __file__
    assert other.groups_ == {"sensitive_feature_0": ("f", "m")}
    assert (model.predict_proba(X) == other.predict_proba(X)).all()


def test_groups_that_are_known_to_come_have_their_place():
    model = quick(known_groups=["x"])
    model.partial_fit(X[:120], Y[:120], sensitive_features=SEX[:120])
    model.partial_fit(X[120:], Y[120:], sensitive_features=np.where(SEX[120:] == "f", "f", "x"))
    assert model.groups_ == {"sensitive_feature_0": ("f", "m", "x")}
    by_column = quick(**ANCIENT).fit(X, Y, sensitive_features=GROUPS)
    assert by_column.groups_["age"] == ("ancient", "mid", "old", "young")
    with pytest.raises(ValueError, match="expected known_groups by column"):
        quick(known_groups=["x"]).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="a sensitive column, got 'size'; known: age, sex"):
        quick(known_groups={"size": []}).fit(X, Y, sensitive_features=GROUPS)


def test_one_group_alone_cannot_be_treated_fairly():
    with pytest.raises(ValueError, match=r"two or more groups .* got one \('f'\)"):
        quick().fit(X, Y, sensitive_features=["f"] * 240)


def test_to_learn_without_fairness_is_said():
    with pytest.warns(
        UserWarning, match="learns without fairness: pass sensitive_features"
    ) as told:
        model = quick().fit(X, Y)
    assert told[0].filename == __file__  # the line to mend, not one of this package
    assert model.dual_.shape == (0,)
    assert model.groups_ == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(constraints="none").fit(X, Y)


def test_a_label_so_rare_that_all_decisions_may_be_alike_is_said_unless_one_half_is_meant():
    rare = np.arange(240) % 30 == 0
    with pytest.warns(UserWarning, match=r"3\.3 % of the first rows are True.*decision='balanced'"):
        quick().fit(X, rare, sensitive_features=SEX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for meant in ("balanced", 0.5):
            quick(decision=meant).fit(X, rare, sensitive_features=SEX)


@pytest.mark.filterwarnings("ignore:FairGLCClassifier learns without")
def test_sensitive_features_are_given_always_or_never():
    with pytest.raises(ValueError, match="in every call, as in the first, got none"):
        fitted().partial_fit(X, Y)
    with pytest.raises(ValueError, match="expected no sensitive_features"):
        quick().fit(X, Y).partial_fit(X, Y, sensitive_features=SEX)


# scikit-learn's words for bad input


@pytest.mark.parametrize(
    ("x", "y", "error", "words"),
    [
        (np.where(X > 2, np.nan, X), Y, ValueError, "Input X contains NaN"),
        (np.where(X > 2, np.inf, X), Y, ValueError, "Input X contains infinity"),
        (sparse.csr_matrix(X), Y, TypeError, "Sparse data was passed"),
        (X[:10], Y, ValueError, "inconsistent numbers of samples"),
        (X[0], Y, ValueError, "Expected 2D array, got 1D array"),
        (X[:0], Y[:0], ValueError, "Found array with 0 sample"),
        (X, X[:, 0], ValueError, "Unknown label type: continuous"),
        (X, np.arange(240) % 3, ValueError, "Only binary classification is supported"),
        (X, ["yes"] * 240, ValueError, "Classifier can't train on one class only"),
    ],
)
def test_bad_rows_are_refused_in_scikit_learns_words(x, y, error, words):
    with pytest.raises(error, match=words):
        quick().fit(x, y, sensitive_features=SEX)


def test_bad_calls_after_the_first_are_refused_in_scikit_learns_words():
    model = fitted()
    with pytest.raises(ValueError, match="X has 2 features, but FairGLCClassifier is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"y contains previously unseen labels: \['maybe'\]"):
        model.partial_fit(X, np.where(Y == "yes", "yes", "maybe"), sensitive_features=SEX)
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(X, Y, classes=["no", "maybe"], sensitive_features=SEX)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X, Y, sensitive_features=SEX[:9])
    assert model.n_rounds_ == 2


def test_the_first_rows_may_lack_a_class_if_it_is_named():
    first = Y == "yes"
    with pytest.raises(ValueError, match="one class only"):
        quick().partial_fit(X[first], Y[first], sensitive_features=SEX[first])
    model = quick().partial_fit(
        X[first], Y[first], classes=["yes", "no"], sensitive_features=SEX[first]
    )
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.notes_ == ("the task has one class only",)


def test_settings_are_checked_when_rows_come():
    with pytest.raises(TypeError, match="'tolerence'; did you mean 'tolerance'"):
        FairGLCClassifier(tolerence=0.1)
    for wrong in ({"tolerance": -1}, {"task_size": 0}, {"task_size": 1.5}, {"model": "tree"}):
        with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be") as refused:
            fitted(**wrong)
        assert isinstance(refused.value, ValueError)  # what scikit-learn's users expect
    assert fitted(task_size=np.int64(120), tolerance=np.float32(0.5)).n_rounds_ == 2


# What changes nothing, and what does


def test_the_same_seed_gives_the_same_model():
    def shares(seed):
        return quick(model="mlp", random_state=seed).fit(X, Y, sensitive_features=SEX)

    assert memory(shares(5)) == memory(shares(5))
    assert (shares(5).predict_proba(X) != shares(6).predict_proba(X)).any()
    one, other = (shares(np.random.RandomState(3)).predict_proba(X) for _ in range(2))
    assert (one == other).all()


def test_units_do_not_matter_unless_features_come_as_they_are():
    moved = X * [1e3, 1e-3, 1.0] + [1e6, 0.0, 5.0]
    alike = quick().fit(moved, Y, sensitive_features=SEX)
    np.testing.assert_allclose(alike.predict_proba(moved), fitted().predict_proba(X), atol=1e-4)
    raw = quick(standardize=False).fit(X * 3, Y, sensitive_features=SEX)
    assert not np.allclose(raw.predict_proba(X * 3), fitted().predict_proba(X), atol=1e-2)


def test_a_decision_is_a_threshold_on_the_probability():
    model = fitted(decision=0.8)
    chosen = model.predict_proba(X)[:, 1]
    assert ((chosen > 0.8) == (model.predict(X) == "yes")).all()
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "yes")).all()
    assert (fitted().predict(X) == "yes").sum() > (model.predict(X) == "yes").sum() > 0


def test_groups_in_columns_that_are_called_by_numbers_are_columns():
    numbered = pd.DataFrame({0: SEX, 7: np.roll(SEX, 3)})
    assert [*quick().fit(X, Y, sensitive_features=numbered).groups_] == ["0", "7"]


@pytest.mark.parametrize(
    ("X", "y", "settings", "words"),
    [
        (pd.DataFrame({"pay": X[:, 0], "job": "cook"}), Y, {}, "in the columns job; encode words"),
        (X, Y, {"classes": SEX}, r"classes are \['f', 'm'\] \(groups are given as"),
        (
            X,
            np.where(Y == "yes", "2020-01", "2021-01").astype("M8[D]"),
            {},
            "labels that are words",
        ),
        (X, Y, {"sensitive_features": [{"sex": one} for one in SEX]}, "make it one value per row"),
        (X, Y, {"sensitive_features": {"a": SEX, "b": SEX[:3]}}, "as many rows in every"),
    ],
)
def test_what_a_new_user_gets_wrong_is_said_in_words(X, y, settings, words):
    with pytest.raises(ValueError, match=words):
        quick().partial_fit(X, y, **settings)


def test_settings_do_not_change_after_the_first_round(tmp_path):
    for model in (fitted(), quick().partial_fit(X, Y, sensitive_features=SEX)):
        model.save(tmp_path / "model")
        for same in (model, saving.load(tmp_path / "model")):
            same.partial_fit(X, Y, sensitive_features=SEX)
        model.set_params(tolerance=0.31, gap_score="logit")
        with pytest.raises(ConfigError, match=r"got another .*tolerance.*; fit anew, or clone"):
            model.partial_fit(X, Y, sensitive_features=SEX)
        clone(model).partial_fit(X, Y, sensitive_features=SEX)
        assert model.fit(X, Y, sensitive_features=SEX)._learned.config.tolerance == 0.31


# In pipelines, searches and cross-validation


def smallest_rate(y, decided, *, sensitive_features):
    groups = np.asarray(sensitive_features)
    return min((decided[groups == one] == "yes").mean() for one in np.unique(groups))


def test_sensitive_features_find_their_way_through_a_search_over_a_pipeline():
    with config_context(enable_metadata_routing=True):
        score = make_scorer(smallest_rate).set_score_request(sensitive_features=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), quick()),
            {"fairglcclassifier__constraints": ["none", "dp"]},
            scoring={"accuracy": "accuracy", "rate": score},
            refit="rate",
            cv=TimeSeriesSplit(2),
            error_score="raise",
        )
        search.fit(X, Y, sensitive_features=SEX)
    assert search.best_estimator_[-1].groups_ == {"sensitive_feature_0": ("f", "m")}
    none, parity = search.cv_results_["mean_test_rate"]
    assert search.best_score_ == max(none, parity)


def test_sensitive_features_find_their_way_through_cross_validation():
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            make_pipeline(StandardScaler(), quick()),
            pd.DataFrame(FRAME),
            Y,
            params={"sensitive_features": pd.DataFrame(GROUPS)},
            cv=TimeSeriesSplit(2),
            return_estimator=True,
        )
    for pipeline in found["estimator"]:
        assert set(pipeline[-1].groups_) == {"sex", "age"}


def test_an_aware_classifier_is_scored_by_the_decisions_that_know_the_groups():
    X, group = np.random.default_rng(1).normal(size=(400, 2)), np.arange(400) % 2
    y = X[:, 0] + 2 * group > 1
    model = sklearn.AdaptiveFairClassifier(aware=True, task_size=100, random_state=0)
    model.fit(X, y, sensitive_features=group)
    score = model.score(X, y, sensitive_features=group)
    assert score == np.mean(model.predict(X, sensitive_features=group) == y)
    with pytest.warns(UserWarning, match="as if nobody knew their group"):
        assert score != model.score(X, y)
    assert model.score(X, y, y, sensitive_features=group) == np.mean(
        model.predict(X, sensitive_features=group)[y]
    )
    cuts = list(TimeSeriesSplit(2).split(X))
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), clone(model))
        found = cross_validate(
            pipeline, X, y, params={"sensitive_features": group}, cv=cuts, return_estimator=True
        )
        expected = [
            fitted.score(X[test], y[test], sensitive_features=group[test])
            for fitted, (_, test) in zip(found["estimator"], cuts, strict=True)
        ]
    assert found["test_score"].tolist() == expected


def test_without_routing_the_step_is_named_as_ever():
    pipeline = make_pipeline(StandardScaler(), quick())
    pipeline.fit(X, Y, fairglcclassifier__sensitive_features=SEX)
    assert pipeline[-1].groups_ == {"sensitive_feature_0": ("f", "m")}


# Away and back


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], np.array(["no", "yes"], dtype=object)])
def test_saved_and_loaded_it_goes_on_with_the_same_bytes(tmp_path, labels):
    y = np.asarray(labels)[(Y == "yes").astype(int)]
    frame, groups = pd.DataFrame(FRAME), pd.DataFrame(GROUPS)
    stayed = quick(**ANCIENT)
    stayed.fit(frame, y, sensitive_features=groups)
    stayed.save(tmp_path / "model")
    away = saving.load(tmp_path / "model")
    assert type(away) is FairGLCClassifier
    assert away.get_params() == stayed.get_params()
    assert away.classes_.dtype == stayed.classes_.dtype
    for model in (stayed, away):
        model.partial_fit(frame[HALF], y[HALF], sensitive_features=groups[HALF])
    assert memory(away) == memory(stayed)
    assert (away.predict(frame) == stayed.predict(frame)).all()
    assert away.n_rounds_ == stayed.n_rounds_ == 3
    assert clone(away).get_params() == clone(stayed).get_params()
