"""Heads: probabilities learned online without constraints, by experts that differ in their memory.

A head is a binary probability of a row, P(y=1|x) or P(s=g|x, y). It is a mixture of logistic
regressions. They differ in the features they see (the columns, or a richer map of them) and in
what they remember: expert k forgets a share 2^-k of the past each round, the last one nothing.
Each solves, by Newton's chord steps,

    min over theta   present loss (exact) + past loss (a quadratic) + ridge,

the shorter memories borrowing a few rows of the next longer one. A discounted hedge with a fixed
share mixes their probabilities by the log loss of rows nobody had learned from, so that weight
moves to whoever fits the present. A matrix and a vector remember the past however long it is.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core import feature_maps
from fairsaoml.core.experts import choose
from fairsaoml.core.feature_maps import RichMap

__all__ = [
    "Experts",
    "Heads",
    "contributions",
    "kept",
    "learn",
    "memory_weights",
    "new_heads",
    "probabilities",
    "recency",
    "set_map",
    "weights",
]

MEMORIES = 8  # forgetting 1, 1/2, 1/4, ..., 2^-(MEMORIES-2) and 0 of the past, each full round
RICH_MEMORIES = (5, 7)  # of these, those of the rich map
FULL_ROUND = 100.0  # rows; a smaller task forgets accordingly less
SHORTEST = 1e-4  # what the shortest memory keeps of a round: nearly nothing
BORROWED = 30.0  # rows of the next longer memory's past
FIRST_RIDGE = 0.25  # times the mean square of a feature: prior logits of variance 4 a feature
BIAS_RIDGE = 0.1
SMALLEST_RIDGE, LARGEST_RIDGE = 0.1, 1e3
DOUBT = 4.0  # coefficients' worth of belief in the first guess of a ridge
STEPS = 2  # chord steps a round
STEP_SIZES = (2.0, 1.0, 0.5, 0.25, 0.0625, 0.0)  # the best of these is taken
SMALLEST_BEND = 1e-3  # of a row's curvature p (1 - p)
LARGEST_LOGIT = 12.0
MOST_ROWS = 1e6  # that an expert remembers: float32 could not tell more
JITTER = 1e-6  # of the largest diagonal entry: keeps a matrix positive in float32
HEDGE_RATE = 0.5  # of the rows' summed log loss
HEDGE_ROWS = 200.0  # at most so many rows' worth of it a round
HEDGE_MEMORY = 0.8  # of log weights, each full round
FIXED_SHARE = 0.01

PerRow = Float[Array, "row"]


class Experts(NamedTuple):
    """Logistic regressions on one feature map, for every head and memory."""

    rows: Float[Array, "head memory"]  # remembered
    curvature: Float[Array, "head memory width width"]  # past loss: theta' H theta / 2 - b' theta
    slope: Float[Array, "head memory width"]  # b
    theta: Float[Array, "head memory width"]
    ridge: Float[Array, "head width"]
    size: Float[Array, "head width"]  # sums of squares of the features
    seen: Float[Array, "head"]  # rows ever


class Heads(NamedTuple):
    """All heads' state; memory is the same however long the stream."""

    map: RichMap
    linear: Experts
    rich: Experts
    log_weights: Float[Array, "head expert"]
    clock: Float[Array, ""]  # full rounds learned from


def new_heads(features: int, count: int) -> Heads:
    """`count` heads of rows with `features` columns, before any row: every probability is 1/2."""
    rich_width = 1 + features + feature_maps.width()
    return Heads(
        map=feature_maps.unfitted(features),
        linear=_new_experts(count, MEMORIES, 1 + features),
        rich=_new_experts(count, len(RICH_MEMORIES), rich_width),
        log_weights=jnp.zeros((count, MEMORIES + len(RICH_MEMORIES))),
        clock=jnp.zeros(()),
    )


def _new_experts(heads: int, memories: int, width: int) -> Experts:
    return Experts(
        rows=jnp.zeros((heads, memories)),
        curvature=jnp.zeros((heads, memories, width, width)),
        slope=jnp.zeros((heads, memories, width)),
        theta=jnp.zeros((heads, memories, width)),
        ridge=jnp.zeros((heads, width)),
        size=jnp.zeros((heads, width)),
        seen=jnp.zeros(heads),
    )


