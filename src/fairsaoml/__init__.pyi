# The public names, one import each; loaded from this file when the package is imported.
# `make stubs` writes the classes of estimators.sklearn; the rest is kept by hand.
from .checks import check_learner as check_learner
from .core.errors import ConfigError as ConfigError
from .core.errors import DataError as DataError
from .core.errors import FairSAOMLError as FairSAOMLError
from .core.errors import RunError as RunError
from .core.problem import make_problem as make_problem
from .core.types import Attribute as Attribute
from .core.types import Batch as Batch
from .core.types import Constraint as Constraint
from .core.types import Learner as Learner
from .core.types import Model as Model
from .core.types import Problem as Problem
from .core.types import Schema as Schema
from .core.types import Task as Task
from .estimators.sklearn import AdaptiveFairClassifier as AdaptiveFairClassifier
from .estimators.sklearn import AODClassifier as AODClassifier
from .estimators.sklearn import CBCEClassifier as CBCEClassifier
from .estimators.sklearn import DecoupledFairSAOMLClassifier as DecoupledFairSAOMLClassifier
from .estimators.sklearn import FairAOGDClassifier as FairAOGDClassifier
from .estimators.sklearn import FairFMLClassifier as FairFMLClassifier
from .estimators.sklearn import FairGLCClassifier as FairGLCClassifier
from .estimators.sklearn import FairSAOMLClassifier as FairSAOMLClassifier
from .estimators.sklearn import MaskFTMLClassifier as MaskFTMLClassifier
from .evaluate.prequential import prequential as prequential
from .evaluate.prequential import rollout as rollout
from .evaluate.streaming import StreamingMetric as StreamingMetric
from .learners.registry import Entry as Entry
from .learners.registry import configure as configure
from .learners.registry import registered as registered
from .report import write_report as write_report
from .runs.learn import learn as learn
from .runs.learn import undo as undo
from .runs.regret import regret as regret
from .runs.runner import resume as resume
from .runs.runner import run as run
from .runs.spec import RunSpec as RunSpec
from .serve.delayed import DelayedLabels as DelayedLabels
from .serve.model import RunModel as RunModel
from .serve.online import OnlineLearner as OnlineLearner
from .serve.saving import load as load
from .streams.catalog import open_stream as open_stream
from .streams.stream import Stream as Stream
from .streams.table.stream import stream_from_table as stream_from_table

__version__: str
