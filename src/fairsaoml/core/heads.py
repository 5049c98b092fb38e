"""Heads: probabilities learned online without constraints, by experts that differ in their memory.

A head is a binary probability of a row, P(y=1|x) or P(s=g|x, y). It is a mixture of logistic
regressions (`core.logistic_experts`). They differ in the features they see (the columns, or a
richer map of them) and in what they remember: expert k forgets a share 2^-k of the past each
round, the last one nothing. A discounted hedge with a fixed share mixes their probabilities by the
log loss of rows nobody had learned from, so that weight moves to whoever fits the present.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import feature_maps, logistic_experts
from fairsaoml.core.experts import choose
from fairsaoml.core.feature_maps import RichMap
from fairsaoml.core.logistic_experts import (
    LARGEST_LOGIT,
    Blocks,
    Experts,
    Lesson,
    Seen,
    SomeRows,
    new_experts,
    nth_rows,
    softplus,
)

__all__ = [
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
HEDGE_RATE = 1.0  # of the rows' summed log loss
HEDGE_ROWS = 200.0  # at most so many rows' worth of it a round
HEDGE_MEMORY = 0.9  # of log weights, each full round
FIXED_SHARE = 0.01
PER_LABEL = 256  # rows of a task, evenly thinned: curvature and step size need no more

PerRow = Float[Array, "row"]


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
        linear=new_experts(count, MEMORIES, 1 + features),
        rich=new_experts(count, len(RICH_MEMORIES), rich_width),
        log_weights=jnp.zeros((count, MEMORIES + len(RICH_MEMORIES))),
        clock=jnp.zeros(()),
    )


def _keeps() -> Float[Array, "memory"]:
    """What each memory keeps of the past in a full round: nearly 0, 1/2, 3/4, ..., 1."""
    return jnp.array([SHORTEST, *(1 - 2.0**-k for k in range(1, MEMORIES - 1)), 1.0])


def _memory_of() -> list[int]:
    """The memory of each expert, in the order of the weights."""
    return [*range(MEMORIES), *RICH_MEMORIES]


def _blocks(heads: Heads) -> Blocks:
    """Where the blocks of features with a ridge of their own begin and end, the constant apart."""
    ends = [heads.linear.theta.shape[2]]
    for size in feature_maps.blocks(heads.map):
        ends.append(ends[-1] + size)
    return tuple(zip([1, *ends[:-1]], ends, strict=True))


def _clipped(x: Float[Array, "row feature"]) -> Float[Array, "row feature"]:
    return jnp.clip(jnp.nan_to_num(x), -feature_maps.CLIP, feature_maps.CLIP)


@jax.jit
def _features(heads: Heads, x: Float[Array, "row feature"]) -> Seen:
    """Rows as the experts see them: (1, x), clipped, and what the rich map adds; rows last."""
    columns = _clipped(x).T
    linear = jnp.concatenate([jnp.ones((1, len(x))), columns])
    return linear, feature_maps.rich(heads.map, columns)


def _logits(heads: Heads, seen: Seen) -> Float[Array, "head expert row"]:
    linear, added = seen
    width = len(linear)
    columns = jnp.concatenate([heads.linear.theta, heads.rich.theta[:, :, :width]], axis=1)
    by_columns = columns @ linear
    by_both = by_columns[:, MEMORIES:] + heads.rich.theta[:, :, width:] @ added
    logits = jnp.concatenate([by_columns[:, :MEMORIES], by_both], axis=1)
    return jnp.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)


@jax.jit
def weights(heads: Heads) -> Float[Array, "head expert"]:
    """The share of each expert in its head: the hedge's, with a fixed share for everyone."""
    share = jax.nn.softmax(heads.log_weights, axis=1)
    return (1 - FIXED_SHARE) * share + FIXED_SHARE / share.shape[1]


@jax.jit
def probabilities(heads: Heads, x: Float[Array, "row feature"]) -> Float[Array, "head row"]:
    """What each head says of rows."""
    logits = _logits(heads, _features(heads, x))
    return jnp.einsum("hkn,hk->hn", jax.nn.sigmoid(logits), weights(heads))


