"""The multipliers of the fair rule, solved on measured gaps.

The coefficients of `core.fair_rule` come from the multipliers that minimise the convex dual

    E[(a - sum_g lambda_g w_g + sum_g d_g |lambda_g| u)_+] + ridge,

    w_g = U_g/P_g - u + s_g (eta - E[u eta]) u,     u = the block's mean of U/P,

over a sample of past rows, at rising sharpness. The slopes s correct the heads: with them the gap
is that *measured* with the rows' own groups and labels, and the rule's feedback on top. So a poor
head costs accuracy and not fairness. Notions are taken in their order; one that excludes the first
is left out.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fairsaoml.core.arrays import Array, sigmoid, softplus
from fairsaoml.core.fair_rule import (
    SHARPNESS,
    SMALLEST_RATE,
    Layout,
    Rule,
    gap_variance,
    margins,
    members,
    normalised,
    several,
)
from fairsaoml.core.logistic_experts import solution

STAGES = (6.0, 18.0, SHARPNESS)  # sharpness of the decision, stage by stage
ROUNDING = (0.3, 0.1, 0.01)  # of |lambda| at zero, stage by stage
NEWTON_STEPS = (2, 2, 5)  # at most, stage by stage: the first ones only lead to the last
EVERY = (4, 4, 1)  # of so many rows one is looked at, stage by stage
STEP_SIZES = (1.0, 0.5, 0.2, 0.05)  # the first of these that helps is taken
FLAT = 2e-7  # twice a step's gain, of the value: float32 does not show less
RIDGE, RIDGE_ROWS = 1e-3, 1000.0  # on multipliers; doubled for a group of so many rows
LARGEST_MULTIPLIER = 30.0
FEWEST_ROWS = 8.0  # effective rows without which a group is in no constraint
SAY_ROWS = 30.0  # n / (n + this): a group's say in the centre of its block
GAP_SCALE = 0.1  # size of measured gaps, relative to the rate, worth believing of two groups
LARGEST_CORRECTION = 0.5
SMALLEST_LIFT = 0.5  # standard deviations of eta: a rule that knows less of rows is corrected less
SAFETY = 0.8  # aim inside what was asked by so many standard errors of what will be shown
SHOWN_ROUNDS = 10.0  # rounds that people look at together
SEEN = 1.5  # times what was asked: a standard error that would hide whatever is aimed for
SMALLEST_AIM = 0.5  # of what was asked: what few rows show by chance is not worth more accuracy
COSTLY, CHEAP = 0.05, 0.01  # accuracy lost to a further notion: it is left out, never left out
ALIKE, MOSTLY_ALIKE = 0.95, 0.9  # share of rows with the same decision: left out; if it grew so
COST_MEMORY = 0.8

ONE = np.ones(1, np.float32)

PerRate = Float[Array, "rate"]
PerRow = Float[Array, "row"]


class Dual(NamedTuple):
    """The convex dual of the fair rule on weighted rows, its multipliers on one scale."""

    row: PerRow  # weights, summing to one
    terms: Float[Array, "term row"]  # a; -w of every rate; d u of every rate
    ridge: PerRate

    def thinned(self, every: int) -> "Dual":
        """The dual on one of so many rows."""
        if every == 1:
            return self
        row = self.row[::every]
        return Dual(row / np.maximum(row.sum(), 1e-9), self.terms[:, ::every], self.ridge)

    def distance(self, multiplier: PerRate, size: PerRate) -> PerRow:
        """a - sum lambda w + sum d |lambda| u."""
        return np.concatenate([ONE, multiplier, size]) @ self.terms

    def value(
        self, multiplier: PerRate, sharpness: float, rounding: float
    ) -> tuple[Float[Array, ""], PerRow]:
        """The dual, smoothed: what `minimised` minimises; and the sharpened distance of rows."""
        distance = self.distance(multiplier, _size(multiplier, rounding))
        distance *= sharpness
        smooth = softplus(distance) @ self.row / sharpness
        return smooth + 0.5 * (multiplier**2 @ self.ridge), distance

    def minimised(self, multiplier: PerRate, stage: int) -> PerRate:
        """The Newton steps of a stage from a multiplier; none does harm."""
        sharpness, rounding = STAGES[stage], ROUNDING[stage]
        leans, centres = self.terms[1:].reshape(2, len(multiplier), len(self.row))
        value, distance = self.value(multiplier, sharpness, rounding)
        for _ in range(NEWTON_STEPS[stage]):
            slope, bend = _size_slope(multiplier, rounding)
            lean = centres * slope[:, None]
            lean += leans
            chance = sigmoid(distance)
            chosen = self.row * chance
            gradient = lean @ chosen + self.ridge * multiplier
            density = chosen * (1 - chance) * sharpness
            curvature = (lean * density) @ lean.T
            diagonal = curvature.ravel()[:: len(curvature) + 1]
            diagonal += self.ridge + (centres @ chosen) * bend
            diagonal += 1e-4 * diagonal + 1e-7
            move = solution(curvature, gradient.copy())
            if not gradient @ move > FLAT * value:
                break  # this is the minimum, as far as float32 can tell
            for part in STEP_SIZES:
                tried = multiplier - part * move
                reached, there = self.value(tried, sharpness, rounding)
                if reached < value:
                    multiplier, value, distance = tried, reached, there
                    break
            else:
                break
        return multiplier


def _size(multiplier: PerRate, rounding: float) -> PerRate:
    """|lambda| rounded at zero."""
    return np.sqrt(multiplier**2 + rounding**2) - rounding


def _size_slope(multiplier: PerRate, rounding: float) -> tuple[PerRate, PerRate]:
    """The first two derivatives of the rounded size."""
    root = np.sqrt(multiplier**2 + rounding**2)
    return multiplier / root, rounding**2 / root**3


class Measured(NamedTuple):
    """A sample's rows as the rule is solved on them."""

    row: PerRow  # weights, summing to one
    rows: PerRate  # effective rows of each rate
    say: PerRate
    modelled: Float[Array, "rate row"]  # U / P, by the heads
    own: Float[Array, "rate row"]  # the same by the rows' own groups and labels
    modelled_centre: Float[Array, "rate row"]
    own_centre: Float[Array, "rate row"]
    lifted: Float[Array, "rate row"]  # eta above its mean in the centre, times the centre
    spread: PerRate  # of eta in the centre
    caution: PerRate  # how much of what few rows show is acted on: 1 of two groups, less of more


