"""Algorithm 1 (`fairsaoml`), expert by expert; the draws are handed in.

`supports[n][k]` and `queries[n][k]` are the batches of meta iteration n at level k, and
`credit_queries[k]` the fresh ones of the end of the round. Only awake levels need a support.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from oracles.batch import Batch, Matrix, Vector
from oracles.fairness import Sharpen, sharpness
from oracles.intervals import awake_levels, present_levels
from oracles.lagrangian import (
    Problem,
    ascend,
    constraint_values,
    lagrangian,
    lagrangian_gradient,
    log_odds,
    project,
)
from oracles.network import logits
from oracles.weights import adanormalhedge, uniform

__all__ = [
    "Config",
    "Expert",
    "HeldSharpness",
    "Pair",
    "State",
    "base_learner",
    "central_differences",
    "fairsaoml_round",
    "paper_scale",
    "scores",
    "wake",
    "weigh",
]

DIFFERENCE = 1e-6  # step of the central differences: small beside the kinks of |.| and ReLU


class Pair(NamedTuple):
    primal: Vector
    dual: Vector


class Expert(NamedTuple):
    pair: Pair
    regret: float = 0.0  # R
    abs_regret: float = 0.0  # C


class State(NamedTuple):
    meta: Pair
    experts: dict[int, Expert]  # by level; whoever has never been awake is not here


class Config(NamedTuple):
    base: int = 2
    horizon: int | None = None
    inner_steps: int = 1
    inner_primal_step: float = 0.1
    inner_dual_step: float = 0.1
    meta_primal_step: float = 0.1
    meta_dual_step: float = 0.1
    dual_damping: float = 0.001
    radius: float | None = None
    gradient_bound: float | None = None
    meta_gradient: str = "first-order"
    credit: str = "inherit"
    combiner: str = "ada-normal-hedge"


def paper_scale(tolerance: float, features: int, largest_norm: float) -> float:
    """S / G with S = sqrt(1 + 2 eps) - 1, G = max(sqrt(d) + S, largest row norm so far) (D8)."""
    S = np.sqrt(1 + 2 * tolerance) - 1
    return float(S / max(np.sqrt(features) + S, largest_norm))


def base_learner(
    problem: Problem, config: Config, level: int, start: Pair, support: Batch, prior: float
) -> Pair:
    """G_t of level k: `inner_steps` primal-dual steps on the support (Eq. 11 and 12)."""
    root = np.sqrt(config.base**level)  # sqrt |I|, the block's full length
    theta, dual = start
    for _ in range(config.inner_steps):
        gradient = lagrangian_gradient(problem, theta, dual, support, prior)
        gradient = project(gradient, config.gradient_bound)  # shortened, if it is longer
        theta = theta - config.inner_primal_step / root * gradient
        g = constraint_values(problem, theta, support, prior)  # at the freshly moved theta
        dual = ascend(dual, config.inner_dual_step / root, g)
    return Pair(theta, dual)


def wake(config: Config, state: State, t: int) -> dict[int, Expert]:
    """The levels of C_t start from the meta pair and inherit R and C (Alg. 1 lines 6 to 11)."""
    experts = dict(state.experts)
    for k in awake_levels(t, config.horizon, config.base):
        known = k in experts and config.credit == "inherit"
        experts[k] = experts[k]._replace(pair=state.meta) if known else Expert(state.meta)
    assert sorted(experts) == present_levels(t, config.horizon, config.base)
    return experts


class Credited(Protocol):
    @property
    def regret(self) -> float: ...
    @property
    def abs_regret(self) -> float: ...


def weigh(experts: Mapping[int, Credited], combiner: str) -> dict[int, float]:
    """p over the experts present (Alg. 1 lines 12 to 14)."""
    if combiner == "uniform":
        return uniform(list(experts))
    form = {"ada-normal-hedge": "paper", "luo-schapire": "original"}[combiner]
    return adanormalhedge({k: (e.regret, e.abs_regret) for k, e in experts.items()}, form)


def central_differences(function: Callable[[Vector], float], theta: Vector) -> Vector:
    """Gradient of a scalar function, coordinate by coordinate.

    >>> central_differences(lambda v: float(v[0] ** 2 + 3 * v[1]), np.array([2.0, 0.0])).round(6)
    array([4., 3.])
    """
    gradient = np.zeros_like(theta)
    for i in range(len(theta)):
        away = np.zeros_like(theta)
        away[i] = DIFFERENCE
        gradient[i] = (function(theta + away) - function(theta - away)) / (2 * DIFFERENCE)
    return gradient


class HeldSharpness:
    """The kappas of one computation, to be used again, in their order, while its start is varied.

    A gradient takes kappa as a constant; differences of values do so only if it is held.

    >>> held, ones = HeldSharpness(), np.ones(2)
    >>> held.note(np.array([0.0, 2.0]), ones)
    3.0
    >>> held.again()(np.array([0.0, 9.0]), ones)
    3.0
    """

    def __init__(self) -> None:
        self.noted: list[float] = []

    def note(self, scores: Vector, weight: Vector) -> float:
        self.noted.append(sharpness(scores, weight))
        return self.noted[-1]

    def again(self) -> Sharpen:
        kappas = iter(self.noted)
        return lambda scores, weight: next(kappas)


def meta_step(
    problem: Problem,
    config: Config,
    meta: Pair,
    experts: Mapping[int, Expert],
    p: Mapping[int, float],
    awake: Sequence[int],
    supports: Mapping[int, Batch],
    queries: Mapping[int, Batch],
    prior: float,
) -> Pair:
    """Projected descent and clipped ascent on the augmented Lagrangian (Eq. 13 to 15)."""

    # Where each expert's query is looked at (D3).
    at = {k: expert.pair.primal for k, expert in experts.items()}
    if config.meta_gradient == "first-order":
        at.update({k: meta.primal for k in experts if k not in awake})

    def through_the_base_learner(theta: Vector, sharpen: Sharpen) -> float:
        sharpened = problem._replace(sharpen=sharpen)
        # Each lambda_k outside is the other player's and stays; theta_k follows theta.
        total = 0.0
        for k in awake:
            start = Pair(theta, meta.dual)
            adapted = base_learner(sharpened, config, k, start, supports[k], prior)
            total += p[k] * lagrangian(
                sharpened, adapted.primal, experts[k].pair.dual, queries[k], prior
            )
        return total

    if config.meta_gradient == "exact":
        held = HeldSharpness()
        through_the_base_learner(meta.primal, held.note)
        descent = central_differences(
            lambda theta: through_the_base_learner(theta, held.again()), meta.primal
        )
    else:
        descent = np.zeros_like(meta.primal)
        for k, expert in experts.items():
            descent += p[k] * lagrangian_gradient(
                problem, at[k], expert.pair.dual, queries[k], prior
            )

    descent = project(descent, config.gradient_bound)
    damping = config.dual_damping * (config.meta_primal_step + config.meta_dual_step)
    ascent = np.zeros_like(meta.dual)
    for k, expert in experts.items():
        g = constraint_values(problem, expert.pair.primal, queries[k], prior)  # at its own theta
        ascent += p[k] * (g - damping * expert.pair.dual)

    return Pair(
        primal=project(meta.primal - config.meta_primal_step * descent, config.radius),
        dual=ascend(meta.dual, config.meta_dual_step, ascent),
    )


def fairsaoml_round(
    problem: Problem,
    config: Config,
    state: State,
    t: int,
    supports: Sequence[Mapping[int, Batch]],
    queries: Sequence[Mapping[int, Batch]],
    credit_queries: Mapping[int, Batch],
    prior: float,
    empty: bool = False,
) -> State:
    """Lines 5 to 28 of Algorithm 1; a task without rows only wakes levels (D20)."""
    awake = awake_levels(t, config.horizon, config.base)
    meta, experts = state.meta, wake(config, state, t)
    if empty:
        return State(meta, experts)

    # Lines 12 to 14: fixed for the round.
    p = weigh(experts, config.combiner)

    # Lines 15 to 24: each time, the awake adapt from the current meta pair (D17).
    for support, query in zip(supports, queries, strict=True):
        for k in awake:
            pair = base_learner(problem, config, k, meta, support[k], prior)
            experts[k] = experts[k]._replace(pair=pair)
        meta = meta_step(problem, config, meta, experts, p, awake, support, query, prior)

    # Lines 25 to 28, with the meta dual in both terms (D11): positive means the expert won.
    for k, expert in experts.items():
        rows = credit_queries[k]
        r = lagrangian(problem, meta.primal, meta.dual, rows, prior) - lagrangian(
            problem, expert.pair.primal, meta.dual, rows, prior
        )
        r = min(1.0, max(-1.0, r))
        experts[k] = expert._replace(
            regret=expert.regret + r, abs_regret=expert.abs_regret + abs(r)
        )
    return State(meta=meta, experts=experts)


def scores(problem: Problem, state: State, x: Matrix, prior: float) -> Vector:
    """The deployed logit: the meta model's, with the prior restored (D25)."""
    return logits(state.meta.primal, x, problem.widths) + log_odds(prior)
