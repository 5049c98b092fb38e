# Written by `make stubs` from the registry of learners; do not edit.
from collections.abc import Collection, Sequence
from typing import Any

from fairsaoml.estimators import _attributes as settings
from fairsaoml.estimators.river_adapter import RiverClassifier as RiverClassifier

@settings.parameters
class _DecoupledFairSAOMLClassifierSettings(settings.RiverSettings, settings.DecoupledConfig): ...

class DecoupledFairSAOMLClassifier(_DecoupledFairSAOMLClassifierSettings, RiverClassifier):
    """Heads that learn label and group, and a few multipliers that make the decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""

@settings.parameters
class _FairSAOMLClassifierSettings(settings.RiverSettings, settings.FairSAOMLConfig): ...

class FairSAOMLClassifier(_FairSAOMLClassifierSettings, RiverClassifier):
    """The paper's learner: experts adapt from a primal-dual meta pair when they wake.

    The learner 'fairsaoml': Zhao, Mi, Wu, Jiang, Khan, Chen: KDD 2022."""

@settings.parameters
class _MaskFTMLClassifierSettings(settings.RiverSettings, settings.MaskFTMLConfig): ...

class MaskFTMLClassifier(_MaskFTMLClassifierSettings, RiverClassifier):
    """Follows the meta leader of the tasks seen; no fairness.

    The learner 'mask-ftml': Finn, Rajeswaran, Kakade, Levine: ICML 2019."""

@settings.parameters
class _FairFMLClassifierSettings(settings.RiverSettings, settings.FairFMLConfig): ...

class FairFMLClassifier(_FairFMLClassifierSettings, RiverClassifier):
    """Follows the fair meta leader: a primal-dual pair at both levels.

    The learner 'fair-fml': Zhao, Chen, Thuraisingham: KDD 2021."""

@settings.parameters
class _FairAOGDClassifierSettings(settings.RiverSettings, settings.FairAOGDConfig): ...

class FairAOGDClassifier(_FairAOGDClassifierSettings, RiverClassifier):
    """One primal-dual pair on the present task, steps falling with time.

    The learner 'fair-aogd': Jenatton, Huang, Archambeau: ICML 2016."""

@settings.parameters
class _FairGLCClassifierSettings(settings.RiverSettings, settings.FairGLCConfig): ...

class FairGLCClassifier(_FairGLCClassifierSettings, RiverClassifier):
    """One pair on the present task, the price of a violation in closed form.

    The learner 'fair-glc': Yuan, Lamperski: NeurIPS 2018."""

@settings.parameters
class _AODClassifierSettings(settings.RiverSettings, settings.AODConfig): ...

class AODClassifier(_AODClassifierSettings, RiverClassifier):
    """Experts on a dense geometric cover, averaged by AdaNormalHedge; no fairness.

    The learner 'aod': Zhang, Lu, Yang: AISTATS 2020."""

@settings.parameters
class _CBCEClassifierSettings(settings.RiverSettings, settings.CBCEConfig): ...

class CBCEClassifier(_CBCEClassifierSettings, RiverClassifier):
    """Experts on a geometric cover, averaged by coin betting; no fairness.

    The learner 'cbce': Jun, Orabona, Wright, Willett: AISTATS 2017."""

@settings.parameters
class _AdaptiveFairClassifierSettings(settings.RiverSettings, settings.DecoupledConfig): ...

class AdaptiveFairClassifier(_AdaptiveFairClassifierSettings, RiverClassifier):
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
