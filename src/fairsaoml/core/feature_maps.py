"""Features beyond the columns themselves: hinges, steps and random ReLUs, set by the first rows.

A linear head is wrong where a threshold decides. The rich map adds, for numeric columns (more than
FEW_VALUES values in the first rows), hinges max(x_j - k, 0) and steps [x_j > k] at their quantiles,
and ReLUs max(w . x - c, 0) of a few random columns each for what columns do together. Budgets are
fixed, so shapes are; what is not used is 0. Nothing is random from run to run: a draw is the
hash of its place.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core.hashing import mixed, uniform
from fairsaoml.core.logistic_experts import nth_rows

__all__ = ["RichMap", "blocks", "fit", "owners", "rich", "unfitted", "width"]

HINGES, STEPS, RELUS = 32, 48, 80  # budgets of features
MOST_HINGES, MOST_STEPS = 6, 64  # of one column
RELU_COLUMNS = 3
FEW_VALUES = 5  # a column of no more values is a category, not a number
NUMERIC_PREFERENCE = 3.0  # how much more often a ReLU takes a numeric column
FIT_ROWS = 512  # of the first task
CLIP = 8.0  # of columns
FEATURE_CLIP = 5.0  # of features, in standard deviations
SMALLEST_SCALE = 0.05

Rows = Float[Array, "row feature"]
Columns = Float[Array, "feature row"]  # rows last: a column is read as it lies in memory


class Knots(NamedTuple):
    """Where a budget of thresholds lies: a column and a value each; unused ones are at infinity."""

    column: Int[Array, "knot"]
    value: Float[Array, "knot"]


class RichMap(NamedTuple):
    """What the first rows set; before them every feature is 0."""

    fitted: Bool[Array, ""]
    hinges: Knots
    steps: Knots
    direction: Float[Array, "feature relu"]
    offset: Float[Array, "relu"]
    mean: Float[Array, "rich"]
    scale: Float[Array, "rich"]


def width() -> int:
    """The number of features of the rich map, the columns and the constant apart."""
    return HINGES + STEPS + RELUS


def blocks(fitted: RichMap) -> tuple[int, int, int]:
    """How many features of each sort a map has; each sort has a ridge of its own."""
    return len(fitted.hinges.column), len(fitted.steps.column), len(fitted.offset)


def unfitted(features: int) -> RichMap:
    """The map before any row: all features 0."""

    def nowhere(count: int) -> Knots:
        return Knots(jnp.zeros(count, jnp.int32), jnp.full(count, CLIP, jnp.float32))

    return RichMap(
        fitted=jnp.zeros((), bool),
        hinges=nowhere(HINGES),
        steps=nowhere(STEPS),
        direction=jnp.zeros((features, RELUS)),
        offset=jnp.zeros(RELUS),
        mean=jnp.zeros(width()),
        scale=jnp.ones(width()),
    )


def rich(fitted: RichMap, columns: Columns) -> Float[Array, "rich row"]:
    """The features of clipped rows, centred and scaled as the first rows were."""
    scale = jnp.where(fitted.fitted, 1 / fitted.scale, 0.0)
    scaled = (_raw(fitted, columns) - fitted.mean[:, None]) * scale[:, None]
    return jnp.clip(scaled, -FEATURE_CLIP, FEATURE_CLIP)


def _raw(fitted: RichMap, columns: Columns) -> Float[Array, "rich row"]:
    """Every feature is a threshold of a direction, so that one product makes them all."""
    one_column = (
        jax.nn.one_hot(knots.column, len(columns)) for knots in (fitted.hinges, fitted.steps)
    )
    directions = jnp.concatenate([*one_column, fitted.direction.T])
    offsets = jnp.concatenate([fitted.hinges.value, fitted.steps.value, fitted.offset])
    beyond = directions @ columns - offsets[:, None]
    hinges, steps, _ = blocks(fitted)
    place = jnp.arange(len(offsets))[:, None]
    is_step = (place >= hinges) & (place < hinges + steps)
    return jnp.where(is_step, (beyond > 0).astype(jnp.float32), jnp.maximum(beyond, 0.0))


def owners(fitted: RichMap) -> Float[Array, "rich feature"]:
    """Which columns a rich feature is made of, in shares that sum to one."""
    features = len(fitted.direction)
    hinges, steps = (
        jax.nn.one_hot(knots.column, features) for knots in (fitted.hinges, fitted.steps)
    )
    size = jnp.abs(fitted.direction).T
    relus = size / jnp.maximum(size.sum(1, keepdims=True), 1e-9)
    return jnp.concatenate([hinges, steps, relus])


def fit(empty: RichMap, x: Rows, weight: Float[Array, "row"]) -> RichMap:
    """Set an empty map by the first rows: those with weight, at most FIT_ROWS of them."""
    hinges, steps, relus = blocks(empty)
    real = weight > 0
    chosen, real = nth_rows(real.astype(jnp.float32), min(FIT_ROWS, len(x)))
    x = x[chosen]
    count = real.sum()
    ordered = jnp.sort(jnp.where(real[:, None], x, jnp.inf), axis=0)
    pairs = jnp.arange(1, len(x)) < count
    distinct = 1 + ((ordered[1:] > ordered[:-1] + 1e-6) & pairs[:, None]).sum(0)
    numeric = distinct > FEW_VALUES
    share = real.astype(jnp.float32) / jnp.maximum(count, 1).astype(jnp.float32)
    deviation = jnp.sqrt(share @ (x - share @ x) ** 2)
    direction, offset = _random_relus(x, count, deviation, numeric, relus)
    bare = RichMap(
        fitted=count > 0,
        hinges=_knots(ordered, count, distinct, numeric, hinges, MOST_HINGES),
        steps=_knots(ordered, count, distinct, numeric, steps, MOST_STEPS),
        direction=direction,
        offset=offset,
        mean=jnp.zeros_like(empty.mean),
        scale=jnp.ones_like(empty.scale),
    )
    raw = _raw(bare, x.T)
    mean = raw @ share
    spread = jnp.sqrt((raw - mean[:, None]) ** 2 @ share)
    return bare._replace(mean=mean, scale=spread + SMALLEST_SCALE)


def _knots(
    ordered: Rows,
    count: Int[Array, ""],
    distinct: Int[Array, "feature"],
    numeric: Bool[Array, "feature"],
    budget: int,
    most: int,
) -> Knots:
    """Quantiles of the numeric columns; a column of few values leaves its share to the others."""
    useful = jnp.where(numeric, jnp.minimum(distinct - 1, most), 0)
    shares = jnp.arange(1, most + 1)
    fits = jnp.minimum(useful[None], shares[:, None]).sum(1) <= budget
    share = jnp.maximum(jnp.where(fits, shares, 0).max(), 1)
    counts = jnp.minimum(useful, share)
    ends = jnp.cumsum(counts)
    slot = jnp.arange(budget)
    column = jnp.minimum(
        jnp.searchsorted(ends, slot, side="right", method="compare_all"), len(counts) - 1
    )
    within = (slot - ends[column] + counts[column]).astype(jnp.float32)
    quantile = (within + 0.5) / jnp.maximum(counts[column], 1).astype(jnp.float32)
    last = jnp.maximum(count - 1, 0)
    place = jnp.clip((quantile * last.astype(jnp.float32)).astype(jnp.int32), 0, last)
    value = ordered[place, column]
    repeated = (
        jnp.zeros(budget, bool).at[1:].set((column[1:] == column[:-1]) & (value[1:] == value[:-1]))
    )
    used = (slot < ends[-1]) & ~repeated
    return Knots(column=column.astype(jnp.int32), value=jnp.where(used, value, CLIP))


def _random_relus(
    x: Rows,
    count: Int[Array, ""],
    deviation: Float[Array, "feature"],
    numeric: Bool[Array, "feature"],
    relus: int,
) -> tuple[Float[Array, "feature relu"], Float[Array, "relu"]]:
    """Directions of a few columns each, drawn by their spread; offsets at the value of some row."""
    features = x.shape[1]
    columns = min(RELU_COLUMNS, features)
    draws = jnp.arange(relus * (features + 2 * columns + 1), dtype=jnp.uint32)
    drawn = uniform(mixed(mixed(draws) + jnp.uint32(1))).reshape(relus, -1)
    noise = -jnp.log(-jnp.log(drawn[:, :features]))
    sign = jnp.sign(drawn[:, features : features + columns] - 0.5)
    size = 0.5 + drawn[:, features + columns : -1]
    part = drawn[:, -1]
    preference = jnp.where(numeric, NUMERIC_PREFERENCE, 1.0)
    chance = jnp.log(preference * jnp.minimum(deviation, 1.0) ** 2 + 1e-9)
    # The largest of chances with Gumbel noise: a draw without replacement.
    chosen = jax.lax.top_k(chance + noise, columns)[1]
    weight = sign * size / (deviation[chosen] + 0.1)
    direction = jnp.zeros((features, relus)).at[chosen, jnp.arange(relus)[:, None]].set(weight)
    row = jnp.minimum((part * count.astype(jnp.float32)).astype(jnp.int32), len(x) - 1)
    return direction, (x[row] * direction.T).sum(1)
