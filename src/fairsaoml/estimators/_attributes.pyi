# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection, Sequence
from typing import Any, dataclass_transform

@dataclass_transform(eq_default=False, kw_only_default=True)
class Settings: ...

class SharedSettings(Settings):
    """Parameters of the estimators of every library, besides those of the learner.

    Attributes
    ----------
    standardize
        whether features are centred and scaled by the first task's rows, and cut at five
        standard deviations; without it they should be of about unit size
    known_groups
        groups that may turn up after the first task: a list, or {column: list}; any other that
        turns up later is counted as 'unseen' and is in no constraint"""

    task_size: Any
    standardize: bool = True
    known_groups: Collection[Any] | None = None

class ClassifierSettings(SharedSettings):
    """Parameters of the scikit-learn classifiers, besides those of the learner.

    Attributes
    ----------
    task_size
        rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
        twentieth of the rows, from 100 to 1,000
    random_state
        seed of all that is random; an int gives the same result every time"""

    task_size: int | None = None
    random_state: Any = None

class DecoupledConfig(Settings):
    """Settings of the decoupled learner; the defaults are the same for every stream.

    Attributes
    ----------
    constraints
        fairness asked for: demographic parity, equal opportunity, equalized odds
    decision
        when a row is positive: calibrated probability over 0.5, over the base rate, or a number
    ratio
        what is asked for: the lowest group's rate over the highest
    aware
        whether a row's own group may decide, where that is lawful"""

    constraints: str = "eo"
    decision: str | float = "accuracy"
    ratio: float = 0.9
    aware: bool = False

class ProblemConfig(Settings):
    """The settings that pose a problem, the same for every learner (D26).

    Attributes
    ----------
    model
        the scoring function
    hidden
        widths of the mlp's hidden layers
    constraints
        fairness asked for: demographic parity, equal opportunity, equalized odds
    tolerance
        gap between groups that is fair enough
    gap_score
        what the smooth gap is taken of
    decision
        when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""

    model: str = "mlp"
    hidden: tuple[int, ...] = (40, 40)
    constraints: str = "dp"
    tolerance: float = 0.02
    gap_score: str = "probability"
    decision: str | float = "accuracy"

class LearnerConfig(ProblemConfig):
    """The problem that is posed, and what every learner can be told besides (D26).

    Attributes
    ----------
    prior_discount
        memory of the class prior from task to task
    radius
        l2 ball the parameters are projected onto"""

    prior_discount: float = 0.7
    radius: float | None = None

class IntervalConfig(LearnerConfig):
    """Settings of learners with experts on geometric intervals.

    Attributes
    ----------
    base
        interval lengths are its powers
    horizon
        number of rounds, if it is known"""

    base: int = 2
    horizon: int | None = None

class DrawingConfig(LearnerConfig):
    """Settings of learners that take steps on draws of rows.

    Attributes
    ----------
    gap
        smooth gaps of decisions as deployed, or of the model's output on rows as drawn (Eq. 1)
    meta_iterations
        gradient samples taken from each round
    support
        rows per class of a support draw
    capacity
        rows per class an interval's sample holds"""

    gap: str = "deployed"
    meta_iterations: int = 20
    support: int = 100
    capacity: int = 1000

class FairSAOMLConfig(DrawingConfig, IntervalConfig):
    """Settings of the paper's learner; the defaults are the same for every stream (D26).

    Attributes
    ----------
    query
        rows per class of a query draw
    inner_steps
        base-learner steps; 0 is no base learner
    inner_primal_step
        primal eta of an interval of length 1
    inner_dual_step
        dual eta of an interval of length 1
    meta_primal_step
        eta 1
    meta_dual_step
        eta 2
    dual_damping
        delta: keeps the dual from growing; too much switches fairness off
    steps
        eta as set, or S / G (D8)
    meta_gradient
        which theta it is taken at (D3)
    gradient_bound
        G: a longer gradient of theta is shortened to it
    initial_primal
        theta_0: the model's start, or 0, the ball's centre
    initial_dual
        lambda_0
    inner_dual
        an expert's dual: at 0 or above, or as Eq. 12 says
    meta_start
        iterations step from the pair of now, or of t-1
    cover
        blocks from 1, or base^k, or from every round
    combiner
        how credit becomes weights
    credit
        R and C of a waking expert
    credit_rows
        rows that credit is taken on
    credit_dual
        lambda in an expert's credit: the meta one, or its own
    credit_bound
        largest credit of a round; the weights want 1"""

    query: int = 100
    inner_steps: int = 1
    inner_primal_step: float = 0.1
    inner_dual_step: float = 0.1
    meta_primal_step: float = 0.1
    meta_dual_step: float = 0.1
    dual_damping: float = 0.001
    steps: str = "scaled"
    meta_gradient: str = "exact"
    gradient_bound: float | None = 10.0
    initial_primal: str = "model"
    initial_dual: float = 0.0
    inner_dual: str = "clipped"
    meta_start: str = "current"
    cover: str = "agc"
    combiner: str = "ada-normal-hedge"
    credit: str = "inherit"
    credit_rows: str = "query"
    credit_dual: str = "meta"
    credit_bound: float | None = 1.0

