"""Logistic regressions that differ in what they remember, solved round by round.

Expert k of a head keeps a share of the past each round. It takes a Newton step a round towards

    min over theta   present loss (exact) + past loss (a quadratic) + ridge,

a shorter memory borrowing a few rows of the next longer one. The past's slope at theta and its
curvature are all that is remembered of it, however long it is.

Curvature is shared: heads that learn from the rows of the same label, a `kind`, differ in it by
little more than a factor, the mean of p (1 - p). So a kind and a memory have one matrix, the sum of
squares and products of the rows' features, and an expert has a number.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import positive

__all__ = [
    "LARGEST_LOGIT",
    "Blocks",
    "Experts",
    "Lesson",
    "Products",
    "Seen",
    "SomeRows",
    "new_experts",
    "nth_rows",
    "products_of",
    "softplus",
    "solve",
]

BORROWED = 30.0  # rows of the next longer memory's past
FIRST_RIDGE = 0.25  # times the mean square of a feature: prior logits of variance 4 a feature
BIAS_RIDGE = 0.1
SMALLEST_RIDGE, LARGEST_RIDGE = 0.1, 1e3
DOUBT = 4.0  # coefficients' worth of belief in the first guess of a ridge
STEP_SIZES = (2.0, 1.0, 0.4, 0.1, 0.0)  # the best of these is taken
SMALLEST_BEND = 1e-3  # of a row's curvature p (1 - p)
LARGEST_LOGIT = 12.0
MOST_ROWS = 1e6  # that an expert remembers: float32 could not tell more
KINDS = 3  # of rows: all, those with label 1, those with label 0
JITTER = 1e-6  # of the largest diagonal entry: keeps a matrix positive in float32

Blocks = tuple[tuple[int, int], ...]
Seen = tuple[Float[Array, "_ row"], ...]  # the features of rows, some of them each
PerExpert = Float[Array, "head memory"]
Vectors = Float[Array, "head memory width"]
PerRow = Float[Array, "head memory row"]


class Experts(NamedTuple):
    """Logistic regressions on one feature map, for every head and memory."""

    rows: PerExpert  # remembered
    bend: PerExpert  # sum of p (1 - p) over them
    products: Float[Array, "kind memory width width"]  # of the features of a kind's rows
    mass: Float[Array, "kind memory"]  # how many rows these are
    slope: Vectors  # of the past's loss, at theta
    theta: Vectors
    ridge: Float[Array, "head width"]


class Lesson(NamedTuple):
    """A task's rows as one map shows them, and what each head should have said of them."""

    seen: Seen
    said: PerRow  # by the experts
    target: Float[Array, "head row"]
    weight: Float[Array, "head row"]
    some: "SomeRows"


class SomeRows(NamedTuple):
    """Rows of a task that stand for all: enough for curvature and the size of steps."""

    features: Float[Array, "width some"]
    target: Float[Array, "head some"]
    weight: Float[Array, "head some"]


def new_experts(heads: int, memories: int, width: int) -> Experts:
    """Experts before any row: every logit is 0."""
    return Experts(
        rows=jnp.zeros((heads, memories)),
        bend=jnp.zeros((heads, memories)),
        products=jnp.zeros((KINDS, memories, width, width)),
        mass=jnp.zeros((KINDS, memories)),
        slope=jnp.zeros((heads, memories, width)),
        theta=jnp.zeros((heads, memories, width)),
        ridge=jnp.zeros((heads, width)),
    )


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


class Products(NamedTuple):
    """Sums of squares and products of the features of rows, by kind."""

    sums: Float[Array, "kind width width"]
    mass: Float[Array, "kind"]

    def first(self, width: int) -> "Products":
        """Those of the first features alone."""
        return self._replace(sums=self.sums[:, :width, :width])


def products_of(
    features: Float[Array, "width some"], y: Float[Array, "some"], weight: Float[Array, "some"]
) -> Products:
    """The products of weighted rows: of all, and of those of either label."""
    by_label = [weight * y, weight * (1 - y)]
    ones, zeros = ((features * weight) @ features.T for weight in by_label)
    one, zero = (weight.sum() for weight in by_label)
    return Products(jnp.stack([ones + zeros, ones, zeros]), jnp.stack([one + zero, one, zero]))


