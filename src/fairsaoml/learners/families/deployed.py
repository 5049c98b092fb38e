"""What is deployed when one theta decides, and the diagnostics of learners without experts."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fairsaoml.core import prior
from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.types import Params, Problem, RoundInfo, State

__all__ = ["Decision", "alone", "decision_by"]


class Decision(NamedTuple):
    """Two of the protocol's functions: calibrated logits, and where they become a yes."""

    scores: Callable[[State, Float[Array, "row feature"]], Float[Array, "row"]]
    threshold: Callable[[State], Float[Array, ""]]


def decision_by(
    problem: Problem, config: LearnerConfig, primal: Callable[[State], Params]
) -> Decision:
    """The model with a state's theta, the class prior added back (D25)."""

    def scores(state: State, x: Float[Array, "row feature"]) -> Float[Array, "row"]:
        return problem.model.scores(primal(state), x) + prior.log_odds(state.prior)

    def threshold(state: State) -> Float[Array, ""]:
        return prior.threshold(state.prior, config.decision)

    return Decision(scores=scores, threshold=threshold)


def alone(dual: Float[Array, "constraint"], flags: dict[str, Bool[Array, ""]]) -> RoundInfo:
    """A round of a learner that is its only expert, always awake."""
    here = jnp.ones(1, bool)
    return RoundInfo(weights=jnp.ones(1), present=here, awake=here, dual=dual, flags=flags)
