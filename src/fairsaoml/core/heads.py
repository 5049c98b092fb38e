"""Heads: probabilities learned online without constraints, by experts that differ in their memory.

A head is a binary probability of a row, P(y=1|x) or P(s=g|x, y). It is a mixture of logistic
regressions (`core.logistic_experts`). They differ in the features they see (the columns, or a
richer map of them) and in what they remember: one the last round alone, others forget a half, an
eighth or a thirty-second of the past each round, and one nothing. A discounted hedge with a fixed
share mixes their probabilities by the log loss of rows nobody had learned from, so that weight
moves to whoever fits the present.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairsaoml.core import feature_maps, logistic_experts
from fairsaoml.core.arrays import Array
from fairsaoml.core.feature_maps import RichMap
from fairsaoml.core.logistic_experts import (
    Blocks,
    Experts,
    Lesson,
    SomeRows,
    new_experts,
)
from fairsaoml.core.unseeded import nth_rows

__all__ = [
    "Heads",
    "Said",
    "contributions",
    "features_of",
    "kept",
    "learn",
    "look",
    "memory_weights",
    "new_heads",
    "probabilities",
    "recency",
    "set_map",
    "weights",
    "width",
]

SHORTEST = 1e-4  # what the shortest memory keeps of a round: nearly nothing
# What each memory keeps of the past in a full round: it forgets nearly all, 1/2, 1/8, ..., nothing.
KEEPS = np.array([SHORTEST, *(1 - 2.0**-k for k in (1, 3, 5)), 1.0], np.float32)
MEMORIES = len(KEEPS)
RICH_MEMORIES = (3, 4)  # of these, those of the rich map
LINEAR_TURNS, RICH_TURNS = 1, 2  # in how many turns the experts of a map take their steps
MEMORY_OF = [*range(MEMORIES), *RICH_MEMORIES]  # of each expert, in the order of the weights
FULL_ROUND = 100.0  # rows; a smaller task forgets accordingly less
LARGEST_LOGIT = 12.0
HEDGE_RATE = 1.0  # of the rows' summed log loss
HEDGE_ROWS = 200.0  # at most so many rows' worth of it a round
HEDGE_MEMORY = 0.9  # of log weights, each full round
FIXED_SHARE = 0.01
PER_LABEL = 128  # rows of a task, evenly thinned: curvature and step size need no more

Rows = Float[Array, "row feature"]
PerRow = Float[Array, "row"]
PerExpert = Float[Array, "head memory row"]
Features = Float[Array, "width row"]  # rows last


class Heads(NamedTuple):
    """All heads' state; memory is the same however long the stream."""

    map: RichMap
    linear: Experts
    rich: Experts
    log_weights: Float[Array, "head expert"]
    clock: Float[Array, ""]  # full rounds learned from
    turn: Int[Array, ""]  # rounds learned from, full or not


class Said(NamedTuple):
    """Rows as the experts see them, what each expert says of them, and what the heads make of it.

    Features are (1, x), clipped, and what the rich map adds, rows last. An expert's `lean` is the
    distance 2 p - 1 of its probability from a coin's: 0 before it has learned.
    """

    features: Features
    linear: PerExpert  # leans
    rich: PerExpert
    chance: Float[Array, "head row"]


def width(features: int) -> int:
    """How many features rows of so many columns have: a constant, the columns and the rich ones."""
    return 1 + features + feature_maps.width()


