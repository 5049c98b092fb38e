"""The fair rule learned in two halves, ours and the default: heads, then multipliers.

Heads learn the label, and the group given the label, without constraints (`core.heads`). A few
multipliers make the decision fair (`core.fair_rule`), solved on measured gaps (`core.rule_solver`)
and corrected by what issued decisions showed. Unfairness is a handful of numbers beside plain
probabilities, so a price that is wrong bends no model, and the ratio that is asked for is what is
solved for.

A round:
    decide     with heads and multipliers as they are: the probability, and the rule's margin
    feedback   the gaps that these decisions showed, on rows nobody had learned from
    learn      heads, on the round's rows
    solve      multipliers, on past rows weighted by how much they are still the present
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from fairsaoml.core import fair_rule, row_sample, rule_solver
from fairsaoml.core import heads as heads_
from fairsaoml.core.arrays import Array
from fairsaoml.core.config import LearnerConfig, notions, number, setting, yes_or_no
from fairsaoml.core.fair_rule import Layout, Rate, Rule
from fairsaoml.core.fairness import Among, labels_of
from fairsaoml.core.heads import Heads, Said
from fairsaoml.core.learner import PlainMethod, Update, wrap_plain
from fairsaoml.core.roster import KEEPS, roster
from fairsaoml.core.row_sample import RowSample
from fairsaoml.core.types import Batch, Explanation, Learner, Problem, Shown

CERTAIN = 1e-6  # probabilities are kept this far from 0 and 1

PerRow = Float[Array, "row"]
PerRate = Float[Array, "rate row"]
PerHead = Float[Array, "head row"]
PerLevel = Float[Array, "level row"]
Rows = Float[Array, "row feature"]
Groups = Int[Array, "row attribute"] | None


@dataclass(frozen=True, kw_only=True)
class DecoupledConfig(LearnerConfig):
    """Settings of the decoupled learner; the defaults are the same for every stream."""

    constraints: str = notions("eo", Among)  # it compares rates
    ratio: float = setting(
        0.9, number(0.01, 1.0), "what is asked for: the lowest group's rate over the highest"
    )
    aware: bool = setting(
        False, yes_or_no(), "whether a row's own group may decide, where that is lawful"
    )

    # Nothing to choose here: the journal's smooth violations are of decisions.
    model: ClassVar[str] = "logistic"  # type: ignore[misc]
    hidden: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    score: ClassVar[str] = "decision"  # type: ignore[misc]
    tolerance: ClassVar[float] = 0.02  # type: ignore[misc]
    prior_discount: ClassVar[float] = 0.7  # type: ignore[misc]
    radius: ClassVar[None] = None  # type: ignore[misc]
    retired = frozenset({"model", "hidden", "score", "tolerance", "prior_discount", "radius"})


class State(NamedTuple):
    """What the next round needs."""

    heads: Heads
    rule: Rule
    sample: RowSample


class Look(NamedTuple):
    """Rows as heads and rule see them."""

    said: Said
    chance: PerRow
    added: PerRate  # to the margin, by the rates


class Latest:
    """What was said last is kept: rows that are decided and then learned are looked at once."""

    def __init__(self, look: Callable[[State, Rows, Groups], tuple[Look, Shown]]) -> None:
        self._look = look
        self._kept: tuple[Heads, Rule, Rows, Array, tuple[Look, Shown]] | None = None

    def __call__(self, state: State, x: Rows, group: Groups) -> tuple[Look, Shown]:
        """The look at rows, and what is shown of them; their owner may write over them later."""
        codes = np.zeros(0, np.int32) if group is None else group
        if self._kept is not None:
            heads, rule, rows, known, said = self._kept
            same = heads is state.heads and rule is state.rule
            if same and np.array_equal(rows, x) and np.array_equal(known, codes):
                return said
        said = self._look(state, x, group)
        self._kept = state.heads, state.rule, x.copy(), codes.copy(), said
        return said


def decoupled(problem: Problem, config: DecoupledConfig) -> Learner:
    """The learner `fairsaoml-decoupled`."""
    levels = [len(attribute.levels) for attribute in problem.schema.attributes]
    layout = fair_rule.layout_of(labels_of(config.constraints), levels)
    features = len(problem.schema.features)
    others = group_heads(levels)
    who = roster((0, *(2 - head.label for head in others)))
    of_constraint = sides(problem, layout)

    def init() -> State:
        return State(
            heads=heads_.new_heads(who, features),
            rule=fair_rule.new_rule(layout),
            sample=row_sample.empty(heads_.width(features), levels),
        )

    def look_anew(state: State, x: Rows, group: Groups) -> tuple[Look, Shown]:
        said = heads_.look(who, state.heads, x)
        rule, (chance, joint) = state.rule, chances(layout, levels, said.chance, group)
        by_rate = fair_rule.added_by_rate(rule, chance, joint, x)
        added = by_rate.sum(0)
        return Look(said, chance, by_rate), Shown(
            scores=logit(chance),
            margins=(chance - rule.threshold) / rule.spread + added,
            plain_margins=chance - rule.threshold,
            threshold=rule.threshold - rule.spread * added,
        )

    latest = Latest(look_anew)

    def look(state: State, x: Rows, group: Groups) -> tuple[Look, Shown]:
        return latest(state, x, group if config.aware else None)

    def show(state: State, x: Rows, group: Groups) -> Shown:
        return look(state, x, group)[1]

    def explain(state: State, x: Rows, group: Groups) -> Explanation:
        (seen, shown), rule = look(state, x, group), state.rule
        moved = -rule.spread * (of_constraint @ seen.added)
        return Explanation(
            probability=seen.chance,
            plain_threshold=rule.threshold,
            threshold=rule.threshold + moved.sum(0),
            moved_by=moved.T,
            contribution=heads_.contributions(who, state.heads, seen.said.features),
            shown=shown,
        )

    def learn(state: State, seen: Look, batch: Batch) -> State:
        target, weight = lessons(others, batch)
        heads = heads_.learn(who, state.heads, seen.said, batch.y, target, weight)
        sample = row_sample.add(state.sample, batch, seen.said.features, state.heads.clock)
        past = row_sample.rows(sample)
        said = heads_.probabilities(who, heads, past.features)
        chance, joint = chances(layout, levels, said, past.group if config.aware else None)
        rule = rule_solver.solve(
            layout,
            state.rule,
            ratio=config.ratio,
            decision=problem.decision,
            weight=row_sample.weights(past, heads_.recency(who, heads, past.born)),
            chance=chance,
            joint=joint,
            y=past.y,
            group=past.group,
            kept=heads_.kept(who, heads),
        )
        return State(heads=heads, rule=rule, sample=sample)

    def turn(state: State, batch: Batch) -> tuple[Update, Shown]:
        # A map that is just set decides nothing yet. Set first, rows are looked at only once.
        heads = heads_.set_map(state.heads, batch.x, batch.weight)
        seen, decided_with = look(state._replace(heads=heads), batch.x, batch.group)
        decided = (decided_with.margins > 0).astype(np.float32)
        rule = fair_rule.feedback(layout, state.rule, decided, batch.y, batch.group, batch.weight)
        memories = np.ones(len(KEEPS), bool)
        update = Update(
            learned=learn(State(heads, rule, state.sample), seen, batch),
            violation=np.zeros(len(problem.constraints), np.float32),
            weights=heads_.memory_weights(who, state.heads),
            present=memories,
            awake=memories,
        )
        return update, decided_with

    def flags(state: State) -> dict[str, Bool[Array, ""]]:
        return {
            "excluded": np.any(state.rule.excluded),
            "small_group": np.any((state.rule.say <= 0) & (state.rule.fresh_rows > 0)),
        }

    method = PlainMethod(
        init=init,
        show=show,
        turn=turn,
        # What is made of features alone is finite: these are clipped.
        suspects=lambda state: (
            state.heads.experts._replace(products=None),
            state.heads[2:],
            state.rule,
        ),
        dual=lambda state: of_constraint @ np.abs(state.rule.multiplier),
        explain=explain,
        flags=flags,
    )
    return wrap_plain(problem, config, method)


class GroupHead(NamedTuple):
    """What a head beyond the first says: P(s=level | x, y=label)."""

    attribute: int
    label: int
    level: int
    levels: int  # of the attribute


def group_heads(levels: list[int]) -> list[GroupHead]:
    """The heads of the groups: one for two levels, one each for more, given either label.

    >>> [(head.label, head.level) for head in group_heads([2])]
    [(1, 1), (0, 1)]
    """
    return [
        GroupHead(attribute, label, level, count)
        for attribute, count in enumerate(levels)
        for label in (1, 0)
        for level in ([1] if count == 2 else range(count))
    ]


def lessons(who: Sequence[GroupHead], batch: Batch) -> tuple[PerHead, PerHead]:
    """What every head should have said of a task's rows, and the rows it learns from."""
    target = np.empty((1 + len(who), len(batch.y)), np.float32)
    weight = np.empty_like(target)
    target[0], weight[0] = batch.y, batch.weight
    for place, head in enumerate(who, 1):
        code = batch.group[:, head.attribute]
        known = (code < head.levels) & (batch.y == head.label)
        target[place] = code == head.level
        np.multiply(batch.weight, known, out=weight[place])
    return target, weight


