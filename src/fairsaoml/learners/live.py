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
from jaxtyping import Array, Bool, Float, Int

from fairsaoml import buffers, experts, prior, weights
from fairsaoml.buffers import Buffer, Sizes
from fairsaoml.config import NOTIONS, SCORES, IntervalConfig, number, one_of, setting
from fairsaoml.experts import Bank, Draws
from fairsaoml.primal_dual import evaluate, gaps, move, project, start
from fairsaoml.prior import Deployed, Prior
from fairsaoml.types import Batch, Key, Learner, Params, Problem, RoundInfo

__all__ = ["LiveConfig", "State", "learn", "live"]

SMALLEST_RATE = 0.01  # of decisions, below which gaps are not enlarged further

PerLevel = Float[Array, "level"]


@dataclass(frozen=True, kw_only=True)
class LiveConfig(IntervalConfig):
    """Settings of the live experts; the defaults are the same for every stream."""

    constraints: str = setting("eo", one_of(*NOTIONS), "fairness asked for")
    score: str = setting("decision", one_of(*SCORES), "what the smooth gap is taken of")
    primal_step: float = setting(0.2, number(0), "step of theta, the same at every level")
    dual_step: float = setting(0.7, number(0), "step of lambda")
    combiner: str = setting(
        "discounted-hedge",
        one_of("discounted-hedge", "ada-normal-hedge", "luo-schapire", "uniform"),
        "how credit becomes weights",
    )
    gap_memory: float = setting(
        0.9, number(0, 1), "memory of a gap from draw to draw; 0 believes each draw alone"
    )
    gap_scale: float = setting(
        0.1, number(1e-6), "size of gaps worth believing; small groups must show larger ones"
    )
    credit_discount: float = setting(0.7, number(0, 1), "memory of the discounted hedge")
    credit_rate: float = setting(10.0, number(0), "how sharply the discounted hedge prefers")


class Expert(NamedTuple):
    """A primal-dual pair, and what it remembers of the gaps between groups."""

    primal: Params
    dual: Float[Array, "constraint"]
    gap: Float[Array, "constraint"]  # signed, a running mean over draws


class State(NamedTuple):
    """What the next round needs."""

    bank: Bank
    weights: PerLevel  # what the deployed mixture uses
    samples: Buffer  # (level, ...): one bounded sample per interval (D2)
    prior: Prior
    pinned: Int[Array, ""]  # rounds in a row with a violation and no price (D14)


