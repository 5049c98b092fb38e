"""Models that were saved when classes had other names are loaded with the learner that they have.

`tests/saved` was written by the estimators of commit 7c1af54, with what they answered.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from fairsaoml import load
from fairsaoml.core.errors import RunError
from fairsaoml.estimators import river, sklearn
from fairsaoml.serve import saving

SAVED = Path(__file__).parent / "saved"
KNOWN = json.loads((SAVED / "answers.json").read_text())
ROWS = np.array(KNOWN["x"])


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("sklearn-FairSAOMLClassifier", sklearn.LiveFairSAOMLClassifier),
        ("sklearn-PaperFairSAOMLClassifier", sklearn.FairSAOMLClassifier),
    ],
)
def test_a_model_of_a_renamed_class_answers_as_before(name, cls):
    model = load(SAVED / name)
    assert type(model) is cls
    answers = KNOWN["answers"][name]
    np.testing.assert_allclose(model.decision_function(ROWS), answers, rtol=1e-5, atol=1e-6)
    model.partial_fit(ROWS, ["no", "yes"] * 2, sensitive_features=["f", "f", "m", "m"])
    assert model.n_rounds_ == 2


def test_a_river_model_of_a_renamed_class_answers_as_before():
    name = "river-FairSAOMLClassifier"
    model = load(SAVED / name)
    assert type(model) is river.LiveFairSAOMLClassifier
    answers = [model.predict_proba_one(dict(zip("ab", row, strict=True)))["yes"] for row in ROWS]
    np.testing.assert_allclose(answers, KNOWN["answers"][name], rtol=1e-5)
    for row in ROWS.tolist() * 5:  # ten rows were waiting for twenty more
        model.learn_one(dict(zip("ab", row, strict=True)), "yes", sensitive_features="f")
    assert model._online.round == 2


def test_a_model_that_had_learned_nothing_keeps_its_learner():
    assert type(load(SAVED / "river-unfitted")) is river.LiveFairSAOMLClassifier


def test_every_class_of_the_learner_loads_it_and_no_other():
    folder = SAVED / "sklearn-FairSAOMLClassifier"
    assert type(sklearn.LiveFairSAOMLClassifier.load(folder)) is sklearn.LiveFairSAOMLClassifier
    for cls in (
        sklearn.AdaptiveFairClassifier,
        sklearn.FairSAOMLClassifier,
        river.LiveFairSAOMLClassifier,
    ):
        with pytest.raises(RunError, match="of the learner fairsaoml-live; load it with"):
            cls.load(folder)


def test_the_default_class_is_loaded_as_itself_or_by_its_learner_once_the_default_is_another(
    tmp_path, monkeypatch
):
    model = sklearn.AdaptiveFairClassifier()
    model.partial_fit(
        ROWS, ["no", "yes"] * (len(ROWS) // 2), sensitive_features=["f", "m"] * (len(ROWS) // 2)
    )
    model.save(tmp_path / "model")
    assert type(load(tmp_path / "model")) is sklearn.AdaptiveFairClassifier
    monkeypatch.setattr(sklearn.AdaptiveFairClassifier, "_learner", "fair-glc")
    assert type(load(tmp_path / "model")) is sklearn.DecoupledFairSAOMLClassifier


def test_a_class_of_ones_own_is_loaded_by_itself_only(tmp_path):
    class Mine(sklearn.OnlineClassifier, learner="fairsaoml-live"):
        pass

    Mine.load(SAVED / "sklearn-FairSAOMLClassifier").save(tmp_path / "model")
    assert type(Mine.load(tmp_path / "model")) is Mine
    with pytest.raises(RunError, match=r"YourClass\.load\(path\)"):
        saving.load(tmp_path / "model")
