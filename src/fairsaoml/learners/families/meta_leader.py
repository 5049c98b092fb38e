"""Follow the meta leader: one pair from which every task seen so far is a few steps away.

N_meta times a round: draw a task, the present one or a remembered one; adapt the pair on its
support; move the pair by the gradient of what the adapted one makes of its query (MAML).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import task_memory
from fairsaoml.core.buffers import Sizes
from fairsaoml.core.config import DrawingConfig, integer, number, one_of, setting
from fairsaoml.core.learner import Method, Update, wrap
from fairsaoml.core.primal_dual import Steps, lagrangian, move, project, run_base_learner, start
from fairsaoml.core.prior import Deployed
from fairsaoml.core.task_memory import TaskMemory
from fairsaoml.core.types import Batch, Key, Learner, Params, PrimalDual, Problem


@dataclass(frozen=True, kw_only=True)
class MetaLeaderConfig(DrawingConfig):
    """What the followers of the meta leader share."""

    capacity: int = setting(400, integer(2), "rows per class kept of a task")
    tasks_kept: int = setting(32, integer(1), "past tasks kept; as many as rounds keeps them all")
    query: int = setting(100, integer(1), "rows per class of a query draw")
    inner_steps: int = setting(1, integer(0), "steps of adaptation to a task")
    inner_primal_step: float = setting(0.1, number(0), "step of theta in adaptation")
    meta_primal_step: float = setting(0.3, number(0), "step of the meta theta")
    meta_gradient: str = setting(
        "first-order", one_of("first-order", "exact"), "at the adapted theta, or through adaptation"
    )
    # No settings but where there is fairness to learn: without it lambda stays at 0.
    inner_dual_step = meta_dual_step = dual_damping = initial_dual = 0.0


class State(NamedTuple):
    """What the next round needs."""

    meta: PrimalDual
    memory: TaskMemory


def meta_leader(problem: Problem, config: MetaLeaderConfig) -> Learner:
    """A learner that follows the leader of all tasks seen."""
    sizes = Sizes(support=config.support, query=config.query)
    inner = Steps(primal=config.inner_primal_step, dual=config.inner_dual_step, damping=0.0)
    damping = config.dual_damping * config.meta_dual_step

    def init(key: Key) -> State:
        memory = task_memory.no_tasks(config.tasks_kept, config.capacity, problem.schema)
        return State(meta=start(problem, key, config.initial_dual), memory=memory)

    def adapted(pair: PrimalDual, support: Batch, deployed: Deployed) -> PrimalDual:
        return run_base_learner(problem, pair, support, deployed, inner, config.inner_steps)

    def step(
        key: Key, round: Int[Array, ""], state: State, batch: Batch, deployed: Deployed
    ) -> Update:
        draws = task_memory.draw_tasks(key, state.memory, batch, config.meta_iterations)

        def iterate(meta: PrimalDual, iteration: Int[Array, ""]) -> tuple[PrimalDual, Array]:
            support, query = task_memory.take(draws, iteration, sizes)

            def objective(primal: Params) -> tuple[Float[Array, ""], Array]:
                end = adapted(meta._replace(primal=primal), support, deployed).primal
                if config.meta_gradient == "first-order":
                    # Theta plus a constant: the gradient at the adapted place, not through the way.
                    shift = jax.tree.map(jnp.subtract, end, primal)
                    end = jax.tree.map(jnp.add, primal, jax.lax.stop_gradient(shift))
                return lagrangian(problem, meta._replace(primal=end), query, deployed)

            gradient, violation = jax.grad(objective, has_aux=True)(meta.primal)
            ascent = violation - damping * meta.dual
            primal = project(move(meta.primal, gradient, config.meta_primal_step), config.radius)
            dual = jnp.maximum(meta.dual + config.meta_dual_step * ascent, 0.0)
            return PrimalDual(primal=primal, dual=dual), violation

        iterations = jnp.arange(config.meta_iterations)
        meta, violations = jax.lax.scan(iterate, state.meta, iterations)
        learned = State(meta=meta, memory=task_memory.remember(draws))
        return Update(learned=learned, violation=violations.mean(axis=0))  # of the adapted pairs

    method = Method(
        init=init,
        logits=lambda state, x: problem.model.scores(state.meta.primal, x),
        adapt=lambda round, state, support, deployed: state._replace(
            meta=adapted(state.meta, support, deployed)
        ),
        step=step,
        dual=lambda state: state.meta.dual,
    )
    return wrap(problem, config, method)