def solve(
    layout: Layout,
    rule: Rule,
    *,
    ratio: float,
    decision: str | float,
    weight: PerRow,
    chance: PerRow,
    joint: Float[Array, "rate row"],
    y: PerRow,
    group: Int[Array, "row attribute"],
    kept: Float[Array, ""],
) -> Rule:
    """The most accurate fair rule on past rows, weighted by how much they are the present.

    `chance` and `joint` are what the heads say of these rows now; `kept` is how much of the last
    round is still the present.
    """
    row = weight / np.maximum(weight.sum(), 1e-9)
    threshold = _threshold(rule, decision)
    spread = np.sqrt(row @ (chance - threshold) ** 2) + 1e-3
    decided_by = rule._replace(threshold=threshold, spread=spread, kept=kept)
    if not layout.rates:
        return decided_by
    return _multipliers(layout, decided_by, ratio, decision, row, chance, joint, y, group)


def _threshold(rule: Rule, decision: str | float) -> Float[Array, ""]:
    """Where a probability becomes a yes before fairness moves it: 1/2, the base rate, a number."""
    if decision == "balanced":
        return (rule.positives + 1) / (rule.rows + 2)
    return np.full((), 0.5 if isinstance(decision, str) else decision, np.float32)


def _measured(layout: Layout, row: PerRow, chance: PerRow, joint: Array, own: Array) -> Measured:
    share = own @ row
    rows = share**2 / np.maximum(own @ row**2, 1e-12)
    say = normalised(layout, np.where(rows >= FEWEST_ROWS, rows / (rows + SAY_ROWS), 0.0))
    modelled = joint / np.maximum(joint @ row, 1e-6)[:, None]
    own = own / np.maximum(share, 1e-9)[:, None]
    in_centre = layout.same_block * say
    centre = in_centre @ modelled
    above = chance - (centre @ (row * chance))[:, None]
    # Of many groups some always look apart by chance; to follow that costs accuracy, for nothing.
    groups = np.maximum(layout.same_block @ (say > 0).astype(np.float32), 2)
    return Measured(
        row=row,
        rows=rows,
        say=say,
        modelled=modelled,
        own=own,
        modelled_centre=centre,
        own_centre=in_centre @ own,
        lifted=above * centre,
        spread=np.sqrt((above**2 * centre) @ row) + 1e-3,
        caution=2 / groups,
    )


