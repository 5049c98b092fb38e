"""The nouns: what a batch, a model, a constraint, a problem and a learner are.

Everything here is a NamedTuple, so everything crosses `jax.jit` and `jax.vmap` unchanged.
Groups, labels and time are encoded once, at the border (`streams`); inside there is one coding:
labels are 0.0 or 1.0, a group is an integer code per protected attribute, padding has weight 0.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = [
    "Attribute",
    "Batch",
    "Constraint",
    "Gap",
    "Learner",
    "Model",
    "PrimalDual",
    "Problem",
    "RoundInfo",
    "Schema",
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


class Batch(NamedTuple):
    """A task inside the mathematics: padded to a fixed number of rows."""

    x: Float[Array, "row feature"]
    y: Float[Array, "row"]  # 0.0 or 1.0
    group: Int[Array, "row attribute"]
    weight: Float[Array, "row"]  # 0 = padding


class PrimalDual(NamedTuple):
    """The pair every learner moves: theta for accuracy, lambda for fairness."""

    primal: Params
    dual: Float[Array, "constraint"]  # >= 0


class Model(NamedTuple):
    """A scoring function, written per row; `scores` maps it over rows."""

    init: Callable[[Key], Params]
    scores: Callable[[Params, Float[Array, "row feature"]], Float[Array, "row"]]  # logits


class Gap(NamedTuple):
    """A signed gap between two groups in a batch; unknown where one of them has no rows."""

    value: Float[Array, "*constraint"]
    known: Bool[Array, "*constraint"]
    rate: Float[Array, "*constraint"]  # the mean of both groups together


class Constraint(NamedTuple):
    """A smooth fairness function: a signed gap between groups, and how wide it may be.

    `rows` counts the rows on its two sides. Scores are logits measured from the deployed threshold.
    """

    name: str
    gap: Callable[[Float[Array, "row"], Batch], Gap]
    rows: Callable[[Batch], tuple[Float[Array, ""], Float[Array, ""]]]
    tolerance: float

    def violation(self, scores: Float[Array, "row"], batch: Batch) -> Float[Array, ""]:
        """g = |gap| - tolerance; <= 0 is fair enough. Unknown: 0, and it pulls nowhere (D20)."""
        gap = self.gap(scores, batch)
        return jnp.where(gap.known, jnp.abs(gap.value) - self.tolerance, 0.0)


class Problem(NamedTuple):
    """What is to be learned: a model, a loss, and the constraints it must keep."""

    model: Model
    loss: Callable[[Float[Array, "row"], Batch], Float[Array, ""]]
    constraints: tuple[Constraint, ...]
    schema: Schema


class RoundInfo(NamedTuple):
    """Traced diagnostics of one round; nothing here is needed to go on."""

    weights: Float[Array, "level"]
    present: Bool[Array, "level"]  # absent levels are left out of journals
    awake: Bool[Array, "level"]
    dual: Float[Array, "constraint"]
    flags: dict[str, Bool[Array, ""]]  # a raised flag becomes a warning in words


class Learner(NamedTuple):
    """The protocol: five pure functions and one that makes room.

    `scores` is what is deployed, mixture and prior correction included: calibrated logits.
    A row is decided positive when its score exceeds `threshold(state)`. `adapt` is what the
    learner makes of a few labels of the present round. `grow` runs outside `jit`, before the
    round: it returns a state with room for one more round, nearly always the same one.
    """

    init: Callable[[Key], State]
    scores: Callable[[State, Float[Array, "row feature"]], Float[Array, "row"]]
    threshold: Callable[[State], Float[Array, ""]]
    adapt: Callable[[State, Batch], State]
    step: Callable[[Key, Int[Array, ""], State, Batch], tuple[State, RoundInfo]]
    grow: Callable[[State, int], State] = lambda state, round: state
