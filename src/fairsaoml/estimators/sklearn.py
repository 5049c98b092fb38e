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

from fairsaoml.estimators.adapter import make_classes, plugin_class
from fairsaoml.estimators.sklearn_adapter import OnlineClassifier

_classes = make_classes(OnlineClassifier, __name__)
globals().update(_classes)

__all__ = ["OnlineClassifier", *_classes]


def __getattr__(name: str) -> type[OnlineClassifier]:
    return plugin_class(OnlineClassifier, __name__, name)
