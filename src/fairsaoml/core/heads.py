"""Heads: probabilities learned online without constraints, by experts that differ in their memory.

A head is a binary probability of a row, P(y=1|x) or P(s=g|x, y). It is a mixture of logistic
regressions (`core.logistic_experts`). They differ in the features they see (the columns, or a
richer map of them) and in what they remember: expert k forgets a share 2^-k of the past each
round, the last one nothing. A discounted hedge with a fixed share mixes their probabilities by the
log loss of rows nobody had learned from, so that weight moves to whoever fits the present.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairsaoml.core import feature_maps, logistic_experts
from fairsaoml.core.arrays import Array, sigmoid, softplus
from fairsaoml.core.feature_maps import RichMap
from fairsaoml.core.logistic_experts import (
    LARGEST_LOGIT,
    Blocks,
    Experts,
    Lesson,
    SomeRows,
    new_experts,
)
from fairsaoml.core.unseeded import nth_rows

__all__ = [
    "Heads",
    "KnownRows",
    "Said",
    "contributions",
    "kept",
    "learn",
    "look",
    "memory_weights",
    "new_heads",
    "recency",
    "set_map",
    "weights",
]

MEMORIES = 8  # forgetting 1, 1/2, 1/4, ..., 2^-(MEMORIES-2) and 0 of the past, each full round
RICH_MEMORIES = (5, 7)  # of these, those of the rich map
MEMORY_OF = [*range(MEMORIES), *RICH_MEMORIES]  # of each expert, in the order of the weights
FULL_ROUND = 100.0  # rows; a smaller task forgets accordingly less
SHORTEST = 1e-4  # what the shortest memory keeps of a round: nearly nothing
# What each memory keeps of the past in a full round: nearly 0, 1/2, 3/4, ..., 1.
KEEPS = np.array([SHORTEST, *(1 - 2.0**-k for k in range(1, MEMORIES - 1)), 1.0], np.float32)
HEDGE_RATE = 1.0  # of the rows' summed log loss
HEDGE_ROWS = 200.0  # at most so many rows' worth of it a round
HEDGE_MEMORY = 0.9  # of log weights, each full round
FIXED_SHARE = 0.01
PER_LABEL = 256  # rows of a task, evenly thinned: curvature and step size need no more
AT_ONCE = 512  # rows that are looked at together: what their features need stays in the cache

Rows = Float[Array, "row feature"]
PerRow = Float[Array, "row"]
Features = Float[Array, "width row"]  # rows last


class Heads(NamedTuple):
    """All heads' state; memory is the same however long the stream."""

    map: RichMap
    linear: Experts
    rich: Experts
    log_weights: Float[Array, "head expert"]
    clock: Float[Array, ""]  # full rounds learned from


class Said(NamedTuple):
    """Rows as the experts see them, what each expert says of them, and what the heads make of it.

    Features are (1, x), clipped, and what the rich map adds, rows last.
    """

    features: Features
    logits: Float[Array, "head expert row"]
    by_expert: Float[Array, "head expert row"]  # probabilities
    chance: Float[Array, "head row"]


def new_heads(features: int, count: int) -> Heads:
    """`count` heads of rows with `features` columns, before any row: every probability is 1/2."""
    rich_width = 1 + features + feature_maps.width()
    return Heads(
        map=feature_maps.unfitted(features),
        linear=new_experts(count, MEMORIES, 1 + features),
        rich=new_experts(count, len(RICH_MEMORIES), rich_width),
        log_weights=np.zeros((count, len(MEMORY_OF)), np.float32),
        clock=np.zeros((), np.float32),
    )


def _blocks(heads: Heads) -> Blocks:
    """Where the blocks of features with a ridge of their own begin and end, the constant apart."""
    ends = [heads.linear.theta.shape[2]]
    for size in feature_maps.blocks(heads.map):
        ends.append(ends[-1] + size)
    return tuple(zip([1, *ends[:-1]], ends, strict=True))


def _clipped(x: Rows) -> Rows:
    most = feature_maps.CLIP
    if x.min(initial=0.0) >= -most and x.max(initial=0.0) <= most:
        return x  # as most rows are; NaN is neither
    return np.nan_to_num(np.clip(x, -most, most), copy=False)


