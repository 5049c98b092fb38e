"""The nouns: what a batch, a model, a constraint, a problem and a learner are.

Everything here is a NamedTuple, so everything crosses `jax.jit` and `jax.vmap` unchanged.
Groups, labels and time are encoded once, at the border (`streams`); inside there is one coding:
labels are 0.0 or 1.0, a group is an integer code per protected attribute, padding has weight 0.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Int

from fairsaoml.core.arrays import Array, library

__all__ = [
    "Attribute",
    "Batch",
    "Classes",
    "Constraint",
    "Explanation",
    "GroupGap",
    "Learner",
    "Model",
    "PrimalDual",
    "Problem",
    "RoundInfo",
    "Schema",
    "Score",
    "Shown",
    "Task",
]

Params = Any  # a model's parameters: a pytree of float32 arrays
Key = Any  # a JAX random key
State = Any  # a learner's memory: a pytree, whatever the next round needs and nothing else


class Attribute(NamedTuple):
    """A protected attribute. Code i is `levels[i]`; code `len(levels)` is the slot `unseen`."""

    name: str
    levels: tuple[str, ...]


class Schema(NamedTuple):
    """What a learner must know of a stream before its first row: the widths."""

    features: tuple[str, ...]
    attributes: tuple[Attribute, ...]


class Task(NamedTuple):
    """One round's rows as they leave a stream: host arrays, as many rows as there are."""

    x: Any  # (row, feature) float32
    y: Any  # (row,) 0 or 1
    group: Any  # (row, attribute) integer codes
    domain: str = ""  # only ever shown to people and written to files, never to a learner
    warnings: tuple[str, ...] = ()
    period: tuple[str, ...] = ()  # the times of the first and the last row, shown to people only
    left_out: int = 0  # rows that came and cannot be learned from
    new_groups: Mapping[str, Mapping[str, int]] = {}  # attribute -> undeclared value -> its rows


class Classes(NamedTuple):
    """How a batch's weight is spread over its two classes."""

    share: Float[Array, "row"]  # of the weight of the row's own class
    present: Float[Array, ""]  # how many have rows, at least 1


class Batch(NamedTuple):
    """A task inside the mathematics: padded to a fixed number of rows."""

    x: Float[Array, "row feature"]
    y: Float[Array, "row"]  # 0.0 or 1.0
    group: Int[Array, "row attribute"]
    weight: Float[Array, "row"]  # 0 = padding
    classes: Classes | None = None  # where they are known already, as a draw's


class PrimalDual(NamedTuple):
    """The pair every learner moves: theta for accuracy, lambda for fairness."""

    primal: Params
    dual: Float[Array, "constraint"]  # >= 0


class Model(NamedTuple):
    """A scoring function, written per row; `scores` maps it over rows."""

    init: Callable[[Key], Params]
    scores: Callable[[Params, Float[Array, "row feature"]], Float[Array, "row"]]  # logits


class GroupGap(NamedTuple):
    """A signed gap between two groups in a batch; unknown where one of them has no rows."""

    value: Float[Array, "*constraint"]
    known: Bool[Array, "*constraint"]


# What a gap is taken of: row by row, from margins (row weights come beside).
Score = Callable[[Float[Array, "row"], Float[Array, "row"]], Float[Array, "row"]]


class Constraint(NamedTuple):
    """A smooth fairness function: a signed gap between two sides, and how wide it may be.

    `sides` gives the row weights of the two groups that are compared. Margins are logits measured
    from the deployed threshold (D25).
    """

    name: str
    sides: Callable[[Batch], tuple[Float[Array, "row"], Float[Array, "row"]]]
    score: Score
    tolerance: float

    def gap(self, margins: Float[Array, "row"], batch: Batch) -> GroupGap:
        """E[h | s'=1] - E[h | s'=0], if both sides have rows.

        Its size is the paper's |mean((s' - p1) / (p1 (1 - p1)) h)| (Eq. 1).
        """
        values = self.score(margins, batch.weight)
        one, other = self.sides(batch)
        known = (one.sum() > 0) & (other.sum() > 0)
        return GroupGap(
            value=library(values).where(known, _mean(values, one) - _mean(values, other), 0.0),
            known=known,
        )

    def violation(self, margins: Float[Array, "row"], batch: Batch) -> Float[Array, ""]:
        """g = |gap| - tolerance; <= 0 is fair enough. Unknown: 0, and it pulls nowhere (D20)."""
        gap = self.gap(margins, batch)
        xp = library(gap.value)
        return xp.where(gap.known, xp.abs(gap.value) - self.tolerance, 0.0)


