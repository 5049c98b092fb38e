# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection, Sequence
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)

@dataclass_transform(eq_default=False, kw_only_default=True)
def parameters(settings: Class) -> Class: ...

@parameters
class SharedSettings:
    task_size: Any
    standardize: bool = True
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None = None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""

@parameters
class ClassifierSettings(SharedSettings):
    task_size: int | None = None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    random_state: Any = None
    """seed of all that is random; an int gives the same result every time"""

@parameters
class DecoupledConfig:
    constraints: str = "eo"
    """fairness asked for: demographic parity, equal opportunity, equalized odds"""
    decision: str | float = "accuracy"
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""
    ratio: float = 0.9
    """what is asked for: the lowest group's rate over the highest"""
    aware: bool = False
    """whether a row's own group may decide, where that is lawful"""

@parameters
class ProblemConfig:
    model: str = "mlp"
    """the scoring function"""
    hidden: tuple[int, ...] = (40, 40)
    """widths of the mlp's hidden layers"""
    constraints: str = "dp"
    """fairness asked for: demographic parity, equal opportunity, equalized odds"""
    tolerance: float = 0.02
    """gap between groups that is fair enough"""
    gap_score: str = "probability"
    """what the smooth gap is taken of"""
    decision: str | float = "accuracy"
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""

@parameters
class LearnerConfig(ProblemConfig):
    prior_discount: float = 0.7
    """memory of the class prior from task to task"""
    radius: float | None = None
    """l2 ball the parameters are projected onto"""

@parameters
class IntervalConfig(LearnerConfig):
    base: int = 2
    """interval lengths are its powers"""
    horizon: int | None = None
    """number of rounds, if it is known"""

@parameters
class DrawingConfig(LearnerConfig):
    gap: str = "deployed"
    """smooth gaps of decisions as deployed, or of the model's output on rows as drawn (Eq. 1)"""
    meta_iterations: int = 20
    """gradient samples taken from each round"""
    support: int = 100
    """rows per class of a support draw"""
    capacity: int = 1000
    """rows per class an interval's sample holds"""

@parameters
class FairSAOMLConfig(DrawingConfig, IntervalConfig):
    query: int = 100
    """rows per class of a query draw"""
    inner_steps: int = 1
    """base-learner steps; 0 is no base learner"""
    inner_primal_step: float = 0.1
    """primal eta of an interval of length 1"""
    inner_dual_step: float = 0.1
    """dual eta of an interval of length 1"""
    meta_primal_step: float = 0.1
    """eta 1"""
    meta_dual_step: float = 0.1
    """eta 2"""
    dual_damping: float = 0.001
    """delta: keeps the dual from growing; too much switches fairness off"""
    steps: str = "scaled"
    """eta as set, or S / G (D8)"""
    meta_gradient: str = "exact"
    """which theta it is taken at (D3)"""
    gradient_bound: float | None = 10.0
    """G: a longer gradient of theta is shortened to it"""
    initial_primal: str = "model"
    """theta_0: the model's start, or 0, the ball's centre"""
    initial_dual: float = 0.0
    """lambda_0"""
    inner_dual: str = "clipped"
    """an expert's dual: at 0 or above, or as Eq. 12 says"""
    meta_start: str = "current"
    """iterations step from the pair of now, or of t-1"""
    cover: str = "agc"
    """blocks from 1, or base^k, or from every round"""
    combiner: str = "ada-normal-hedge"
    """how credit becomes weights"""
    credit: str = "inherit"
    """R and C of a waking expert"""
    credit_rows: str = "query"
    """rows that credit is taken on"""
    credit_dual: str = "meta"
    """lambda in an expert's credit: the meta one, or its own"""
    credit_bound: float | None = 1.0
    """largest credit of a round; the weights want 1"""

@parameters
class MetaLeaderConfig(DrawingConfig):
    capacity: int = 400
    """rows per class kept of a task"""
    tasks_kept: int = 32
    """past tasks kept; as many as rounds keeps them all"""
    query: int = 100
    """rows per class of a query draw"""
    inner_steps: int = 1
    """steps of adaptation to a task"""
    inner_primal_step: float = 0.1
    """step of theta in adaptation"""
    meta_primal_step: float = 0.3
    """step of the meta theta"""
    meta_gradient: str = "first-order"
    """at the adapted theta, or through adaptation"""

@parameters
class MaskFTMLConfig(MetaLeaderConfig):
    constraints: str = "none"
    """it knows no fairness"""

@parameters
class FairFMLConfig(MetaLeaderConfig):
    inner_dual_step: float = 0.1
    """step of lambda in adaptation"""
    meta_dual_step: float = 0.1
    """eta_dual: step of the meta lambda"""
    dual_damping: float = 0.001
    """delta: keeps the dual from growing; too much switches fairness off"""
    initial_dual: float = 0.0
    """lambda_0"""

@parameters
class FairAOGDConfig(DrawingConfig):
    domain_bound: float = 0.17
    """R: scale of the domain"""
    gradient_bound: float = 0.12
    """G: scale of the gradients"""
    decay: float = 0.6666666666666666
    """b: how fast the steps shrink with the rounds"""

@parameters
class FairGLCConfig(DrawingConfig):
    convexity: float = 0.3
    """H: modulus of strong convexity"""
    gradient_bound: float = 0.3
    """G: scale of the constraints' gradients"""

@parameters
class AODConfig(DrawingConfig, IntervalConfig):
    constraints: str = "none"
    """it knows no fairness"""
    scale: float = 0.5
    """S / G: step of an interval of one round"""

@parameters
class CBCEConfig(DrawingConfig):
    constraints: str = "none"
    """it knows no fairness"""
    horizon: int | None = None
    """number of rounds, if it is known; only storage depends on it"""
    scale: float = 0.5
    """S / G: step in an interval's first round"""
    start: str = "fresh"
    """where a new expert begins"""

@parameters
class RiverSettings(SharedSettings):
    task_size: int = 300
    """rows that are collected and then learned from"""
    sensitive: str | Sequence[Any] | None = None
    """the sensitive key of x, or several: they are taken out of it and are never an input"""
    classes: Sequence[Any] | None = None
    """the two labels, the positive one last; booleans need not be named"""
    spare_features: int = 0
    """places kept for features that turn up after the first task"""
    seed: int | None = None
    """seed of all that is random; an int gives the same result every time"""
