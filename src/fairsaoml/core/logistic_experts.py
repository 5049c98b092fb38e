"""Logistic regressions that differ in what they remember, solved round by round.

Expert k of a head keeps a share of the past each round. When it is its turn, it takes a Newton
step towards

    min over theta   present loss (exact) + past loss (a quadratic) + ridge,

a shorter memory borrowing a few rows of the next longer one. The past's slope at theta and its
curvature are all that is remembered of it, however long it is.

Curvature is shared: heads that learn from the rows of the same label, a `kind`, differ in it by
little more than a factor, the mean of p (1 - p). So a kind and a memory have one matrix, the sum of
squares and products of the rows' features, and an expert has a number.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg.lapack import sposv

from fairsaoml.core.arrays import Array, sigmoid, softplus

__all__ = [
    "Blocks",
    "Experts",
    "Lesson",
    "Products",
    "SomeRows",
    "new_experts",
    "products_of",
    "solution",
    "solve",
]

BORROWED = 30.0  # rows of the next longer memory's past
FIRST_RIDGE = 0.25  # times the mean square of a feature: prior logits of variance 4 a feature
BIAS_RIDGE = 0.1
SMALLEST_RIDGE, LARGEST_RIDGE = 0.1, 1e3
DOUBT = 4.0  # coefficients' worth of belief in the first guess of a ridge
STEP_SIZES = np.array([1.0, 0.4, 0.1, 0.0], np.float32)  # the best of these is taken
SMALLEST_BEND = 1e-3  # of a row's curvature p (1 - p)
MOST_ROWS = 1e6  # that an expert remembers: float32 could not tell more
KINDS = 3  # of rows: all, those with label 1, those with label 0
JITTER = 1e-6  # of the largest entry: keeps a matrix positive in float32

Blocks = tuple[tuple[int, int], ...]
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

    features: Float[Array, "width row"]
    lean: PerRow  # 2 p - 1 of what the experts said
    sign: Float[Array, "head row"]  # 1 or -1: what it should have been
    weight: Float[Array, "head row"]
    some: "SomeRows"


class SomeRows(NamedTuple):
    """Rows of a task that stand for all: enough for curvature and the size of steps."""

    features: Float[Array, "width some"]
    weight: Float[Array, "head some"]


def new_experts(heads: int, memories: int, width: int) -> Experts:
    """Experts before any row: every logit is 0."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, np.float32)

    return Experts(
        rows=zeros(heads, memories),
        bend=zeros(heads, memories),
        products=zeros(KINDS, memories, width, width),
        mass=zeros(KINDS, memories),
        slope=zeros(heads, memories, width),
        theta=zeros(heads, memories, width),
        ridge=zeros(heads, width),
    )


def solution(matrix: Float[Array, "width width"], right: Float[Array, "width"]) -> Array:
    """The vector that a positive definite matrix takes to `right`; NaN where it is not one.

    Both are written over.
    """
    # LAPACK wants columns one after another: a symmetric matrix has them transposed, uncopied.
    _, x, failed = sposv(matrix.T, right, lower=True, overwrite_a=True, overwrite_b=True)
    return np.full_like(right, np.nan) if failed else x


class Products(NamedTuple):
    """Sums of squares and products of the features of rows, by kind."""

    sums: Float[Array, "kind width width"]
    mass: Float[Array, "kind"]

    def first(self, width: int) -> "Products":
        """Those of the first features alone."""
        return self._replace(sums=self.sums[:, :width, :width])


def products_of(
    features: Float[Array, "width some"], weight: Float[Array, "some"], ones: int
) -> Products:
    """The products of weighted rows: of all, and of those of either label, label 1 first."""
    width = len(features)
    sums = np.empty((KINDS, width, width), np.float32)
    mass = np.empty(KINDS, np.float32)
    for kind, rows in ((1, slice(ones)), (2, slice(ones, None))):
        own = features[:, rows] * np.sqrt(weight[rows])
        np.matmul(own, own.T, out=sums[kind])  # a matrix times its own transpose is half the work
        mass[kind] = weight[rows].sum()
    np.add(sums[1], sums[2], out=sums[0])
    mass[0] = mass[1] + mass[2]
    return Products(sums, mass)


