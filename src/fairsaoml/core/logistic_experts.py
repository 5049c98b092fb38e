"""Logistic regressions that differ in what they remember, solved round by round.

Expert k of a head keeps a share of the past each round. It solves, by Newton's chord steps,

    min over theta   present loss (exact) + past loss (a quadratic) + ridge,

a shorter memory borrowing a few rows of the next longer one. A matrix and a vector remember the
past, however long it is. All heads and memories on one feature map are solved together; a head's
memories share the curvature of the present rows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import positive

__all__ = ["Experts", "logits", "new_experts", "nth_rows", "softplus", "solve"]

BORROWED = 30.0  # rows of the next longer memory's past
FIRST_RIDGE = 0.25  # times the mean square of a feature: prior logits of variance 4 a feature
BIAS_RIDGE = 0.1
SMALLEST_RIDGE, LARGEST_RIDGE = 0.1, 1e3
DOUBT = 4.0  # coefficients' worth of belief in the first guess of a ridge
STEPS = 2  # chord steps a round
STEP_SIZES = (2.0, 1.0, 0.5, 0.25, 0.0625, 0.0)  # the best of these is taken
SMALLEST_BEND = 1e-3  # of a row's curvature p (1 - p)
CURVATURE_ROWS = 1024  # of a task, evenly thinned: curvature and step size need no more
LARGEST_LOGIT = 12.0
MOST_ROWS = 1e6  # that an expert remembers: float32 could not tell more
JITTER = 1e-6  # of the largest diagonal entry: keeps a matrix positive in float32

Blocks = tuple[tuple[int, int], ...]
PerExpert = Float[Array, "head memory width"]
PerRow = Float[Array, "head memory row"]


class Experts(NamedTuple):
    """Logistic regressions on one feature map, for every head and memory."""

    rows: Float[Array, "head memory"]  # remembered
    curvature: Float[Array, "head memory width width"]  # past loss: theta' H theta / 2 - b' theta
    slope: Float[Array, "head memory width"]  # b
    theta: Float[Array, "head memory width"]
    ridge: Float[Array, "head width"]
    size: Float[Array, "head width"]  # sums of squares of the features
    seen: Float[Array, "head"]  # rows ever


class Rows(NamedTuple):
    """A task's rows as one map shows them, rows last where heads are an axis."""

    features: Float[Array, "row width"]
    target: Float[Array, "head row"]
    weight: Float[Array, "head row"]


def new_experts(heads: int, memories: int, width: int) -> Experts:
    """Experts before any row: every logit is 0."""
    return Experts(
        rows=jnp.zeros((heads, memories)),
        curvature=jnp.zeros((heads, memories, width, width)),
        slope=jnp.zeros((heads, memories, width)),
        theta=jnp.zeros((heads, memories, width)),
        ridge=jnp.zeros((heads, width)),
        size=jnp.zeros((heads, width)),
        seen=jnp.zeros(heads),
    )


def logits(
    experts: Experts, features: Float[Array, "row width"]
) -> Float[Array, "head memory row"]:
    """What every expert says of rows, within bounds."""
    return jnp.clip(experts.theta @ features.T, -LARGEST_LOGIT, LARGEST_LOGIT)


def softplus(z: Array) -> Array:
    """log(1 + exp(z)), to 3e-7 of its value.

    log(1 + e) = 2 artanh(e / (2 + e)), by its series: not every compiler makes vectors of a
    logarithm.
    """
    small = jnp.exp(-jnp.abs(z))
    part = small / (2.0 + small)  # at most 1/3
    square = part**2
    series = jnp.zeros_like(z)
    for power in (11, 9, 7, 5, 3, 1):
        series = 1 / power + square * series
    return jnp.maximum(z, 0.0) + 2.0 * part * series