def _keeps() -> Float[Array, "memory"]:
    """What each memory keeps of the past in a full round: nearly 0, 1/2, 3/4, ..., 1."""
    return jnp.array([SHORTEST, *(1 - 2.0**-k for k in range(1, MEMORIES - 1)), 1.0])


def _memory_of() -> list[int]:
    """The memory of each expert, in the order of the weights."""
    return [*range(MEMORIES), *RICH_MEMORIES]


def _blocks(width: int) -> list[tuple[int, int]]:
    """Where the blocks of features with a ridge of their own begin and end, the constant apart."""
    rich = sum(feature_maps.BLOCKS)
    ends = [width] if width <= 1 + rich else [width - rich]
    if width > 1 + rich:
        for size in feature_maps.BLOCKS:
            ends.append(ends[-1] + size)
    return list(zip([1, *ends[:-1]], ends, strict=True))


def _clipped(x: Float[Array, "row feature"]) -> Float[Array, "row feature"]:
    return jnp.clip(jnp.nan_to_num(x), -feature_maps.CLIP, feature_maps.CLIP)


def _features(heads: Heads, x: Float[Array, "row feature"]) -> tuple[Array, Array]:
    """(1, x) and (1, x, rich features) of rows, clipped."""
    x = _clipped(x)
    linear = jnp.concatenate([jnp.ones((len(x), 1)), x], axis=1)
    return linear, jnp.concatenate([linear, feature_maps.rich(heads.map, x)], axis=1)


def _logits(heads: Heads, linear: Array, rich: Array) -> Float[Array, "row head expert"]:
    both = [
        jnp.einsum("nw,hkw->nhk", features, experts.theta)
        for features, experts in ((linear, heads.linear), (rich, heads.rich))
    ]
    return jnp.clip(jnp.concatenate(both, axis=2), -LARGEST_LOGIT, LARGEST_LOGIT)


def weights(heads: Heads) -> Float[Array, "head expert"]:
    """The share of each expert in its head: the hedge's, with a fixed share for everyone."""
    share = jax.nn.softmax(heads.log_weights, axis=1)
    return (1 - FIXED_SHARE) * share + FIXED_SHARE / share.shape[1]


def probabilities(heads: Heads, x: Float[Array, "row feature"]) -> Float[Array, "row head"]:
    """What each head says of rows."""
    logits = _logits(heads, *_features(heads, x))
    return jnp.einsum("nhk,hk->nh", jax.nn.sigmoid(logits), weights(heads))


def contributions(heads: Heads, x: Float[Array, "row feature"]) -> Float[Array, "row feature"]:
    """Each column's part of the first head's logits, the mean of its experts' by their weights."""
    share = weights(heads)[0]
    theta = jnp.einsum("k,kw->w", share[MEMORIES:], heads.rich.theta[0])
    width = 1 + x.shape[1]
    theta = theta.at[:width].add(jnp.einsum("k,kw->w", share[:MEMORIES], heads.linear.theta[0]))
    parts = (_features(heads, x)[1] * theta)[:, 1:]
    return parts[:, : width - 1] + parts[:, width - 1 :] @ feature_maps.owners(heads.map)


def set_map(
    heads: Heads, round: Int[Array, ""], x: Float[Array, "row feature"], weight: PerRow
) -> Heads:
    """Let the first rows set the rich map; where the first round has none, a later one does.

    It is tried in rounds 1, 2, 4, 8, ...: a branch on the round stays one under `vmap` over seeds,
    where a branch on the state would cost every round.
    """

    def fit() -> RichMap:
        return choose(heads.map.fitted, heads.map, feature_maps.fit(_clipped(x), weight))

    power_of_two = (round & (round - 1)) == 0
    return heads._replace(map=jax.lax.cond(power_of_two, fit, lambda: heads.map))