def solve(
    experts: Experts,
    lesson: Lesson,
    kinds: tuple[int, ...],
    present: Products,
    keeps: Float[Array, "memory"],
    share: PerExpert,
    blocks: Blocks,
    steps: Bool[Array, "head memory"],
) -> Experts:
    """A round of all experts on one map: forget, step, remember.

    `kinds` are those of the heads; `share` is the weight of each expert in its head; `blocks` are
    the features, the constant apart, with a ridge of their own; `steps` says whose turn it is to
    step. A head without rows forgets nothing.
    """
    kind = list(kinds)
    count = lesson.weight.sum(1)[:, None]
    kept = _kept(keeps, experts.rows, count)
    kind_kept = _kept(keeps, experts.mass, present.mass[:, None])
    past = experts._replace(
        rows=kept * experts.rows,
        bend=kept * experts.bend,
        mass=kind_kept * experts.mass,
        slope=kept[:, :, None] * experts.slope,
    )
    ridge = _ridge(experts, present, kind, share, blocks)
    theta, lean = _begun(experts, lesson, count)
    half = 0.5 * lesson.weight  # p - y is half of what leans differ by
    excess = lean - lesson.sign[:, None]
    excess *= half[:, None]
    by_expert = excess.reshape(kept.size, excess.shape[2])
    # BLAS is half as fast again with the wide factor first.
    slope = (lesson.features @ by_expert.T).T.reshape(theta.shape)
    bend_of_rows = lean * lean  # p (1 - p) is a quarter of 1 - lean^2
    np.subtract(1.0, bend_of_rows, out=bend_of_rows)
    np.maximum(bend_of_rows, 4 * SMALLEST_BEND, out=bend_of_rows)
    bend = (bend_of_rows @ (0.5 * half)[:, :, None])[:, :, 0]
    # What a kind's products are worth to an expert: those of the present, and of its past.
    worth_now = bend / np.maximum(present.mass[kind], 1e-9)[:, None]
    worth = kept * experts.bend / np.maximum(experts.mass[kind], 1e-9)
    longer = _longer(past.rows)
    part = np.where(longer > 0, np.minimum(1.0, BORROWED / np.maximum(longer, 1e-6)), 0.0)
    part = part.astype(np.float32)
    borrowed = part * _longer(worth)
    gradient = slope + past.slope + part[:, :, None] * _longer(past.slope) + ridge[:, None] * theta
    away = theta - _longer(theta)
    mix = _mix(worth, borrowed, worth_now)
    products = np.concatenate([experts.products, present.sums[:, None]], axis=1)
    step, moved, moved_now = (np.zeros_like(theta) for _ in range(3))
    for head, own in enumerate(kind):
        gradient[head, :-1] += borrowed[head, :-1, None] * _times(
            products[own, 1:-1], away[head, :-1]
        )
        whose = np.flatnonzero(steps[head])
        taken = _steps(products[own], mix[head, whose], ridge[head], gradient[head, whose])
        step[head, whose] = taken
        moved_now[head, whose] = worth_now[head, whose, None] * (taken @ products[own, -1])
        moved[head, whose] = worth[head, whose, None] * _times(products[own, whose], taken)
    by = np.zeros_like(worth)
    by[steps] = _step_size(
        lesson.some,
        np.nonzero(steps)[0],
        *(values[steps] for values in (theta, step, gradient, moved_now)),
    )
    moved += moved_now
    remembered = products[:, :-1]
    remembered *= kind_kept[:, :, None, None]
    remembered += present.sums[:, None]
    return Experts(
        rows=past.rows + count,
        bend=past.bend + bend,
        products=remembered,
        mass=past.mass + present.mass[:, None],
        slope=past.slope + slope - by[:, :, None] * moved,
        theta=theta - by[:, :, None] * step,
        ridge=ridge,
    )


def _begun(
    experts: Experts, lesson: Lesson, count: Float[Array, "head one"]
) -> tuple[Vectors, PerRow]:
    """Coefficients and leans; experts that have seen no rows begin at these rows' base rate."""
    first = experts.rows[:, :1] == 0
    if not first.any():
        return experts.theta, lesson.lean
    rate = ((lesson.weight * (lesson.sign > 0)).sum(1)[:, None] + 0.5) / (count + 1.0)
    theta = experts.theta.copy()
    theta[:, :, 0] += np.where(first, np.log(rate) - np.log1p(-rate), np.float32(0.0))
    return theta, np.where(first[:, None], 2 * rate[:, None] - 1, lesson.lean)


def _steps(
    products: Float[Array, "part width width"],
    mix: Float[Array, "expert part"],
    ridge: Float[Array, "width"],
    gradient: Float[Array, "expert width"],
) -> Float[Array, "expert width"]:
    """The Newton steps of a head's experts, whose curvature is a mix of products each."""
    width = len(ridge)
    matrices = mix @ products.reshape(len(products), width * width)
    diagonal = matrices[:, :: width + 1]  # the largest entry is one of these
    diagonal += ridge + JITTER * diagonal.max(1, keepdims=True)
    steps = gradient.copy()
    for matrix, step in zip(matrices, steps, strict=True):
        step[:] = solution(matrix.reshape(width, width), step)
    return steps


