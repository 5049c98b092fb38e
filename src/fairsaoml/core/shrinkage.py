"""What a gap between groups is worth: relative to its rate, and shrunk where rows are few.

Gaps are relative: divided by twice the rate they are gaps of. The 80 % rule is about ratios, and
.02 is little between rates of .5 and much between rates of .03. And they are shrunk: a group of a
few rows can show any gap; to chase it costs accuracy and helps nobody.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairsaoml.core.primal_dual import gaps
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, GroupGap, Problem

__all__ = ["relative_gaps", "shrinkage", "uncertainty"]

SMALLEST_RATE = 0.01  # of decisions, below which gaps are not enlarged further

PerConstraint = Float[Array, "constraint"]


def relative_gaps(
    problem: Problem, logits: Float[Array, "row"], batch: Batch, deployed: Deployed
) -> GroupGap:
    """Signed gaps divided by twice their rate; the rate is clipped, and held fixed in gradients."""
    gap = gaps(problem, logits, batch, deployed)
    rate = jax.lax.stop_gradient(jnp.clip(gap.rate, SMALLEST_RATE, 1 - SMALLEST_RATE))
    return gap._replace(value=gap.value / (2 * rate), rate=rate)


def uncertainty(problem: Problem, rows: Batch) -> PerConstraint:
    """1/n + 1/n' for the two sides of each constraint: what a gap's variance is proportional to."""
    counts = [c.rows(rows) for c in problem.constraints]
    sums = [1 / jnp.maximum(one, 1.0) + 1 / jnp.maximum(two, 1.0) for one, two in counts]
    return jnp.stack(sums) if sums else jnp.zeros(0)


def shrinkage(scale: float, uncertain: PerConstraint, rate: PerConstraint) -> PerConstraint:
    """The share of a relative gap that is kept: c = t^2 / (t^2 + se^2).

    The posterior mean of a gap that is, before looking, of size t = `scale`, and that rows of
    standard error se then show: se^2 = (1 - r) / 4r (1/n + 1/n') at rate r.

    >>> shrinkage(0.1, jnp.array([0.08]), jnp.array([0.5])).round(3).item()
    0.3330000042915344
    """
    variance = uncertain * (1 - rate) / (4 * rate)
    return scale**2 / (scale**2 + variance)
