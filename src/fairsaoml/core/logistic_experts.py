"""Logistic regressions that differ in what they remember, solved round by round.

Expert k of a head keeps a share of the past each round. When it is its turn, it takes a Newton
step towards

    min over theta   present loss (exact) + past loss (a quadratic) + ridge,

a shorter memory borrowing a few rows of the next longer one. The past's slope at theta and its
curvature are all that is remembered of it, however long it is.

Curvature is shared (`core.roster`): an expert has a number, the sum of p (1 - p) over its rows, and
with all that remember the same rows one matrix, the sum of squares and products of their features.
"""

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg.lapack import sposv

from fairsaoml.core.arrays import Array, sigmoid, softplus
from fairsaoml.core.roster import TURNS, Crew, Roster

BORROWED = 30.0  # rows of the next longer memory's past
FIRST_RIDGE = 0.25  # times the mean square of a feature: prior logits of variance 4 a feature
BIAS_RIDGE = 0.1
SMALLEST_RIDGE, LARGEST_RIDGE = 0.1, 1e3
DOUBT = 4.0  # coefficients' worth of belief in the first guess of a ridge
STEP_SIZES = np.array([1.0, 0.4, 0.1, 0.0], np.float32)  # the best of these is taken
SURE = 0.5  # a step that moves no logit further is taken whole, as is nearly every other
SMALLEST_BEND = 1e-3  # of a row's curvature p (1 - p)
MOST_ROWS = 1e6  # that an expert remembers: float32 could not tell more
JITTER = 1e-6  # of the largest entry: keeps a matrix positive in float32

PerExpert = Float[Array, "expert"]
Vectors = Float[Array, "expert width"]
PerRow = Float[Array, "expert row"]
Matrices = Float[Array, "matrix seen seen"]
PerMatrix = Float[Array, "matrix"]
Squares = Float[Array, "kind width width"]


class Experts(NamedTuple):
    """Logistic regressions in the order of their roster.

    Vectors of those who see the columns alone are 0 beyond them.
    """

    rows: PerExpert  # remembered
    bend: PerExpert  # sum of p (1 - p) over them
    slope: Vectors  # of the past's loss, at theta
    theta: Vectors
    ridge: Float[Array, "family width"]
    products: tuple[Matrices, ...]  # of the features of rows, crew by crew
    mass: tuple[PerMatrix, ...]  # how many rows these are


class SomeRows(NamedTuple):
    """Rows of a task that stand for all: enough for curvature and the size of steps."""

    features: Float[Array, "width some"]
    weight: Float[Array, "head some"]
    stands_for: Float[Array, "some"]  # how many rows
    ones: int  # how many have label 1: they come first


class Lesson(NamedTuple):
    """A task's rows, and what each head should have said of them."""

    features: Float[Array, "width row"]
    lean: PerRow  # 2 p - 1 of what the experts said
    sign: Float[Array, "head row"]  # 1 or -1: what it should have been
    weight: Float[Array, "head row"]
    some: SomeRows


def new_experts(who: Roster, seen: int, width: int) -> Experts:
    """Experts before any row: every logit is 0. Linear ones see `seen` features, others `width`."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, np.float32)

    experts = len(who.head)
    sizes = [(len(crew.kind), seen if crew.turn is None else width) for crew in who.crews]
    return Experts(
        rows=zeros(experts),
        bend=zeros(experts),
        slope=zeros(experts, width),
        theta=zeros(experts, width),
        ridge=zeros(len(who.longest), width),
        products=tuple(zeros(count, size, size) for count, size in sizes),
        mass=tuple(zeros(count) for count, _ in sizes),
    )


def solution(matrix: Float[Array, "width width"], right: Float[Array, "width"]) -> Array:
    """The vector that a positive definite matrix takes to `right`; NaN where it is not one.

    Both are written over.
    """
    # LAPACK wants columns one after another: a symmetric matrix has them transposed, uncopied.
    _, x, failed = sposv(matrix.T, right, lower=True, overwrite_a=True, overwrite_b=True)
    return np.full_like(right, np.nan) if failed else x


def solve(
    who: Roster,
    experts: Experts,
    lesson: Lesson,
    keeps: Float[Array, "memory"],
    share: PerExpert,
    blocks: tuple[int, ...],
    round: int,
) -> Experts:
    """A round of all experts: forget, remember, and step if it is their turn.

    `share` is the weight of each expert in its head; `blocks` are the sizes of the blocks of
    features, behind the constant, with a ridge of their own. A head without rows forgets nothing.
    """
    count = lesson.weight.sum(1)[who.head]
    kept = _kept(keeps[who.memory], experts.rows, count)
    theta, lean = _begun(who, experts, lesson)
    slope, bend = _of_rows(who, lesson, lean, experts.theta.shape[1], experts.products[0].shape[1])
    past = experts._replace(
        rows=kept * experts.rows, bend=kept * experts.bend, slope=kept[:, None] * experts.slope
    )
    squares = _squares(lesson.some)
    remembered = [
        _remembered(crew, products, mass, *squares, keeps)
        for crew, products, mass in zip(who.crews, experts.products, experts.mass, strict=True)
    ]
    after = Experts(
        rows=past.rows + count,
        bend=past.bend + bend,
        slope=past.slope + slope,
        theta=theta,
        ridge=experts.ridge.copy(),
        products=tuple(products for products, _ in remembered),
        mass=tuple(mass for _, mass in remembered),
    )
    for place, crew in enumerate(who.crews):
        if crew.turn in (None, round % TURNS):
            _step(crew, place, past, after, lesson.some, share, blocks)
    return after


def _begun(who: Roster, experts: Experts, lesson: Lesson) -> tuple[Vectors, PerRow]:
    """Coefficients and leans; experts that have seen no rows begin at these rows' base rate."""
    theta, first = experts.theta.copy(), experts.rows == 0
    if not first.any():
        return theta, lesson.lean
    ones = (lesson.weight * (lesson.sign > 0)).sum(1)
    rate = ((ones + 0.5) / (lesson.weight.sum(1) + 1.0))[who.head]
    theta[:, 0] += np.where(first, np.log(rate) - np.log1p(-rate), np.float32(0.0))
    return theta, np.where(first[:, None], (2 * rate - 1)[:, None], lesson.lean)


