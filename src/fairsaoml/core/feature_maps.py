"""Features beyond the columns themselves: hinges, steps and random ReLUs, set by the first rows.

A linear head is wrong where a threshold decides. The rich map adds, for numeric columns (more than
FEW_VALUES values in the first rows), hinges max(x_j - k, 0) and steps [x_j > k] at their quantiles,
and ReLUs max(w . x - c, 0) of a few random columns each for what columns do together. Budgets are
fixed; what is not used is 0. Nothing is random from run to run: a draw is the hash of its place.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array

from fairsaoml.core.arrays import Array, latest
from fairsaoml.core.unseeded import mixed, nth_rows, uniform

HINGES, STEPS, RELUS = 32, 48, 80  # budgets of features
MOST_HINGES, MOST_STEPS = 6, 64  # of one column
RELU_COLUMNS = 3
FEW_VALUES = 5  # a column of no more values is a category, not a number
NUMERIC_PREFERENCE = 3.0  # how much more often a ReLU takes a numeric column
FIT_ROWS = 512  # of the first task
CLIP = 8.0  # of columns
FEATURE_CLIP = 5.0  # of features, in standard deviations
STEEP = 2.0**30  # of a step; a power of two, so that products are exact
SAME = 5e-7  # so much above a step's value a column is not yet beyond it
SMALLEST_SCALE = 0.05

Rows = Float[Array, "row feature"]


class Knots(NamedTuple):
    """Where a budget of thresholds lies: a column and a value each; unused ones are at infinity."""

    column: Int[Array, "knot"]
    value: Float[Array, "knot"]


class Directions(NamedTuple):
    """What ReLUs look along: a few columns each, how much of each, and where they begin."""

    column: Int[Array, "relu part"]
    size: Float[Array, "relu part"]
    offset: Float[Array, "relu"]


class RichMap(NamedTuple):
    """What the first rows set; before them every feature is 0."""

    fitted: Bool[Array, ""]
    hinges: Knots
    steps: Knots
    relus: Directions
    mean: Float[Array, "rich"]
    scale: Float[Array, "rich"]


def width() -> int:
    """The number of features of the rich map, the columns and the constant apart."""
    return HINGES + STEPS + RELUS


def blocks(fitted: RichMap) -> tuple[int, int, int]:
    """How many features of each sort a map has; each sort has a ridge of its own."""
    return len(fitted.hinges.column), len(fitted.steps.column), len(fitted.relus.column)


def unfitted(features: int) -> RichMap:
    """The map before any row: all features 0."""

    def nowhere(count: int) -> Knots:
        return Knots(np.zeros(count, np.int32), np.full(count, CLIP, np.float32))

    return RichMap(
        fitted=np.zeros((), bool),
        hinges=nowhere(HINGES),
        steps=nowhere(STEPS),
        relus=Directions(
            column=np.zeros((RELUS, min(RELU_COLUMNS, features)), np.int32),
            size=np.zeros((RELUS, min(RELU_COLUMNS, features)), np.float32),
            offset=np.zeros(RELUS, np.float32),
        ),
        mean=np.zeros(width(), np.float32),
        scale=np.ones(width(), np.float32),
    )


def add_rich(fitted: RichMap, features: Float[Array, "width row"]) -> None:
    """Write the rich features of rows below what is there: a constant 1, and clipped columns.

    They are centred and scaled as the first rows were, and 0 where the map is not set.
    """
    rich = features[len(features) - sum(blocks(fitted)) :]
    if fitted.fitted:
        _ramps_of(fitted).write(features, out=rich)
    else:
        rich[:] = 0.0


class Ramps(NamedTuple):
    """Features as a line each, of the constant and a few columns, between two bounds.

    A hinge less its mean, max(z, 0) - m, is z - m, but at least -m. A step is a steep ramp.
    """

    line: csr_array
    least: Float[Array, "rich 1"]
    most: Float[Array, "rich 1"]

    def write(self, features: Float[Array, "column row"], out: Float[Array, "rich row"]) -> None:
        """The features of rows."""
        np.clip(self.line @ features[: self.line.shape[1]], self.least, self.most, out=out)


@latest
def _ramps_of(fitted: RichMap) -> Ramps:
    return _ramps(fitted, FEATURE_CLIP)


def _ramps(fitted: RichMap, clip: float) -> Ramps:
    hinges, steps, _ = blocks(fitted)
    knots, is_step = hinges + steps, np.s_[hinges : hinges + steps]
    columns = np.concatenate([fitted.hinges.column, fitted.steps.column])
    relus = fitted.relus
    line = np.zeros((len(fitted.scale), 2 + max(columns.max(), relus.column.max())), np.float32)
    line[:knots, 0] = -np.concatenate([fitted.hinges.value, fitted.steps.value + SAME])
    line[knots:, 0] = -relus.offset
    line[np.arange(knots), 1 + columns] = 1
    np.put_along_axis(line[knots:, 1:], relus.column, relus.size, axis=1)
    steep = STEEP * line[is_step]
    middle = fitted.mean / fitted.scale
    line /= fitted.scale[:, None]
    line[:, 0] -= middle
    line[is_step] = steep
    least, most = -middle, np.full_like(middle, clip)
    most[is_step] = 1 / fitted.scale[is_step] - middle[is_step]
    return Ramps(csr_array(line), *np.clip([least, most], -clip, clip)[:, :, None])


def owners(fitted: RichMap, features: int) -> Float[Array, "rich feature"]:
    """Which columns a rich feature is made of, in shares that sum to one."""
    one_column = np.eye(features, dtype=np.float32)
    size = np.abs(fitted.relus.size)
    share = size / np.maximum(size.sum(1, keepdims=True), 1e-9)
    relus = np.zeros((len(size), features), np.float32)
    np.put_along_axis(relus, fitted.relus.column, share, axis=1)
    return np.concatenate(
        [one_column[fitted.hinges.column], one_column[fitted.steps.column], relus]
    )


def fit(empty: RichMap, x: Rows, weight: Float[Array, "row"]) -> RichMap:
    """Set an empty map by the first rows: those with weight, at most FIT_ROWS of them."""
    hinges, steps, relus = blocks(empty)
    x = x[np.flatnonzero(weight > 0)]
    x = x[nth_rows(len(x), FIT_ROWS)]
    if not len(x):
        return empty
    ordered = np.sort(x, axis=0)
    distinct = 1 + (ordered[1:] > ordered[:-1] + np.float32(1e-6)).sum(0)
    numeric = distinct > FEW_VALUES
    bare = RichMap(
        fitted=np.ones((), bool),
        hinges=_knots(ordered, distinct, numeric, hinges, MOST_HINGES),
        steps=_knots(ordered, distinct, numeric, steps, MOST_STEPS),
        relus=_random_relus(x, x.std(axis=0), numeric, relus),
        mean=empty.mean,
        scale=empty.scale,
    )
    linear = np.vstack([np.ones(len(x), np.float32), x.T])
    raw = np.empty((width(), len(x)), np.float32)
    _ramps(bare, np.inf).write(linear, out=raw)
    return bare._replace(mean=raw.mean(axis=1), scale=raw.std(axis=1) + SMALLEST_SCALE)


def _knots(
    ordered: Rows,
    distinct: Int[Array, "feature"],
    numeric: Bool[Array, "feature"],
    budget: int,
    most: int,
) -> Knots:
    """Quantiles of the numeric columns; a column of few values leaves its share to the others."""
    useful = np.where(numeric, np.minimum(distinct - 1, most), 0)
    shares = np.arange(1, most + 1)
    fits = np.minimum(useful[None], shares[:, None]).sum(1) <= budget
    counts = np.minimum(useful, max(int(fits.sum()), 1))  # more never fit where fewer do not
    ends = np.cumsum(counts)
    slot = np.arange(budget)
    column = np.minimum(np.searchsorted(ends, slot, side="right"), len(counts) - 1)
    within = (slot - ends[column] + counts[column]).astype(np.float32)
    quantile = (within + np.float32(0.5)) / np.maximum(counts[column], 1).astype(np.float32)
    last = len(ordered) - 1
    place = np.clip((quantile * np.float32(last)).astype(np.int32), 0, last)
    value = ordered[place, column]
    repeated = np.zeros(budget, bool)
    repeated[1:] = (column[1:] == column[:-1]) & (value[1:] == value[:-1])
    used = (slot < ends[-1]) & ~repeated
    return Knots(column=column.astype(np.int32), value=np.where(used, value, np.float32(CLIP)))


def _random_relus(
    x: Rows,
    deviation: Float[Array, "feature"],
    numeric: Bool[Array, "feature"],
    relus: int,
) -> Directions:
    """Directions of a few columns each, drawn by their spread; offsets at the value of some row."""
    features = x.shape[1]
    columns = min(RELU_COLUMNS, features)
    draws = np.arange(relus * (features + 2 * columns + 1), dtype=np.uint32)
    drawn = uniform(mixed(mixed(draws) + np.uint32(1))).reshape(relus, -1)
    noise = -np.log(-np.log(drawn[:, :features]))
    sign = np.sign(drawn[:, features : features + columns] - np.float32(0.5))
    size = np.float32(0.5) + drawn[:, features + columns : -1]
    part = drawn[:, -1]
    preference = np.where(numeric, np.float32(NUMERIC_PREFERENCE), np.float32(1.0))
    chance = np.log(preference * np.minimum(deviation, 1.0) ** 2 + np.float32(1e-9))
    # The largest of chances with Gumbel noise: a draw without replacement.
    chosen = np.argsort(-(chance + noise), axis=1, kind="stable")[:, :columns]
    size = sign * size / (deviation[chosen] + np.float32(0.1))
    row = np.minimum((part * np.float32(len(x))).astype(np.int32), len(x) - 1)
    offset = (x[row[:, None], chosen] * size).sum(1)
    return Directions(column=chosen.astype(np.int32), size=size, offset=offset)
