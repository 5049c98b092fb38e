"""The live experts (`fairsaoml-live`), expert by expert; the draws are handed in.

`draws[n][k]` is the batch of learning step n at level k.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from oracles import paper
from oracles.batch import Batch, Matrix, Vector
from oracles.intervals import awake_levels, present_levels
from oracles.lagrangian import (
    Problem,
    ascend,
    constraint_values,
    lagrangian_gradient,
    log_odds,
    loss_value,
    project,
)
from oracles.network import logits, sigmoid
from oracles.paper import Expert, Pair
from oracles.weights import discounted_hedge, softmax

__all__ = [
    "Config",
    "State",
    "adapt",
    "credit",
    "first_state",
    "learn",
    "live_round",
    "mean_pair",
    "scores",
    "wake",
    "weigh",
]


class State(NamedTuple):
    experts: dict[int, Expert]  # by level, only those present


class Config(NamedTuple):
    base: int = 2
    horizon: int | None = None
    primal_step: float = 0.1
    dual_step: float = 0.1
    dual_damping: float = 0.001
    radius: float | None = None
    combiner: str = "discounted-hedge"
    credit_discount: float = 0.8
    credit_rate: float = 10.0


def first_state(config: Config, start: Pair) -> State:
    """Before round 1 every level present has the same pair."""
    return State({k: Expert(start) for k in present_levels(0, config.horizon, config.base)})


def weigh(config: Config, experts: Mapping[int, Expert]) -> dict[int, float]:
    """p over the experts present."""
    if config.combiner == "discounted-hedge":
        return softmax({k: e.regret for k, e in experts.items()}, config.credit_rate)
    return paper.weigh(experts, config.combiner)


def mean_pair(experts: Mapping[int, Expert], p: Mapping[int, float]) -> Pair:
    """sum_k p_k (theta_k, lambda_k)"""
    primal = sum(p[k] * expert.pair.primal for k, expert in experts.items())
    dual = sum(p[k] * expert.pair.dual for k, expert in experts.items())
    return Pair(np.asarray(primal), np.asarray(dual))


def credit(
    problem: Problem, config: Config, experts: Mapping[int, Expert], batch: Batch, prior: float
) -> dict[int, Expert]:
    """Point 3, on all rows of D_t: r_k = clip(sum_j p_j F_j - F_k, -1, 1)."""
    p = weigh(config, experts)
    dual = mean_pair(experts, p).dual
    F = {}
    for k, expert in experts.items():
        g = constraint_values(problem, expert.pair.primal, batch, prior)
        F[k] = loss_value(problem, expert.pair.primal, batch) + float(
            (dual * np.maximum(0.0, g)).sum()
        )
    average = sum(p[k] * F[k] for k in experts)
    r = {k: min(1.0, max(-1.0, average - F[k])) for k in experts}
    if config.combiner == "discounted-hedge":
        before = {k: expert.regret for k, expert in experts.items()}
        regret = discounted_hedge(before, r, config.credit_discount)
    else:
        regret = {k: expert.regret + r[k] for k, expert in experts.items()}
    return {
        k: expert._replace(regret=regret[k], abs_regret=expert.abs_regret + abs(r[k]))
        for k, expert in experts.items()
    }


def wake(config: Config, experts: Mapping[int, Expert], t: int) -> dict[int, Expert]:
    """Point 4: the levels of C_t restart from the mean under the weights after the credit.

    A level that joins in this round (D16) comes with R = C = 0; the others keep theirs.
    """
    mean = mean_pair(experts, weigh(config, experts))
    woken = dict(experts)
    for k in awake_levels(t, config.horizon, config.base):
        woken[k] = experts[k]._replace(pair=mean) if k in experts else Expert(mean)
    assert sorted(woken) == present_levels(t, config.horizon, config.base)
    return woken


def learn(problem: Problem, config: Config, pair: Pair, draw: Batch, prior: float) -> Pair:
    """One primal-dual step of point 5; the dual looks at the moved theta, on the same draw."""
    gradient = lagrangian_gradient(problem, pair.primal, pair.dual, draw, prior)
    theta = project(pair.primal - config.primal_step * gradient, config.radius)
    g = constraint_values(problem, theta, draw, prior)
    dual = ascend(pair.dual, config.dual_step, g - config.dual_damping * pair.dual)
    return Pair(theta, dual)


def live_round(
    problem: Problem,
    config: Config,
    state: State,
    t: int,
    batch: Batch,
    draws: Sequence[Mapping[int, Batch]],
    prior: float,
) -> State:
    """Points 3 to 5: credit, wake, learn."""
    experts = credit(problem, config, state.experts, batch, prior)
    experts = wake(config, experts, t)
    for draw in draws:
        for k, expert in experts.items():
            experts[k] = expert._replace(pair=learn(problem, config, expert.pair, draw[k], prior))
    return State(experts)


def adapt(
    problem: Problem, config: Config, state: State, support: Batch, steps: int, prior: float
) -> State:
    """Point 6: every expert takes `steps` learning steps on the same support."""
    experts = dict(state.experts)
    for k, expert in experts.items():
        pair = expert.pair
        for _ in range(steps):
            pair = learn(problem, config, pair, support, prior)
        experts[k] = expert._replace(pair=pair)
    return State(experts)


def scores(problem: Problem, config: Config, state: State, x: Matrix, prior: float) -> Vector:
    """Point 2: the logit of sum_k p_k sigmoid(z_k), plus the prior's log-odds."""
    p = weigh(config, state.experts)
    mixture = np.zeros(len(x))
    for k, expert in state.experts.items():
        mixture += p[k] * sigmoid(logits(expert.pair.primal, x, problem.widths))
    return np.log(mixture / (1 - mixture)) + log_odds(prior)