def live(problem: Problem, config: LiveConfig) -> Learner:
    """The learner `fairsaoml-live`."""
    combine = partial(experts.combine, config.combiner, rate=config.credit_rate)

    def init(key: Key) -> State:
        pair, levels = start(problem, key), experts.storage(config)
        expert = Expert(primal=pair.primal, dual=pair.dual, gap=jnp.zeros_like(pair.dual))
        return State(
            bank=experts.bank_of(expert, levels),
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
        uncertain = uncertainty(problem, support)

        def once(learning: Expert, _: None) -> tuple[Expert, None]:
            return jax.vmap(
                lambda one: take_step(problem, config, one, support, deployed, uncertain)
            )(learning), None

        pairs, _ = jax.lax.scan(once, state.bank.pair, None, length=config.meta_iterations)
        return state._replace(bank=state.bank._replace(pair=pairs))

    def step(key: Key, round: Int[Array, ""], old: State, batch: Batch) -> tuple[State, RoundInfo]:
        roll = experts.roll_call(config, round, old.weights.shape[0])
        state = old._replace(prior=prior.observe(old.prior, batch, config.prior_discount))
        deployed = prior.deployed(state.prior, config.decision)
        # Those who were deployed are credited, and decide where the waking start; a level that
        # joins with this round has no say yet.
        were_present = experts.roll_call(config, round - 1, old.weights.shape[0]).present
        bank, violation = credit(problem, config, state, batch, deployed, were_present)
        share = combine(bank, were_present)
        bank = experts.wake(bank, experts.mixture(share, bank.pair), roll.awake, reset=False)
        draws = experts.draw(key, state.samples, batch, roll.awake)
        pairs = learn(problem, config, bank.pair, draws, deployed, roll.present_count)
        # An empty task is counted and wakes levels, but teaches nothing (D20).
        pairs = experts.choose(batch.weight.sum() > 0, pairs, bank.pair)
        share = combine(bank, roll.present)
        state = state._replace(
            bank=bank._replace(pair=pairs),
            weights=share,
            samples=draws.samples,
            pinned=experts.pinned_rounds(state.pinned, share @ pairs.dual, violation),
        )
        state, finite = experts.keep_finite(state, old)
        return state, RoundInfo(
            weights=old.weights,
            present=roll.present,
            awake=roll.awake,
            dual=state.weights @ state.bank.pair.dual,
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


def credit(
    problem: Problem,
    config: LiveConfig,
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


def learn(
    problem: Problem,
    config: LiveConfig,
    pairs: Expert,
    draws: Draws,
    deployed: Deployed,
    present_count: Int[Array, ""],
) -> Expert:
    """Every expert present takes primal-dual steps on draws from its own interval's sample."""
    sizes = Sizes(support=config.support, query=0)

    def with_present(present: int, pairs: Expert) -> Expert:
        def one_step(expert: Expert, draws: Draws, uncertain: Array, iteration: Array) -> Expert:
            rows = buffers.take_support(*draws, iteration, sizes)
            return take_step(problem, config, expert, rows, deployed, uncertain)

        def iterate(learning: Expert, iteration: Array) -> tuple[Expert, None]:
            moved = jax.vmap(one_step, in_axes=(0, 0, 0, None))(
                learning, mine, uncertain, iteration
            )
            return moved, None

        mine = experts.before(draws, present)
        uncertain = jax.vmap(lambda sample: uncertainty(problem, buffers.everything(sample)))(
            mine.samples
        )
        iterations = jnp.arange(config.meta_iterations)
        learned, _ = jax.lax.scan(iterate, experts.before(pairs, present), iterations)
        return experts.joined(learned, experts.after(pairs, present))

    levels = pairs.dual.shape[0]
    if config.horizon is not None:
        return with_present(levels, pairs)
    return experts.branch_on_prefix(present_count, levels, with_present, pairs)


def uncertainty(problem: Problem, rows: Batch) -> Float[Array, "constraint"]:
    """1/n + 1/n' for the two sides of each constraint: what a gap's variance is proportional to."""
    counts = [c.rows(rows) for c in problem.constraints]
    found = [1 / jnp.maximum(one, 1.0) + 1 / jnp.maximum(two, 1.0) for one, two in counts]
    return jnp.stack(found) if found else jnp.zeros(0)


def trust(
    config: LiveConfig, uncertain: Float[Array, "constraint"], rate: Float[Array, "constraint"]
) -> Float[Array, "constraint"]:
    """How much of a relative gap is believed: c = t^2 / (t^2 + se^2).

    The posterior mean of a gap that is, before looking, of size t = `gap_scale`, and that rows of
    standard error se then show: se^2 = (1 - r) / 4r (1/n + 1/n') at rate r. A group of a few rows
    can show any gap; to chase it costs accuracy and helps nobody.
    """
    variance = uncertain * (1 - rate) / (4 * rate)
    return config.gap_scale**2 / (config.gap_scale**2 + variance)


def take_step(
    problem: Problem,
    config: LiveConfig,
    expert: Expert,
    rows: Batch,
    deployed: Deployed,
    uncertain: Float[Array, "constraint"],
) -> Expert:
    """One primal-dual step in which the gap's sign and size are remembered, not believed.

    In a draw of 200 rows the gap between groups is mostly noise: |gap| is positive on average
    even where the groups are equal, so a dual that believes each draw never stops rising, and a
    primal that believes its sign is pushed to and fro. The running mean of the *signed* gap has
    neither flaw: theta descends f + sum_i lambda_i sign(mean gap_i) gap_i, lambda ascends
    |mean gap_i| - tolerance.

    Gaps are relative: divided by twice the rate they are gaps of, held fixed. The 80 % rule is
    about ratios, and .02 is little between rates of .5 and much between rates of .03.
    """
    tolerance = jnp.asarray([c.tolerance for c in problem.constraints], jnp.float32)

    def objective(primal: Params) -> tuple[Float[Array, ""], Float[Array, "constraint"]]:
        logits = problem.model.scores(primal, rows.x)
        gap = gaps(problem, logits, rows, deployed)
        rate = jax.lax.stop_gradient(jnp.clip(gap.rate, SMALLEST_RATE, 1 - SMALLEST_RATE))
        relative = gap.value / (2 * rate)
        seen = trust(config, uncertain, rate) * relative
        new = config.gap_memory * expert.gap + (1 - config.gap_memory) * seen
        remembered = jax.lax.stop_gradient(jnp.where(gap.known, new, expert.gap))
        price = expert.dual * jnp.sign(remembered)
        return problem.loss(logits, rows) + jnp.dot(price, relative), remembered

    gradient, remembered = jax.grad(objective, has_aux=True)(expert.primal)
    violation = jnp.abs(remembered) - tolerance
    dual = expert.dual + config.dual_step * (violation - config.dual_damping * expert.dual)
    return Expert(
        primal=project(move(expert.primal, gradient, config.primal_step), config.radius),
        dual=jnp.maximum(dual, 0.0),
        gap=remembered,
    )
