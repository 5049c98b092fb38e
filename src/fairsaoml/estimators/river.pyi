# Written by `make stubs` from the registry of learners; do not edit.

from fairsaoml.estimators import _attributes as settings
from fairsaoml.estimators.river_adapter import RiverClassifier as RiverClassifier

class _Decoupled(settings.RiverSettings, settings.DecoupledConfig): ...

class DecoupledFairSAOMLClassifier(_Decoupled, RiverClassifier, init=False):
    """Heads that learn label and group, and a few multipliers that make the decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""

class _FairSAOML(settings.RiverSettings, settings.FairSAOMLConfig): ...

class FairSAOMLClassifier(_FairSAOML, RiverClassifier, init=False):
    """The paper's learner: experts adapt from a primal-dual meta pair when they wake.

    The learner 'fairsaoml': Zhao, Mi, Wu, Jiang, Khan, Chen: KDD 2022."""

class _MaskFTML(settings.RiverSettings, settings.MaskFTMLConfig): ...

class MaskFTMLClassifier(_MaskFTML, RiverClassifier, init=False):
    """Follows the meta leader of the tasks seen; no fairness.

    The learner 'mask-ftml': Finn, Rajeswaran, Kakade, Levine: ICML 2019."""

class _FairFML(settings.RiverSettings, settings.FairFMLConfig): ...

class FairFMLClassifier(_FairFML, RiverClassifier, init=False):
    """Follows the fair meta leader: a primal-dual pair at both levels.

    The learner 'fair-fml': Zhao, Chen, Thuraisingham: KDD 2021."""

class _FairAOGD(settings.RiverSettings, settings.FairAOGDConfig): ...

class FairAOGDClassifier(_FairAOGD, RiverClassifier, init=False):
    """One primal-dual pair on the present task, steps falling with time.

    The learner 'fair-aogd': Jenatton, Huang, Archambeau: ICML 2016."""

class _FairGLC(settings.RiverSettings, settings.FairGLCConfig): ...

class FairGLCClassifier(_FairGLC, RiverClassifier, init=False):
    """One pair on the present task, the price of a violation in closed form.

    The learner 'fair-glc': Yuan, Lamperski: NeurIPS 2018."""

class _AOD(settings.RiverSettings, settings.AODConfig): ...

class AODClassifier(_AOD, RiverClassifier, init=False):
    """Experts on a dense geometric cover, averaged by AdaNormalHedge; no fairness.

    The learner 'aod': Zhang, Lu, Yang: AISTATS 2020."""

class _CBCE(settings.RiverSettings, settings.CBCEConfig): ...

class CBCEClassifier(_CBCE, RiverClassifier, init=False):
    """Experts on a geometric cover, averaged by coin betting; no fairness.

    The learner 'cbce': Jun, Orabona, Wright, Willett: AISTATS 2017."""

class AdaptiveFairClassifier(_Decoupled, RiverClassifier, init=False):
    """The default learner. Heads that learn label and group, and a few multipliers that make the
    decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""