def _mean(values: Float[Array, "row"], weight: Float[Array, "row"]) -> Float[Array, ""]:
    total = weight.sum()
    return (weight * values).sum() / library(total).where(total > 0, total, 1.0)


class Problem(NamedTuple):
    """What is to be learned: a model, a loss, the constraints it must keep, when a row is positive.

    `decision` is "accuracy", "balanced" or a probability (`core.prior.threshold`).
    """

    model: Model
    loss: Callable[[Float[Array, "row"], Batch], Float[Array, ""]]
    constraints: tuple[Constraint, ...]
    schema: Schema
    decision: str | float = "accuracy"


class RoundInfo(NamedTuple):
    """Traced diagnostics of one round; nothing here is needed to go on."""

    weights: Float[Array, "level"]
    present: Bool[Array, "level"]  # absent levels are left out of journals
    awake: Bool[Array, "level"]
    dual: Float[Array, "constraint"]
    flags: dict[str, Bool[Array, ""]]  # a raised flag becomes a warning in words


class Explanation(NamedTuple):
    """Why rows are decided as they are: positive where `probability` is above `threshold`."""

    probability: Float[Array, "row"]  # of a positive label: the sigmoid of the score
    plain_threshold: Float[Array, ""]  # the probability that would be enough without fairness
    threshold: Float[Array, "row"]  # that this row needs; beyond 0 or 1: decided whatever it is
    moved_by: Float[Array, "row constraint"]  # sums to threshold - plain_threshold
    contribution: Float[Array, "row feature"]  # each feature's part of the logit
    shown: "Shown | None" = None  # what they are decided with, where it was looked at anyway


class Shown(NamedTuple):
    """What rows are scored and decided with."""

    scores: Float[Array, "row"]
    margins: Float[Array, "row"]
    plain_margins: Float[Array, "row"] | None = None  # what would decide without fairness
    threshold: Float[Array, "row"] | None = None  # the probability that a row needs


class Learner(NamedTuple):
    """The protocol: pure functions of a state, and one that makes room.

    `scores` are calibrated logits, mixture and prior correction included. `margins` decide: a row
    is decided positive where its margin is above 0. They are of a state, rows, and optionally the
    rows' groups (row, attribute), which only a learner that was asked to be `aware` looks at.
    `adapt` is what a learner that meta-learns makes of a few labels of the present round. `grow`
    runs outside `jit`, before the round: it returns a state with room for one more round, nearly
    always the same one. `show` is all that decides rows, in one look; a learner that keeps fairness
    apart from probabilities has it, and `explain` (arguments as of `margins`). `made_of` names all
    that these functions depend on apart from the code of this package, where that is known.

    The functions of a learner are JAX's, compiled by whoever calls them. Those of a learner with
    `turn` are NumPy's, called as they are, in float32 too; nothing in them is random, and they get
    None for a key. `turn` is a round: a step, and what was shown of its rows before it.
    """

    init: Callable[[Key], State]
    scores: Callable[[State, Float[Array, "row feature"]], Float[Array, "row"]]
    margins: Callable[..., Float[Array, "row"]]
    adapt: Callable[[State, Batch], State] | None
    step: Callable[[Key, Int[Array, ""], State, Batch], tuple[State, RoundInfo]]
    grow: Callable[[State, int], State] = lambda state, round: state
    explain: Callable[..., Explanation] | None = None
    made_of: str | None = None
    show: Callable[[State, Float[Array, "row feature"], Any], Shown] | None = None
    turn: Callable[[Key, Any, State, Batch], tuple[State, RoundInfo, Shown]] | None = None