def solve(
    experts: Experts,
    lesson: Lesson,
    kinds: tuple[int, ...],
    present: Products,
    keeps: Float[Array, "memory"],
    share: PerExpert,
    blocks: Blocks,
) -> Experts:
    """A round of all experts on one map: forget, step, remember.

    `kinds` are those of the heads; `share` is the weight of each expert in its head; `blocks` are
    the features, the constant apart, with a ridge of their own. A head without rows forgets
    nothing.
    """
    kind = jnp.array(kinds)
    heads, memories = experts.rows.shape
    count = lesson.weight.sum(1)[:, None]
    kept = _kept(keeps, experts.rows, count)
    kind_kept = _kept(keeps, experts.mass, present.mass[:, None])
    past = experts._replace(
        rows=kept * experts.rows,
        bend=kept * experts.bend,
        mass=kind_kept * experts.mass,
        slope=kept[:, :, None] * experts.slope,
    )
    ridge = _ridge(experts, present, kinds, share, blocks)
    # The first rows: begin at their base rate.
    rate = ((lesson.weight * lesson.target).sum(1)[:, None] + 0.5) / (count + 1.0)
    base = jnp.where(experts.rows > 0, 0.0, jnp.log(rate) - jnp.log1p(-rate))
    theta = experts.theta + base[:, :, None] * _is_constant(experts.theta.shape[2])
    chance = jax.nn.sigmoid(lesson.said + base[:, :, None])
    excess = (chance - lesson.target[:, None]) * lesson.weight[:, None]
    slope = jnp.concatenate([excess @ part.T for part in lesson.seen], axis=2)
    bend = jnp.einsum(
        "hkn,hn->hk", jnp.maximum(chance * (1 - chance), SMALLEST_BEND), lesson.weight
    )
    # What a kind's products are worth to an expert: those of the present, and of its past.
    worth_now = bend / jnp.maximum(_of_kind(present.mass, kinds), 1e-9)[:, None]
    worth = kept * experts.bend / jnp.maximum(_of_kind(experts.mass, kinds), 1e-9)
    longer = _longer(past.rows)
    part = jnp.where(longer > 0, jnp.minimum(1.0, BORROWED / jnp.maximum(longer, 1e-6)), 0.0)
    borrowed = part * _longer(worth)
    gradient = slope + past.slope + part[:, :, None] * _longer(past.slope) + ridge[:, None] * theta
    away = theta - _longer(theta)

    def newton(expert: Int[Array, ""]) -> Float[Array, "4 width"]:
        """An expert's step, its gradient, and what the past's and the present's slope change."""
        head, memory = expert // memories, expert % memories
        own = kind[head]
        mine = experts.products[own, memory]
        lent = experts.products[own, jnp.minimum(memory + 1, memories - 1)]
        curvature = worth[head, memory] * mine + worth_now[head, memory] * present.sums[own]
        matrix = curvature + borrowed[head, memory] * lent
        matrix = matrix + jnp.diag(ridge[head] + JITTER * matrix.max())
        whole = gradient[head, memory] + borrowed[head, memory] * (lent @ away[head, memory])
        step = positive.solution(positive.factor(matrix), whole)
        moved_now = worth_now[head, memory] * (present.sums[own] @ step)
        return jnp.stack([step, whole, curvature @ step, moved_now])

    solved = jax.lax.map(newton, jnp.arange(heads * memories))
    step, whole, moved, moved_now = (solved[:, one].reshape(theta.shape) for one in range(4))
    # H step = gradient: along a step, its slope is the bend of past and present together.
    slopes, bends = (whole * step).sum(2), ((whole - moved_now) * step).sum(2)
    by = _step_size(lesson.some, theta, step, slopes, bends)[:, :, None]
    return Experts(
        rows=past.rows + count,
        bend=past.bend + bend,
        products=kind_kept[:, :, None, None] * experts.products + present.sums[:, None],
        mass=past.mass + present.mass[:, None],
        slope=past.slope + slope - by * moved,
        theta=theta - by * step,
        ridge=ridge,
    )


