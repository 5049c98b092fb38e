"""The fair rule: a few multipliers that make the decision fair, on top of probabilities.

For a rule h that does not see the group every rate is linear in h. Of a notion, an attribute and
a group g, with U_g(x) = P(s=g, condition | x) and P_g = E[U_g], the rate is r_g = E[U_g h] / P_g.
A ratio asks |r_g - m| <= d m of every group, m the mean of the groups' rates, d = (1 - ratio) /
(1 + ratio): any two groups are then within the ratio. The most accurate such rule is

    h(x) = 1  where  a(x) + sum_g c_g U_g(x) > 0,    a = (eta - t) / spread,

a threshold on eta that moves with what the row's features say about its group. The coefficients
come from the multipliers that minimise the convex dual

    E[(a - sum_g lambda_g w_g + sum_g d_g |lambda_g| u)_+] + ridge,     w_g = U_g/P_g - (1 - b_g) u,

u = the block's mean of U/P, over a sample of past rows, at rising sharpness. The heads' gaps are
corrected there by b: the gap *measured* with the rows' own groups and labels, and feedback, a
Kalman filter of the gap that issued decisions showed on fresh rows. So a poor head costs accuracy
and not fairness.

Menon and Williamson 2018, Chzhen et al. 2019 and Zeng et al. 2022 have the rule for fixed data.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core.logistic_experts import softplus

__all__ = [
    "Layout",
    "Rate",
    "Rule",
    "added_by_rate",
    "feedback",
    "layout_of",
    "lots",
    "margins",
    "new_rule",
    "solve",
]

SHARPNESS = (6.0, 18.0, 48.0, 48.0)  # of the decision in the dual, stage by stage
ROUNDING = (0.3, 0.1, 0.03, 0.01)  # of |lambda| at zero, stage by stage
NEWTON_STEPS = 4  # a stage
STEP_SIZES = (1.0, 0.5, 0.25, 0.1, 0.02, 0.0)  # the best of these is taken
RIDGE, RIDGE_ROWS = 1e-3, 1000.0  # on multipliers; doubled for a group of so many rows
LARGEST_MULTIPLIER = 30.0
SMALLEST_ADDED = 0.1  # to a margin: where fairness adds less, lots count accordingly less
UNLIKELY = 0.01  # lots are cut at this quantile
FEWEST_ROWS = 8.0  # effective rows without which a group is in no constraint
SAY_ROWS = 30.0  # n / (n + this): a group's say in the centre of its block
GAP_SCALE = 0.1  # size of measured gaps, relative to the rate, that are worth believing
LARGEST_CORRECTION = 0.5
SAFETY = 0.6  # aim inside what was asked by so many standard errors of what will be shown
SHOWN_ROUNDS = 10.0  # rounds that people look at together
SMALLEST_AIM = 0.1  # of what was asked
DRIFT, DOUBT, LEAK = 0.01, 0.02, 0.98  # the filter's: standard deviation a round, at first; memory
SURPRISE = 3.0  # standard deviations beyond which an innovation is clipped
PRIOR_MEMORY = 0.9  # of base rates and rows a round
FULL_ROUND = 100.0  # rows; a smaller task counts accordingly less
SMALLEST_RATE = 0.02
COSTLY, CHEAP = 0.05, 0.01  # accuracy lost to a further notion: it is left out, never left out
ALIKE, MOSTLY_ALIKE = 0.95, 0.9  # share of rows with the same decision: left out; if it grew so
COST_MEMORY = 0.8

PerRate = Float[Array, "rate"]
PerRow = Float[Array, "row"]


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
    numbers = jnp.array([rate.block for rate in rates], jnp.int32)
    same = (numbers[:, None] == numbers[None]).astype(jnp.float32)
    return Layout(rates=tuple(rates), same_block=same, notions=len(notions))


def new_rule(layout: Layout) -> Rule:
    """Before any row: the plain threshold."""
    count, notions = len(layout.rates), layout.notions
    nothing = jnp.zeros(count)
    return Rule(
        multiplier=nothing,
        coefficient=nothing,
        threshold=jnp.full((), 0.5, jnp.float32),
        spread=jnp.ones(()),
        bias=nothing,
        variance=jnp.full(count, DOUBT**2, jnp.float32),
        expected_gap=nothing,
        expected_rate=jnp.full(count, 0.5, jnp.float32),
        say=nothing,
        kept=jnp.ones(()),
        solved=jnp.zeros((), bool),
        fresh_rows=nothing,
        fresh_rounds=jnp.zeros(()),
        positives=jnp.zeros(()),
        rows=jnp.zeros(()),
        cost=jnp.zeros(notions),
        alike=jnp.zeros(notions),
        excluded=jnp.zeros(notions, bool),
    )


def margins(
    rule: Rule, chance: PerRow, joint: Float[Array, "row rate"], lot: PerRow | float
) -> PerRow:
    """(eta - t) / spread + what fairness adds: > 0 is decided positive."""
    added = added_by_rate(rule, joint, lot).sum(1)
    return (chance - rule.threshold) / rule.spread + added


def added_by_rate(
    rule: Rule, joint: Float[Array, "row rate"], lot: PerRow | float
) -> Float[Array, "row rate"]:
    """c U of each rate, by a row's lot a little more or less.

    Where fairness outweighs all that the probability says, many rows are within a hair's breadth of
    the threshold, and the fair rule decides a share of them: no threshold could. The lot decides
    which. It is that of `lots`, in the dual's own width, and 0 where nobody's lot is asked.
    """
    parts = joint * rule.coefficient
    added = parts.sum(1, keepdims=True)
    size = jnp.maximum(jnp.abs(added), SMALLEST_ADDED)
    drawn = jnp.asarray(lot, jnp.float32).reshape(-1, 1) / SHARPNESS[-1]
    return parts * (1 + jnp.sign(added) * drawn / size)


def lots(x: Float[Array, "row feature"]) -> PerRow:
    """A logistic number for each row, made from its features: the same row has the same lot."""
    bits = jax.lax.bitcast_convert_type(jnp.where(x == 0, 0.0, x), jnp.uint32)  # -0 is 0
    column = _mixed(jnp.arange(1, x.shape[1] + 1, dtype=jnp.uint32))
    hashed = _mixed(_mixed(bits ^ column).sum(1, dtype=jnp.uint32))
    part = (hashed >> 8).astype(jnp.float32) / 2.0**24
    part = jnp.clip(part, UNLIKELY, 1 - UNLIKELY)
    return jnp.log(part) - jnp.log1p(-part)


def _mixed(bits: Array) -> Array:
    """Bits of which each depends on all (Wellons' lowbias32)."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ (bits >> shift)) * jnp.uint32(factor)
    return bits ^ (bits >> 16)


def members(
    layout: Layout, y: PerRow, group: Int[Array, "row attribute"]
) -> Float[Array, "row rate"]:
    """Which rows each rate speaks of, by their own labels and groups: 0 or 1."""
    columns = [
        (group[:, rate.attribute] == rate.group)
        & (jnp.ones(len(y), bool) if rate.label is None else y == rate.label)
        for rate in layout.rates
    ]
    return jnp.stack(columns, axis=1).astype(jnp.float32) if columns else jnp.zeros((len(y), 0))


def _normalised(layout: Layout, say: PerRate) -> PerRate:
    """The say of the groups of each block, summing to one."""
    total = layout.same_block @ say
    return jnp.where(total > 0, say / jnp.maximum(total, 1e-12), 0.0)


def _several(layout: Layout, present: Bool[Array, "rate"]) -> Bool[Array, "rate"]:
    """Present rates of blocks in which at least two are."""
    return present & (layout.same_block @ present.astype(jnp.float32) >= 2)


def _gap_variance(layout: Layout, variance: PerRate, say: PerRate) -> PerRate:
    """The variance of r_g - sum say r, from the variances of the rates."""
    return jnp.maximum(variance * (1 - 2 * say) + layout.same_block @ (say**2 * variance), 0.0)


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
    members_ = weight[:, None] * members(layout, y, group)
    count = members_.sum(0)
    rows = weight.sum()
    part = jnp.minimum(rows / FULL_ROUND, 1.0)
    memory = PRIOR_MEMORY**part
    a_round = count / jnp.maximum(part, 1e-9)
    rule = rule._replace(
        positives=memory * rule.positives + weight @ y,
        rows=memory * rule.rows + rows,
        fresh_rows=memory * rule.fresh_rows + (1 - memory) * a_round,
        fresh_rounds=memory * rule.fresh_rounds + (1 - memory),
    )
    if not layout.rates:
        return rule
    present = (count >= 1) & (rule.say > 0)
    say = _normalised(layout, jnp.where(present, rule.say, 0.0))
    # One more row at the expected rate: a rate of few rows is not taken at its word.
    rate = (decided @ members_ + rule.expected_rate) / (count + 1)
    centre = jnp.maximum(layout.same_block @ (say * rate), SMALLEST_RATE)
    binomial = jnp.maximum(rule.expected_rate * (1 - rule.expected_rate), 0.01)
    noise = _gap_variance(layout, binomial / jnp.maximum(count, 1.0), say) / centre**2
    memory = LEAK**part * rule.kept
    bias = memory * rule.bias
    variance = memory**2 * rule.variance + DRIFT**2 * part + (1 - memory**2) * DOUBT**2
    gain = jnp.where(_several(layout, present), variance / (variance + noise), 0.0)
    surprise = rate / centre - 1 - rule.expected_gap - bias
    limit = SURPRISE * jnp.sqrt(variance + noise)
    filtered = rule._replace(
        bias=bias + gain * jnp.clip(surprise, -limit, limit), variance=variance * (1 - gain)
    )
    return jax.tree.map(lambda new, old: jnp.where(rule.solved, new, old), filtered, rule)


class Dual(NamedTuple):
    """The convex dual of the fair rule on weighted rows, its multipliers on one scale."""

    row: PerRow  # weights, summing to one
    accuracy: PerRow  # a
    lean: Float[Array, "row rate"]  # w
    centre: Float[Array, "row rate"]  # u
    width: PerRate  # d
    ridge: PerRate

    def distance(self, multiplier: PerRate, size: PerRate) -> PerRow:
        """a - sum lambda w + sum d |lambda| u."""
        return self.accuracy - self.lean @ multiplier + self.centre @ (self.width * size)

    def value(self, multiplier: PerRate, sharpness: Array, rounding: Array) -> Float[Array, ""]:
        """The dual, smoothed: what `minimised` minimises."""
        distance = self.distance(multiplier, _size(multiplier, rounding)[0])
        smooth = softplus(sharpness * distance) / sharpness
        return self.row @ smooth + 0.5 * self.ridge @ multiplier**2

    def minimised(self, multiplier: PerRate, sharpness: Array, rounding: Array) -> PerRate:
        """Newton steps from a multiplier; none does harm."""
        sizes = jnp.array(STEP_SIZES)

        def step(_: Any, multiplier: PerRate) -> PerRate:
            size, slope, bend = _size(multiplier, rounding)
            lean = -self.lean + self.centre * (self.width * slope)
            chance = jax.nn.sigmoid(sharpness * self.distance(multiplier, size))
            gradient = (self.row * chance) @ lean + self.ridge * multiplier
            density = self.row * chance * (1 - chance) * sharpness
            curvature = (lean * density[:, None]).T @ lean
            corner = ((self.row * chance) @ self.centre) * self.width * bend
            curvature = curvature + jnp.diag(self.ridge + corner)
            jitter = 1e-4 * jnp.diagonal(curvature) + 1e-7
            lower = jnp.linalg.cholesky(curvature + jnp.diag(jitter))
            move = cho_solve((lower, True), gradient)
            tried = multiplier - sizes[:, None] * move
            values = jax.vmap(lambda one: self.value(one, sharpness, rounding))(tried)
            return tried[jnp.argmin(values)]

        return jax.lax.fori_loop(0, NEWTON_STEPS, step, multiplier)


def _size(multiplier: PerRate, rounding: Array) -> tuple[PerRate, PerRate, PerRate]:
    """|lambda| rounded at zero, and its first two derivatives."""
    root = jnp.sqrt(multiplier**2 + rounding**2)
    return root - rounding, multiplier / root, rounding**2 / root**3


class Measured(NamedTuple):
    """A sample's rows as the rule is solved on them."""

    row: PerRow  # weights, summing to one
    rows: PerRate  # effective rows of each rate
    say: PerRate
    modelled: Float[Array, "row rate"]  # U / P, by the heads
    own: Float[Array, "row rate"]  # the same by the rows' own groups and labels
    modelled_centre: Float[Array, "row rate"]
    own_centre: Float[Array, "row rate"]


def solve(
    layout: Layout,
    rule: Rule,
    *,
    ratio: float,
    decision: str | float,
    weight: PerRow,
    chance: PerRow,
    joint: Float[Array, "row rate"],
    y: PerRow,
    group: Int[Array, "row attribute"],
    kept: Float[Array, ""],
) -> Rule:
    """The most accurate fair rule on past rows, weighted by how much they are the present.

    `chance` and `joint` are what the heads say of these rows now; `kept` is how much of the last
    round is still the present.
    """
    row = weight / jnp.maximum(weight.sum(), 1e-9)
    threshold = _threshold(rule, decision)
    spread = jnp.sqrt(row @ (chance - threshold) ** 2) + 1e-3
    decided_by = rule._replace(threshold=threshold, spread=spread, kept=kept)
    solved = (
        _multipliers(layout, decided_by, ratio, decision, row, chance, joint, y, group)
        if layout.rates
        else decided_by
    )
    return jax.tree.map(lambda new, old: jnp.where(weight.sum() > 0, new, old), solved, rule)


def _threshold(rule: Rule, decision: str | float) -> Float[Array, ""]:
    """Where a probability becomes a yes before fairness moves it: 1/2, the base rate, a number."""
    if decision == "balanced":
        return (rule.positives + 1) / (rule.rows + 2)
    return jnp.full((), 0.5 if isinstance(decision, str) else decision, jnp.float32)


def _measured(layout: Layout, row: PerRow, joint: Array, own: Array) -> Measured:
    share = row @ own
    rows = share**2 / jnp.maximum(row**2 @ own, 1e-12)
    say = _normalised(layout, jnp.where(rows >= FEWEST_ROWS, rows / (rows + SAY_ROWS), 0.0))
    modelled = joint / jnp.maximum(row @ joint, 1e-6)
    own = own / jnp.maximum(share, 1e-9)
    return Measured(
        row=row,
        rows=rows,
        say=say,
        modelled=modelled,
        own=own,
        modelled_centre=(modelled * say) @ layout.same_block,
        own_centre=(own * say) @ layout.same_block,
    )


def _correction(layout: Layout, sample: Measured, chosen: PerRow) -> tuple[PerRate, PerRate]:
    """Measured less modelled relative gap of soft decisions, shrunk; and the modelled one."""
    centre = jnp.maximum(chosen @ sample.modelled_centre, 1e-3)
    own_centre = jnp.maximum(chosen @ sample.own_centre, 1e-3)
    rate = jnp.clip(chosen @ sample.own, SMALLEST_RATE, 1 - SMALLEST_RATE)
    binomial = rate * (1 - rate) / jnp.maximum(sample.rows, 1.0)
    noise = _gap_variance(layout, binomial, sample.say) / jnp.maximum(own_centre, 0.02) ** 2
    trust = GAP_SCALE**2 / (GAP_SCALE**2 + noise)
    modelled = (chosen @ sample.modelled) / centre - 1
    measured = (chosen @ sample.own) / own_centre - 1
    correction = trust * (measured - modelled)
    return jnp.clip(correction, -LARGEST_CORRECTION, LARGEST_CORRECTION), modelled


def _multipliers(
    layout: Layout,
    rule: Rule,
    ratio: float,
    decision: str | float,
    row: PerRow,
    chance: PerRow,
    joint: Array,
    y: PerRow,
    group: Array,
) -> Rule:
    sample = _measured(layout, row, joint, members(layout, y, group))
    active = _several(layout, sample.say > 0).astype(jnp.float32)
    accuracy = (chance - rule.threshold) / rule.spread
    lean = sample.modelled - sample.modelled_centre
    scale = active / (jnp.sqrt(row @ lean**2) + 1e-3)
    decided = jax.nn.sigmoid(SHARPNESS[-1] * margins(rule, chance, joint, 0.0))
    width = _aim(layout, rule, sample, row * decided, ratio)
    ridge = RIDGE * (1 + RIDGE_ROWS / jnp.maximum(sample.rows, 1.0))

    def dual_of(correction: PerRate, on: PerRate) -> Dual:
        return Dual(
            row=row,
            accuracy=accuracy,
            lean=on * scale * (lean + correction * sample.modelled_centre),
            centre=on * scale * sample.modelled_centre,
            width=width,
            ridge=ridge,
        )

    def annealed(on: PerRate) -> tuple[PerRate, PerRate, PerRow]:
        """Multipliers of the rates that are on, the correction they were solved with, distances."""

        def stage(carry: tuple, sharpness_rounding: tuple) -> tuple[tuple, None]:
            multiplier, correction = carry
            sharpness, rounding = sharpness_rounding
            distance = dual_of(correction, on).distance(multiplier, jnp.abs(multiplier))
            chosen = row * jax.nn.sigmoid(sharpness * distance)
            correction = _correction(layout, sample, chosen)[0] + rule.bias
            multiplier = dual_of(correction, on).minimised(multiplier, sharpness, rounding)
            return (multiplier, correction), None

        begin = jnp.clip(rule.multiplier * active * on, -LARGEST_MULTIPLIER, LARGEST_MULTIPLIER)
        stages = (jnp.array(SHARPNESS), jnp.array(ROUNDING))
        (multiplier, correction), _ = jax.lax.scan(stage, (begin, rule.bias), stages)
        multiplier = jnp.clip(multiplier, -LARGEST_MULTIPLIER, LARGEST_MULTIPLIER)
        distance = dual_of(correction, on).distance(multiplier, jnp.abs(multiplier))
        return multiplier, correction, distance

    place = jnp.array([rate.notion for rate in layout.rates])
    prefixes = (place[None] <= jnp.arange(layout.notions)[:, None]).astype(jnp.float32)
    multipliers, corrections, distances = jax.lax.map(annealed, prefixes)
    rule, chosen_prefix = _exclude(rule, distances, row, y, rule.threshold, decision)
    multiplier, correction = multipliers[chosen_prefix], corrections[chosen_prefix]
    net = multiplier * scale
    pulled = layout.same_block @ (net * (1 - correction) + width * jnp.abs(net))
    coefficient = (-net + sample.say * pulled) / jnp.maximum(row @ joint, 1e-6)
    chosen = row * jax.nn.sigmoid(SHARPNESS[-1] * distances[chosen_prefix])
    corrected, modelled = _correction(layout, sample, chosen)
    return rule._replace(
        multiplier=multiplier,
        coefficient=coefficient,
        expected_gap=active * jnp.clip(corrected + modelled, -1.0, 1.0),
        expected_rate=jnp.clip(chosen @ sample.own, 0.01, 0.99),
        say=sample.say,
        solved=jnp.ones((), bool),
    )


def _aim(layout: Layout, rule: Rule, sample: Measured, chosen: PerRow, ratio: float) -> PerRate:
    """d of each rate: inside what was asked by what the rows of SHOWN_ROUNDS leave to chance."""
    asked = (1 - ratio) / (1 + ratio)
    rows = SHOWN_ROUNDS * rule.fresh_rows / jnp.maximum(rule.fresh_rounds, 1e-9)
    rate = jnp.clip(chosen @ sample.own, SMALLEST_RATE, 1 - SMALLEST_RATE)
    centre = jnp.maximum(chosen @ sample.own_centre, SMALLEST_RATE)
    variance = _gap_variance(layout, rate * (1 - rate) / jnp.maximum(rows, 1.0), sample.say)
    return jnp.maximum(SMALLEST_AIM * asked, asked - SAFETY * jnp.sqrt(variance) / centre)


def _exclude(
    rule: Rule,
    distances: Float[Array, "notion row"],
    row: PerRow,
    y: PerRow,
    threshold: Array,
    decision: str | float,
) -> tuple[Rule, Int[Array, ""]]:
    """Which notions of lower priority are left out, and the last one that is kept.

    One is left out where it costs too much accuracy beyond the first (COSTLY, or half of what the
    first has beyond the best constant decision), or makes nearly all decisions alike; with it go
    all that come after.
    """
    decided = jax.nn.sigmoid(SHARPNESS[-1] * distances)
    share = decided @ row
    alike = jnp.maximum(share, 1 - share)
    worth = jax.vmap(lambda one: _value(one, row, y, threshold, decision))
    value = worth(decided)
    memory = jnp.where(rule.solved, COST_MEMORY, 0.0)
    cost = memory * rule.cost + (1 - memory) * (value[0] - value)
    drifts = (alike >= MOSTLY_ALIKE) & (1 - alike < 0.5 * (1 - alike[0]))
    constant = (((alike >= ALIKE) & (alike[0] < ALIKE)) | drifts).astype(jnp.float32)
    same = memory * rule.alike + (1 - memory) * constant
    everybody = jnp.stack([jnp.zeros_like(y), jnp.ones_like(y)])
    informed = value[0] - worth(everybody).max()
    limit = jnp.clip(0.5 * informed, CHEAP, COSTLY) * jnp.where(rule.excluded, 0.5, 1.0)
    excluded = ((cost > limit) | (same > 0.5)).at[0].set(False)
    excluded = jnp.cumsum(excluded) > 0
    last = jnp.maximum((~excluded).sum() - 1, 0)
    return rule._replace(cost=cost, alike=same, excluded=excluded), last


def _value(
    decided: PerRow, row: PerRow, y: PerRow, threshold: Array, decision: str | float
) -> Float[Array, ""]:
    """Accuracy of decisions as asked for: plain, balanced, or at a threshold's costs."""
    if decision == "accuracy":
        return row @ (decided * y + (1 - decided) * (1 - y))
    if decision == "balanced":
        ones, zeros = row * y, row * (1 - y)
        found = (ones @ decided) / jnp.maximum(ones.sum(), 1e-3)
        spared = (zeros @ (1 - decided)) / jnp.maximum(zeros.sum(), 1e-3)
        return 0.5 * (found + spared)
    return row @ ((y - threshold) * decided) / jnp.maximum(threshold, 1 - threshold)
