"""A scikit-learn pipeline, searched for the setting that is most accurate while it is fair.

Two things make an ordinary script fair: the estimator's line, and `sensitive_features` where it is
fitted. With metadata routing enabled scikit-learn carries the groups to the estimator and to the
scorer, fold by fold.
"""

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairsaoml import AdaptiveFairClassifier

FAIR_ENOUGH = 0.8  # the "80 % rule"


def applications(rows: int = 2400) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Hirings in their order: on merit, but men were preferred, and hours tell who is a man."""
    random = np.random.default_rng(0)
    sex = pd.Series(np.where(random.random(rows) < 0.4, "f", "m"), name="sex")
    merit = random.normal(size=rows)
    hours = 35 + 4 * (sex == "m") + 2 * random.normal(size=rows)
    trade = random.choice(["cook", "nurse", "smith"], rows)
    chance = merit + 0.5 * (trade == "nurse") + 1.4 * (sex == "m") + 0.5 * random.normal(size=rows)
    frame = pd.DataFrame({"merit": merit, "hours": hours, "trade": trade})
    return frame, pd.Series(np.where(chance > 0.8, "hired", "declined")), sex


def parity(decided: np.ndarray, sensitive_features: pd.Series) -> float:
    """The smaller of the groups' rates of yes by the greater: 1 is equal."""
    rates = pd.Series(decided == "hired").groupby(np.asarray(sensitive_features)).mean()
    return rates.min() / rates.max() if rates.max() else 0.0


def fair_accuracy(y: pd.Series, decided: np.ndarray, *, sensitive_features: pd.Series) -> float:
    """Accuracy, less what is missing to be fair enough."""
    return accuracy_score(y, decided) - max(0.0, FAIR_ENOUGH - parity(decided, sensitive_features))


def main() -> None:
    """Search on the past, look at the future."""
    sklearn.set_config(enable_metadata_routing=True)
    X, y, sex = applications()
    past, future = slice(0, 1800), slice(1800, None)
    columns = make_column_transformer(
        (StandardScaler(), ["merit", "hours"]), (OneHotEncoder(sparse_output=False), ["trade"])
    )
    search = GridSearchCV(
        make_pipeline(columns, AdaptiveFairClassifier(random_state=0)),
        {"adaptivefairclassifier__constraints": ["none", "dp"]},
        scoring=make_scorer(fair_accuracy).set_score_request(sensitive_features=True),
        cv=TimeSeriesSplit(2),
    )
    search.fit(X[past], y[past], sensitive_features=sex[past])
    for setting, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        print(f"{setting['adaptivefairclassifier__constraints']}: {score:.3f}")
    decided = search.predict(X[future])
    chosen = search.best_params_["adaptivefairclassifier__constraints"]
    print(
        f"chosen: {chosen}; on what came after: "
        f"accuracy {accuracy_score(y[future], decided):.3f}, DP {parity(decided, sex[future]):.3f}"
    )


if __name__ == "__main__":
    main()
