"""Models that were saved when classes had other names are loaded with the learner that they have.

`tests/saved` was written by the estimators of commit 7c1af54, with what they answered.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from fairsaoml import load
from fairsaoml.core.errors import FairSAOMLError, RunError
from fairsaoml.estimators import river, sklearn
from fairsaoml.learners import registry
from fairsaoml.serve import saving

SAVED = Path(__file__).parent / "saved"
KNOWN = json.loads((SAVED / "answers.json").read_text())
ROWS = np.array(KNOWN["x"])


PAPER = "sklearn-PaperFairSAOMLClassifier"


def test_a_model_of_a_renamed_class_answers_as_before():
    model = load(SAVED / PAPER)
    assert type(model) is sklearn.FairSAOMLClassifier
    answers = KNOWN["answers"][PAPER]
    np.testing.assert_allclose(model.decision_function(ROWS), answers, rtol=1e-5, atol=1e-6)
    model.partial_fit(ROWS, ["no", "yes"] * 2, sensitive_features=["f", "f", "m", "m"])
    assert model.n_rounds_ == 2


@pytest.mark.parametrize(
    "name", ["sklearn-FairSAOMLClassifier", "river-FairSAOMLClassifier", "river-unfitted"]
)
def test_a_model_of_a_retired_learner_names_the_last_revision_that_has_it(name):
    revision = registry.RETIRED["fairsaoml-live"]
    with pytest.raises(FairSAOMLError, match=f"fairsaoml-live was replaced .* is {revision}"):
        load(SAVED / name)


def test_every_class_of_the_learner_loads_it_and_no_other():
    assert type(sklearn.FairSAOMLClassifier.load(SAVED / PAPER)) is sklearn.FairSAOMLClassifier
    for cls in (
        sklearn.AdaptiveFairClassifier,
        sklearn.FairGLCClassifier,
        river.FairSAOMLClassifier,
    ):
        with pytest.raises(RunError, match="of the learner fairsaoml; load it with"):
            cls.load(SAVED / PAPER)


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
    class Mine(sklearn.OnlineClassifier, learner="fairsaoml"):
        pass

    Mine.load(SAVED / PAPER).save(tmp_path / "model")
    assert type(Mine.load(tmp_path / "model")) is Mine
    with pytest.raises(RunError, match=r"YourClass\.load\(path\)"):
        saving.load(tmp_path / "model")