def nth_rows(real: Float[Array, "row"], most: int) -> tuple[Array, Array]:
    """At most `most` of the rows that are real, evenly thinned: their places, and which are meant.

    >>> places, meant = nth_rows(jnp.array([1.0, 0.0, 1.0, 1.0]), 2)
    >>> places.tolist(), meant.tolist()
    ([0, 3], [True, True])
    """
    count = real.sum()
    kept = jnp.minimum(count, float(most))
    place = jnp.arange(most, dtype=jnp.float32)
    nth = jnp.floor((place + 0.5) * count / jnp.maximum(kept, 1.0)).astype(jnp.int32)
    order = jnp.where(real > 0, jnp.cumsum(real).astype(jnp.int32) - 1, len(real))
    rows = jnp.arange(len(real))
    compact = jnp.zeros(len(real), jnp.int32).at[order].set(rows, mode="drop")
    return compact[jnp.minimum(nth, len(real) - 1)], place < kept


def solve(
    experts: Experts,
    features: Float[Array, "row width"],
    target: Float[Array, "row head"],
    weight: Float[Array, "row head"],
    keeps: Float[Array, "memory"],
    share: Float[Array, "head memory"],
    blocks: Blocks,
) -> Experts:
    """A round of all experts on one map: forget, solve, remember.

    `share` is the weight of each expert in its head; `blocks` are the features, the constant apart,
    with a ridge of their own. A head without rows forgets nothing.
    """
    rows = Rows(features=features, target=target.T, weight=weight.T)
    mix = share / share.sum(1, keepdims=True)
    count = weight.sum(0)
    seen = experts.seen + count
    size = experts.size + rows.weight @ features**2
    ridge = _ridge(experts, size, seen, mix, blocks)
    keeps = jnp.where(count[:, None] > 0, keeps, 1.0)
    keeps = keeps * jnp.minimum(1.0, MOST_ROWS / jnp.maximum(experts.rows + count[:, None], 1.0))
    remembered = keeps * experts.rows
    borrowed = _borrowed(remembered) * keeps[:, None]
    past = jnp.einsum("hkj,hjde->hkde", borrowed, experts.curvature)
    pull = jnp.einsum("hkj,hjd->hkd", borrowed, experts.slope)
    largest = (borrowed @ _diagonal(experts.curvature)).max(2)
    diagonal = ridge[:, None] + JITTER * largest[:, :, None]
    # The first rows: begin at their base rate.
    rate = ((rows.weight * rows.target).sum(1) + 0.5) / (count + 1.0)
    begin = jnp.where(seen > count, experts.theta[:, :, 0].T, jnp.log(rate) - jnp.log1p(-rate)).T
    theta = experts.theta.at[:, :, 0].set(begin)
    few, place = _thinned(rows)
    said = theta @ features.T
    chance = jax.nn.sigmoid(said[:, :, place])
    bend = jnp.einsum("hkn,hk->hn", jnp.maximum(chance * (1 - chance), SMALLEST_BEND), mix)
    present = ((few.weight * bend)[:, None] * few.features.T) @ few.features
    factor = positive.factors(past, present, diagonal)

    def past_of(vector: PerExpert) -> PerExpert:
        """The past's curvature times a vector."""
        return jnp.einsum("hkde,hke->hkd", past, vector) + diagonal * vector

    def chord(carry: tuple, _: None) -> tuple[tuple, None]:
        """A step of each expert; what it says of rows, and the past's slope, move along."""
        theta, said, slope = carry
        gradient = _gradient(rows, said) + slope
        step = positive.solutions(factor, gradient)
        moves, bent = step @ features.T, past_of(step)
        slopes, bends = (gradient * step).sum(2), (bent * step).sum(2)
        size = _step_size(few, said[:, :, place], moves[:, :, place], slopes, bends)
        by = size[:, :, None]
        return (theta - by * step, said - by * moves, slope - by * bent), None

    (theta, said, _), _ = jax.lax.scan(
        chord, (theta, said, past_of(theta) - pull), None, length=STEPS
    )
    pulled = jnp.einsum("hde,hke->hkd", present, theta)
    return Experts(
        rows=remembered + count[:, None],
        curvature=keeps[:, :, None, None] * experts.curvature + present[:, None],
        slope=keeps[:, :, None] * experts.slope + pulled - _gradient(rows, said),
        theta=theta,
        ridge=ridge,
        size=size,
        seen=seen,
    )


def _diagonal(matrices: Float[Array, "head memory width width"]) -> PerExpert:
    """The diagonals, without a look at all the rest."""
    heads, memories, width, _ = matrices.shape
    return matrices.reshape(heads, memories, -1)[:, :, :: width + 1]


