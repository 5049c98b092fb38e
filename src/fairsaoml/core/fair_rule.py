"""The fair rule: a few coefficients that make the decision fair, on top of probabilities.

For a rule h that does not see the group every rate is linear in h. Of a notion, an attribute and
a group g, with U_g(x) = P(s=g, condition | x) and P_g = E[U_g], the rate is r_g = E[U_g h] / P_g.
A ratio asks |r_g - m| <= d m of every group, m the mean of the groups' rates, d = (1 - ratio) /
(1 + ratio): any two groups are then within the ratio. The most accurate such rule is

    h(x) = 1  where  a(x) + sum_g c_g U_g(x) > 0,    a = (eta - t) / spread,

a threshold on eta that moves with what the row's features say about its group. The coefficients are
found by `core.rule_solver`; they are linear in eta where heads must be corrected. Here is what the
rule decides, and what is learned from decisions as they were issued: feedback, a Kalman filter of
the gap that they showed on fresh rows.

Menon and Williamson 2018, Chzhen et al. 2019 and Zeng et al. 2022 have the rule for fixed data.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from fairsaoml.core.arrays import Array
from fairsaoml.core.unseeded import mixed, uniform

SHARPNESS = 48.0  # of the decision in the dual, at its last stage: the width of lots
SMALLEST_ADDED = 0.1  # to a margin: where fairness adds less, lots count accordingly less
UNLIKELY = 0.01  # lots are cut at this quantile
FURTHEST_LOT = np.log1p(-UNLIKELY) - np.log(UNLIKELY)
DRIFT, DOUBT, LEAK = 0.01, 0.02, 0.98  # the filter's: standard deviation a round, at first; memory
SURPRISE = 3.0  # standard deviations beyond which an innovation is clipped
PRIOR_MEMORY = 0.9  # of base rates and rows a round
FULL_ROUND = 100.0  # rows; a smaller task counts accordingly less
SMALLEST_RATE = 0.02
AT_ONCE = 256  # rows that are hashed together: they stay in the cache

PerRate = Float[Array, "rate"]
PerRow = Float[Array, "row"]
Rows = Float[Array, "row feature"]


class Rate(NamedTuple):
    """A rate that is kept equal: the positive decisions of a group, among rows of a label."""

    prefix: str  # of its constraint's name
    attribute: int
    group: int
    label: int | None  # None: all rows
    block: int  # rates of one block are compared with each other
    notion: int  # place in the order of priority


class Layout(NamedTuple):
    """The rates of the notions asked for, and which of them are compared."""

    rates: tuple[Rate, ...]
    same_block: Float[Array, "rate rate"]
    notions: int


class Rule(NamedTuple):
    """What decides, and what it expects to be seen of its decisions."""

    multiplier: PerRate
    coefficient: PerRate  # c
    tilt: PerRate  # of c with eta: where heads say too much or too little of the group
    threshold: Float[Array, ""]  # t, on eta, before fairness moves it
    spread: Float[Array, ""]
    bias: PerRate  # feedback: what decisions showed beyond what was expected
    variance: PerRate  # of the bias
    expected_gap: PerRate  # relative, by the last solve
    expected_rate: PerRate
    say: PerRate  # of each group in the centre of its block; 0: too few rows
    kept: Float[Array, ""]  # how much of the last round was still the present
    solved: Bool[Array, ""]
    fresh_rows: PerRate  # that a round brings, a running mean
    fresh_rounds: Float[Array, ""]
    positives: Float[Array, ""]  # running sums for the base rate
    rows: Float[Array, ""]
    cost: Float[Array, "notion"]  # accuracy lost to a notion beyond those before it
    alike: Float[Array, "notion"]
    excluded: Bool[Array, "notion"]


def layout_of(notions: Sequence[Mapping[str, int | None]], levels: Sequence[int]) -> Layout:
    """The rates of notions in their order, each the labels it speaks of, by prefix.

    What two notions have in common is asked for once.

    >>> [(r.group, r.label, r.block) for r in layout_of([{"tpr": 1, "fpr": 0}], [2]).rates]
    [(0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1)]
    """
    rates: list[Rate] = []
    blocks: list[tuple[int, int | None]] = []
    for notion, labels in enumerate(notions):
        for attribute, count in enumerate(levels):
            for prefix, label in labels.items():
                if (attribute, label) not in blocks:
                    block = len(blocks)
                    blocks.append((attribute, label))
                    rates += [
                        Rate(prefix, attribute, group, label, block, notion)
                        for group in range(count)
                    ]
    numbers = np.array([rate.block for rate in rates], np.int32)
    same = (numbers[:, None] == numbers[None]).astype(np.float32)
    return Layout(rates=tuple(rates), same_block=same, notions=len(notions))


def new_rule(layout: Layout) -> Rule:
    """Before any row: the plain threshold."""
    count, notions = len(layout.rates), layout.notions
    nothing = np.zeros(count, np.float32)
    return Rule(
        multiplier=nothing,
        coefficient=nothing,
        tilt=nothing,
        threshold=np.full((), 0.5, np.float32),
        spread=np.ones((), np.float32),
        bias=nothing,
        variance=np.full(count, DOUBT**2, np.float32),
        expected_gap=nothing,
        expected_rate=np.full(count, 0.5, np.float32),
        say=nothing,
        kept=np.ones((), np.float32),
        solved=np.zeros((), bool),
        fresh_rows=nothing,
        fresh_rounds=np.zeros((), np.float32),
        positives=np.zeros((), np.float32),
        rows=np.zeros((), np.float32),
        cost=np.zeros(notions, np.float32),
        alike=np.zeros(notions, np.float32),
        excluded=np.zeros(notions, bool),
    )


def margins(
    rule: Rule, chance: PerRow, joint: Float[Array, "rate row"], x: Rows | None = None
) -> PerRow:
    """(eta - t) / spread + what fairness adds: > 0 is decided positive. Without x nobody draws."""
    added = added_by_rate(rule, chance, joint, x).sum(0)
    return (chance - rule.threshold) / rule.spread + added


def added_by_rate(
    rule: Rule, chance: PerRow, joint: Float[Array, "rate row"], x: Rows | None = None
) -> Float[Array, "rate row"]:
    """(c + tilt eta) U of each rate, by a row's lot a little more or less.

    Where fairness outweighs all that the probability says, many rows are within a hair's breadth of
    the threshold, and the fair rule decides a share of them: no threshold could. The lot decides
    which, in the dual's own width. Only rows so near to the threshold that a lot could decide draw.
    """
    parts = joint * (rule.coefficient[:, None] + rule.tilt[:, None] * chance)
    if x is not None:
        added = parts.sum(0)
        margin = (chance - rule.threshold) / rule.spread + added
        near = np.flatnonzero(np.abs(margin) <= FURTHEST_LOT / SHARPNESS)
        drawn, added = lots(x[near]) / SHARPNESS, added[near]
        parts[:, near] *= 1 + np.sign(added) * drawn / np.maximum(np.abs(added), SMALLEST_ADDED)
    return parts


def lots(x: Rows) -> PerRow:
    """A logistic number for each row, made from its features: the same row has the same lot."""
    column = mixed(np.arange(1, x.shape[1] + 1, dtype=np.uint32))
    hashed = np.empty(len(x), np.uint32)
    for first in range(0, len(x), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        bits = (x[rows] + np.float32(0.0)).view(np.uint32)  # -0 is 0
        bits ^= column
        hashed[rows] = mixed(bits).sum(1, dtype=np.uint32)
    hashed = mixed(hashed)
    part = np.clip(uniform(hashed), UNLIKELY, 1 - UNLIKELY)
    return np.log(part) - np.log1p(-part)


def members(
    layout: Layout, y: PerRow, group: Int[Array, "row attribute"]
) -> Float[Array, "rate row"]:
    """Which rows each rate speaks of, by their own labels and groups: 0 or 1."""
    rates = np.empty((len(layout.rates), len(y)), np.float32)
    for own, rate in zip(rates, layout.rates, strict=True):
        own[:] = group[:, rate.attribute] == rate.group
        if rate.label is not None:
            own *= y == rate.label
    return rates


def normalised(layout: Layout, say: PerRate) -> PerRate:
    """The say of the groups of each block, summing to one."""
    total = layout.same_block @ say
    return np.where(total > 0, say / np.maximum(total, 1e-12), 0.0)


def several(layout: Layout, present: Bool[Array, "rate"]) -> Bool[Array, "rate"]:
    """Present rates of blocks in which at least two are."""
    return present & (layout.same_block @ present.astype(np.float32) >= 2)


def gap_variance(layout: Layout, variance: PerRate, say: PerRate) -> PerRate:
    """The variance of r_g - sum say r, from the variances of the rates."""
    return np.maximum(variance * (1 - 2 * say) + layout.same_block @ (say**2 * variance), 0.0)


def feedback(
    layout: Layout,
    rule: Rule,
    decided: PerRow,
    y: PerRow,
    group: Int[Array, "row attribute"],
    weight: PerRow,
) -> Rule:
    """What fresh rows showed of issued decisions: a Kalman filter of the gaps' bias.

    An innovation is the relative gap r_g / m - 1 seen, less the one the last solve counted on, less
    the bias known so far; it is believed as far as its standard error allows.
    """
    members_ = weight * members(layout, y, group)
    count = members_.sum(1)
    rows = weight.sum()
    part = np.minimum(rows / FULL_ROUND, 1.0)
    memory = PRIOR_MEMORY**part
    a_round = count / np.maximum(part, 1e-9)
    rule = rule._replace(
        positives=memory * rule.positives + weight @ y,
        rows=memory * rule.rows + rows,
        fresh_rows=memory * rule.fresh_rows + (1 - memory) * a_round,
        fresh_rounds=memory * rule.fresh_rounds + (1 - memory),
    )
    if not layout.rates:
        return rule
    present = (count >= 1) & (rule.say > 0)
    say = normalised(layout, np.where(present, rule.say, 0.0))
    # One more row at the expected rate: a rate of few rows is not taken at its word.
    rate = (members_ @ decided + rule.expected_rate) / (count + 1)
    centre = np.maximum(layout.same_block @ (say * rate), SMALLEST_RATE)
    binomial = np.maximum(rule.expected_rate * (1 - rule.expected_rate), 0.01)
    noise = gap_variance(layout, binomial / np.maximum(count, 1.0), say) / centre**2
    memory = LEAK**part * rule.kept
    bias = memory * rule.bias
    variance = memory**2 * rule.variance + DRIFT**2 * part + (1 - memory**2) * DOUBT**2
    gain = np.where(several(layout, present), variance / (variance + noise), 0.0)
    surprise = rate / centre - 1 - rule.expected_gap - bias
    limit = SURPRISE * np.sqrt(variance + noise)
    bias = bias + gain * np.clip(surprise, -limit, limit)
    return rule._replace(
        bias=np.where(rule.solved, bias, rule.bias),
        variance=np.where(rule.solved, variance * (1 - gain), rule.variance),
    )
