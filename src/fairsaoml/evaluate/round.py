"""One round: score, adapt, learn; as the compiler sees it, or as NumPy plays it.

The headline is zero-shot: what was learned before the round, on all rows of the task, with no
label of it used. Beside it stands "adapted": one pass of the learner on a labelled tenth of the
task, scored on the rest (D18), for learners that have such a pass.
"""

from typing import Any, NamedTuple

from jaxtyping import Float, Int

from fairsaoml.core.arrays import Array
from fairsaoml.core.keys import round_keys
from fairsaoml.core.types import Batch, Key, Learner, Problem, RoundInfo, Shown, State
from fairsaoml.evaluate.measures import Adapted, after_adapting, loss_and_violation


class Outcome(NamedTuple):
    """What a compiled round tells: the rows as they were scored and decided, and diagnostics."""

    shown: Shown  # what the rows were scored and decided with
    loss: Float[Array, ""]  # mean logistic loss of the scores
    violation: Float[Array, "constraint"]  # smooth violations of the margins
    adapted: Adapted | None  # None of a learner without such a pass
    info: RoundInfo


def run_round(
    learner: Learner,
    problem: Problem,
    run_key: Key,
    round: Int[Array, ""],
    state: State,
    batch: Batch,
) -> tuple[State, Outcome]:
    """One round of one seed: the state after it, and what it showed."""
    adapted = None
    if learner.turn:
        learned, info, shown = learner.turn(None, round, state, batch)
    else:
        keys = round_keys(run_key, round)
        shown = shown_by(learner, state, batch.x, batch.group)
        learned, info = learner.step(keys.step, round, state, batch)
        if learner.adapt:
            adapted = after_adapting(learner, problem, keys.split, state, batch)
    loss, violation = loss_and_violation(problem, shown.scores, shown.margins, batch)
    return learned, Outcome(shown, loss, violation, adapted, info)


def shown_by(learner: Learner, state: State, x: Any, group: Any) -> Shown:
    """What a state scores and decides rows with."""
    if learner.show:
        return learner.show(state, x, group)
    return Shown(learner.scores(state, x), learner.margins(state, x, group))
