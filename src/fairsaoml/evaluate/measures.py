"""What a round is measured by: a mean loss and smooth violations, also after a few labels (D18)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from fairsaoml.core import threefry
from fairsaoml.core.arrays import Array, library, softplus
from fairsaoml.core.types import Batch, Key, Learner, Problem, State

SUPPORT_SHARE = 0.1  # of a task's rows are labelled for `adapted`


class Adapted(NamedTuple):
    """A round's rows after adapting to a few labels of it."""

    margins: Float[Array, "row"]
    loss: Float[Array, ""]  # of the rows held out, like the violation
    violation: Float[Array, "constraint"]
    held_out: Bool[Array, "row"]  # rows that were not adapted to


def loss_and_violation(
    problem: Problem, scores: Float[Array, "row"], margins: Float[Array, "row"], batch: Batch
) -> tuple[Float[Array, ""], Float[Array, "constraint"]]:
    """Mean logistic loss of deployed scores, and the smooth violations of their margins."""
    xp = library(scores)
    rows = batch.weight.sum()
    losses = softplus(xp.where(batch.y > 0, -scores, scores))
    loss = (batch.weight * losses).sum() / xp.where(rows > 0, rows, 1.0)
    violation = [c.violation(margins, batch) for c in problem.constraints]
    return loss, xp.stack(violation) if violation else xp.zeros(0)


def after_adapting(
    learner: Learner, problem: Problem, key: Key, state: State, batch: Batch
) -> Adapted:
    """Adapt to a labelled share of a round's rows and measure on the others."""
    assert learner.adapt is not None
    support, held_out = labelled_share(key, batch)
    adapted = learner.adapt(state, support)
    margins = learner.margins(adapted, batch.x, batch.group)
    rest = batch._replace(weight=jnp.where(held_out, batch.weight, 0.0))
    loss, violation = loss_and_violation(problem, learner.scores(adapted, batch.x), margins, rest)
    return Adapted(margins=margins, loss=loss, violation=violation, held_out=held_out)


def labelled_share(key: Key, batch: Batch) -> tuple[Batch, Bool[Array, "row"]]:
    """A uniform tenth of the task's rows as a support batch, and which rows are not in it."""
    slots = batch.y.shape[0]
    rows = jnp.arange(slots)
    priority = threefry.uniform_each(key, rows)
    priority = jnp.where(batch.weight > 0, priority, jnp.inf)
    size = jnp.ceil(SUPPORT_SHARE * batch.weight.sum())
    room = -(-slots // 8)  # a tenth of the rows always fits into an eighth of the slots
    chosen = jax.lax.top_k(-priority, room)[1]
    taken = jnp.arange(room) < size.astype(jnp.int32)
    support = jax.tree.map(lambda leaf: leaf[chosen], batch)
    support = support._replace(weight=jnp.where(taken, support.weight, 0.0))
    held_out = (batch.weight > 0).at[jnp.where(taken, chosen, slots)].set(False, mode="drop")
    return support, held_out
