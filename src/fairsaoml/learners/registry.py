"""Every learner by the name people type: its settings, its factory, where it comes from.

Another package adds a learner through the entry-point group `fairsaoml.learners`: the entry
point's name is the learner's, its object an `Entry`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError, closest
from fairsaoml.core.primal_dual import make_problem
from fairsaoml.core.types import Learner, Problem, Schema
from fairsaoml.learners.aod import AODConfig, aod
from fairsaoml.learners.cbce import CBCEConfig, cbce
from fairsaoml.learners.fair_aogd import FairAOGDConfig, fair_aogd
from fairsaoml.learners.fair_fml import FairFMLConfig, fair_fml
from fairsaoml.learners.fair_glc import FairGLCConfig, fair_glc
from fairsaoml.learners.fairsaoml import FairSAOMLConfig, fairsaoml
from fairsaoml.learners.live import LiveConfig, live
from fairsaoml.learners.mask_ftml import MaskFTMLConfig, mask_ftml
from fairsaoml.learners.newton import NewtonConfig, newton

__all__ = ["DEFAULT", "Entry", "build", "configure", "entry", "registered"]

DEFAULT = "fairsaoml-live"
GROUP = "fairsaoml.learners"


class Entry(NamedTuple):
    """What the registry knows of a learner."""

    config: type[LearnerConfig]
    factory: Callable[[Problem, Any], Learner]
    summary: str
    reference: str


LEARNERS: dict[str, Entry] = {
    "fairsaoml-live": Entry(
        LiveConfig,
        live,
        "experts on geometric intervals that all keep learning; their mixture decides",
        "this project; docs/explanation.md",
    ),
    "fairsaoml-newton": Entry(
        NewtonConfig,
        newton,
        "live experts of a linear model that solve their interval instead of stepping towards it",
        "this project; docs/explanation.md",
    ),
    "fairsaoml": Entry(
        FairSAOMLConfig,
        fairsaoml,
        "the paper's learner: experts adapt from a primal-dual meta pair when they wake",
        "Zhao, Mi, Wu, Jiang, Khan, Chen: KDD 2022",
    ),
    "mask-ftml": Entry(
        MaskFTMLConfig,
        mask_ftml,
        "follows the meta leader of the tasks seen; no fairness",
        "Finn, Rajeswaran, Kakade, Levine: ICML 2019",
    ),
    "fair-fml": Entry(
        FairFMLConfig,
        fair_fml,
        "follows the fair meta leader: a primal-dual pair at both levels",
        "Zhao, Chen, Thuraisingham: KDD 2021",
    ),
    "fair-aogd": Entry(
        FairAOGDConfig,
        fair_aogd,
        "one primal-dual pair on the present task, steps falling with time",
        "Jenatton, Huang, Archambeau: ICML 2016",
    ),
    "fair-glc": Entry(
        FairGLCConfig,
        fair_glc,
        "one pair on the present task, the price of a violation in closed form",
        "Yuan, Lamperski: NeurIPS 2018",
    ),
    "aod": Entry(
        AODConfig,
        aod,
        "experts on a dense geometric cover, averaged by AdaNormalHedge; no fairness",
        "Zhang, Lu, Yang: AISTATS 2020",
    ),
    "cbce": Entry(
        CBCEConfig,
        cbce,
        "experts on a geometric cover, averaged by coin betting; no fairness",
        "Jun, Orabona, Wright, Willett: AISTATS 2017",
    ),
}


def registered() -> dict[str, Entry]:
    """All learners: ours, then those that other packages bring."""
    return {**LEARNERS, **_others()}


@cache
def _others() -> dict[str, Entry]:
    """What is installed besides; looking through all packages takes a while."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}


def entry(name: str) -> Entry:
    """A learner by name; an unknown one is an error that says which was meant."""
    known = registered()
    if name not in known:
        raise ConfigError(f"unknown learner {name!r}; {closest(name, known)}")
    return known[name]


def configure(name: str, settings: Mapping[str, Any] | None = None) -> LearnerConfig:
    """A learner's validated settings."""
    return entry(name).config.from_dict(settings or {})


def build(name: str, config: LearnerConfig, schema: Schema) -> Learner:
    """A learner for a stream's schema."""
    return entry(name).factory(make_problem(config, schema), config)
