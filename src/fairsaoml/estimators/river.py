"""River classifiers, one for each registered learner.

`AdaptiveFairClassifier` is the default learner's. A learner that another package registers has its
class here too. Their signatures for editors and type checkers are in the stub beside this file,
which `make stubs` writes.

>>> model = AdaptiveFairClassifier(task_size=50)
>>> for turn in range(200):
...     merit = turn % 7 - 3
...     model.learn_one({"merit": merit}, merit > 0, sensitive_features="fm"[turn % 2])
>>> model.predict_one({"merit": 3}), model.predict_one({"merit": -3})
(True, False)
"""

from fairsaoml.estimators.adapter import class_names, class_of
from fairsaoml.estimators.river_adapter import RiverClassifier

__all__ = ["RiverClassifier", *class_names()]
for _name in class_names():
    class_of(RiverClassifier, __name__, _name)


def __getattr__(name: str) -> type[RiverClassifier]:
    return class_of(RiverClassifier, __name__, name)
