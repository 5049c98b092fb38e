"""CBCE (Jun et al. 2017), interval by interval, wealth as plain numbers; the draws handed in."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oracles.batch import Batch, Vector
from oracles.descending_experts import average, descend, gains
from oracles.intervals import Interval
from oracles.lagrangian import Problem

__all__ = ["Bettor", "cbce_round", "cbce_start", "cbce_weights", "containing"]


class Bettor(NamedTuple):
    theta: Vector
    n: int = 0
    z: float = 0.0
    wealth: float = 1.0

    @property
    def bet(self) -> float:
        return self.z / (self.n + 1) * self.wealth

    def settle(self, outcome: float) -> "Bettor":
        """Gain or lose the bet; a loss counts only where the bet is positive."""
        if self.bet <= 0:
            outcome = max(0.0, outcome)
        return Bettor(self.theta, self.n + 1, self.z + outcome, self.wealth + outcome * self.bet)


Experts = dict[Interval, Bettor]


def containing(t: int) -> list[Interval]:
    """All [i 2^k, (i+1) 2^k - 1] with i >= 1 that contain t, by k.

    >>> containing(5), containing(4)
    ([(5, 5), (4, 5), (4, 7)], [(4, 4), (4, 5), (4, 7)])
    """
    cover = [(i * 2**k, (i + 1) * 2**k - 1) for k in range(t + 1) for i in range(1, t + 1)]
    return [(first, last) for first, last in cover if first <= t <= last]


def cbce_start(theta: Vector) -> Experts:
    """Before round 1."""
    return {interval: Bettor(theta) for interval in containing(1)}


def cbce_weights(experts: Experts) -> dict[Interval, float]:
    """prior x positive bet; all zero: the prior."""
    prior = {i: 1 / (i[0] ** 2 * (1 + int(np.floor(np.log2(i[0]))))) for i in experts}
    mass = {i: prior[i] * max(0.0, expert.bet) for i, expert in experts.items()}
    mass = mass if sum(mass.values()) > 0 else prior
    return {i: part / sum(mass.values()) for i, part in mass.items()}


def cbce_round(
    problem: Problem,
    settings: tuple[float, float | None, Vector | None],
    t: int,
    experts: Experts,
    draws: Sequence[Batch],
) -> Experts:
    """From the experts of the intervals that contain t to those of t + 1."""
    scale, radius, fresh = settings  # fresh: where a new expert begins; None is the average
    assert list(experts) == containing(t)
    p = cbce_weights(experts)
    before = {i: expert.theta for i, expert in experts.items()}
    learned = {}
    for interval, expert in experts.items():
        bettor = expert
        for draw in draws:
            bettor = bettor.settle(gains(problem, p, before, draw)[interval])
        step = scale / np.sqrt(t - interval[0] + 1)
        theta = descend(problem, expert.theta, step, radius, draws)
        learned[interval] = bettor._replace(theta=theta)
    if fresh is None:
        fresh = average(cbce_weights(learned), {i: e.theta for i, e in learned.items()})
    return {i: learned.get(i, Bettor(fresh)) for i in containing(t + 1)}
