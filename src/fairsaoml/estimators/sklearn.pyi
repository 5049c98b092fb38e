# Written by `make stubs` from the registry of learners; do not edit.

from fairsaoml.estimators import _attributes as settings
from fairsaoml.estimators.sklearn_adapter import OnlineClassifier as OnlineClassifier

class _Decoupled(settings.ClassifierSettings, settings.DecoupledConfig): ...

class DecoupledFairSAOMLClassifier(_Decoupled, OnlineClassifier, init=False):
    """Heads that learn label and group, and a few multipliers that make the decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md."""

class _FairSAOML(settings.ClassifierSettings, settings.FairSAOMLConfig): ...

class FairSAOMLClassifier(_FairSAOML, OnlineClassifier, init=False):
    """The paper's learner: experts adapt from a primal-dual meta pair when they wake.

    The learner 'fairsaoml': Zhao, Mi, Wu, Jiang, Khan, Chen: KDD 2022."""

class _MaskFTML(settings.ClassifierSettings, settings.MaskFTMLConfig): ...

class MaskFTMLClassifier(_MaskFTML, OnlineClassifier, init=False):
    """Follows the meta leader of the tasks seen; no fairness.

    The learner 'mask-ftml': Finn, Rajeswaran, Kakade, Levine: ICML 2019."""

class _FairFML(settings.ClassifierSettings, settings.FairFMLConfig): ...

class FairFMLClassifier(_FairFML, OnlineClassifier, init=False):
    """Follows the fair meta leader: a primal-dual pair at both levels.

    The learner 'fair-fml': Zhao, Chen, Thuraisingham: KDD 2021."""

class _FairAOGD(settings.ClassifierSettings, settings.FairAOGDConfig): ...

class FairAOGDClassifier(_FairAOGD, OnlineClassifier, init=False):
    """One primal-dual pair on the present task, steps falling with time.

    The learner 'fair-aogd': Jenatton, Huang, Archambeau: ICML 2016."""

class _FairGLC(settings.ClassifierSettings, settings.FairGLCConfig): ...

class FairGLCClassifier(_FairGLC, OnlineClassifier, init=False):
    """One pair on the present task, the price of a violation in closed form.

    The learner 'fair-glc': Yuan, Lamperski: NeurIPS 2018."""

class _AOD(settings.ClassifierSettings, settings.AODConfig): ...

class AODClassifier(_AOD, OnlineClassifier, init=False):
    """Experts on a dense geometric cover, averaged by AdaNormalHedge; no fairness.

    The learner 'aod': Zhang, Lu, Yang: AISTATS 2020."""

class _CBCE(settings.ClassifierSettings, settings.CBCEConfig): ...

class CBCEClassifier(_CBCE, OnlineClassifier, init=False):
    """Experts on a geometric cover, averaged by coin betting; no fairness.

    The learner 'cbce': Jun, Orabona, Wright, Willett: AISTATS 2017."""

class AdaptiveFairClassifier(_Decoupled, OnlineClassifier, init=False):
    """The default learner. Heads that learn label and group, and a few multipliers that make the
    decision fair.

    The learner 'fairsaoml-decoupled': this project; docs/explanation.md.

    Parameters
    ----------
    task_size : default None
        rows of a task, about: `fit` cuts its rows in order into equal tasks; without it, a
        twentieth of the rows, from 100 to 1,000
    standardize : default True
        whether features are centred and scaled by the first task's rows, and cut at five standard
        deviations; without it they should be of about unit size
    known_groups : default None
        groups that may turn up after the first task: a list, or {column: list}; any other that
        turns up later is counted as 'unseen' and is in no constraint
    random_state : default None
        seed of all that is random; an int gives the same result every time
    constraints : default 'eo'
        fairness asked for: demographic parity, equal opportunity, equalized odds
    decision : default 'accuracy'
        when a row is positive: calibrated probability over 0.5, over the base rate, or a number
    ratio : default 0.9
        what is asked for: the lowest group's rate over the highest
    aware : default False
        whether a row's own group may decide, where that is lawful
    """
