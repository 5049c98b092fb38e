"""Experts that all keep learning, and their mixture that decides: the round all such share.

Each level has an expert of its own interval. In a round all are credited on rows that nobody has
learned from, the levels whose interval starts restart from the mixture, everyone present learns,
and the weights move. How an expert learns is the learner's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core import experts, weights
from fairsaoml.core.config import IntervalConfig, number, one_of, setting
from fairsaoml.core.experts import Bank, Roll
from fairsaoml.core.learner import Method, Update, wrap
from fairsaoml.core.primal_dual import evaluate
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Key, Learner, Problem

__all__ = ["Expertise", "MixtureConfig", "State", "mixture_logit", "mixture_of"]

PerLevel = Float[Array, "level"]


@dataclass(frozen=True, kw_only=True)
class MixtureConfig(IntervalConfig):
    """How the experts' credit becomes weights."""

    combiner: str = setting(
        "discounted-hedge",
        one_of("discounted-hedge", "ada-normal-hedge", "luo-schapire", "uniform"),
        "how credit becomes weights",
    )
    credit_discount: float = setting(0.7, number(0, 1), "memory of the discounted hedge")
    credit_rate: float = setting(10.0, number(0), "how sharply the discounted hedge prefers")


class State(NamedTuple):
    """What the next round needs."""

    bank: Bank
    weights: PerLevel  # what the deployed mixture uses
    samples: Any  # past rows that the experts learn from (D2), if they need any; (level, ...)


class Expertise(NamedTuple):
    """How experts begin and learn. An expert has a `primal` and a `dual` >= 0."""

    first: Callable[[Key], Any]
    samples: Callable[[int], Any]  # of so many levels, before any row
    learn: Callable[[Key, Any, Any, Batch, Deployed, Roll], tuple[Any, Any]]  # experts and samples
    adapt: Callable[[Any, Any, Batch, Deployed], Any]  # experts and samples to experts
    widen: Callable[[Any, int], Any] = experts.widen  # samples with room for more levels


def mixture_of(problem: Problem, config: MixtureConfig, expertise: Expertise) -> Learner:
    """The learner that deploys the mixture of such experts."""
    combine = partial(experts.combine, config.combiner, rate=config.credit_rate)

    def init(key: Key) -> State:
        levels = experts.storage(config)
        return State(
            bank=experts.bank_of(expertise.first(key), levels),
            weights=weights.uniform(jnp.arange(levels) < (1 if config.horizon is None else levels)),
            samples=expertise.samples(levels),
        )

    def logits(state: State, x: Float[Array, "row feature"]) -> Float[Array, "row"]:
        by_expert = jax.vmap(problem.model.scores, in_axes=(0, None))(state.bank.pair.primal, x)
        return mixture_logit(state.weights, by_expert)

    def adapt(round: Int[Array, ""], state: State, support: Batch, deployed: Deployed) -> State:
        pairs = expertise.adapt(state.bank.pair, state.samples, support, deployed)
        return state._replace(bank=state.bank._replace(pair=pairs))

    def step(
        key: Key, round: Int[Array, ""], old: State, batch: Batch, deployed: Deployed
    ) -> Update:
        levels = old.weights.shape[0]
        roll = experts.roll_call(config, round, levels)
        # Those who were deployed are credited, and decide where the waking start; a level that
        # joins with this round has no say yet.
        were_present = experts.roll_call(config, round - 1, levels).present
        bank, violation = credit(problem, config, old, batch, deployed, were_present)
        share = combine(bank, were_present)
        bank = experts.wake(bank, experts.mixture(share, bank.pair), roll.awake, reset=False)
        pairs, samples = expertise.learn(key, bank.pair, old.samples, batch, deployed, roll)
        # An empty task wakes levels all the same.
        idle = State(bank=bank, weights=combine(bank, roll.present), samples=samples)
        return Update(
            learned=idle._replace(bank=bank._replace(pair=pairs)),
            idle=idle,
            violation=violation,
            weights=old.weights,
            present=roll.present,
            awake=roll.awake,
        )

    def grow(state: State, round: int) -> State:
        levels = state.weights.shape[0]
        room = experts.room_for(config, round, levels)
        if room == levels:
            return state
        bank, share = experts.widen((state.bank, state.weights), room)
        return State(bank=bank, weights=share, samples=expertise.widen(state.samples, room))

    method = Method(
        init=init,
        logits=logits,
        adapt=adapt,
        step=step,
        dual=lambda state: state.weights @ state.bank.pair.dual,
        grow=grow,
    )
    return wrap(problem, config, method)


def mixture_logit(share: PerLevel, logits: Float[Array, "level row"]) -> Float[Array, "row"]:
    """logit of sum_k p_k sigmoid(z_k), without leaving log space.

    >>> mixture_logit(jnp.array([0.5, 0.5]), jnp.array([[2.0], [-2.0]])).tolist()
    [0.0]
    """
    positive = jax.nn.logsumexp(jax.nn.log_sigmoid(logits), b=share[:, None], axis=0)
    negative = jax.nn.logsumexp(jax.nn.log_sigmoid(-logits), b=share[:, None], axis=0)
    return positive - negative


def credit(
    problem: Problem,
    config: MixtureConfig,
    state: State,
    batch: Batch,
    deployed: Deployed,
    present: Bool[Array, "level"],
) -> tuple[Bank, Float[Array, "constraint"]]:
    """What each expert saved on rows that nobody has learned from, and the mixture's violations.

    F_k = f_k + sum_i lambda_i [g_ik]_+, r_k = sum_j p_j F_j - F_k. Linear in p on purpose: against
    the mixture's own loss every expert loses, by convexity. The class means of the loss balance
    the rows, so all of them can speak.
    """
    bank, share = state.bank, state.weights
    loss, violation = jax.vmap(lambda primal: evaluate(problem, primal, batch, deployed))(
        bank.pair.primal
    )
    price = share @ bank.pair.dual
    cost = loss + jnp.maximum(violation, 0.0) @ price
    memory = config.credit_discount if config.combiner == "discounted-hedge" else 1.0
    credited = experts.credited(bank, share @ cost - cost, present, memory)
    return experts.choose(batch.weight.sum() > 0, credited, bank), share @ violation