def chances(
    layout: Layout, levels: list[int], said: PerHead, group: Groups
) -> tuple[PerRow, PerRate]:
    """P(y=1 | x), and P(s=g, label | x) of every rate; where the group is given, s is known."""
    positive, place = said[0], 1
    of_label = {1: positive, 0: 1 - positive}
    joint: dict[tuple[int, int], PerLevel] = {}  # attribute, label -> P(s=level, label | x)
    for attribute, count in enumerate(levels):
        for label, whole in of_label.items():
            heads = said[place : place + (1 if count == 2 else count)]
            place += len(heads)
            parts = _shared(whole, heads, count)
            if group is not None:
                code = group[:, attribute]
                own = (code == np.arange(count)[:, None]) * whole
                parts = np.where(code < count, own, parts)
            joint[attribute, label] = parts
    rates = np.empty((len(layout.rates), len(positive)), np.float32)
    for own, rate in zip(rates, layout.rates, strict=True):
        one, zero = (joint[rate.attribute, label][rate.group] for label in (1, 0))
        if rate.label is None:
            np.add(one, zero, out=own)
        else:
            own[:] = one if rate.label else zero
    return positive, rates


def _shared(whole: PerRow, heads: PerHead, count: int) -> PerLevel:
    """A probability, shared between levels as their heads say; one head speaks for two."""
    parts = np.concatenate([1 - heads, heads]) if count == 2 else heads
    return parts / (parts.sum(0) + CERTAIN) * whole


def sides(problem: Problem, layout: Layout) -> Float[Array, "constraint rate"]:
    """1 where a rate is behind a constraint: that of its level; of two levels, either."""
    attributes = problem.schema.attributes

    def title(rate: Rate) -> str:
        name, levels = attributes[rate.attribute]
        return f"{rate.prefix}[{name}={levels[1] if len(levels) == 2 else levels[rate.group]}]"

    titles = np.array([title(rate) for rate in layout.rates], object)
    names = np.array([constraint.name for constraint in problem.constraints], object)
    return (names[:, None] == titles).astype(np.float32)


def logit(chance: PerRow) -> PerRow:
    """The log-odds of a probability that is neither 0 nor 1."""
    chance = np.clip(chance, CERTAIN, 1 - CERTAIN)
    return np.log(chance) - np.log1p(-chance)
