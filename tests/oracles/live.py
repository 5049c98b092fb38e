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
    gaps_at,
    log_odds,
    loss_value,
    priced_gradient,
    project,
)
from oracles.network import logits, sigmoid
from oracles.paper import Pair
from oracles.weights import discounted_hedge, softmax

__all__ = [
    "Config",
    "Expert",
    "State",
    "adapt",
    "credit",
    "first_state",
    "learn",
    "live_round",
    "mean",
    "scores",
    "wake",
    "weigh",
]


class Expert(NamedTuple):
    theta: Vector
    dual: Vector
    gamma: Vector  # the remembered signed gaps
    regret: float = 0.0  # R
    abs_regret: float = 0.0  # C


class State(NamedTuple):
    experts: dict[int, Expert]  # by level, only those present


class Config(NamedTuple):
    base: int = 2
    horizon: int | None = None
    primal_step: float = 0.1
    dual_step: float = 0.1
    dual_damping: float = 0.001
    gap_memory: float = 0.9
    radius: float | None = None
    combiner: str = "discounted-hedge"
    credit_discount: float = 0.8
    credit_rate: float = 10.0


def first_state(config: Config, start: Pair) -> State:
    """Before round 1 every level present has the same pair, and nothing to remember."""
    expert = Expert(start.primal, start.dual, gamma=np.zeros_like(start.dual))
    return State(dict.fromkeys(present_levels(0, config.horizon, config.base), expert))


def weigh(config: Config, experts: Mapping[int, Expert]) -> dict[int, float]:
    """p over the experts present."""
    if config.combiner == "discounted-hedge":
        return softmax({k: e.regret for k, e in experts.items()}, config.credit_rate)
    return paper.weigh(experts, config.combiner)


def mean(experts: Mapping[int, Expert], p: Mapping[int, float]) -> Expert:
    """sum_k p_k (theta_k, lambda_k, gamma_k), without credit."""

    def averaged(part: str) -> Vector:
        return np.asarray(sum(p[k] * getattr(expert, part) for k, expert in experts.items()))

    return Expert(theta=averaged("theta"), dual=averaged("dual"), gamma=averaged("gamma"))


def credit(
    problem: Problem, config: Config, experts: Mapping[int, Expert], batch: Batch, prior: float
) -> dict[int, Expert]:
    """Point 3, on all rows of D_t: r_k = clip(sum_j p_j F_j - F_k, -1, 1)."""
    p = weigh(config, experts)
    dual = mean(experts, p).dual
    F = {}
    for k, expert in experts.items():
        g = constraint_values(problem, expert.theta, batch, prior)
        F[k] = loss_value(problem, expert.theta, batch) + float((dual * np.maximum(0.0, g)).sum())
    average = sum(p[k] * F[k] for k in experts)
    r = {k: min(1.0, max(-1.0, average - F[k])) for k in experts}
    discount = config.credit_discount if config.combiner == "discounted-hedge" else 1.0
    R = discounted_hedge({k: e.regret for k, e in experts.items()}, r, discount)
    C = {k: discount * expert.abs_regret + abs(r[k]) for k, expert in experts.items()}
    return {k: e._replace(regret=R[k], abs_regret=C[k]) for k, e in experts.items()}


def wake(config: Config, experts: Mapping[int, Expert], t: int) -> dict[int, Expert]:
    """Point 4: the levels of C_t restart from the mean under the weights after the credit.

    A level that joins in this round (D16) comes with R = C = 0; the others keep theirs.
    """
    start = mean(experts, weigh(config, experts))
    woken = dict(experts)
    for k in awake_levels(t, config.horizon, config.base):
        credit_of = experts.get(k, start)
        woken[k] = start._replace(regret=credit_of.regret, abs_regret=credit_of.abs_regret)
    assert sorted(woken) == present_levels(t, config.horizon, config.base)
    return woken


def learn(problem: Problem, config: Config, expert: Expert, draw: Batch, prior: float) -> Expert:
    """One step of point 5: remember the gaps, then move theta and lambda by what is remembered.

    gamma  <- m gamma + (1 - m) gap(theta) / 2r, where the draw shows the gap
    theta  <- project(theta - step grad [f + sum_i lambda_i sign(gamma_i) gap_i / 2r_i])
    lambda <- [lambda + step (|gamma| - tolerance - damping lambda)]_+
    """
    theta, dual = expert.theta, expert.dual
    gap = gaps_at(problem, theta, draw, prior)
    m = config.gap_memory
    twice = 2 * np.clip(gap.rate, 0.01, 0.99)  # the rate r is a constant in the gradient
    gamma = np.where(gap.known, m * expert.gamma + (1 - m) * gap.value / twice, expert.gamma)
    descent = priced_gradient(problem, theta, dual * np.sign(gamma) / twice, gap, draw)
    ascent = np.abs(gamma) - problem.tolerance - config.dual_damping * dual
    return expert._replace(
        theta=project(theta - config.primal_step * descent, config.radius),
        dual=ascend(dual, config.dual_step, ascent),
        gamma=gamma,
    )


def live_round(
    problem: Problem,
    config: Config,
    state: State,
    t: int,
    batch: Batch,
    draws: Sequence[Mapping[int, Batch]],
    prior: float,
) -> State:
    """Points 3 to 5: credit, wake, learn; without rows, only wake (D20)."""
    if not batch.weight.any():
        return State(wake(config, state.experts, t))
    experts = credit(problem, config, state.experts, batch, prior)
    experts = wake(config, experts, t)
    for draw in draws:
        experts = {
            k: learn(problem, config, expert, draw[k], prior) for k, expert in experts.items()
        }
    return State(experts)


def adapt(
    problem: Problem, config: Config, state: State, support: Batch, steps: int, prior: float
) -> State:
    """Point 6: every expert takes `steps` learning steps on the same support."""
    experts = dict(state.experts)
    for _ in range(steps):
        experts = {k: learn(problem, config, e, support, prior) for k, e in experts.items()}
    return State(experts)


def scores(problem: Problem, config: Config, state: State, x: Matrix, prior: float) -> Vector:
    """Point 2: the logit of sum_k p_k sigmoid(z_k), plus the prior's log-odds."""
    p = weigh(config, state.experts)
    mixture = np.zeros(len(x))
    for k, expert in state.experts.items():
        mixture += p[k] * sigmoid(logits(expert.theta, x, problem.widths))
    return np.log(mixture / (1 - mixture)) + log_odds(prior)