def _correction(layout: Layout, sample: Measured, chosen: PerRow) -> tuple[PerRate, PerRate]:
    """Measured less modelled relative gap of soft decisions, shrunk; and the modelled one."""
    centre = np.maximum(sample.modelled_centre @ chosen, 1e-3)
    own_centre = np.maximum(sample.own_centre @ chosen, 1e-3)
    rate = np.clip(sample.own @ chosen, SMALLEST_RATE, 1 - SMALLEST_RATE)
    binomial = rate * (1 - rate) / np.maximum(sample.rows, 1.0)
    noise = gap_variance(layout, binomial, sample.say) / np.maximum(own_centre, 0.02) ** 2
    believed = (GAP_SCALE * sample.caution) ** 2
    trust = believed / (believed + noise)
    modelled = (sample.modelled @ chosen) / centre - 1
    measured = (sample.own @ chosen) / own_centre - 1
    correction = trust * (measured - modelled)
    return np.clip(correction, -LARGEST_CORRECTION, LARGEST_CORRECTION), modelled


def _slope(sample: Measured, chosen: PerRow, correction: PerRate) -> PerRate:
    """The correction of a gap as one that grows with eta.

    A rule that does not know the row has no gap, whatever the heads get wrong. Were a correction
    the same for every rule, deciding positively for nobody would be all that is left where
    corrections contradict each other.
    """
    lift = (sample.lifted @ chosen) / np.maximum(sample.modelled_centre @ chosen, 1e-3)
    return correction / np.maximum(lift, SMALLEST_LIFT * sample.spread)


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
    sample = _measured(layout, row, chance, joint, members(layout, y, group))
    active = several(layout, sample.say > 0).astype(np.float32)
    accuracy = (chance - rule.threshold) / rule.spread
    lean = sample.modelled - sample.modelled_centre
    scale = active / (np.sqrt(lean**2 @ row) + 1e-3)
    decided = sigmoid(SHARPNESS * margins(rule, chance, joint))
    width = _aim(layout, rule, sample, row * decided, ratio)
    ridge = RIDGE * (1 + RIDGE_ROWS / np.maximum(sample.rows, 1.0))

    def dual_of(slope: PerRate, on: PerRate) -> Dual:
        terms = np.empty((1 + 2 * len(lean), len(row)), np.float32)
        terms[0] = accuracy
        leans, centres = terms[1:].reshape(2, *lean.shape)
        np.multiply(sample.lifted, slope[:, None], out=leans)
        leans += lean
        leans *= (-on * scale)[:, None]
        np.multiply(sample.modelled_centre, (on * scale * width)[:, None], out=centres)
        return Dual(row, terms, ridge)

    def annealed(last: int) -> tuple[PerRate, PerRate, PerRow]:
        """Multipliers of the notions up to one, the slopes they were solved with, distances."""
        on = (place <= last).astype(np.float32)
        begin = np.clip(rule.multiplier, -LARGEST_MULTIPLIER, LARGEST_MULTIPLIER)
        multiplier, slope = begin * active * on, np.zeros_like(begin)
        dual = dual_of(slope, on)
        for stage, sharpness in enumerate(STAGES):
            distance = dual.distance(multiplier, np.abs(multiplier))
            chosen = row * sigmoid(sharpness * distance)
            correction = _correction(layout, sample, chosen)[0] + rule.bias
            slope = _slope(sample, chosen, correction)
            dual = dual_of(slope, on)
            multiplier = dual.thinned(EVERY[stage]).minimised(multiplier, stage)
        multiplier = np.clip(multiplier, -LARGEST_MULTIPLIER, LARGEST_MULTIPLIER)
        return multiplier, slope, dual.distance(multiplier, np.abs(multiplier))

    place = np.array([rate.notion for rate in layout.rates])
    solved = [annealed(last) for last in range(layout.notions)]
    last = 0
    if layout.notions > 1:
        distances = np.stack([distance for *_, distance in solved])
        rule, last = _exclude(rule, distances, row, y, decision)
    multiplier, slope, distance = solved[last]
    net = multiplier * scale
    tilt = -sample.say * (layout.same_block @ (net * slope))
    pulled = sample.say * (layout.same_block @ (net + width * np.abs(net)))
    middle = sample.modelled_centre @ (row * chance)
    mass = np.maximum(joint @ row, 1e-6)
    chosen = row * sigmoid(SHARPNESS * distance)
    corrected, modelled = _correction(layout, sample, chosen)
    return rule._replace(
        multiplier=multiplier,
        coefficient=(pulled - net - tilt * middle) / mass,
        tilt=tilt / mass,
        expected_gap=active * np.clip(corrected + modelled, -1.0, 1.0),
        expected_rate=np.clip(sample.own @ chosen, 0.01, 0.99),
        say=sample.say,
        solved=np.ones((), bool),
    )