def _of_rows(
    who: Roster, lesson: Lesson, lean: PerRow, width: int, seen: int
) -> tuple[Vectors, PerExpert]:
    """The slope of the present's loss at theta, and the sum of p (1 - p) over its rows."""
    weight = 0.5 * lesson.weight
    excess = lean - lesson.sign[who.head]  # twice p - y
    excess *= weight[who.head]
    slope = np.zeros((len(excess), width), np.float32)
    # BLAS is half as fast again with the wide factor first.
    slope[: who.linear, :seen] = (lesson.features[:seen] @ excess[: who.linear].T).T
    slope[who.linear :] = (lesson.features @ excess[who.linear :].T).T
    bend = lean * lean  # p (1 - p) is a quarter of 1 - lean^2
    np.clip(bend, 0.0, 1 - 4 * SMALLEST_BEND, out=bend)
    np.subtract(0.5, 0.5 * bend, out=bend)
    return slope, np.einsum("er,er->e", bend, weight[who.head])


def _kept(keeps: Float[Array, "of"], rows: Float[Array, "of"], count: Float[Array, "of"]) -> Array:
    """What is kept of the past: all where there is nothing new, less where it gets too long."""
    kept = np.where(count > 0, keeps, np.float32(1.0))
    return kept * np.minimum(1.0, MOST_ROWS / np.maximum(rows + count, 1.0))


def _squares(some: SomeRows) -> tuple[Squares, Float[Array, "kind"]]:
    """Sums of squares and products of rows' features: of all, of those of label 1, of label 0."""
    features = some.features * np.sqrt(some.stands_for)
    ones, zeros = features[:, : some.ones], features[:, some.ones :]
    squares = np.empty((3, len(features), len(features)), np.float32)
    np.matmul(ones, ones.T, out=squares[1])  # a matrix times its own transpose is half the work
    np.matmul(zeros, zeros.T, out=squares[2])
    np.add(squares[1], squares[2], out=squares[0])
    mass = [some.stands_for[rows].sum() for rows in (slice(some.ones), slice(some.ones, None))]
    return squares, np.array([sum(mass), *mass], np.float32)


def _remembered(
    crew: Crew,
    past: Matrices,
    mass: PerMatrix,
    squares: Squares,
    new_mass: Float[Array, "kind"],
    keeps: Float[Array, "memory"],
) -> tuple[Matrices, PerMatrix]:
    """A crew's products with those of this round, and how many rows these are."""
    kept = _kept(keeps[crew.memory], mass, new_mass[crew.kind])
    products, width = np.empty_like(past), past.shape[1]
    for product, old, keep, kind in zip(products, past, kept, crew.kind, strict=True):
        mine = squares[kind, :width, :width]
        if keep == 1:  # nothing is forgotten
            np.add(old, mine, out=product)
        else:
            np.multiply(old, keep, out=product)
            product += mine
    return products, kept * mass + new_mass[crew.kind]


