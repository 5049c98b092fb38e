"""AOD (Zhang et al. 2020), interval by interval; the draws are handed in."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oracles.batch import Batch, Vector
from oracles.descending_experts import average, descend, gains
from oracles.intervals import Interval, blocks, present_levels
from oracles.lagrangian import Problem
from oracles.weights import adanormalhedge

__all__ = ["AODExpert", "aod_round", "aod_start", "aod_weights"]


class AODExpert(NamedTuple):
    theta: Vector
    regret: float = 0.0  # R
    abs_regret: float = 0.0  # C


Experts = dict[Interval, AODExpert]


def containing(t: int, base: int, horizon: int | None) -> list[Interval]:
    """The intervals of the dense cover that contain round t, by level."""
    found = []
    for level in present_levels(t, horizon, base):
        length = base**level
        family = blocks(level, t + length, base)  # far enough for t's block to be whole
        found += [(first, last) for first, last in family if first <= t <= last]
    return found


def aod_start(theta: Vector, base: int, horizon: int | None) -> Experts:
    """Before round 1."""
    return {interval: AODExpert(theta) for interval in containing(1, base, horizon)}


def aod_weights(experts: Experts) -> dict[Interval, float]:
    """AdaNormalHedge with C + 1 in both terms."""
    numbered = dict(enumerate(experts.values()))
    p = adanormalhedge({k: (e.regret, e.abs_regret) for k, e in numbered.items()}, "original")
    return dict(zip(experts, p.values(), strict=True))


def aod_round(
    problem: Problem,
    settings: tuple[int, int | None, float, float | None],
    t: int,
    experts: Experts,
    draws: Sequence[Batch],
) -> Experts:
    """From the experts of the intervals that contain t to those of t + 1."""
    base, horizon, scale, radius = settings
    assert list(experts) == containing(t, base, horizon)
    p = aod_weights(experts)
    before = {i: expert.theta for i, expert in experts.items()}
    learned = {}
    for (first, last), expert in experts.items():
        won = [gains(problem, p, before, draw)[first, last] for draw in draws]
        step = scale / np.sqrt(last - first + 1)
        learned[first, last] = AODExpert(
            theta=descend(problem, expert.theta, step, radius, draws),
            regret=expert.regret + sum(won),
            abs_regret=expert.abs_regret + sum(abs(r) for r in won),
        )
    point = average(aod_weights(learned), {i: e.theta for i, e in learned.items()})
    return {i: learned.get(i, AODExpert(point)) for i in containing(t + 1, base, horizon)}