def _aim(layout: Layout, rule: Rule, sample: Measured, chosen: PerRow, ratio: float) -> PerRate:
    """d of each rate: inside what was asked by what the rows of SHOWN_ROUNDS leave to chance.

    Where chance hides what was asked, being further inside would cost accuracy and not be seen.
    """
    asked = (1 - ratio) / (1 + ratio)
    rows = SHOWN_ROUNDS * rule.fresh_rows / np.maximum(rule.fresh_rounds, 1e-9)
    rate = np.clip(sample.own @ chosen, SMALLEST_RATE, 1 - SMALLEST_RATE)
    centre = np.maximum(sample.own_centre @ chosen, SMALLEST_RATE)
    variance = gap_variance(layout, rate * (1 - rate) / np.maximum(rows, 1.0), sample.say)
    error = np.sqrt(variance) / centre
    inside = SAFETY * sample.caution**2 * error / (1 + (error / (SEEN * max(asked, 1e-6))) ** 4)
    return np.maximum(SMALLEST_AIM * asked, asked - inside)


def _exclude(
    rule: Rule,
    distances: Float[Array, "notion row"],
    row: PerRow,
    y: PerRow,
    decision: str | float,
) -> tuple[Rule, int]:
    """Which notions of lower priority are left out, and the last one that is kept.

    One is left out where it costs too much accuracy beyond the first (COSTLY, or half of what the
    first has beyond the best constant decision), or makes nearly all decisions alike; with it go
    all that come after.
    """
    decided = sigmoid(SHARPNESS * distances)
    share = decided @ row
    alike = np.maximum(share, 1 - share)
    value = _value(decided, row, y, rule.threshold, decision)
    memory = np.float32(COST_MEMORY if rule.solved else 0.0)
    cost = memory * rule.cost + (1 - memory) * (value[0] - value)
    drifts = (alike >= MOSTLY_ALIKE) & (1 - alike < 0.5 * (1 - alike[0]))
    constant = (((alike >= ALIKE) & (alike[0] < ALIKE)) | drifts).astype(np.float32)
    same = memory * rule.alike + (1 - memory) * constant
    everybody = np.stack([np.zeros_like(y), np.ones_like(y)])
    informed = value[0] - _value(everybody, row, y, rule.threshold, decision).max()
    limit = np.clip(0.5 * informed, CHEAP, COSTLY) * np.where(rule.excluded, 0.5, 1.0)
    excluded = (cost > limit) | (same > 0.5)
    excluded[0] = False
    excluded = np.logical_or.accumulate(excluded)
    return rule._replace(cost=cost, alike=same, excluded=excluded), int((~excluded).sum()) - 1


def _value(
    decided: Float[Array, "rule row"],
    row: PerRow,
    y: PerRow,
    threshold: Array,
    decision: str | float,
) -> Float[Array, "rule"]:
    """Accuracy of decisions as asked for: plain, balanced, or at a threshold's costs."""
    if decision == "accuracy":
        return decided @ (row * y) + (1 - decided) @ (row * (1 - y))
    if decision == "balanced":
        ones, zeros = row * y, row * (1 - y)
        caught = (decided @ ones) / np.maximum(ones.sum(), 1e-3)
        spared = ((1 - decided) @ zeros) / np.maximum(zeros.sum(), 1e-3)
        return 0.5 * (caught + spared)
    return decided @ (row * (y - threshold)) / np.maximum(threshold, 1 - threshold)