class MetaLeaderConfig(DrawingConfig):
    """What the followers of the meta leader share.

    Attributes
    ----------
    capacity
        rows per class kept of a task
    tasks_kept
        past tasks kept; as many as rounds keeps them all
    query
        rows per class of a query draw
    inner_steps
        steps of adaptation to a task
    inner_primal_step
        step of theta in adaptation
    meta_primal_step
        step of the meta theta
    meta_gradient
        at the adapted theta, or through adaptation"""

    capacity: int = 400
    tasks_kept: int = 32
    query: int = 100
    inner_steps: int = 1
    inner_primal_step: float = 0.1
    meta_primal_step: float = 0.3
    meta_gradient: str = "first-order"

class MaskFTMLConfig(MetaLeaderConfig):
    """Settings of MaskFTML; the defaults are the same for every stream.

    Attributes
    ----------
    constraints
        it knows no fairness"""

    constraints: str = "none"

class FairFMLConfig(MetaLeaderConfig):
    """Settings of FairFML; the defaults are the same for every stream.

    Attributes
    ----------
    inner_dual_step
        step of lambda in adaptation
    meta_dual_step
        eta_dual: step of the meta lambda
    dual_damping
        delta: keeps the dual from growing; too much switches fairness off
    initial_dual
        lambda_0"""

    inner_dual_step: float = 0.1
    meta_dual_step: float = 0.1
    dual_damping: float = 0.001
    initial_dual: float = 0.0

class FairAOGDConfig(DrawingConfig):
    """Settings of FairAOGD; the defaults are the same for every stream.

    Attributes
    ----------
    domain_bound
        R: scale of the domain
    gradient_bound
        G: scale of the gradients
    decay
        b: how fast the steps shrink with the rounds"""

    domain_bound: float = 0.17
    gradient_bound: float = 0.12
    decay: float = 0.6666666666666666

class FairGLCConfig(DrawingConfig):
    """Settings of FairGLC; the defaults are the same for every stream.

    Attributes
    ----------
    convexity
        H: modulus of strong convexity
    gradient_bound
        G: scale of the constraints' gradients"""

    convexity: float = 0.3
    gradient_bound: float = 0.3

class AODConfig(DrawingConfig, IntervalConfig):
    """Settings of AOD; the defaults are the same for every stream.

    Attributes
    ----------
    constraints
        it knows no fairness
    scale
        S / G: step of an interval of one round"""

    constraints: str = "none"
    scale: float = 0.5

class CBCEConfig(DrawingConfig):
    """Settings of CBCE; the defaults are the same for every stream.

    Attributes
    ----------
    constraints
        it knows no fairness
    horizon
        number of rounds, if it is known; only storage depends on it
    scale
        S / G: step in an interval's first round
    start
        where a new expert begins"""

    constraints: str = "none"
    horizon: int | None = None
    scale: float = 0.5
    start: str = "fresh"

class RiverSettings(SharedSettings):
    """Parameters of the River classifiers, besides those of the learner.

    Attributes
    ----------
    task_size
        rows that are collected and then learned from
    sensitive
        the sensitive key of x, or several: they are taken out of it and are never an input
    classes
        the two labels, the positive one last; booleans need not be named
    spare_features
        places kept for features that turn up after the first task
    seed
        seed of all that is random; an int gives the same result every time"""

    task_size: int = 300
    sensitive: str | Sequence[Any] | None = None
    classes: Sequence[Any] | None = None
    spare_features: int = 0
    seed: int | None = None
