"""A cycle of rounds: as many as it takes until experts wake in the same order again."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.rows import Rows
from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.types import Learner
from fairsaoml.evaluate.compilation import jit
from fairsaoml.evaluate.seeds import bucket, stacked
from fairsaoml.learners import registry

__all__ = ["CYCLE", "compiled_for", "cycle_of"]

CYCLE = 32  # rounds


def compiled_for(learner: Learner, function: Callable[..., Any]) -> Any:
    """A function made of a learner's, compiled; as it is where the learner's are NumPy's."""
    return function if learner.turn else jit(function)


def cycle_of(name: str, config: LearnerConfig, rows: Rows, last: int) -> Callable[[], object]:
    """A call that learns the cycle of rounds up to `last`, every time from the same state.

    The cycle before it was learned too, so that every level's sample is full.
    """
    learner = registry.build(name, config, rows.schema)
    batches = [
        jax.tree.map(lambda leaf: leaf[0], stacked([task], bucket(len(task.y))))
        for task in rows.tasks[:CYCLE]
    ]

    def learn(round: Any, state: Any, batch: Any) -> Any:
        key = None if learner.turn else jax.random.fold_in(jax.random.key(0), round)
        return learner.step(key, round, state, batch)[0]

    step = compiled_for(learner, learn)

    def play(state: Any, first: int) -> Any:
        for round, batch in enumerate(batches, start=first):
            state = step(np.int32(round), state, batch)
        return jax.block_until_ready(state)

    begun = learner.grow(compiled_for(learner, learner.init)(jax.random.key(0)), last)
    begun = play(begun, last - 2 * CYCLE + 1)
    return lambda: play(begun, last - CYCLE + 1)
