# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection
from typing import Any

from fairsaoml.estimators.sklearn_adapter import OnlineClassifier as OnlineClassifier

class DecoupledFairSAOMLClassifier(OnlineClassifier):
    """Heads that learn label and group, and a few multipliers that make the decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
    constraints: str
    """fairness asked for: demographic parity, equal opportunity, equalized odds"""
    decision: str | float
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""
    ratio: float
    """what is asked for: the lowest group's rate over the highest"""
    aware: bool
    """whether a row's own group may decide, where that is lawful"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        constraints: str = "eo",
        decision: str | float = "accuracy",
        ratio: float = 0.9,
        aware: bool = False,
    ) -> None: ...

class LiveFairSAOMLClassifier(OnlineClassifier):
    """Experts on geometric intervals that all keep learning; their mixture decides.

    The learner 'fairsaoml-live': this project; docs/explanation.md."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
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
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
    capacity: int
    """rows per class an interval's sample holds"""
    base: int
    """interval lengths are its powers"""
    horizon: int | None
    """number of rounds, if it is known"""
    combiner: str
    """how credit becomes weights"""
    credit_discount: float
    """memory of the discounted hedge"""
    credit_rate: float
    """how sharply the discounted hedge prefers"""
    primal_step: float
    """step of theta, the same at every level"""
    dual_step: float
    """step of lambda"""
    dual_damping: float
    """delta: keeps the dual from growing; too much switches fairness off"""
    gap_memory: float
    """memory of a gap from draw to draw; 0 keeps the last draw alone"""
    gap_scale: float
    """size of gaps to act on; those of small groups are shrunk towards 0"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "eo",
        tolerance: float = 0.02,
        gap_score: str = "decision",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        base: int = 2,
        horizon: int | None = None,
        combiner: str = "discounted-hedge",
        credit_discount: float = 0.7,
        credit_rate: float = 10.0,
        primal_step: float = 0.2,
        dual_step: float = 0.7,
        dual_damping: float = 0.001,
        gap_memory: float = 0.9,
        gap_scale: float = 0.1,
    ) -> None: ...

class NewtonFairSAOMLClassifier(OnlineClassifier):
    """Live experts of a linear model that solve their interval instead of stepping towards it.

    The learner 'fairsaoml-newton': this project; docs/explanation.md."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
    model: str
    """the scoring function: a linear one"""
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
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    base: int
    """interval lengths are its powers"""
    horizon: int | None
    """number of rounds, if it is known"""
    combiner: str
    """how credit becomes weights"""
    credit_discount: float
    """memory of the discounted hedge"""
    credit_rate: float
    """how sharply the discounted hedge prefers"""
    newton_steps: int
    """Newton steps to the best model, then to the fair"""
    ridge: float
    """l2 term on theta, in rows"""
    penalty: float
    """mu: how hard a gap is pressed in one round"""
    dual_memory: float
    """lambda's memory from round to round"""
    carry: float
    """how much of the mixture's past a waking expert keeps, in its own lengths"""
    gap_scale: float
    """size of gaps to act on; those of small groups are shrunk towards 0"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "logistic",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp+eo",
        tolerance: float = 0.02,
        gap_score: str = "decision",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        base: int = 2,
        horizon: int | None = None,
        combiner: str = "discounted-hedge",
        credit_discount: float = 0.7,
        credit_rate: float = 100.0,
        newton_steps: int = 4,
        ridge: float = 1.0,
        penalty: float = 4.0,
        dual_memory: float = 0.9,
        carry: float = 0.5,
        gap_scale: float = 0.1,
    ) -> None: ...

class FairSAOMLClassifier(OnlineClassifier):
    """The paper's learner: experts adapt from a primal-dual meta pair when they wake.

    The learner 'fairsaoml': Zhao, Mi, Wu, Jiang, Khan, Chen: KDD 2022."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
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
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    base: int
    """interval lengths are its powers"""
    horizon: int | None
    """number of rounds, if it is known"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
    capacity: int
    """rows per class an interval's sample holds"""
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
    combiner: str
    """how credit becomes weights"""
    credit: str
    """R and C of a waking expert"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        base: int = 2,
        horizon: int | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        query: int = 100,
        inner_steps: int = 1,
        inner_primal_step: float = 0.1,
        inner_dual_step: float = 0.1,
        meta_primal_step: float = 0.1,
        meta_dual_step: float = 0.1,
        dual_damping: float = 0.001,
        steps: str = "scaled",
        meta_gradient: str = "exact",
        combiner: str = "ada-normal-hedge",
        credit: str = "inherit",
    ) -> None: ...

class MaskFTMLClassifier(OnlineClassifier):
    """Follows the meta leader of the tasks seen; no fairness.

    The learner 'mask-ftml': Finn, Rajeswaran, Kakade, Levine: ICML 2019."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
    model: str
    """the scoring function"""
    hidden: tuple[int, ...]
    """widths of the mlp's hidden layers"""
    constraints: str
    """it knows no fairness"""
    tolerance: float
    """gap between groups that is fair enough"""
    gap_score: str
    """what the smooth gap is taken of"""
    decision: str | float
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
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
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "none",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 400,
        tasks_kept: int = 32,
        query: int = 100,
        inner_steps: int = 1,
        inner_primal_step: float = 0.1,
        meta_primal_step: float = 0.3,
        meta_gradient: str = "first-order",
    ) -> None: ...

