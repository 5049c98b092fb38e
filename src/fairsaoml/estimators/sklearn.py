"""scikit-learn classifiers, one for each registered learner.

`AdaptiveFairClassifier` is the default learner's. A learner that another package registers has its
class here too. Their signatures for editors and type checkers are in the stub beside this file,
which `make stubs` writes.

>>> import numpy as np
>>> X = np.linspace(-1, 1, 400)[:, None] % 0.31
>>> y = np.where(X[:, 0] > 0.15, "yes", "no")
>>> sex = np.where(np.arange(400) % 3 > 0, "f", "m")
>>> model = AdaptiveFairClassifier(constraints="dp")
>>> model = model.fit(X, y, sensitive_features=sex)
>>> model.predict([[0.0], [0.3]]).tolist(), model.n_rounds_, model.constraints_
(['no', 'yes'], 4, ('dp[sensitive_feature_0=m]',))
"""

from fairsaoml.estimators.adapter import class_names, class_of
from fairsaoml.estimators.sklearn_adapter import OnlineClassifier

__all__ = ["OnlineClassifier", *class_names()]
for _name in class_names():
    class_of(OnlineClassifier, __name__, _name)


def __getattr__(name: str) -> type[OnlineClassifier]:
    return class_of(OnlineClassifier, __name__, name)