def _kept(keeps: Float[Array, "memory"], rows: Array, count: Array) -> Array:
    """What is kept of the past: all where there is nothing new, less where it gets too long."""
    kept = jnp.where(count > 0, keeps, 1.0)
    return kept * jnp.minimum(1.0, MOST_ROWS / jnp.maximum(rows + count, 1.0))


def _longer(values: Array) -> Array:
    """The same of the next longer memory; the last has none."""
    return jnp.concatenate([values[:, 1:], jnp.zeros_like(values[:, :1])], axis=1)


def _is_constant(width: int) -> Float[Array, "width"]:
    """1 for the first feature, which is 1 in every row."""
    return (jnp.arange(width) == 0).astype(jnp.float32)


def _diagonal(matrices: Float[Array, "*of width width"]) -> Float[Array, "*of width"]:
    """The diagonals, without a look at all the rest."""
    width = matrices.shape[-1]
    return matrices.reshape(*matrices.shape[:-2], -1)[..., :: width + 1]


def _of_kind(values: Float[Array, "kind *of"], kinds: tuple[int, ...]) -> Float[Array, "head *of"]:
    """What heads have of their kind."""
    return values if kinds == tuple(range(KINDS)) else values[jnp.array(kinds)]


def _step_size(
    some: SomeRows, theta: Vectors, step: Vectors, slope: PerExpert, bend: PerExpert
) -> PerExpert:
    """The best of STEP_SIZES: the loss of some rows, with the slope of all and the past's bend."""
    said, moves = theta @ some.features, step @ some.features
    target, weight = some.target[:, None], some.weight[:, None]
    beyond = slope - ((jax.nn.sigmoid(said) - target) * moves * weight).sum(2)
    sizes = jnp.array(STEP_SIZES)[:, None, None]
    tried = said - sizes[..., None] * moves
    loss = ((softplus(tried) - target * tried) * weight).sum(3)
    values = loss - sizes * beyond + 0.5 * sizes**2 * bend
    return jnp.array(STEP_SIZES)[jnp.argmin(values, axis=0)]


def _ridge(
    experts: Experts,
    present: Products,
    kinds: tuple[int, ...],
    share: PerExpert,
    blocks: Blocks,
) -> Float[Array, "head width"]:
    """A ridge for each block of features, by the evidence (MacKay 1992, diagonal).

    alpha = (doubt + sum_j gamma_j) / (doubt / alpha_0 + sum_j theta_j^2), gamma_j = H_jj / (H_jj +
    alpha): how many coefficients of the block the rows decide, by how large they are.
    """
    mix = share / share.sum(1, keepdims=True)
    squares = _diagonal(experts.products)
    everything = squares[:, -1] + _diagonal(present.sums)
    mass = experts.mass[:, -1] + present.mass
    columns = jnp.arange(squares.shape[2])
    begin, end = jnp.array(blocks).T
    inside = ((begin <= columns[:, None]) & (columns[:, None] < end)).astype(jnp.float32)
    worth = experts.bend / jnp.maximum(_of_kind(experts.mass, kinds), 1e-9)
    diagonal = worth[:, :, None] * _of_kind(squares, kinds)
    decided = jnp.einsum("hk,hkj->hj", mix, diagonal / (diagonal + experts.ridge[:, None] + 1e-9))
    large = jnp.einsum("hk,hkj->hj", mix, experts.theta**2)
    mean = _of_kind(everything @ inside / jnp.maximum(mass, 1.0)[:, None], kinds)
    guess = FIRST_RIDGE * jnp.maximum(mean, 1.0)
    evidence = (DOUBT + decided @ inside) / (DOUBT / guess + large @ inside)
    evidence = jnp.clip(evidence, SMALLEST_RIDGE, LARGEST_RIDGE)
    ridge = jnp.where(experts.ridge[:, :1] > 0, evidence, guess) @ inside.T
    return jnp.where(_is_constant(squares.shape[2]) > 0, BIAS_RIDGE, ridge)
