"""Live experts, ours, beyond the paper: every expert learns in every round it is present.

The paper's experts learn once, when they wake, and are credited on rows they have just adapted
to, so that credit favours the freshest and the long memory is wasted. Here each level keeps
learning from its own interval's rows, is credited on rows nobody has learned from yet, and what is
deployed is the mixture of all. One level of optimisation, no nesting.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import buffers, experts
from fairsaoml.core.buffers import Buffer, Sizes
from fairsaoml.core.config import DrawingConfig, damping, notions, number, scored, setting
from fairsaoml.core.experts import Draws, Roll
from fairsaoml.core.primal_dual import move, project, start
from fairsaoml.core.prior import Deployed
from fairsaoml.core.shrinkage import relative_gaps, shrinkage, uncertainty
from fairsaoml.core.types import Batch, Key, Learner, Params, Problem
from fairsaoml.learners.families.mixture import Expertise, MixtureConfig, mixture_of

__all__ = ["LiveConfig", "learn", "live"]


@dataclass(frozen=True, kw_only=True)
class LiveConfig(MixtureConfig, DrawingConfig):
    """Settings of the live experts; the defaults are the same for every stream."""

    constraints: str = notions("eo")
    score: str = scored("decision")
    primal_step: float = setting(0.2, number(0), "step of theta, the same at every level")
    dual_step: float = setting(0.7, number(0), "step of lambda")
    dual_damping: float = damping()
    gap_memory: float = setting(
        0.9, number(0, 1), "memory of a gap from draw to draw; 0 keeps the last draw alone"
    )
    gap_scale: float = setting(
        0.1, number(1e-6), "size of gaps to act on; those of small groups are shrunk towards 0"
    )


class Expert(NamedTuple):
    """A primal-dual pair, and what it remembers of the gaps between groups."""

    primal: Params
    dual: Float[Array, "constraint"]
    gap: Float[Array, "constraint"]  # signed, a running mean over draws


def live(problem: Problem, config: LiveConfig) -> Learner:
    """The learner `fairsaoml-live`."""

    def first(key: Key) -> Expert:
        pair = start(problem, key)
        return Expert(primal=pair.primal, dual=pair.dual, gap=jnp.zeros_like(pair.dual))

    def learn_all(
        key: Key, pairs: Expert, samples: Buffer, batch: Batch, deployed: Deployed, roll: Roll
    ) -> tuple[Expert, Buffer]:
        draws = experts.draw(key, samples, batch, roll.awake)
        pairs = learn(problem, config, pairs, draws, deployed, roll.present_count)
        return pairs, draws.samples

    def adapt(pairs: Expert, samples: Buffer, support: Batch, deployed: Deployed) -> Expert:
        uncertain = uncertainty(problem, support)

        def once(expert: Expert) -> Expert:
            return take_step(problem, config, expert, support, deployed, uncertain)

        return jax.lax.fori_loop(
            0, config.meta_iterations, lambda _, all: jax.vmap(once)(all), pairs
        )

    return mixture_of(
        problem,
        config,
        Expertise(
            first=first,
            samples=partial(experts.samples_of, config, problem.schema),
            learn=learn_all,
            adapt=adapt,
            widen=experts.widen_samples,
        ),
    )


def learn(
    problem: Problem,
    config: LiveConfig,
    pairs: Expert,
    draws: Draws,
    deployed: Deployed,
    present_count: Int[Array, ""],
) -> Expert:
    """Every expert present takes primal-dual steps on draws from its own interval's sample."""
    sizes = Sizes(config.support)

    def learn_one(expert: Expert, draws: Draws) -> Expert:
        uncertain = uncertainty(problem, buffers.everything(draws.samples))
        deck = buffers.deal(*draws, sizes)

        def once(iteration: Array, expert: Expert) -> Expert:
            rows = buffers.take_support(deck, iteration, sizes)
            return take_step(problem, config, expert, rows, deployed, uncertain)

        return jax.lax.fori_loop(0, config.meta_iterations, once, expert)

    return experts.of_those_present(present_count, learn_one, pairs, draws)


def take_step(
    problem: Problem,
    config: LiveConfig,
    expert: Expert,
    rows: Batch,
    deployed: Deployed,
    uncertain: Float[Array, "constraint"],
) -> Expert:
    """One primal-dual step in which the gap's sign and size are remembered from draw to draw.

    In a draw of 200 rows the gap between groups is mostly noise: |gap| is positive on average
    even where the groups are equal, so a dual that follows each draw never stops rising, and a
    primal that follows its sign is pushed to and fro. The running mean of the *signed* gap has
    neither flaw: theta descends f + sum_i lambda_i sign(mean gap_i) gap_i, lambda ascends
    |mean gap_i| - tolerance. Gaps are relative, and shrunk where rows are few.
    """
    tolerance = jnp.asarray([c.tolerance for c in problem.constraints], jnp.float32)

    def objective(primal: Params) -> tuple[Float[Array, ""], Float[Array, "constraint"]]:
        logits = problem.model.scores(primal, rows.x)
        gap = relative_gaps(problem, logits, rows, deployed)
        seen = shrinkage(config.gap_scale, uncertain, gap.rate) * gap.value
        new = config.gap_memory * expert.gap + (1 - config.gap_memory) * seen
        remembered = jax.lax.stop_gradient(jnp.where(gap.known, new, expert.gap))
        price = expert.dual * jnp.sign(remembered)
        return problem.loss(logits, rows) + jnp.dot(price, gap.value), remembered

    gradient, remembered = jax.grad(objective, has_aux=True)(expert.primal)
    violation = jnp.abs(remembered) - tolerance
    dual = expert.dual + config.dual_step * (violation - config.dual_damping * expert.dual)
    return Expert(
        primal=project(move(expert.primal, gradient, config.primal_step), config.radius),
        dual=jnp.maximum(dual, 0.0),
        gap=remembered,
    )
