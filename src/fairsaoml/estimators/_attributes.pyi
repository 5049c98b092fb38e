# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection, Sequence
from typing import Any

class Settings: ...

class SharedSettings(Settings):
    task_size: Any
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""

class ClassifierSettings(SharedSettings):
    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""

class DecoupledConfig:
    constraints: str
    """fairness asked for: demographic parity, equal opportunity, equalized odds"""
    decision: str | float
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""
    ratio: float
    """what is asked for: the lowest group's rate over the highest"""
    aware: bool
    """whether a row's own group may decide, where that is lawful"""

class ProblemConfig(Settings):
    model: str
    """the scoring function"""
    hidden: tuple[int, ...]
    """widths of the mlp's hidden layers"""
    constraints: str
    """fairness asked for: demographic parity, equal opportunity, equalized odds"""
    tolerance: float
    """gap between groups that is fair enough"""
    gap_score: str
    """what the smooth gap is taken of"""
    decision: str | float
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""

class LearnerConfig(ProblemConfig):
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""

class IntervalConfig(LearnerConfig):
    base: int
    """interval lengths are its powers"""
    horizon: int | None
    """number of rounds, if it is known"""

class DrawingConfig(LearnerConfig):
    gap: str
    """smooth gaps of decisions as deployed, or of the model's output on rows as drawn (Eq. 1)"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
    capacity: int
    """rows per class an interval's sample holds"""

class FairSAOMLConfig(DrawingConfig, IntervalConfig):
    query: int
    """rows per class of a query draw"""
    inner_steps: int
    """base-learner steps; 0 is no base learner"""
    inner_primal_step: float
    """primal eta of an interval of length 1"""
    inner_dual_step: float
    """dual eta of an interval of length 1"""
    meta_primal_step: float
    """eta 1"""
    meta_dual_step: float
    """eta 2"""
    dual_damping: float
    """delta: keeps the dual from growing; too much switches fairness off"""
    steps: str
    """eta as set, or S / G (D8)"""
    meta_gradient: str
    """which theta it is taken at (D3)"""
    gradient_bound: float | None
    """G: a longer gradient of theta is shortened to it"""
    initial_primal: str
    """theta_0: the model's start, or 0, the ball's centre"""
    initial_dual: float
    """lambda_0"""
    inner_dual: str
    """an expert's dual: at 0 or above, or as Eq. 12 says"""
    meta_start: str
    """iterations step from the pair of now, or of t-1"""
    cover: str
    """blocks from 1, or base^k, or from every round"""
    combiner: str
    """how credit becomes weights"""
    credit: str
    """R and C of a waking expert"""
    credit_rows: str
    """rows that credit is taken on"""
    credit_dual: str
    """lambda in an expert's credit: the meta one, or its own"""
    credit_bound: float | None
    """largest credit of a round; the weights want 1"""

class MetaLeaderConfig(DrawingConfig):
    capacity: int
    """rows per class kept of a task"""
    tasks_kept: int
    """past tasks kept; as many as rounds keeps them all"""
    query: int
    """rows per class of a query draw"""
    inner_steps: int
    """steps of adaptation to a task"""
    inner_primal_step: float
    """step of theta in adaptation"""
    meta_primal_step: float
    """step of the meta theta"""
    meta_gradient: str
    """at the adapted theta, or through adaptation"""

class MaskFTMLConfig(MetaLeaderConfig):
    constraints: str
    """it knows no fairness"""

class FairFMLConfig(MetaLeaderConfig):
    inner_dual_step: float
    """step of lambda in adaptation"""
    meta_dual_step: float
    """eta_dual: step of the meta lambda"""
    dual_damping: float
    """delta: keeps the dual from growing; too much switches fairness off"""
    initial_dual: float
    """lambda_0"""

class FairAOGDConfig(DrawingConfig):
    domain_bound: float
    """R: scale of the domain"""
    gradient_bound: float
    """G: scale of the gradients"""
    decay: float
    """b: how fast the steps shrink with the rounds"""

class FairGLCConfig(DrawingConfig):
    convexity: float
    """H: modulus of strong convexity"""
    gradient_bound: float
    """G: scale of the constraints' gradients"""

class AODConfig(DrawingConfig, IntervalConfig):
    constraints: str
    """it knows no fairness"""
    scale: float
    """S / G: step of an interval of one round"""

class CBCEConfig(DrawingConfig):
    constraints: str
    """it knows no fairness"""
    horizon: int | None
    """number of rounds, if it is known; only storage depends on it"""
    scale: float
    """S / G: step in an interval's first round"""
    start: str
    """where a new expert begins"""

class RiverSettings(SharedSettings):
    task_size: int
    """rows that are collected and then learned from"""
    sensitive: str | Sequence[Any] | None
    """the sensitive key of x, or several: they are taken out of it and are never an input"""
    classes: Sequence[Any] | None
    """the two labels, the positive one last; booleans need not be named"""
    spare_features: int
    """places kept for features that turn up after the first task"""
    seed: int | None
    """seed of all that is random; an int gives the same result every time"""
