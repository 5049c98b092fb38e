"""One round of the game as the compiler sees it: score, adapt, learn.

The headline is zero-shot: what was learned before the round, on all rows of the task, with no
label of it used. Beside it stands "adapted": one pass of the learner on a labelled tenth of the
task, scored on the rest (D18).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core.types import Batch, Key, Learner, Problem, RoundInfo, State

__all__ = ["Outcome", "judged", "labelled_share", "play"]

SUPPORT_SHARE = 0.1  # of a task's rows are labelled for `adapted`


class Outcome(NamedTuple):
    """What a compiled round tells: scores as deployed, and the learner's diagnostics."""

    scores: Float[Array, "row"]
    threshold: Float[Array, ""]
    loss: Float[Array, ""]  # mean logistic loss of the deployed scores
    violation: Float[Array, "constraint"]  # smooth violations of the deployed scores
    adapted_scores: Float[Array, "row"]
    adapted_threshold: Float[Array, ""]
    adapted_loss: Float[Array, ""]  # the same two of the adapted scores, on the rows held out
    adapted_violation: Float[Array, "constraint"]
    held_out: Bool[Array, "row"]  # rows that `adapted` is scored on
    info: RoundInfo


def play(
    learner: Learner,
    problem: Problem,
    run_key: Key,
    round: Int[Array, ""],
    state: State,
    batch: Batch,
) -> tuple[State, Outcome]:
    """One round of one seed. All randomness comes from the run's key and the round's number."""
    split_key, step_key = jax.random.split(jax.random.fold_in(run_key, round))
    scores, threshold = learner.scores(state, batch.x), learner.threshold(state)
    support, held_out = labelled_share(split_key, batch)
    adapted = learner.adapt(state, support)
    adapted_scores, adapted_threshold = learner.scores(adapted, batch.x), learner.threshold(adapted)
    loss, violation = judged(problem, scores, threshold, batch)
    rest = batch._replace(weight=jnp.where(held_out, batch.weight, 0.0))
    adapted_loss, adapted_violation = judged(problem, adapted_scores, adapted_threshold, rest)
    learned, info = learner.step(step_key, round, state, batch)
    return learned, Outcome(
        scores=scores,
        threshold=threshold,
        loss=loss,
        violation=violation,
        adapted_scores=adapted_scores,
        adapted_threshold=adapted_threshold,
        adapted_loss=adapted_loss,
        adapted_violation=adapted_violation,
        held_out=held_out,
        info=info,
    )


def judged(
    problem: Problem, scores: Float[Array, "row"], threshold: Float[Array, ""], batch: Batch
) -> tuple[Float[Array, ""], Float[Array, "constraint"]]:
    """Mean logistic loss over rows, and the smooth violations: the f_t and g_t of regret."""
    rows = batch.weight.sum()
    losses = jax.nn.softplus(jnp.where(batch.y > 0, -scores, scores))
    loss = (batch.weight * losses).sum() / jnp.where(rows > 0, rows, 1.0)
    violation = [c.violation(scores - threshold, batch) for c in problem.constraints]
    return loss, jnp.stack(violation) if violation else jnp.zeros(0)


def labelled_share(key: Key, batch: Batch) -> tuple[Batch, Bool[Array, "row"]]:
    """A uniform tenth of the task's rows as a support batch, and which rows are not in it."""
    slots = batch.y.shape[0]
    rows = jnp.arange(slots)
    priority = jax.vmap(lambda row: jax.random.uniform(jax.random.fold_in(key, row)))(rows)
    priority = jnp.where(batch.weight > 0, priority, jnp.inf)
    size = jnp.ceil(SUPPORT_SHARE * batch.weight.sum())
    room = -(-slots // 8)  # a tenth of the rows always fits into an eighth of the slots
    chosen = jax.lax.top_k(-priority, room)[1]
    taken = jnp.arange(room) < size.astype(jnp.int32)
    support = jax.tree.map(lambda leaf: leaf[chosen], batch)
    support = support._replace(weight=jnp.where(taken, support.weight, 0.0))
    held_out = (batch.weight > 0).at[jnp.where(taken, chosen, slots)].set(False, mode="drop")
    return support, held_out
