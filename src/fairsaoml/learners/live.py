"""Live experts, ours, beyond the paper: every expert learns in every round it is present.

The paper's experts learn once, when they wake, and are credited on rows they have just adapted
to, so that credit favours the freshest and the long memory is wasted. Here each level keeps
learning from its own interval's rows, is credited on rows nobody has learned from yet, and what is
deployed is the mixture of all. One level of optimisation, no nesting.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml import buffers, experts, prior, weights
from fairsaoml.buffers import Buffer, Sizes
from fairsaoml.config import NOTIONS, IntervalConfig, number, one_of, setting
from fairsaoml.experts import Bank, Draws
from fairsaoml.primal_dual import Steps, evaluate, primal_dual_step, start
from fairsaoml.prior import Deployed, Prior
from fairsaoml.types import Batch, Key, Learner, PrimalDual, Problem, RoundInfo

__all__ = ["LiveConfig", "State", "learn", "live"]

CREDIT_CLIP = 1.0  # one bad round may not outweigh all others

PerLevel = Float[Array, "level"]


@dataclass(frozen=True, kw_only=True)
class LiveConfig(IntervalConfig):
    """Settings of the live experts; the defaults are the same for every stream."""

    constraints: str = setting("eo", one_of(*NOTIONS), "fairness asked for")
    primal_step: float = setting(0.1, number(0), "step of theta, the same at every level")
    dual_step: float = setting(0.1, number(0), "step of lambda")
    combiner: str = setting(
        "discounted-hedge",
        one_of("discounted-hedge", "ada-normal-hedge", "luo-schapire", "uniform"),
        "how credit becomes weights",
    )
    credit_discount: float = setting(0.8, number(0, 1), "memory of the discounted hedge")
    credit_rate: float = setting(10.0, number(0), "how sharply the discounted hedge prefers")


class State(NamedTuple):
    """What the next round needs."""

    bank: Bank
    weights: PerLevel  # what the deployed mixture uses
    samples: Buffer  # (level, ...): one bounded sample per interval (D2)
    prior: Prior
    pinned: Int[Array, ""]  # rounds in a row with a violation and no price (D14)


def live(problem: Problem, config: LiveConfig) -> Learner:
    """The learner `fairsaoml-live`."""
    steps = Steps(config.primal_step, config.dual_step, config.dual_damping)

    def init(key: Key) -> State:
        pair, levels = start(problem, key), experts.storage(config)
        return State(
            bank=experts.bank_of(pair, levels),
            weights=weights.uniform(jnp.arange(levels) < (1 if config.horizon is None else levels)),
            samples=experts.samples_of(config, problem.schema, levels),
            prior=prior.no_prior(),
            pinned=jnp.zeros((), jnp.int32),
        )

    def scores(state: State, x: Float[Array, "row feature"]) -> Float[Array, "row"]:
        logits = jax.vmap(problem.model.scores, in_axes=(0, None))(state.bank.pair.primal, x)
        return mixture_logit(state.weights, logits) + prior.log_odds(state.prior)

    def threshold(state: State) -> Float[Array, ""]:
        return prior.threshold(state.prior, config.decision)

    def adapt(state: State, support: Batch) -> State:
        deployed = prior.deployed(state.prior, config.decision)

        def once(pairs: PrimalDual, _: None) -> tuple[PrimalDual, None]:
            def move(pair: PrimalDual) -> PrimalDual:
                return primal_dual_step(problem, pair, support, deployed, steps, config.radius)

            return jax.vmap(move)(pairs), None

        pairs, _ = jax.lax.scan(once, state.bank.pair, None, length=config.meta_iterations)
        return state._replace(bank=state.bank._replace(pair=pairs))

    def step(key: Key, round: Int[Array, ""], old: State, batch: Batch) -> tuple[State, RoundInfo]:
        roll = experts.roll_call(config, round, old.weights.shape[0])
        state = old._replace(prior=prior.observe(old.prior, batch, config.prior_discount))
        deployed = prior.deployed(state.prior, config.decision)
        bank, violation = credit(problem, config, state, batch, deployed)
        # Those who were deployed decide where the waking start; a level that joins has no say yet.
        deployed_levels = experts.roll_call(config, round - 1, old.weights.shape[0]).present
        share = combine(config, bank, deployed_levels)
        bank = experts.wake(bank, experts.mixture(share, bank.pair), roll.awake, reset=False)
        draws = experts.draw(key, state.samples, batch, roll.awake)
        pairs = learn(problem, config, bank.pair, draws, deployed, roll.present_count)
        # An empty task is counted and wakes levels, but teaches nothing (D20).
        pairs = experts.choose(batch.weight.sum() > 0, pairs, bank.pair)
        dual = share @ pairs.dual
        state = state._replace(
            bank=bank._replace(pair=pairs),
            weights=combine(config, bank, roll.present),
            samples=draws.samples,
            pinned=experts.pinned_rounds(state.pinned, dual, violation),
        )
        state, finite = experts.keep_finite(state, old)
        return state, RoundInfo(
            weights=old.weights,
            present=roll.present,
            awake=roll.awake,
            dual=dual,
            flags=experts.flags(problem, batch, state.pinned, finite),
        )

    def grow(state: State, round: int) -> State:
        levels = state.weights.shape[0]
        room = experts.room_for(config, round, levels)
        if room == levels:
            return state
        bank, share = experts.widen((state.bank, state.weights), room)
        samples = experts.widen_samples(state.samples, room)
        return state._replace(bank=bank, weights=share, samples=samples)

    return Learner(init=init, scores=scores, threshold=threshold, adapt=adapt, step=step, grow=grow)


def mixture_logit(share: PerLevel, logits: Float[Array, "level row"]) -> Float[Array, "row"]:
    """logit of sum_k p_k sigmoid(z_k), without leaving log space.

    >>> mixture_logit(jnp.array([0.5, 0.5]), jnp.array([[2.0], [-2.0]])).tolist()
    [0.0]
    """
    positive = jax.nn.logsumexp(jax.nn.log_sigmoid(logits), b=share[:, None], axis=0)
    negative = jax.nn.logsumexp(jax.nn.log_sigmoid(-logits), b=share[:, None], axis=0)
    return positive - negative


def combine(config: LiveConfig, bank: Bank, present: Array) -> PerLevel:
    """Weights of the experts present, from their credit."""
    if config.combiner == "discounted-hedge":
        return weights.discounted_hedge(bank.regret, present, rate=config.credit_rate)
    if config.combiner == "uniform":
        return weights.uniform(present)
    printed = config.combiner == "ada-normal-hedge"
    return weights.ada_normal_hedge(bank.regret, bank.abs_regret, present, printed=printed)


def credit(
    problem: Problem, config: LiveConfig, state: State, batch: Batch, deployed: Deployed
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
    won = jnp.clip(share @ cost - cost, -CREDIT_CLIP, CREDIT_CLIP)
    memory = config.credit_discount if config.combiner == "discounted-hedge" else 1.0
    credited = bank._replace(
        regret=memory * bank.regret + won, abs_regret=memory * bank.abs_regret + jnp.abs(won)
    )
    return experts.choose(batch.weight.sum() > 0, credited, bank), share @ violation


def learn(
    problem: Problem,
    config: LiveConfig,
    pairs: PrimalDual,
    draws: Draws,
    deployed: Deployed,
    present_count: Int[Array, ""],
) -> PrimalDual:
    """Every expert present takes primal-dual steps on draws from its own interval's sample."""
    sizes = Sizes(support=config.support, query=0)
    steps = Steps(config.primal_step, config.dual_step, config.dual_damping)

    def with_present(present: int, pairs: PrimalDual) -> PrimalDual:
        def one_step(pair: PrimalDual, draws: Draws, iteration: Array) -> PrimalDual:
            rows = buffers.take_support(*draws, iteration, sizes)
            return primal_dual_step(problem, pair, rows, deployed, steps, config.radius)

        def iterate(learning: PrimalDual, iteration: Array) -> tuple[PrimalDual, None]:
            moved = jax.vmap(one_step, in_axes=(0, 0, None))(
                learning, experts.before(draws, present), iteration
            )
            return moved, None

        iterations = jnp.arange(config.meta_iterations)
        learned, _ = jax.lax.scan(iterate, experts.before(pairs, present), iterations)
        return experts.joined(learned, experts.after(pairs, present))

    levels = pairs.dual.shape[0]
    if config.horizon is not None:
        return with_present(levels, pairs)
    return experts.branch_on_prefix(present_count, levels, with_present, pairs)
