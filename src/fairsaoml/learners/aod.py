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
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import intervals, weights
from fairsaoml.core.config import DrawingConfig, integer, no_notions, number, optional, setting
from fairsaoml.core.experts import FIRST_LEVELS
from fairsaoml.core.types import Learner, Problem
from fairsaoml.learners.families.averaged import Averaging, PerLevel, Presence, averaged

__all__ = ["AODConfig", "Credit", "aod"]


@dataclass(frozen=True, kw_only=True)
class AODConfig(DrawingConfig):
    """Settings of AOD; the defaults are the same for every stream."""

    constraints: str = no_notions()
    base: int = setting(2, integer(2), "interval lengths are its powers")
    horizon: int | None = setting(None, optional(integer(1)), "number of rounds, if it is known")
    scale: float = setting(0.5, number(0), "S / G: step of an interval of one round")


class Credit(NamedTuple):
    """What AdaNormalHedge knows of each expert."""

    regret: PerLevel  # R: positive means the expert beat the average
    abs_regret: PerLevel  # C


def aod(problem: Problem, config: AODConfig) -> Learner:
    """The learner `aod`."""
    base, horizon = config.base, config.horizon

    def lengths(levels: int) -> Int[Array, "level"]:
        return jnp.asarray(intervals.lengths(levels, base), jnp.int32)

    def present(round: Int[Array, ""], levels: int) -> Presence:
        if horizon is not None:
            return jnp.ones(levels, bool)
        return intervals.is_present(round, lengths(levels))

    def starts(round: Int[Array, ""], levels: int) -> Presence:
        return present(round, levels) & intervals.is_start(round, lengths(levels))

    def steps(round: Int[Array, ""], levels: int) -> PerLevel:
        return config.scale / jnp.sqrt(lengths(levels).astype(jnp.float32))

    def no_credit(levels: int) -> Credit:
        return Credit(regret=jnp.zeros(levels), abs_regret=jnp.zeros(levels))

    def credit(old: Credit, gains: Float[Array, "draw level"]) -> Credit:
        return Credit(
            regret=old.regret + gains.sum(axis=0),
            abs_regret=old.abs_regret + jnp.abs(gains).sum(axis=0),
        )

    def weigh(round: Int[Array, ""], credit: Credit, present: Presence) -> PerLevel:
        return weights.ada_normal_hedge(*credit, present, printed=False)

    def levels_needed(round: int) -> int:
        if horizon is not None:
            return intervals.level_count(horizon, base)
        return intervals.levels_needed(round, base)

    return averaged(
        problem,
        config,
        Averaging(
            storage=FIRST_LEVELS if horizon is None else levels_needed(horizon),
            levels_needed=levels_needed,
            present=present,
            starts=starts,
            steps=steps,
            no_credit=no_credit,
            credit=credit,
            weigh=weigh,
            warm=True,
        ),
    )
