"""Every learner by the name people type: its settings, its factory, where it comes from.

Another package adds a learner through the entry-point group `fairsaoml.learners`: the entry
point's name is the learner's, its object an `Entry`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from typing import Any, NamedTuple

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError
from fairsaoml.core.fairness import NOTIONS
from fairsaoml.core.models import MODELS
from fairsaoml.core.problem import make_problem
from fairsaoml.core.registry import Registry
from fairsaoml.core.types import Learner, Problem, Schema
from fairsaoml.learners.aod import AODConfig, aod
from fairsaoml.learners.cbce import CBCEConfig, cbce
from fairsaoml.learners.decoupled import DecoupledConfig, decoupled
from fairsaoml.learners.fair_aogd import FairAOGDConfig, fair_aogd
from fairsaoml.learners.fair_fml import FairFMLConfig, fair_fml
from fairsaoml.learners.fair_glc import FairGLCConfig, fair_glc
from fairsaoml.learners.fairsaoml import FairSAOMLConfig, fairsaoml
from fairsaoml.learners.mask_ftml import MaskFTMLConfig, mask_ftml

DEFAULT = "fairsaoml-decoupled"


class Entry(NamedTuple):
    """What the registry knows of a learner; listings and estimators are made from it."""

    config: type[LearnerConfig]
    factory: Callable[[Problem, Any], Learner]
    summary: str
    reference: str
    estimator: str = ""  # name of its scikit-learn and River classes; else made from the learner's
    is_random: bool = True  # whether two seeds differ on the same rows
    # How closely programs that round differently agree over five rounds (`fairsaoml.checks`).
    agreement: float = 1e-5
    # Why it may not be back ten rounds after three bad batches (`fairsaoml.checks`); empty: it is.
    thrown_off: str = ""

    @property
    def settings(self) -> dict[str, Field]:
        """Its settings by name, the problem's included: default, rule and meaning."""
        return {item.name: item for item in fields(self.config)}


STEPS = (
    "a plain gradient step on a column a thousand times too large leaves weights so far off that "
    "steps of its size do not bring them back"
)

BUILTIN: dict[str, Entry] = {
    "fairsaoml-decoupled": Entry(
        DecoupledConfig,
        decoupled,
        "heads that learn label and group, and a few multipliers that make the decision fair",
        "this project; docs/explanation.md",
        estimator="DecoupledFairSAOMLClassifier",
        is_random=False,
        # Multipliers are the minimum of a nearly flat function, found in float32.
        agreement=2e-2,
    ),
    "fairsaoml": Entry(
        FairSAOMLConfig,
        fairsaoml,
        "the paper's learner: experts adapt from a primal-dual meta pair when they wake",
        "Zhao, Mi, Wu, Jiang, Khan, Chen: KDD 2022",
        "FairSAOMLClassifier",
        thrown_off=STEPS,
    ),
    "mask-ftml": Entry(
        MaskFTMLConfig,
        mask_ftml,
        "follows the meta leader of the tasks seen; no fairness",
        "Finn, Rajeswaran, Kakade, Levine: ICML 2019",
        "MaskFTMLClassifier",
    ),
    "fair-fml": Entry(
        FairFMLConfig,
        fair_fml,
        "follows the fair meta leader: a primal-dual pair at both levels",
        "Zhao, Chen, Thuraisingham: KDD 2021",
        "FairFMLClassifier",
    ),
    "fair-aogd": Entry(
        FairAOGDConfig,
        fair_aogd,
        "one primal-dual pair on the present task, steps falling with time",
        "Jenatton, Huang, Archambeau: ICML 2016",
        "FairAOGDClassifier",
        thrown_off=STEPS,
    ),
    "fair-glc": Entry(
        FairGLCConfig,
        fair_glc,
        "one pair on the present task, the price of a violation in closed form",
        "Yuan, Lamperski: NeurIPS 2018",
        "FairGLCClassifier",
        thrown_off=STEPS,
    ),
    "aod": Entry(
        AODConfig,
        aod,
        "experts on a dense geometric cover, averaged by AdaNormalHedge; no fairness",
        "Zhang, Lu, Yang: AISTATS 2020",
        "AODClassifier",
        thrown_off=STEPS,
    ),
    "cbce": Entry(
        CBCEConfig,
        cbce,
        "experts on a geometric cover, averaged by coin betting; no fairness",
        "Jun, Orabona, Wright, Willett: AISTATS 2017",
        "CBCEClassifier",
    ),
}


# Learners of before, and the last revision of the repository that has each.
RETIRED = {"fairsaoml-live": "38e6b18", "fairsaoml-newton": "38e6b18"}

LEARNERS: Registry[Entry] = Registry(
    "learner",
    "fairsaoml.learners",
    BUILTIN,
    fits=lambda item: isinstance(item, Entry),
    expected="an Entry (fairsaoml.learners.registry)",
)


def registered() -> dict[str, Entry]:
    """Return every learner's entry by name: ours, then those that other packages bring."""
    return LEARNERS.all()


def entry(name: str) -> Entry:
    """A learner by name.

    Raises ConfigError for an unknown one, with the name that was probably meant, and for a retired
    one, with the last revision that has it.
    """
    if name in RETIRED and name not in LEARNERS.names():
        raise ConfigError(
            f"{name} was replaced by {DEFAULT}; its runs can still be reported on, and the last "
            f"revision that runs it is {RETIRED[name]} of the repository"
        )
    return LEARNERS.get(name)


def configure(name: str, settings: Mapping[str, Any] | None = None) -> LearnerConfig:
    """A learner's settings, the problem's included: the defaults and what is given.

    Args:
        name: A registered learner, such as "fairsaoml-decoupled".
        settings: Values by name of those that are not to be the defaults.

    Returns:
        The learner's config, checked.

    Raises:
        ConfigError: The learner or a setting is unknown, or a value is not taken.
    """
    return entry(name).config.from_dict(settings or {})


def build(name: str, config: LearnerConfig, schema: Schema) -> Learner:
    """A learner for a stream's schema, on the problem that its settings pose."""
    return pose(entry(name), config, schema)[1]


def pose(learner: Entry, config: LearnerConfig, schema: Schema) -> tuple[Problem, Learner]:
    """The problem that a learner's settings pose on a stream's schema, and the learner for it."""
    problem = make_problem(config, schema)
    made = learner.factory(problem, config)
    if any(registry.has_plugins() for registry in (LEARNERS, NOTIONS, MODELS)):
        return problem, made  # what other packages' code does is not known
    levels = [len(attribute.levels) for attribute in schema.attributes]
    parts = [learner.factory.__qualname__, config.to_dict(), len(schema.features), levels]
    return problem, made._replace(made_of=json.dumps(parts, sort_keys=True, default=str))
