"""FairFML: follow the fair meta leader (Zhao et al. 2021, "FFML").

Follow the leader with a primal-dual pair at both levels. Of a task drawn uniformly from those
seen, the inner pair adapts on the support S from the meta pair, its dual clipped at 0,

    theta' = theta - inner grad (f + lambda . g)(theta; S),
    lambda' = [lambda + inner g(theta'; S)]_+,

and the meta pair moves on the augmented Lagrangian of the query Q, with its own dual,

    L(theta, lambda) = f(theta'; Q) + lambda . g(theta'; Q) - delta eta_dual |lambda|^2 / 2:
    theta <- P(theta - eta_primal grad_theta L),   lambda <- [lambda + eta_dual grad_lambda L]_+.

Adapted: a bounded uniform sample of the tasks instead of all (`tasks_kept`; as many as rounds is
the original). In grad_lambda the dependence of theta' on lambda is left out, and grad_theta is
taken at theta' (`meta_gradient="first-order"`; `"exact"` goes through the adaptation). lambda'
matters from the second inner step on; the first is taken at lambda.

Reference: Zhao, Chen, Thuraisingham: Fairness-aware online meta-learning, KDD 2021. Its O(log T)
regret and O(sqrt(T log T)) violation are for convex-concave problems.
"""

from dataclasses import dataclass

from fairsaoml.core.config import damping, number, setting
from fairsaoml.core.types import Learner, Problem
from fairsaoml.learners.families.meta_leader import MetaLeaderConfig, meta_leader


@dataclass(frozen=True, kw_only=True)
class FairFMLConfig(MetaLeaderConfig):
    """Settings of FairFML; the defaults are the same for every stream."""

    inner_dual_step: float = setting(0.1, number(0), "step of lambda in adaptation")
    meta_dual_step: float = setting(0.1, number(0), "eta_dual: step of the meta lambda")
    dual_damping: float = damping()
    initial_dual: float = setting(0.0, number(0), "lambda_0")


def fair_fml(problem: Problem, config: FairFMLConfig) -> Learner:
    """The learner `fair-fml`."""
    return meta_leader(problem, config)
