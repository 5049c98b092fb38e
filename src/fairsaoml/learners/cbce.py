"""CBCE: coin betting for changing environments, without fairness (Jun et al. 2017).

Geometric cover [i 2^k, (i+1) 2^k - 1], i >= 1: at round 5 the intervals [5,5], [4,5] and [4,7]. On
each runs an expert of its own, descending the loss with step S / (G sqrt(age)). A bettor on each
expert, with wealth 1 when the interval begins, bets (z / (n+1)) x wealth on its next outcome, n and
z the number and the sum of this interval's outcomes so far;

    outcome = f(average) - f(expert), in [-1, 1], and clipped at 0 from below where nothing is bet,

wealth grows by outcome x bet. Weights are prior x positive bet, over the intervals that contain
the round, with prior proportional to 1 / (start^2 (1 + floor(log2 start))); all zero: the prior.

Adapted: the original has one convex loss a round. Here a round brings `meta_iterations` draws, all
at once: each is an outcome, taken with the points from before the round on rows that nobody has
learned from, and then they are learned from one after another. S / G is one setting, `scale`.

A new expert begins where the very first one began (`start="fresh"`). At a power of two *every*
interval starts anew, so that all is forgotten there: the original's own weakness. The bounds, for
a bounded domain, allow any start: `start="average"` lets new experts begin at the average.

Reference: Jun, Orabona, Wright, Willett: Improved strongly adaptive online learning using coin
betting, AISTATS 2017. Strongly adaptive regret O(sqrt(tau log T)), for convex losses.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from fairsaoml.core import coin_betting, doubling_cover, intervals
from fairsaoml.core.coin_betting import Wagers
from fairsaoml.core.config import DrawingConfig, IntervalConfig, no_notions
from fairsaoml.core.experts import FIRST_LEVELS, doubled, roll_call
from fairsaoml.core.settings import integer, number, one_of, optional, setting
from fairsaoml.core.types import Learner, Problem
from fairsaoml.learners.families.averaged import Averaging, PerLevel, Presence, averaged

BASE = 2  # of the doubling cover


@dataclass(frozen=True, kw_only=True)
class CBCEConfig(DrawingConfig):
    """Settings of CBCE; the defaults are the same for every stream."""

    constraints: str = no_notions()
    horizon: int | None = setting(
        None,
        optional(integer(1, 10**9)),
        "number of rounds, if it is known; only storage depends on it",
    )
    scale: float = setting(0.5, number(0), "S / G: step in an interval's first round")
    start: str = setting("fresh", one_of("fresh", "average"), "where a new expert begins")


def cbce(problem: Problem, config: CBCEConfig) -> Learner:
    """The learner `cbce`."""
    needed, horizon = doubling_cover.levels_at, config.horizon

    def begun(round: Int[Array, ""], levels: int) -> Int[Array, "level"]:
        lengths = jnp.asarray(intervals.lengths(levels, BASE), jnp.int32)
        return doubling_cover.start_of(round, lengths)

    def steps(round: Int[Array, ""], levels: int) -> PerLevel:
        age = round - begun(round, levels) + 1
        return config.scale / jnp.sqrt(age.astype(jnp.float32))

    def weigh(round: Int[Array, ""], wagers: Wagers, present: Presence) -> PerLevel:
        return coin_betting.coin_betting(wagers, begun(round, len(present)), present)

    averaging = Averaging(
        storage=FIRST_LEVELS if horizon is None else needed(horizon + 1),
        room=lambda round, levels: doubled(levels, needed(round)),
        roll=partial(roll_call, IntervalConfig(base=BASE), cover="doubling"),
        steps=steps,
        no_credit=coin_betting.no_wagers,
        credit=lambda wagers, gains: jax.lax.scan(
            lambda wagers, gain: (coin_betting.paid_out(wagers, gain), None), wagers, gains
        )[0],
        weigh=weigh,
        warm=config.start == "average",
    )
    return averaged(problem, config, averaging)
