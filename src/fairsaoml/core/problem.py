"""What is to be learned, apart from who learns it: the model, the loss, the constraints.

A constraint or a model of another package is registered by an entry point of the group
`fairsaoml.constraints` or `fairsaoml.models`; its name is then a value of the setting.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fairsaoml.core.fairness import NOTIONS, make_constraints
from fairsaoml.core.models import MODELS
from fairsaoml.core.scores import SCORES
from fairsaoml.core.settings import Registered, Settings, number, one_of, setting, widths
from fairsaoml.core.types import Batch, Classes, Problem, Schema

__all__ = ["ProblemConfig", "balanced_loss", "in_classes", "make_problem", "notions", "scored"]

DECISIONS = ("accuracy", "balanced")


def notions(default: str, kind: type = object) -> Any:
    """The setting `constraints` with a default: registered notions of a kind, joined by +."""
    rule = Registered(NOTIONS, joined="+", also=("none",), kind=kind)
    meaning = "fairness asked for: demographic parity, equal opportunity, equalized odds"
    return setting(default, rule, meaning)


def scored(default: str) -> Any:
    """The setting `score` with a default."""
    return setting(default, one_of(*SCORES), "what the smooth gap is taken of")


@dataclass(frozen=True, kw_only=True)
class ProblemConfig(Settings):
    """The settings that pose a problem, the same for every learner (D26)."""

    model: str = setting("mlp", Registered(MODELS), "the scoring function")
    hidden: tuple[int, ...] = setting((40, 40), widths(), "widths of the mlp's hidden layers")
    constraints: str = notions("dp")
    tolerance: float = setting(
        0.02, number(0, why="use 0 for exact parity"), "gap between groups that is fair enough"
    )
    score: str = scored("probability")
    decision: str | float = setting(
        "accuracy",
        one_of(*DECISIONS, or_=number(0.001, 0.999)),
        "when a row is positive: calibrated probability over 0.5, over the base rate, or a number",
    )


def make_problem(config: ProblemConfig, schema: Schema) -> Problem:
    """The problem that settings pose on a stream's schema.

    Args:
        config: a `ProblemConfig`, or the settings of any learner: they include it.
        schema: the stream's features and protected attributes.

    Returns:
        The model, the loss and the constraints that a learner is given.

    >>> problem = make_problem(ProblemConfig(constraints="none"), Schema(("age",), ()))
    >>> problem.constraints
    ()
    """
    return Problem(
        model=MODELS.get(config.model)(len(schema.features), config.hidden),
        loss=balanced_loss,
        constraints=make_constraints(config.constraints, schema, config.tolerance, config.score),
        schema=schema,
        decision=config.decision,
    )


def in_classes(batch: Batch) -> Classes:
    """Each row's share of its class's weight, and how many classes have rows.

    >>> y, weight = jnp.array([0.0, 1.0, 1.0]), jnp.array([2.0, 1.0, 3.0])
    >>> classes = in_classes(Batch(x=None, y=y, group=None, weight=weight))
    >>> classes.share.tolist(), classes.present.item()
    ([1.0, 0.25, 0.75], 2.0)
    """
    if batch.classes is not None:
        return batch.classes
    members = jnp.where(batch.y == jnp.arange(2.0)[:, None], batch.weight, 0.0)
    totals = members.sum(axis=1)
    zero, one = jnp.where(totals > 0, totals, 1.0)
    return Classes(
        share=batch.weight / jnp.where(batch.y > 0, one, zero),
        present=jnp.maximum((totals > 0).sum().astype(jnp.float32), 1.0),
    )


def balanced_loss(logits: Float[Array, "row"], batch: Batch) -> Float[Array, ""]:
    """Mean of the class means of the logistic loss (D20); a class without rows is left out.

    >>> batch = Batch(x=None, y=jnp.array([1.0, 0.0]), group=None, weight=jnp.ones(2))
    >>> balanced_loss(jnp.zeros(2), batch).round(4).item()
    0.6930999755859375
    """
    losses = jax.nn.softplus(jnp.where(batch.y > 0, -logits, logits))
    share, present = in_classes(batch)
    return (share / present * losses).sum()
