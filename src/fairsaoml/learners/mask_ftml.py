"""MaskFTML: follow the meta leader, without fairness (Finn et al. 2019).

Keeps the tasks seen, the present one included; N_meta times a round it draws one of them uniformly,
adapts on its support S and steps on its query Q:

    theta' = theta - inner grad f(theta; S),   theta <- P(theta - meta grad_theta f(theta'; Q)).

"Mask": the protected attribute is neither an input nor in a constraint.

Adapted: the original keeps every task for ever; here a bounded uniform sample of them is kept
(`tasks_kept`; as many as rounds is the original), with at most `capacity` rows per class of each.
What is deployed is the meta theta with the prior's log-odds, as for every learner here; the
original's adaptation to the present task before scoring stands beside it, as `adapted` (D18).
The meta gradient is taken at theta' (`meta_gradient="first-order"`): the exact one trains for
accuracy after adaptation at the cost of the deployed theta, which is what is scored.

Reference: Finn, Rajeswaran, Kakade, Levine: Online meta-learning, ICML 2019. Its O(log T) regret is
for strongly convex losses.
"""

from dataclasses import dataclass

from fairsaoml.core.config import no_notions
from fairsaoml.core.types import Learner, Problem
from fairsaoml.learners.families.meta_leader import MetaLeaderConfig, meta_leader


@dataclass(frozen=True, kw_only=True)
class MaskFTMLConfig(MetaLeaderConfig):
    """Settings of MaskFTML; the defaults are the same for every stream."""

    constraints: str = no_notions()


def mask_ftml(problem: Problem, config: MaskFTMLConfig) -> Learner:
    """The learner `mask-ftml`: the meta leader of a problem without constraints."""
    return meta_leader(problem, config)
