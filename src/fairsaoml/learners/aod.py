"""AOD: adaptive online learning by experts on a dense geometric cover, without fairness.

Level k cuts time into blocks of base^k rounds from round 1 on. Every expert whose interval I
contains the round descends the loss with step S / (G sqrt|I|); a new interval starts at the
average's point with R = C = 0. Weights are AdaNormalHedge's (the form with C + 1 in both terms),

    R += f(average) - f(expert),   C += |f(average) - f(expert)|,   p = w(R, C) / sum w,

and what decides is the model with the average parameters sum_I p_I theta_I.

Adapted: the original has one convex loss a round. Here a round brings `meta_iterations` draws, all
at once: everyone is credited on each of them with the point it had before the round, on rows that
nobody has learned from, and then learns from them one after another. S / G is one setting, `scale`,
the step of an interval of one round. Averaging parameters is sound for convex losses; networks that
descend from one start are near enough to each other for it. With the horizon unknown, level k
joins at round base^k + 1 (D16).

Reference: Zhang, Lu, Yang: Minimizing dynamic regret and adaptive regret simultaneously, AISTATS
2020. Adaptive regret O(sqrt(tau log T)) on every window of length tau, for convex losses.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import experts, intervals, weights
from fairsaoml.core.config import DrawingConfig, IntervalConfig, no_notions, number, setting
from fairsaoml.core.types import Learner, Problem
from fairsaoml.learners.families.averaged import Averaging, PerLevel, averaged


@dataclass(frozen=True, kw_only=True)
class AODConfig(DrawingConfig, IntervalConfig):
    """Settings of AOD; the defaults are the same for every stream."""

    constraints: str = no_notions()
    scale: float = setting(0.5, number(0), "S / G: step of an interval of one round")


class Credit(NamedTuple):
    """What AdaNormalHedge knows of each expert."""

    regret: PerLevel  # R: positive means the expert beat the average
    abs_regret: PerLevel  # C


def aod(problem: Problem, config: AODConfig) -> Learner:
    """The learner `aod`."""

    def steps(round: Int[Array, ""], levels: int) -> PerLevel:
        lengths = jnp.asarray(intervals.lengths(levels, config.base), jnp.float32)
        return config.scale / jnp.sqrt(lengths)

    def credit(old: Credit, gains: Float[Array, "draw level"]) -> Credit:
        won, size = gains.sum(axis=0), jnp.abs(gains).sum(axis=0)
        return Credit(regret=old.regret + won, abs_regret=old.abs_regret + size)

    averaging = Averaging(
        storage=experts.storage(config),
        room=partial(experts.room_for, config),
        roll=partial(experts.roll_call, config),
        steps=steps,
        no_credit=lambda levels: Credit(jnp.zeros(levels), jnp.zeros(levels)),
        credit=credit,
        weigh=lambda round, credit, present: weights.ada_normal_hedge(
            credit.regret, credit.abs_regret, present, printed=False
        ),
        warm=True,
    )
    return averaged(problem, config, averaging)
