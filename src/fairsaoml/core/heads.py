"""Heads: probabilities learned online without constraints, by experts that differ in their memory.

A head is a binary probability of a row, P(y=1|x) or P(s=g|x, y). It is a mixture of logistic
regressions (`core.logistic_experts`). They differ in the features they see (the columns, or a
richer map of them) and in what they remember (`core.roster`). A discounted hedge with a fixed share
mixes their probabilities by the log loss of rows nobody had learned from, so that weight moves to
whoever fits the present.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairsaoml.core import feature_maps, logistic_experts
from fairsaoml.core.arrays import Array
from fairsaoml.core.feature_maps import RichMap
from fairsaoml.core.logistic_experts import Experts, Lesson, SomeRows, new_experts
from fairsaoml.core.roster import KEEPS, Roster
from fairsaoml.core.unseeded import nth_rows

FULL_ROUND = 100.0  # rows; a smaller task forgets accordingly less
LARGEST_LOGIT = 12.0
HEDGE_RATE = 1.0  # of the rows' summed log loss
HEDGE_ROWS = 200.0  # at most so many rows' worth of it a round
HEDGE_MEMORY = 0.9  # of log weights, each full round
FIXED_SHARE = 0.01
AT_ONCE = 512  # rows
PER_LABEL = 128  # rows of a task, evenly thinned: curvature and step size need no more

Rows = Float[Array, "row feature"]
PerRow = Float[Array, "row"]
PerExpert = Float[Array, "expert row"]
Features = Float[Array, "width row"]  # rows last


class Heads(NamedTuple):
    """All heads' state; memory is the same however long the stream."""

    map: RichMap
    experts: Experts
    share: Float[Array, "expert"]  # of each expert in its head
    clock: Float[Array, ""]  # full rounds learned from
    turn: Int[Array, ""]  # rounds learned from, full or not


class Said(NamedTuple):
    """Rows as the experts see them, what each expert says of them, and what the heads make of it.

    Features are (1, x), clipped, and what the rich map adds, rows last. An expert's `lean` is the
    distance 2 p - 1 of its probability from a coin's: 0 before it has learned.
    """

    features: Features
    lean: PerExpert
    chance: Float[Array, "head row"]


def width(features: int) -> int:
    """How many features rows of so many columns have: a constant, the columns and the rich ones."""
    return 1 + features + feature_maps.width()


def new_heads(who: Roster, features: int) -> Heads:
    """Heads of rows with so many columns, before any row: every probability is 1/2."""
    return Heads(
        map=feature_maps.unfitted(features),
        experts=new_experts(who, 1 + features, width(features)),
        share=1 / who.of_head.sum(1)[who.head],
        clock=np.zeros((), np.float32),
        turn=np.zeros((), np.int32),
    )


def _blocks(heads: Heads) -> tuple[int, ...]:
    """How many features each block has that has a ridge of its own; the constant has no block."""
    return heads.experts.products[0].shape[1] - 1, *feature_maps.blocks(heads.map)


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
    clipped = _clipped(x)
    for first in range(0, len(x), AT_ONCE):  # all at once are turned half as fast
        rows = slice(first, first + AT_ONCE)
        features[1 : 1 + x.shape[1], rows] = clipped[rows].T
    feature_maps.add_rich(rich, features)
    return features


def weights(who: Roster, heads: Heads) -> Float[Array, "head expert"]:
    """The share of each expert in its head: the hedge's, with a fixed share for everyone."""
    return who.of_head * heads.share


def look(who: Roster, heads: Heads, x: Rows) -> Said:
    """What is said of rows, with all that it is made of."""
    features = features_of(heads.map, x)
    return Said(features, *_said(who, heads, [features]))


def _said(
    who: Roster, heads: Heads, parts: Sequence[Float[Array, "width _"]]
) -> tuple[PerExpert, Float[Array, "head row"]]:
    """What each expert and each head says of rows whose features are known, part by part."""
    half, seen = 0.5 * heads.experts.theta, heads.experts.products[0].shape[1]
    lean = np.empty((len(half), sum(features.shape[1] for features in parts)), np.float32)
    begin = 0
    for features in parts:
        mine = lean[:, begin : begin + features.shape[1]]
        np.matmul(half[: who.linear, :seen], features[:seen], out=mine[: who.linear])
        np.matmul(half[who.linear :], features, out=mine[who.linear :])
        begin += features.shape[1]
    np.clip(lean, -LARGEST_LOGIT / 2, LARGEST_LOGIT / 2, out=lean)
    np.tanh(lean, out=lean)
    chance = weights(who, heads) @ lean
    chance *= 0.5
    chance += 0.5
    return lean, chance


def probabilities(
    who: Roster, heads: Heads, parts: Sequence[Float[Array, "width _"]]
) -> Float[Array, "head row"]:
    """What each head says of rows whose features are known, part by part."""
    return _said(who, heads, parts)[1]


