"""The smooth figures of a round: a mean loss, and violations."""

from jaxtyping import Float

from fairsaoml.core.arrays import Array, library, softplus
from fairsaoml.core.types import Batch, Problem

__all__ = ["loss_and_violation"]


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