def learn(
    heads: Heads,
    x: Float[Array, "row feature"],
    target: Float[Array, "row head"],
    weight: Float[Array, "row head"],
    rows: Float[Array, ""],
) -> Heads:
    """Learn a task of `rows` rows: what each head should have said, and the weight of its rows."""
    part = jnp.minimum(rows / FULL_ROUND, 1.0)
    linear, rich = _features(heads, x)
    heads = heads._replace(
        log_weights=_credited(heads, _logits(heads, linear, rich), target, weight, part)
    )
    share = weights(heads)
    keeps = _keeps() ** part
    rich_keeps = keeps[jnp.array(RICH_MEMORIES)]
    return heads._replace(
        linear=_solve_all(heads.linear, linear, target, weight, keeps, share[:, :MEMORIES]),
        rich=_solve_all(heads.rich, rich, target, weight, rich_keeps, share[:, MEMORIES:]),
        clock=heads.clock + part,
    )


def _credited(
    heads: Heads,
    logits: Float[Array, "row head expert"],
    target: Float[Array, "row head"],
    weight: Float[Array, "row head"],
    part: Float[Array, ""],
) -> Float[Array, "head expert"]:
    """Log weights after the log loss of fresh rows; a head that has learned nothing has no say."""
    loss = jax.nn.softplus(logits) - target[:, :, None] * logits
    rows = weight.sum(0)
    scale = jnp.minimum(1.0, HEDGE_ROWS / jnp.maximum(rows, 1.0))
    summed = jnp.einsum("nh,nhk->hk", weight, loss) * scale[:, None]
    moved = HEDGE_MEMORY**part * jnp.log(weights(heads)) - HEDGE_RATE * summed
    moved = moved - moved.max(1, keepdims=True)
    learned = (rows > 0) & (heads.linear.seen > 0)
    return jnp.where(learned[:, None], moved, heads.log_weights)


def _solve_all(
    experts: Experts,
    features: Float[Array, "row width"],
    target: Float[Array, "row head"],
    weight: Float[Array, "row head"],
    keeps: Float[Array, "memory"],
    share: Float[Array, "head memory"],
) -> Experts:
    """Every head's experts on one map; a head without rows stays as it is."""

    def one(own: Experts, target: PerRow, weight: PerRow, share: Float[Array, "memory"]) -> Experts:
        mix = share / share.sum()
        return _solve(own, features, target, weight, keeps, mix)

    solved = jax.vmap(one, in_axes=(0, 1, 1, 0))(experts, target, weight, share)
    has_rows: Bool[Array, head] = weight.sum(0) > 0
    return jax.tree.map(
        lambda new, old: jnp.where(has_rows.reshape(-1, *[1] * (new.ndim - 1)), new, old),
        solved,
        experts,
    )


def _solve(
    experts: Experts,
    features: Float[Array, "row width"],
    target: PerRow,
    weight: PerRow,
    keeps: Float[Array, "memory"],
    mix: Float[Array, "memory"],
) -> Experts:
    """One head's experts: forget, solve, remember. They share the curvature of the present rows."""
    count = weight.sum()
    seen = experts.seen + count
    size = experts.size + weight @ features**2
    ridge = _ridge(experts, size, seen, mix)
    keeps = keeps * jnp.minimum(1.0, MOST_ROWS / jnp.maximum(experts.rows + count, 1.0))
    rows = keeps * experts.rows
    curvature = keeps[:, None, None] * experts.curvature
    slope = keeps[:, None] * experts.slope
    past, pull = _borrow(rows, curvature, slope)
    largest = jnp.max(jnp.einsum("kdd->kd", past), axis=1)
    past = past + jnp.diag(ridge) + JITTER * largest[:, None, None] * jnp.eye(len(ridge))
    # The first rows: begin at their base rate.
    rate = (weight @ target + 0.5) / (count + 1.0)
    begin = experts.theta.at[:, 0].set(jnp.log(rate) - jnp.log1p(-rate))
    theta = jnp.where(experts.seen > 0, experts.theta, begin)
    chance = jax.nn.sigmoid(features @ theta.T)
    bend = weight * (jnp.maximum(chance * (1 - chance), SMALLEST_BEND) @ mix)
    present = (features * bend[:, None]).T @ features
    factor = cho_factor(past + present, lower=True)[0]

    def slope_of(theta: Array, logits: Array) -> Array:
        return (jax.nn.sigmoid(logits) - target[:, None]).T * weight @ features

    def chord(theta: Array, _: None) -> tuple[Array, None]:
        logits = features @ theta.T
        back = jnp.einsum("kde,ke->kd", past, theta) - pull
        gradient = slope_of(theta, logits) + back
        step = jax.vmap(lambda one, g: cho_solve((one, True), g))(factor, gradient)
        moves = features @ step.T
        linear = (back * step).sum(1)
        quadratic = jnp.einsum("kd,kde,ke->k", step, past, step)

        def value(size: Array) -> Array:
            moved = logits - size * moves
            loss = jax.nn.softplus(moved) - target[:, None] * moved
            return weight @ loss - size * linear + 0.5 * size**2 * quadratic

        sizes = jnp.array(STEP_SIZES)
        best = sizes[jnp.argmin(jax.vmap(value)(sizes), axis=0)]
        return theta - best[:, None] * step, None

    theta, _ = jax.lax.scan(chord, theta, None, length=STEPS)
    gradient = slope_of(theta, features @ theta.T)
    return Experts(
        rows=rows + count,
        curvature=curvature + present,
        slope=slope + theta @ present - gradient,
        theta=theta,
        ridge=ridge,
        size=size,
        seen=seen,
    )