def _step(
    crew: Crew,
    place: int,
    past: Experts,
    after: Experts,
    some: SomeRows,
    share: PerExpert,
    blocks: tuple[int, ...],
) -> None:
    """Newton steps of a crew, written into `after`: its theta, the slope there and the ridge."""
    products, mass = after.products[place], after.mass[place]
    mine, width, further = crew.members, products.shape[1], crew.matrix[crew.longer]
    theta, slope = after.theta[mine, :width], after.slope[mine, :width]
    per_row = np.maximum(mass, np.float32(1e-9))
    worth = after.bend[mine] / per_row[crew.matrix]  # of products, to an expert
    ridge = after.ridge[crew.families, :width]
    diagonals = np.diagonal(products, axis1=1, axis2=2)
    ridge[:] = _ridge(crew, worth, diagonals, mass, ridge, theta, share[mine], blocks)
    of_ridge = ridge[crew.family]
    rows, bend, past_slope = (of[mine][crew.longer] for of in (past.rows, past.bend, past.slope))
    part = crew.borrows * (rows > 0) * np.minimum(1.0, BORROWED / np.maximum(rows, 1e-6))
    borrowed = part * bend / per_row[further]
    gradient = slope + of_ridge * theta + part[:, None] * past_slope[:, :width]
    away = theta - theta[crew.longer]
    members = np.arange(len(theta))
    mix = np.zeros((len(theta), len(products)), np.float32)
    mix[members, further] = borrowed
    mix[members, crew.matrix] += worth
    curvatures = (mix @ products.reshape(len(products), width * width)).reshape(-1, width, width)
    diagonal = np.einsum("eww->ew", curvatures)  # the largest entry is one of these
    diagonal += of_ridge + JITTER * diagonal.max(1, keepdims=True)
    step, moved = np.empty_like(theta), np.empty_like(theta)
    for one in members:
        if borrowed[one] > 0:
            gradient[one] += borrowed[one] * (products[further[one]] @ away[one])
        step[one] = solution(curvatures[one], gradient[one].copy())
        np.matmul(products[crew.matrix[one]], step[one], out=moved[one])
    moved *= worth[:, None]
    moves = step @ some.features[:width]
    far = np.flatnonzero(np.abs(moves).max(1, initial=0.0) > SURE)
    if len(far):
        present = (after.bend[mine] - past.bend[mine])[far]
        # H step = gradient: along a step, its slope is the bend of past and present together.
        along = np.vecdot(gradient[far], step[far])
        size = _step_size(some, crew.head[far], theta[far], moves[far], along, present)[:, None]
        step[far] *= size
        moved[far] *= size
    theta -= step
    slope -= moved


def _step_size(
    some: SomeRows,
    head: Int[Array, "expert"],
    theta: Vectors,
    moves: Float[Array, "expert some"],
    slope: PerExpert,
    bend: PerExpert,
) -> PerExpert:
    """The best of STEP_SIZES: the loss of some rows, with the slope of all and the past's bend."""
    said = theta @ some.features[: theta.shape[1]]
    weight = some.weight[head]
    per_row = bend / np.maximum(weight.sum(1), np.float32(1e-9))
    weighed = moves * weight
    of_past = slope - per_row * np.vecdot(weighed, moves)
    # loss(size) = softplus(said - size moves) - target (said - size moves): the rest is linear.
    linear = slope - np.vecdot(weighed, sigmoid(said))
    size = STEP_SIZES[:, None]
    curved = np.vecdot(softplus(said[:, None] - size * moves[:, None]), weight[:, None])
    loss = curved.T - size * linear + 0.5 * size**2 * of_past
    return STEP_SIZES[np.argmin(loss, axis=0)]


def _ridge(
    crew: Crew,
    worth: PerExpert,
    squares: Float[Array, "matrix width"],
    mass: PerMatrix,
    before: Float[Array, "family width"],
    theta: Vectors,
    share: PerExpert,
    blocks: tuple[int, ...],
) -> Float[Array, "family width"]:
    """A ridge for each block of features, by the evidence (MacKay 1992, diagonal).

    alpha = (doubt + sum_j gamma_j) / (doubt / alpha_0 + sum_j theta_j^2), gamma_j = H_jj / (H_jj +
    alpha): how many coefficients of the block the rows decide, by how large they are.
    """
    sizes = blocks if crew.turn is not None else blocks[:1]
    begins = [1, *(1 + end for end in accumulate(sizes[:-1]))]
    mix = crew.of_family * share
    mix /= mix.sum(1, keepdims=True)
    diagonal = worth[:, None] * squares[crew.matrix]
    decided = mix @ (diagonal / (diagonal + before[crew.family] + np.float32(1e-9)))
    longest = crew.matrix[crew.longest]
    of_features = np.stack([decided, mix @ theta**2, squares[longest]])
    most, large, square = np.add.reduceat(of_features, begins, axis=2)
    guess = FIRST_RIDGE * np.maximum(square / np.maximum(mass[longest, None], 1.0), 1.0)
    evidence = (DOUBT + most) / (DOUBT / guess + large)
    evidence = np.clip(evidence, SMALLEST_RIDGE, LARGEST_RIDGE)
    of_block = np.where(before[:, :1] > 0, evidence, guess)
    ridge = np.full_like(before, BIAS_RIDGE)
    ridge[:, 1:] = np.repeat(of_block, sizes, axis=1)
    return ridge