def contributions(heads: Heads, x: Float[Array, "row feature"]) -> Float[Array, "row feature"]:
    """Each column's part of the first head's logits, the mean of its experts' by their weights."""
    share = weights(heads)[0]
    theta = jnp.einsum("k,kw->w", share[MEMORIES:], heads.rich.theta[0])
    width = 1 + x.shape[1]
    theta = theta.at[:width].add(jnp.einsum("k,kw->w", share[:MEMORIES], heads.linear.theta[0]))
    parts = (jnp.concatenate(_features(heads, x)).T * theta)[:, 1:]
    return parts[:, : width - 1] + parts[:, width - 1 :] @ feature_maps.owners(heads.map)


def set_map(
    heads: Heads, round: Int[Array, ""], x: Float[Array, "row feature"], weight: PerRow
) -> Heads:
    """Let the first rows set the rich map; where the first round has none, a later one does.

    It is tried in rounds 1, 2, 4, 8, ...: a branch on the round stays one under `vmap` over seeds,
    where a branch on the state would cost every round.
    """

    def fit() -> RichMap:
        return choose(heads.map.fitted, heads.map, feature_maps.fit(heads.map, _clipped(x), weight))

    power_of_two = (round & (round - 1)) == 0
    return heads._replace(map=jax.lax.cond(power_of_two, fit, lambda: heads.map))


def learn(
    heads: Heads,
    x: Float[Array, "row feature"],
    y: PerRow,
    target: Float[Array, "head row"],
    weight: Float[Array, "head row"],
    kinds: tuple[int, ...],
) -> Heads:
    """Learn a task's rows: what each head should have said of them, and their weight for it.

    The first head learns from all rows, the others from those of a label: `kinds` are 0 for all, 1
    and 2 for labels 1 and 0.
    """
    part = jnp.minimum(weight[0].sum() / FULL_ROUND, 1.0)
    seen = _features(heads, x)
    logits = _logits(heads, seen)
    heads = heads._replace(log_weights=_credited(heads, logits, target, weight, part))
    share = weights(heads)
    keeps = _keeps() ** part
    place, stands_for = _thinned(y, weight[0])
    some = _features(heads, x[place])
    some_rich = jnp.concatenate(some)
    some_target = target[:, place]
    some_weight = jnp.where(weight[:, place] > 0, stands_for, 0.0)
    products = logistic_experts.products_of(some_rich, y[place], stands_for)

    def solved(experts: Experts, seen: Seen, some: Array, places: slice, blocks: Blocks) -> Experts:
        rows = SomeRows(some, some_target, some_weight)
        lesson = Lesson(seen, logits[:, places], target, weight, rows)
        kept = keeps[jnp.array(_memory_of()[places])]
        present = products.first(len(some))
        return logistic_experts.solve(
            experts, lesson, kinds, present, kept, share[:, places], blocks
        )

    first, *_ = blocks = _blocks(heads)
    return heads._replace(
        linear=solved(heads.linear, seen[:1], some[0], slice(MEMORIES), (first,)),
        rich=solved(heads.rich, seen, some_rich, slice(MEMORIES, None), blocks),
        clock=heads.clock + part,
    )


def _thinned(y: PerRow, weight: PerRow) -> tuple[Array, Array]:
    """At most PER_LABEL rows of each label, and how many rows each stands for."""
    if len(y) <= 2 * PER_LABEL:
        return jnp.arange(len(y)), weight
    places, stands_for = [], []
    for mask in (weight * y, weight * (1 - y)):
        place, meant = nth_rows((mask > 0).astype(jnp.float32), PER_LABEL)
        some = jnp.where(meant, mask[place], 0.0)
        places.append(place)
        stands_for.append(some * mask.sum() / jnp.maximum(some.sum(), 1e-9))
    return jnp.concatenate(places), jnp.concatenate(stands_for)


def _credited(
    heads: Heads,
    logits: Float[Array, "head expert row"],
    target: Float[Array, "head row"],
    weight: Float[Array, "head row"],
    part: Float[Array, ""],
) -> Float[Array, "head expert"]:
    """Log weights after the log loss of fresh rows; a head that has learned nothing has no say."""
    loss = softplus(logits) - target[:, None] * logits
    rows = weight.sum(1)
    scale = jnp.minimum(1.0, HEDGE_ROWS / jnp.maximum(rows, 1.0))
    summed = jnp.einsum("hn,hkn->hk", weight, loss) * scale[:, None]
    moved = HEDGE_MEMORY**part * jnp.log(weights(heads)) - HEDGE_RATE * summed
    moved = moved - moved.max(1, keepdims=True)
    learned = (rows > 0) & (heads.linear.rows[:, -1] > 0)
    return jnp.where(learned[:, None], moved, heads.log_weights)


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