def new_heads(features: int, count: int) -> Heads:
    """`count` heads of rows with `features` columns, before any row: every probability is 1/2."""
    return Heads(
        map=feature_maps.unfitted(features),
        linear=new_experts(count, MEMORIES, 1 + features),
        rich=new_experts(count, len(RICH_MEMORIES), width(features)),
        log_weights=np.zeros((count, len(MEMORY_OF)), np.float32),
        clock=np.zeros((), np.float32),
        turn=np.zeros((), np.int32),
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


def features_of(rich: RichMap, x: Rows) -> Features:
    """Rows as the experts see them."""
    count = 1 + x.shape[1] + sum(feature_maps.blocks(rich))
    features = np.empty((count, len(x)), np.float32)
    features[0] = 1.0
    features[1 : 1 + x.shape[1]] = _clipped(x).T
    feature_maps.add_rich(rich, features)
    return features


def _leans(theta: Float[Array, "head memory seen"], features: Features) -> PerExpert:
    """2 p - 1 of every expert and row, from as many features as an expert sees."""
    heads, memories, width = theta.shape
    half = (0.5 * theta).reshape(heads * memories, width) @ features[:width]
    np.clip(half, -LARGEST_LOGIT / 2, LARGEST_LOGIT / 2, out=half)
    return np.tanh(half, out=half).reshape(heads, memories, features.shape[1])


def weights(heads: Heads) -> Float[Array, "head expert"]:
    """The share of each expert in its head: the hedge's, with a fixed share for everyone."""
    share = np.exp(heads.log_weights - heads.log_weights.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    return (1 - FIXED_SHARE) * share + np.float32(FIXED_SHARE / share.shape[1])


def look(heads: Heads, x: Rows) -> Said:
    """What is said of rows, with all that it is made of."""
    return _said(heads, features_of(heads.map, x))


def _said(heads: Heads, features: Features) -> Said:
    linear, rich = (_leans(experts.theta, features) for experts in (heads.linear, heads.rich))
    share = weights(heads)[:, None]
    lean = share[:, :, :MEMORIES] @ linear + share[:, :, MEMORIES:] @ rich
    return Said(features=features, linear=linear, rich=rich, chance=0.5 + 0.5 * lean[:, 0])


def probabilities(heads: Heads, parts: Sequence[Features]) -> Float[Array, "head row"]:
    """What each head says of rows whose features are known, part by part."""
    chances = [_said(heads, features).chance for features in parts if features.size]
    return np.concatenate(chances, axis=1) if chances else _said(heads, parts[0]).chance


def contributions(heads: Heads, features: Features) -> Rows:
    """Each column's part of the first head's logits, the mean of its experts' by their weights."""
    share = weights(heads)[0]
    theta = share[MEMORIES:] @ heads.rich.theta[0]
    width = heads.linear.theta.shape[2]
    theta[:width] += share[:MEMORIES] @ heads.linear.theta[0]
    parts = features * theta[:, None]
    return (parts[1:width] + feature_maps.owners(heads.map, width - 1).T @ parts[width:]).T


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
    sign = 2 * target - 1
    heads = heads._replace(log_weights=_credited(heads, said, sign, weight, part))
    share = weights(heads)
    keeps = KEEPS**part
    place, stands_for, ones = _thinned(y, weight[0])
    some = said.features.take(place, axis=1)
    some_weight = np.where(weight[:, place] > 0, stands_for, np.float32(0.0))
    products = logistic_experts.products_of(some, stands_for, ones)

    def solved(experts: Experts, lean: Array, places: slice, blocks: Blocks, every: int) -> Experts:
        width = experts.theta.shape[2]
        rows = SomeRows(some[:width], some_weight)
        lesson = Lesson(said.features[:width], lean, sign, weight, rows)
        kept = keeps[MEMORY_OF[places]]
        present = products.first(width)
        heads_, memories = experts.rows.shape
        steps = (np.arange(heads_)[:, None] + np.arange(memories) + heads.turn) % every == 0
        return logistic_experts.solve(
            experts, lesson, kinds, present, kept, share[:, places], blocks, steps
        )

    first, *_ = blocks = _blocks(heads)
    return heads._replace(
        linear=solved(heads.linear, said.linear, slice(MEMORIES), (first,), LINEAR_TURNS),
        rich=solved(heads.rich, said.rich, slice(MEMORIES, None), blocks, RICH_TURNS),
        clock=heads.clock + part,
        turn=heads.turn + np.int32(1),
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
    said: Said,
    sign: Float[Array, "head row"],
    weight: Float[Array, "head row"],
    part: Float[Array, ""],
) -> Float[Array, "head expert"]:
    """Log weights after the log loss of fresh rows; a head that has learned nothing has no say."""
    rows = weight.sum(1)
    gain = np.concatenate([_log_gain(lean, sign, weight) for lean in said[1:3]], axis=1)
    scale = np.minimum(1.0, HEDGE_ROWS / np.maximum(rows, 1.0))
    moved = HEDGE_MEMORY**part * np.log(weights(heads)) + HEDGE_RATE * scale[:, None] * gain
    moved = moved - moved.max(1, keepdims=True)
    learned = (rows > 0) & (heads.linear.rows[:, -1] > 0)
    return np.where(learned[:, None], moved, heads.log_weights)


def _log_gain(
    lean: PerExpert,
    sign: Float[Array, "head row"],
    weight: Float[Array, "head row"],
) -> Float[Array, "head memory"]:
    """What is gained on a coin in log loss: of a row log(2 p), p the probability of its label."""
    right = lean * sign[:, None]
    right += 1
    return (np.log(right, out=right) @ weight[:, :, None])[:, :, 0]


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
    changes = 1 + np.flatnonzero(born[1:] != born[:-1])  # rows of a task lie together
    first = np.concatenate([[0], changes])[: len(born)]
    age = np.maximum(heads.clock - born[first] - 1, 0.0)
    time = np.maximum(heads.clock, 1.0)
    mass = np.where(KEEPS < 1, (1 - KEEPS**time) / np.maximum(1 - KEEPS, 1e-9), time)
    share = memory_weights(heads) / mass
    of_task = (share * KEEPS ** age[:, None]).sum(1) / share.sum()
    return np.repeat(of_task, np.diff(first, append=len(born)))
