"""Add a learner of your own: its settings, its rule, an entry. Then check it and run it.

A package brings it to everyone by an entry point in its pyproject.toml:

    [project.entry-points."fairsaoml.learners"]
    steady = "my_package:ENTRY"
"""

from dataclasses import dataclass
from typing import Any

from fairsaoml import Batch, Learner, Problem, make_problem, open_stream, prequential
from fairsaoml.checks import check_learner
from fairsaoml.core.config import DrawingConfig, number, setting
from fairsaoml.core.primal_dual import Steps, primal_dual_step
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import PrimalDual
from fairsaoml.learners.families.one_pair import one_pair
from fairsaoml.learners.registry import Entry


@dataclass(frozen=True, kw_only=True)
class SteadyConfig(DrawingConfig):
    """Settings of the steady learner, besides those that all share."""

    primal_step: float = setting(0.2, number(0), "step of theta, for ever the same")
    dual_step: float = setting(0.2, number(0), "step of lambda")
    dual_damping: float = setting(0.01, number(0), "pull of lambda towards 0")


def steady(problem: Problem, config: SteadyConfig) -> Learner:
    """One primal-dual pair that steps on every draw of the present round, steadily."""
    steps = Steps(config.primal_step, config.dual_step, config.dual_damping)

    def move(round: Any, pair: PrimalDual, rows: Batch, deployed: Deployed) -> PrimalDual:
        return primal_dual_step(problem, pair, rows, deployed, steps, config.radius)

    return one_pair(problem, config, move)


WHY = "flipped labels move it as far as true ones"
ENTRY = Entry(SteadyConfig, steady, "one pair, constant steps", "examples/", thrown_off=WHY)


def main() -> None:
    """What `fairsaoml run synthetic --learner steady` would do, if it were registered."""
    check_learner("steady", ENTRY)
    stream = open_stream("synthetic", {"tasks": 4, "rows": 200})
    config = SteadyConfig()
    problem = make_problem(config, stream.schema)
    for played in prequential(stream, steady(problem, config), problem, seeds=[0]):
        record = played.records[0]
        print(f"round {record['round']}: {record['domain']}, accuracy {record['accuracy']:.3f}")


if __name__ == "__main__":
    main()