class FairFMLClassifier(OnlineClassifier):
    """Follows the fair meta leader: a primal-dual pair at both levels.

    The learner 'fair-fml': Zhao, Chen, Thuraisingham: KDD 2021."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
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
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
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
    inner_dual_step: float
    """step of lambda in adaptation"""
    meta_dual_step: float
    """eta_dual: step of the meta lambda"""
    dual_damping: float
    """delta: keeps the dual from growing; too much switches fairness off"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 400,
        tasks_kept: int = 32,
        query: int = 100,
        inner_steps: int = 1,
        inner_primal_step: float = 0.1,
        meta_primal_step: float = 0.3,
        meta_gradient: str = "first-order",
        inner_dual_step: float = 0.1,
        meta_dual_step: float = 0.1,
        dual_damping: float = 0.001,
    ) -> None: ...

class FairAOGDClassifier(OnlineClassifier):
    """One primal-dual pair on the present task, steps falling with time.

    The learner 'fair-aogd': Jenatton, Huang, Archambeau: ICML 2016."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
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
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
    capacity: int
    """rows per class an interval's sample holds"""
    domain_bound: float
    """R: scale of the domain"""
    gradient_bound: float
    """G: scale of the gradients"""
    decay: float
    """b: how fast the steps shrink with the rounds"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        domain_bound: float = 0.17,
        gradient_bound: float = 0.12,
        decay: float = 0.6666666666666666,
    ) -> None: ...

class FairGLCClassifier(OnlineClassifier):
    """One pair on the present task, the price of a violation in closed form.

    The learner 'fair-glc': Yuan, Lamperski: NeurIPS 2018."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
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
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
    capacity: int
    """rows per class an interval's sample holds"""
    convexity: float
    """H: modulus of strong convexity"""
    gradient_bound: float
    """G: scale of the constraints' gradients"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        convexity: float = 0.3,
        gradient_bound: float = 0.3,
    ) -> None: ...

class AODClassifier(OnlineClassifier):
    """Experts on a dense geometric cover, averaged by AdaNormalHedge; no fairness.

    The learner 'aod': Zhang, Lu, Yang: AISTATS 2020."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
    model: str
    """the scoring function"""
    hidden: tuple[int, ...]
    """widths of the mlp's hidden layers"""
    constraints: str
    """it knows no fairness"""
    tolerance: float
    """gap between groups that is fair enough"""
    gap_score: str
    """what the smooth gap is taken of"""
    decision: str | float
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    base: int
    """interval lengths are its powers"""
    horizon: int | None
    """number of rounds, if it is known"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
    capacity: int
    """rows per class an interval's sample holds"""
    scale: float
    """S / G: step of an interval of one round"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "none",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        base: int = 2,
        horizon: int | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        scale: float = 0.5,
    ) -> None: ...

class CBCEClassifier(OnlineClassifier):
    """Experts on a geometric cover, averaged by coin betting; no fairness.

    The learner 'cbce': Jun, Orabona, Wright, Willett: AISTATS 2017."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
    model: str
    """the scoring function"""
    hidden: tuple[int, ...]
    """widths of the mlp's hidden layers"""
    constraints: str
    """it knows no fairness"""
    tolerance: float
    """gap between groups that is fair enough"""
    gap_score: str
    """what the smooth gap is taken of"""
    decision: str | float
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""
    prior_discount: float
    """memory of the class prior from task to task"""
    radius: float | None
    """l2 ball the parameters are projected onto"""
    meta_iterations: int
    """gradient samples taken from each round"""
    support: int
    """rows per class of a support draw"""
    capacity: int
    """rows per class an interval's sample holds"""
    horizon: int | None
    """number of rounds, if it is known; only storage depends on it"""
    scale: float
    """S / G: step in an interval's first round"""
    start: str
    """where a new expert begins"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "none",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        horizon: int | None = None,
        scale: float = 0.5,
        start: str = "fresh",
    ) -> None: ...

class AdaptiveFairClassifier(OnlineClassifier):
    """The default learner. Heads that learn label and group, and a few multipliers that make the
    decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""

    task_size: int | None
    """rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
    twentieth of the rows, from 100 to 1,000"""
    standardize: bool
    """whether features are centred and scaled by the first task's rows, and cut at five standard
    deviations; without it they should be of about unit size"""
    known_groups: Collection[Any] | None
    """groups that may turn up after the first task: a list, or {column: list}; any other that
    turns up later is counted as 'unseen' and is in no constraint"""
    random_state: Any
    """seed of all that is random; an int gives the same result every time"""
    constraints: str
    """fairness asked for: demographic parity, equal opportunity, equalized odds"""
    decision: str | float
    """when a row is positive: calibrated probability over 0.5, over the base rate, or a number"""
    ratio: float
    """what is asked for: the lowest group's rate over the highest"""
    aware: bool
    """whether a row's own group may decide, where that is lawful"""
    def __init__(
        self,
        *,
        task_size: int | None = None,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        random_state: Any = None,
        constraints: str = "eo",
        decision: str | float = "accuracy",
        ratio: float = 0.9,
        aware: bool = False,
    ) -> None: ...