def _features(heads: Heads, x: Rows) -> Features:
    features = np.empty((heads.rich.theta.shape[2], len(x)), np.float32)
    features[0] = 1.0
    features[1 : 1 + x.shape[1]] = _clipped(x).T
    feature_maps.add_rich(heads.map, features)
    return features


def _logits(heads: Heads, features: Features) -> Float[Array, "head expert row"]:
    logits = np.concatenate(
        [_products(experts.theta, features) for experts in (heads.linear, heads.rich)], axis=1
    )
    return np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT, out=logits)


def _products(theta: Float[Array, "head memory seen"], features: Features) -> Array:
    """theta . features of every expert and row, for as many features as an expert sees."""
    heads, memories, width = theta.shape
    said = theta.reshape(heads * memories, width) @ features[:width]
    return said.reshape(heads, memories, features.shape[1])


def weights(heads: Heads) -> Float[Array, "head expert"]:
    """The share of each expert in its head: the hedge's, with a fixed share for everyone."""
    share = np.exp(heads.log_weights - heads.log_weights.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    return (1 - FIXED_SHARE) * share + np.float32(FIXED_SHARE / share.shape[1])


def look(heads: Heads, x: Rows) -> Said:
    """What is said of rows, with all that it is made of."""
    return _said(heads, weights(heads), _features(heads, x))


def _said(heads: Heads, share: Float[Array, "head expert"], features: Features) -> Said:
    logits = _logits(heads, features)
    by_expert = sigmoid(logits)
    chance = (share[:, None] @ by_expert)[:, 0]
    return Said(features=features, logits=logits, by_expert=by_expert, chance=chance)


class KnownRows:
    """Rows that are asked about round after round, in blocks that change little between rounds.

    The features of a block stay as they are while its rows do. Only this memory is shared between
    calls: a block is replaced as a whole, and rows that are not known are looked at anew.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[RichMap, Rows, Features]] = {}

    def probabilities(self, heads: Heads, x: Rows) -> Float[Array, "head row"]:
        """What each head says of rows."""
        share = weights(heads)
        chance = np.empty((len(share), len(x)), np.float32)
        for first in range(0, len(x), AT_ONCE):
            block = slice(first, first + AT_ONCE)
            chance[:, block] = _said(heads, share, self._features(heads, first, x[block])).chance
        return chance

    def _features(self, heads: Heads, first: int, x: Rows) -> Features:
        known = self._blocks.get(first)
        if known is None or known[0] is not heads.map or not np.array_equal(known[1], x):
            known = self._blocks[first] = heads.map, x, _features(heads, x)
        return known[2]


def contributions(heads: Heads, features: Features) -> Rows:
    """Each column's part of the first head's logits, the mean of its experts' by their weights."""
    share = weights(heads)[0]
    theta = share[MEMORIES:] @ heads.rich.theta[0]
    width = heads.linear.theta.shape[2]
    theta[:width] += share[:MEMORIES] @ heads.linear.theta[0]
    parts = features * theta[:, None]
    return (parts[1:width] + feature_maps.owners(heads.map).T @ parts[width:]).T


def set_map(heads: Heads, x: Rows, weight: PerRow) -> Heads:
    """Let the first rows set the rich map."""
    if heads.map.fitted:
        return heads
    return heads._replace(map=feature_maps.fit(heads.map, _clipped(x), weight))


def learn(
    heads: Heads,
    said: Said,
    y: PerRow,
    target: Float[Array, "head row"],
    weight: Float[Array, "head row"],
    kinds: tuple[int, ...],
) -> Heads:
    """Learn a task's rows: what each head should have said of them, and their weight for it.

    The first head learns from all rows, the others from those of a label: `kinds` are 0 for all, 1
    and 2 for labels 1 and 0. `said` is what these heads say of the rows (`look`).
    """
    part = np.minimum(weight[0].sum() / FULL_ROUND, np.float32(1.0))
    heads = heads._replace(log_weights=_credited(heads, said.logits, target, weight, part))
    share = weights(heads)
    keeps = KEEPS**part
    place, stands_for, ones = _thinned(y, weight[0])
    some = said.features.take(place, axis=1)
    some_target = target[:, place]
    some_weight = np.where(weight[:, place] > 0, stands_for, np.float32(0.0))
    products = logistic_experts.products_of(some, stands_for, ones)

    def solved(experts: Experts, places: slice, blocks: Blocks) -> Experts:
        width = experts.theta.shape[2]
        rows = SomeRows(some[:width], some_target, some_weight)
        by_expert = said.logits[:, places], said.by_expert[:, places]
        lesson = Lesson(said.features[:width], *by_expert, target, weight, rows)
        kept = keeps[MEMORY_OF[places]]
        present = products.first(width)
        return logistic_experts.solve(
            experts, lesson, kinds, present, kept, share[:, places], blocks
        )

    first, *_ = blocks = _blocks(heads)
    return heads._replace(
        linear=solved(heads.linear, slice(MEMORIES), (first,)),
        rich=solved(heads.rich, slice(MEMORIES, None), blocks),
        clock=heads.clock + part,
    )


def _thinned(y: PerRow, weight: PerRow) -> tuple[Int[Array, "some"], Float[Array, "some"], int]:
    """Some rows, how many rows each stands for, and how many have label 1: they come first.

    All rows of a small task, at most PER_LABEL of each label of a larger one.
    """
    by_label = [np.flatnonzero((y == label) & (weight > 0)) for label in (1, 0)]
    some = by_label
    if sum(map(len, by_label)) > 2 * PER_LABEL:
        some = [rows[nth_rows(len(rows), PER_LABEL)] for rows in by_label]
    stands_for = [
        weight[few] * (weight[rows].sum() / max(weight[few].sum(), np.float32(1e-9)))
        for few, rows in zip(some, by_label, strict=True)
    ]
    return np.concatenate(some), np.concatenate(stands_for), len(some[0])


def _credited(
    heads: Heads,
    logits: Float[Array, "head expert row"],
    target: Float[Array, "head row"],
    weight: Float[Array, "head row"],
    part: Float[Array, ""],
) -> Float[Array, "head expert"]:
    """Log weights after the log loss of fresh rows; a head that has learned nothing has no say."""
    rows = weight.sum(1)
    loss = softplus(logits) @ weight[:, :, None] - logits @ (weight * target)[:, :, None]
    scale = np.minimum(1.0, HEDGE_ROWS / np.maximum(rows, 1.0))
    summed = loss[:, :, 0] * scale[:, None]
    moved = HEDGE_MEMORY**part * np.log(weights(heads)) - HEDGE_RATE * summed
    moved = moved - moved.max(1, keepdims=True)
    learned = (rows > 0) & (heads.linear.rows[:, -1] > 0)
    return np.where(learned[:, None], moved, heads.log_weights)


def memory_weights(heads: Heads) -> Float[Array, "memory"]:
    """The first head's weight of each memory, whatever the features."""
    share = weights(heads)[0]
    by_memory = share[:MEMORIES].copy()
    by_memory[list(RICH_MEMORIES)] += share[MEMORIES:]
    return by_memory


def kept(heads: Heads) -> Float[Array, ""]:
    """How much of the last round is still the present, as the first head's weights say."""
    return memory_weights(heads) @ KEEPS


def recency(heads: Heads, born: PerRow) -> PerRow:
    """How much rows of the past are still the present: 1 for those of the last round.

    m(age) = sum_k p_k gamma_k^age / sum_{age'} gamma_k^age', an expert's weight spread over what
    it remembers; `born` is the clock before the row's task was learned.
    """
    births, of_row = np.unique(born, return_inverse=True)  # rows of a task are of one age
    age = np.maximum(heads.clock - births - 1, 0.0)
    time = np.maximum(heads.clock, 1.0)
    mass = np.where(KEEPS < 1, (1 - KEEPS**time) / np.maximum(1 - KEEPS, 1e-9), time)
    share = memory_weights(heads) / mass
    return ((share * KEEPS ** age[:, None]).sum(1) / share.sum())[of_row]