def _borrow(rows: Array, curvature: Array, slope: Array) -> tuple[Array, Array]:
    """Pasts with BORROWED rows of the next longer memory's, which has borrowed likewise."""
    longer = jnp.concatenate([rows[1:], jnp.zeros(1)])
    share = jnp.where(longer > 0, jnp.minimum(1.0, BORROWED / jnp.maximum(longer, 1e-6)), 0.0)

    def add(carry: tuple, own: tuple) -> tuple[tuple, tuple]:
        part, *pasts = own
        sums = tuple(past + part * more for past, more in zip(pasts, carry, strict=True))
        return sums, sums

    nothing = (jnp.zeros_like(curvature[0]), jnp.zeros_like(slope[0]))
    return jax.lax.scan(add, nothing, (share, curvature, slope), reverse=True)[1]


def _ridge(
    experts: Experts, size: Float[Array, "width"], seen: Array, mix: Float[Array, "memory"]
) -> Float[Array, "width"]:
    """A ridge for each block of features, by the evidence (MacKay 1992, diagonal).

    alpha = (doubt + sum_j gamma_j) / (doubt / alpha_0 + sum_j theta_j^2), gamma_j = H_jj / (H_jj +
    alpha): how many coefficients of the block the rows decide, by how large they are.
    """
    diagonal = jnp.einsum("kjj->kj", experts.curvature)
    squares = mix @ experts.theta**2
    ridges = [jnp.full(1, BIAS_RIDGE, jnp.float32)]
    for begin, end in _blocks(len(size)):
        mean_square = size[begin:end].sum() / jnp.maximum(seen, 1.0)
        guess = FIRST_RIDGE * jnp.maximum(mean_square, 1.0)
        before = experts.ridge[begin]
        decided = mix @ (diagonal[:, begin:end] / (diagonal[:, begin:end] + before + 1e-9)).sum(1)
        evidence = (DOUBT + decided) / (DOUBT / guess + squares[begin:end].sum())
        evidence = jnp.clip(evidence, SMALLEST_RIDGE, LARGEST_RIDGE)
        ridges.append(jnp.full(end - begin, jnp.where(before > 0, evidence, guess)))
    return jnp.concatenate(ridges)


def memory_weights(heads: Heads) -> Float[Array, "memory"]:
    """The first head's weight of each memory, whatever the features."""
    return jnp.zeros(MEMORIES).at[jnp.array(_memory_of())].add(weights(heads)[0])


def kept(heads: Heads) -> Float[Array, ""]:
    """How much of the last round is still the present, as the first head's weights say."""
    return memory_weights(heads) @ _keeps()


def recency(heads: Heads, born: PerRow) -> PerRow:
    """How much rows of the past are still the present: 1 for those of the last round.

    m(age) = sum_k p_k gamma_k^age / sum_{age'} gamma_k^age', an expert's weight spread over what
    it remembers; `born` is the clock before the row's task was learned.
    """
    age = jnp.maximum(heads.clock - born - 1, 0.0)
    keeps = _keeps()
    time = jnp.maximum(heads.clock, 1.0)
    mass = jnp.where(keeps < 1, (1 - keeps**time) / jnp.maximum(1 - keeps, 1e-9), time)
    share = memory_weights(heads) / mass
    return (share * keeps ** age[:, None]).sum(1) / share.sum()
