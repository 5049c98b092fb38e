"""Theta as one vector while a round is learned: a step, a norm or a copy is one kernel, not six."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.flatten_util import ravel_pytree

from fairsaoml.core.types import Params, PrimalDual, Problem


class Vectors(NamedTuple):
    """A problem whose model takes a vector, and the way there and back."""

    problem: Problem
    tree_of: Callable[[PrimalDual], PrimalDual]

    def of(self, pair: PrimalDual) -> PrimalDual:
        """A pair with its theta as a vector."""
        return pair._replace(primal=ravel_pytree(pair.primal)[0])


def vectors(problem: Problem, primal: Params) -> Vectors:
    """The same problem on vectors; `primal` is only looked at for its shapes."""
    tree = ravel_pytree(primal)[1]
    scores = problem.model.scores
    model = problem.model._replace(scores=lambda vector, x: scores(tree(vector), x))
    return Vectors(
        problem=problem._replace(model=model),
        tree_of=lambda pair: pair._replace(primal=tree(pair.primal)),
    )


def every_pair(change: Callable[[PrimalDual], PrimalDual], state: Any) -> Any:
    """A state with its pairs changed: `meta`, and those of the experts in `bank`."""
    bank = state.bank._replace(pair=jax.vmap(change)(state.bank.pair))
    return state._replace(meta=change(state.meta), bank=bank)
