"""One task of FairFML (Zhao et al. 2021); without constraints, of MaskFTML (Finn et al. 2019)."""

from typing import NamedTuple

from oracles.batch import Batch, Vector
from oracles.lagrangian import (
    Problem,
    ascend,
    constraint_values,
    lagrangian,
    lagrangian_gradient,
    project,
)
from oracles.paper import Pair, central_differences

__all__ = ["Config", "adapted", "meta_leader_move"]


class Config(NamedTuple):
    inner_steps: int
    inner_primal_step: float
    meta_primal_step: float
    inner_dual_step: float = 0.0
    meta_dual_step: float = 0.0
    delta: float = 0.0
    radius: float | None = None
    exact: bool = False


def adapted(problem: Problem, config: Config, pair: Pair, support: Batch, prior: float) -> Pair:
    """The inner pair: theta down the Lagrangian of the support, lambda up it, clipped at 0."""
    theta, dual = pair
    for _ in range(config.inner_steps):
        slope = lagrangian_gradient(problem, theta, dual, support, prior)
        theta = theta - config.inner_primal_step * slope
        g = constraint_values(problem, theta, support, prior)
        dual = ascend(dual, config.inner_dual_step, g)
    return Pair(theta, dual)


def meta_leader_move(
    problem: Problem, config: Config, meta: Pair, support: Batch, query: Batch, prior: float
) -> Pair:
    """The meta pair on L = f(theta') + lambda g(theta') - delta eta_dual lambda^2 / 2."""
    there = adapted(problem, config, meta, support, prior).primal

    def after_adaptation(theta: Vector) -> float:
        end = adapted(problem, config, Pair(theta, meta.dual), support, prior).primal
        return lagrangian(problem, end, meta.dual, query, prior)

    if config.exact:
        descent = central_differences(after_adaptation, meta.primal)
    else:
        descent = lagrangian_gradient(problem, there, meta.dual, query, prior)
    g = constraint_values(problem, there, query, prior)
    ascent = g - config.delta * config.meta_dual_step * meta.dual
    return Pair(
        project(meta.primal - config.meta_primal_step * descent, config.radius),
        ascend(meta.dual, config.meta_dual_step, ascent),
    )
