"""A learner: one primal-dual pair that takes steps of one size."""

from dataclasses import dataclass
from typing import Any

from fairsaoml.core.config import LearnerConfig, number, setting
from fairsaoml.core.learner import Method, Update, wrap
from fairsaoml.core.primal_dual import Steps, evaluate, primal_dual_step, start
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Learner, PrimalDual, Problem
from fairsaoml.learners.registry import Entry


@dataclass(frozen=True, kw_only=True)
class SteadyConfig(LearnerConfig):
    """Its own settings."""

    step: float = setting(0.5, number(0), "step of theta and of lambda")


def steady(problem: Problem, config: SteadyConfig) -> Learner:
    """The learner `steady`: a step on the rows of each round."""
    steps = Steps(primal=config.step, dual=config.step, damping=0.01)

    def move(round: Any, pair: PrimalDual, rows: Batch, deployed: Deployed) -> PrimalDual:
        return primal_dual_step(problem, pair, rows, deployed, steps, config.radius)

    def step(key: Any, round: Any, pair: PrimalDual, rows: Batch, deployed: Deployed) -> Update:
        pair = move(round, pair, rows, deployed)
        return Update(learned=pair, violation=evaluate(problem, pair.primal, rows, deployed)[1])

    def logits(pair: PrimalDual, x: Any) -> Any:
        return problem.model.scores(pair.primal, x)

    init = lambda key: start(problem, key)  # noqa: E731
    return wrap(problem, config, Method(init, logits, move, step, dual=lambda pair: pair.dual))


WHY = "flipped labels move it as far as true ones"
ENTRY = Entry(SteadyConfig, steady, "one pair, steady steps", "tests/plugin", thrown_off=WHY)