def _mix(
    worth: PerExpert, borrowed: PerExpert, worth_now: PerExpert
) -> Float[Array, "head memory part"]:
    """How an expert's curvature is made of the products of all memories, and of the present."""
    heads, memories = worth.shape
    mix = np.zeros((heads, memories, memories + 1), np.float32)
    memory = np.arange(memories)
    mix[:, memory, memory + 1] = borrowed  # the last memory borrows nothing
    mix[:, memory, memory] = worth
    mix[:, :, -1] = worth_now
    return mix


def _times(matrices: Float[Array, "of width width"], vectors: Float[Array, "of width"]) -> Array:
    """Each matrix times its vector."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def _kept(keeps: Float[Array, "memory"], rows: Array, count: Array) -> Array:
    """What is kept of the past: all where there is nothing new, less where it gets too long."""
    kept = np.where(count > 0, keeps, np.float32(1.0))
    return kept * np.minimum(1.0, MOST_ROWS / np.maximum(rows + count, 1.0))


def _longer(values: Array) -> Array:
    """The same of the next longer memory; the last has none."""
    return np.concatenate([values[:, 1:], np.zeros_like(values[:, :1])], axis=1)


def _diagonal(matrices: Float[Array, "*of width width"]) -> Float[Array, "*of width"]:
    return np.diagonal(matrices, axis1=-2, axis2=-1)


def _step_size(
    some: SomeRows,
    head: Int[Array, "expert"],
    theta: Float[Array, "expert width"],
    step: Float[Array, "expert width"],
    gradient: Float[Array, "expert width"],
    moved_now: Float[Array, "expert width"],
) -> Float[Array, "expert"]:
    """The best of STEP_SIZES: the loss of some rows, with the slope of all and the past's bend."""
    # H step = gradient: along a step, its slope is the bend of past and present together.
    slope = (gradient * step).sum(1)
    bend = slope - (moved_now * step).sum(1)
    said, moves = (np.concatenate([theta, step]) @ some.features).reshape(2, len(theta), -1)
    weight = some.weight[head, :, None]
    # loss(size) = softplus(said - size moves) - target (said - size moves): the rest is linear.
    linear = slope - ((sigmoid(said) * moves)[:, None] @ weight)[:, 0, 0]
    size = STEP_SIZES[:, None]
    curved = (softplus(said[:, None] - size * moves[:, None]) @ weight)[:, :, 0].T
    return STEP_SIZES[np.argmin(curved - size * linear + 0.5 * size**2 * bend, axis=0)]


def _ridge(
    experts: Experts, present: Products, kind: list[int], share: PerExpert, blocks: Blocks
) -> Float[Array, "head width"]:
    """A ridge for each block of features, by the evidence (MacKay 1992, diagonal).

    alpha = (doubt + sum_j gamma_j) / (doubt / alpha_0 + sum_j theta_j^2), gamma_j = H_jj / (H_jj +
    alpha): how many coefficients of the block the rows decide, by how large they are.
    """
    mix = (share / share.sum(1, keepdims=True))[:, None]
    squares = _diagonal(experts.products)
    everything = squares[:, -1] + _diagonal(present.sums)
    mass = experts.mass[:, -1] + present.mass
    columns = np.arange(squares.shape[2])
    begin, end = np.array(blocks).T
    inside = ((begin <= columns[:, None]) & (columns[:, None] < end)).astype(np.float32)
    worth = experts.bend / np.maximum(experts.mass[kind], 1e-9)
    diagonal = worth[:, :, None] * squares[kind]
    decided = (mix @ (diagonal / (diagonal + experts.ridge[:, None] + 1e-9)))[:, 0]
    large = (mix @ experts.theta**2)[:, 0]
    mean = (everything @ inside / np.maximum(mass, 1.0)[:, None])[kind]
    guess = FIRST_RIDGE * np.maximum(mean, 1.0)
    evidence = (DOUBT + decided @ inside) / (DOUBT / guess + large @ inside)
    evidence = np.clip(evidence, SMALLEST_RIDGE, LARGEST_RIDGE)
    ridge = np.where(experts.ridge[:, :1] > 0, evidence, guess) @ inside.T
    ridge[:, 0] = BIAS_RIDGE
    return ridge