def _thinned(rows: Rows) -> tuple[Rows, Int[Array, "few"] | slice]:
    """At most CURVATURE_ROWS rows of a task, each for as many as were left out; their places."""
    if len(rows.features) <= CURVATURE_ROWS:
        return rows, slice(None)
    real = (rows.weight.sum(0) > 0).astype(jnp.float32)
    place, meant = nth_rows(real, CURVATURE_ROWS)
    weight = jnp.where(meant, rows.weight[:, place], 0.0)
    stands_for = rows.weight.sum(1) / jnp.maximum(weight.sum(1), 1e-9)
    few = Rows(rows.features[place], rows.target[:, place], weight * stands_for[:, None])
    return few, place


def _gradient(rows: Rows, said: PerRow) -> PerExpert:
    """Of the present rows' loss, by what the experts say of them."""
    excess = jax.nn.sigmoid(said) - rows.target[:, None]
    return (excess * rows.weight[:, None]) @ rows.features


def _step_size(
    few: Rows,
    said: PerRow,
    moves: PerRow,
    slope: Float[Array, "head memory"],
    bend: Float[Array, "head memory"],
) -> Float[Array, "head memory"]:
    """The best of STEP_SIZES: the loss of a few rows, with the slope of all and the past's bend."""
    excess = jax.nn.sigmoid(said) - few.target[:, None]
    beyond = slope - (excess * moves * few.weight[:, None]).sum(2)
    sizes = jnp.array(STEP_SIZES)[:, None, None]
    moved = said - sizes[..., None] * moves
    loss = ((softplus(moved) - few.target[:, None] * moved) * few.weight[:, None]).sum(3)
    values = loss - sizes * beyond + 0.5 * sizes**2 * bend
    return jnp.array(STEP_SIZES)[jnp.argmin(values, axis=0)]


def _borrowed(rows: Float[Array, "head memory"]) -> Float[Array, "head memory memory"]:
    """How much of each memory's past a memory has: its own, and BORROWED rows of the next longer.

    That one has borrowed likewise.
    """
    longer = rows[:, 1:]
    part = jnp.where(longer > 0, jnp.minimum(1.0, BORROWED / jnp.maximum(longer, 1e-6)), 0.0)
    memory = jnp.arange(rows.shape[1])
    begin, end, between = memory[:, None, None], memory[:, None], memory[:-1]
    on_the_way = (begin <= between) & (between < end)
    chain = jnp.where(on_the_way, part[:, None, None], 1.0).prod(3)
    return jnp.where(memory[:, None] <= memory, chain, 0.0)


def _ridge(
    experts: Experts,
    size: Float[Array, "head width"],
    seen: Float[Array, "head"],
    mix: Float[Array, "head memory"],
    blocks: Blocks,
) -> Float[Array, "head width"]:
    """A ridge for each block of features, by the evidence (MacKay 1992, diagonal).

    alpha = (doubt + sum_j gamma_j) / (doubt / alpha_0 + sum_j theta_j^2), gamma_j = H_jj / (H_jj +
    alpha): how many coefficients of the block the rows decide, by how large they are.
    """
    columns = jnp.arange(size.shape[1])
    begin, end = jnp.array(blocks).T
    inside = ((begin <= columns[:, None]) & (columns[:, None] < end)).astype(jnp.float32)
    diagonal = _diagonal(experts.curvature)
    decided = jnp.einsum("hk,hkj->hj", mix, diagonal / (diagonal + experts.ridge[:, None] + 1e-9))
    squares = jnp.einsum("hk,hkj->hj", mix, experts.theta**2)
    guess = FIRST_RIDGE * jnp.maximum(size @ inside / jnp.maximum(seen, 1.0)[:, None], 1.0)
    evidence = (DOUBT + decided @ inside) / (DOUBT / guess + squares @ inside)
    evidence = jnp.clip(evidence, SMALLEST_RIDGE, LARGEST_RIDGE)
    solved_before = (experts.ridge[:, :1] > 0).astype(jnp.float32)
    ridge = (solved_before * evidence + (1 - solved_before) * guess) @ inside.T
    return ridge.at[:, 0].set(BIAS_RIDGE)