def contributions(who: Roster, heads: Heads, features: Features) -> Rows:
    """Each column's part of the first head's logits, the mean of its experts' by their weights."""
    theta, width = weights(who, heads)[0] @ heads.experts.theta, heads.experts.products[0].shape[1]
    parts = features * theta[:, None]
    return (parts[1:width] + feature_maps.owners(heads.map, width - 1).T @ parts[width:]).T


def set_map(heads: Heads, x: Rows, weight: PerRow) -> Heads:
    """Let the first rows set the rich map."""
    if heads.map.fitted:
        return heads
    return heads._replace(map=feature_maps.fit(heads.map, _clipped(x), weight))


def learn(
    who: Roster,
    heads: Heads,
    said: Said,
    y: PerRow,
    target: Float[Array, "head row"],
    weight: Float[Array, "head row"],
) -> Heads:
    """Learn a task's rows: what each head should have said of them, and their weight for it.

    `said` is what these heads say of the rows (`look`).
    """
    part = np.minimum(weight[0].sum() / FULL_ROUND, np.float32(1.0))
    sign = 2 * target - 1
    share = _credited(who, heads, said, sign, weight, part)
    some = _thinned(said.features, y, weight)
    lesson = Lesson(said.features, said.lean, sign, weight, some)
    experts = logistic_experts.solve(
        who, heads.experts, lesson, KEEPS**part, share, _blocks(heads), int(heads.turn)
    )
    return heads._replace(
        experts=experts, share=share, clock=heads.clock + part, turn=heads.turn + np.int32(1)
    )


def _thinned(features: Features, y: PerRow, weight: Float[Array, "head row"]) -> SomeRows:
    """All rows of a small task, at most PER_LABEL of each label of a larger one."""
    counted = weight[0]
    by_label = [np.flatnonzero((y == label) & (counted > 0)) for label in (1, 0)]
    few = by_label
    if sum(map(len, by_label)) > 2 * PER_LABEL:
        few = [rows[nth_rows(len(rows), PER_LABEL)] for rows in by_label]
    stands_for = np.concatenate(
        [
            counted[some] * (counted[rows].sum() / max(counted[some].sum(), np.float32(1e-9)))
            for some, rows in zip(few, by_label, strict=True)
        ]
    )
    place = np.concatenate(few)
    return SomeRows(
        features=features.take(place, axis=1),
        weight=np.where(weight[:, place] > 0, stands_for, np.float32(0.0)),
        stands_for=stands_for,
        ones=len(few[0]),
    )


def _credited(
    who: Roster,
    heads: Heads,
    said: Said,
    sign: Float[Array, "head row"],
    weight: Float[Array, "head row"],
    part: Float[Array, ""],
) -> Float[Array, "expert"]:
    """Shares after the log loss of fresh rows; a head that has learned nothing has no say."""
    rows = weight.sum(1)
    # What is gained on a coin in log loss: of a row log(2 p), p the probability of its label.
    gain = said.lean * sign[who.head]
    gain += 1
    np.log(gain, out=gain)
    scale = np.minimum(1.0, HEDGE_ROWS / np.maximum(rows, 1.0))[who.head]
    moved = HEDGE_MEMORY**part * np.log(heads.share)
    moved += HEDGE_RATE * scale * np.einsum("er,er->e", gain, weight[who.head])
    moved -= np.where(who.of_head > 0, moved, -np.inf).max(1)[who.head]
    mixed = np.exp(moved)
    experts = who.of_head.sum(1)
    mixed *= (1 - FIXED_SHARE) / (who.of_head @ mixed)[who.head]
    mixed += (FIXED_SHARE / experts)[who.head]
    learned = (rows[who.head] > 0) & (heads.experts.rows > 0)
    return np.where(learned, mixed, heads.share)


def memory_weights(who: Roster, heads: Heads) -> Float[Array, "memory"]:
    """The first head's weight of each memory, whatever the features."""
    share = heads.share * who.of_head[0]
    return np.bincount(who.memory, share, len(KEEPS)).astype(np.float32)


def kept(who: Roster, heads: Heads) -> Float[Array, ""]:
    """How much of the last round is still the present, as the first head's weights say."""
    return memory_weights(who, heads) @ KEEPS


def recency(who: Roster, heads: Heads, born: PerRow) -> PerRow:
    """How much rows of the past are still the present: 1 for those of the last round.

    m(age) = sum_k p_k gamma_k^age / sum_{age'} gamma_k^age', an expert's weight spread over what
    it remembers; `born` is the clock before the row's task was learned.
    """
    changes = 1 + np.flatnonzero(born[1:] != born[:-1])  # rows of a task lie together
    begin = np.concatenate([[0], changes])[: len(born)]
    end = np.concatenate([changes, [len(born)]])[: len(born)]
    age = np.maximum(heads.clock - born[begin] - 1, 0.0)
    time = np.maximum(heads.clock, 1.0)
    mass = np.where(KEEPS < 1, (1 - KEEPS**time) / np.maximum(1 - KEEPS, 1e-9), time)
    share = memory_weights(who, heads) / mass
    of_task = (share * KEEPS ** age[:, None]).sum(1) / share.sum()
    return np.repeat(of_task, end - begin)
