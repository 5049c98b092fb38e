"""Online learners that stay accurate and fair while the world changes under them.

The table of contents. Names load late, so that the command starts light.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "core.types": ("Attribute", "Batch", "Learner", "Problem", "Schema", "Task"),
    "core.errors": ("ConfigError", "DataError", "FairSAOMLError", "RunError"),
    "learners.registry": ("build", "configure", "registered"),
    "core.problem": ("make_problem",),
    "streams.stream": ("Stream",),
    "streams.catalog": ("open_stream",),
    "streams.table.stream": ("stream_from_table",),
    "evaluate.prequential": ("prequential", "rollout"),
    "evaluate.metrics": ("count", "figures"),
    "evaluate.streaming": ("StreamingMetric",),
    "evaluate.regret.regret": ("regret",),
    "runs.spec": ("RunSpec",),
    "runs.runner": ("run", "resume"),
    "serve.delayed": ("DelayedLabels",),
    "serve.ledger": ("ClosedTask",),
    "serve.online": ("OnlineLearner",),
    "serve.saving": ("load",),
    "estimators.sklearn": (
        "AODClassifier",
        "CBCEClassifier",
        "FairAOGDClassifier",
        "FairFMLClassifier",
        "FairGLCClassifier",
        "FairSAOMLClassifier",
        "MaskFTMLClassifier",
        "NewtonFairSAOMLClassifier",
        "PaperFairSAOMLClassifier",
    ),
    "report": ("write_report",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fairsaoml' has no attribute {name!r}")
    return getattr(import_module(f"fairsaoml.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
