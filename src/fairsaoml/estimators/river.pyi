# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection, Sequence
from typing import Any

from fairsaoml.estimators._attributes import (
    AODConfig,
    CBCEConfig,
    DecoupledConfig,
    FairAOGDConfig,
    FairFMLConfig,
    FairGLCConfig,
    FairSAOMLConfig,
    MaskFTMLConfig,
    RiverSettings,
)
from fairsaoml.estimators.river_adapter import RiverClassifier as RiverClassifier

class DecoupledFairSAOMLClassifier(RiverSettings, DecoupledConfig, RiverClassifier):
    """Heads that learn label and group, and a few multipliers that make the decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        constraints: str = "eo",
        decision: str | float = "accuracy",
        ratio: float = 0.9,
        aware: bool = False,
    ) -> None: ...

class FairSAOMLClassifier(RiverSettings, FairSAOMLConfig, RiverClassifier):
    """The paper's learner: experts adapt from a primal-dual meta pair when they wake.

    The learner 'fairsaoml': Zhao, Mi, Wu, Jiang, Khan, Chen: KDD 2022."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        gap: str = "deployed",
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
        gradient_bound: float | None = 10.0,
        initial_primal: str = "model",
        initial_dual: float = 0.0,
        inner_dual: str = "clipped",
        meta_start: str = "current",
        cover: str = "agc",
        combiner: str = "ada-normal-hedge",
        credit: str = "inherit",
        credit_rows: str = "query",
        credit_dual: str = "meta",
        credit_bound: float | None = 1.0,
    ) -> None: ...

class MaskFTMLClassifier(RiverSettings, MaskFTMLConfig, RiverClassifier):
    """Follows the meta leader of the tasks seen; no fairness.

    The learner 'mask-ftml': Finn, Rajeswaran, Kakade, Levine: ICML 2019."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "none",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        gap: str = "deployed",
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

class FairFMLClassifier(RiverSettings, FairFMLConfig, RiverClassifier):
    """Follows the fair meta leader: a primal-dual pair at both levels.

    The learner 'fair-fml': Zhao, Chen, Thuraisingham: KDD 2021."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        gap: str = "deployed",
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
        initial_dual: float = 0.0,
    ) -> None: ...

class FairAOGDClassifier(RiverSettings, FairAOGDConfig, RiverClassifier):
    """One primal-dual pair on the present task, steps falling with time.

    The learner 'fair-aogd': Jenatton, Huang, Archambeau: ICML 2016."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        gap: str = "deployed",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        domain_bound: float = 0.17,
        gradient_bound: float = 0.12,
        decay: float = 0.6666666666666666,
    ) -> None: ...

class FairGLCClassifier(RiverSettings, FairGLCConfig, RiverClassifier):
    """One pair on the present task, the price of a violation in closed form.

    The learner 'fair-glc': Yuan, Lamperski: NeurIPS 2018."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "dp",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        gap: str = "deployed",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        convexity: float = 0.3,
        gradient_bound: float = 0.3,
    ) -> None: ...

class AODClassifier(RiverSettings, AODConfig, RiverClassifier):
    """Experts on a dense geometric cover, averaged by AdaNormalHedge; no fairness.

    The learner 'aod': Zhang, Lu, Yang: AISTATS 2020."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "none",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        gap: str = "deployed",
        prior_discount: float = 0.7,
        radius: float | None = None,
        base: int = 2,
        horizon: int | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        scale: float = 0.5,
    ) -> None: ...

class CBCEClassifier(RiverSettings, CBCEConfig, RiverClassifier):
    """Experts on a geometric cover, averaged by coin betting; no fairness.

    The learner 'cbce': Jun, Orabona, Wright, Willett: AISTATS 2017."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        model: str = "mlp",
        hidden: tuple[int, ...] = (40, 40),
        constraints: str = "none",
        tolerance: float = 0.02,
        gap_score: str = "probability",
        decision: str | float = "accuracy",
        gap: str = "deployed",
        prior_discount: float = 0.7,
        radius: float | None = None,
        meta_iterations: int = 20,
        support: int = 100,
        capacity: int = 1000,
        horizon: int | None = None,
        scale: float = 0.5,
        start: str = "fresh",
    ) -> None: ...

class AdaptiveFairClassifier(RiverSettings, DecoupledConfig, RiverClassifier):
    """The default learner. Heads that learn label and group, and a few multipliers that make the
    decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""

    def __init__(
        self,
        *,
        task_size: int = 300,
        standardize: bool = True,
        known_groups: Collection[Any] | None = None,
        sensitive: str | Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        spare_features: int = 0,
        seed: int | None = None,
        constraints: str = "eo",
        decision: str | float = "accuracy",
        ratio: float = 0.9,
        aware: bool = False,
    ) -> None: ...
