"""FairSAOML, the paper's learner (Zhao et al., KDD 2022, Algorithm 1).

Experts on geometric intervals of time each adapt a primal-dual pair from the meta pair when their
interval starts; the meta pair moves on the experts' weighted augmented Lagrangian; weights go to
the experts that fit the present. Read `step` beside the algorithm box. Departures from the paper
are confessed at their line and listed in docs/deviations.md.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core import buffers, experts, intervals
from fairsaoml.core.buffers import Buffer, Hands, Sizes
from fairsaoml.core.config import DrawingConfig, IntervalConfig, damping
from fairsaoml.core.experts import Bank, Roll, put
from fairsaoml.core.learner import Method, Update, wrap
from fairsaoml.core.meta_gradient import META_GRADIENTS, Turn, added, violations_asleep
from fairsaoml.core.primal_dual import Steps, lagrangian, move, project, run_base_learner, start
from fairsaoml.core.prior import Deployed
from fairsaoml.core.settings import integer, number, one_of, optional, setting
from fairsaoml.core.types import Batch, Key, Learner, Params, PrimalDual, Problem
from fairsaoml.core.vectors import every_pair, vectors

PerLevel = Float[Array, "level"]


@dataclass(frozen=True, kw_only=True)
class FairSAOMLConfig(DrawingConfig, IntervalConfig):
    """Settings of the paper's learner; the defaults are the same for every stream (D26)."""

    query: int = setting(100, integer(1), "rows per class of a query draw")
    inner_steps: int = setting(1, integer(0), "base-learner steps; 0 is no base learner")
    inner_primal_step: float = setting(0.1, number(0), "primal eta of an interval of length 1")
    inner_dual_step: float = setting(0.1, number(0), "dual eta of an interval of length 1")
    meta_primal_step: float = setting(0.1, number(0), "eta 1")
    meta_dual_step: float = setting(0.1, number(0), "eta 2")
    dual_damping: float = damping()
    steps: str = setting("scaled", one_of("scaled", "paper"), "eta as set, or S / G (D8)")
    meta_gradient: str = setting(
        "exact", one_of("exact", "first-order", "stale"), "which theta it is taken at (D3)"
    )
    gradient_bound: float | None = setting(
        10.0, optional(number(1e-6)), "G: a longer gradient of theta is shortened to it"
    )
    initial_primal: str = setting(
        "model", one_of("model", "centre"), "theta_0: the model's start, or 0, the ball's centre"
    )
    initial_dual: float = setting(0.0, number(0), "lambda_0")
    inner_dual: str = setting(
        "clipped", one_of("clipped", "free"), "an expert's dual: at 0 or above, or as Eq. 12 says"
    )
    meta_start: str = setting(
        "current", one_of("current", "previous"), "iterations step from the pair of now, or of t-1"
    )
    cover: str = setting(
        "agc", one_of("agc", "doubling", "dynamic"), "blocks from 1, or base^k, or from every round"
    )
    combiner: str = setting(
        "ada-normal-hedge",
        one_of("ada-normal-hedge", "luo-schapire", "uniform"),
        "how credit becomes weights",
    )
    credit: str = setting("inherit", one_of("inherit", "reset"), "R and C of a waking expert")
    credit_rows: str = setting("query", one_of("query", "support"), "rows that credit is taken on")
    credit_dual: str = setting(
        "meta", one_of("meta", "own"), "lambda in an expert's credit: the meta one, or its own"
    )
    credit_bound: float | None = setting(
        1.0, optional(number(1e-6)), "largest credit of a round; the weights want 1"
    )


class State(NamedTuple):
    """What the next round needs."""

    meta: PrimalDual
    bank: Bank
    samples: Buffer  # (level, ...): one bounded sample per interval (D2)
    longest_row: Float[Array, ""]  # largest row norm so far, for steps="paper"


class Given(NamedTuple):
    """What a round's learning is given besides pairs."""

    problem: Problem
    config: FairSAOMLConfig
    samples: Buffer  # of every level
    hands: Hands  # which of their rows the round's draws come from
    roll: Roll
    weights: PerLevel
    deployed: Deployed
    inner: Steps  # (level,) step sizes of the base learner


def fairsaoml(problem: Problem, config: FairSAOMLConfig) -> Learner:
    """The learner of Algorithm 1."""

    def init(key: Key) -> State:
        meta, levels = start(problem, key, config.initial_dual), experts.storage(config)
        if config.initial_primal == "centre":
            meta = meta._replace(primal=jax.tree.map(jnp.zeros_like, meta.primal))
        bank = experts.bank_of(meta, levels)
        samples = experts.samples_of(config, problem.schema, levels)
        return State(meta=meta, bank=bank, samples=samples, longest_row=jnp.zeros(()))

    def adapt(round: Int[Array, ""], state: State, support: Batch, deployed: Deployed) -> State:
        steps = jax.tree.map(lambda eta: eta[0], inner_steps(problem, config, state, levels=1))
        flat = vectors(problem, state.meta.primal)
        pair, times = flat.of(state.meta), config.inner_steps
        meta = run_base_learner(flat.problem, pair, support, deployed, steps, times)
        return state._replace(meta=flat.tree_of(meta))

    def step(
        key: Key, round: Int[Array, ""], old: State, batch: Batch, deployed: Deployed
    ) -> Update:
        levels = old.bank.regret.shape[0]
        roll = experts.roll_call(config, round, levels, config.cover)  # line 5
        flat = vectors(problem, old.meta.primal)
        before = every_pair(flat.of, old)
        longest_row = jnp.maximum(old.longest_row, buffers.longest_row(batch))
        state = before._replace(longest_row=longest_row)
        if config.cover == "dynamic":
            kept = experts.promote((state.bank, state.samples), roll.promoted)
            state = state._replace(bank=kept[0], samples=kept[1])
        reset = config.credit == "reset" or config.cover == "dynamic"  # whose experts moved up
        bank = experts.wake(state.bank, state.meta, roll.awake, reset=reset)  # lines 6-11
        draws = experts.draw(key, state.samples, batch, roll.awake)
        sizes = Sizes(support=config.support, query=config.query)
        given = Given(
            problem=flat.problem,
            config=config,
            samples=draws.samples,
            hands=jax.vmap(partial(buffers.deal, sizes=sizes))(draws.order),
            roll=roll,
            weights=experts.combine(config.combiner, bank, roll.present),  # lines 12-14
            deployed=deployed,
            inner=inner_steps(problem, config, state, levels),
        )
        meta, pairs = learn(given, state.meta, bank.pair)  # lines 15-24
        credited, violation = credit(given, meta, bank._replace(pair=pairs))  # lines 25-28
        # An empty task wakes levels all the same.
        idle = state._replace(bank=bank, samples=draws.samples)
        return Update(
            learned=idle._replace(meta=meta, bank=credited),
            idle=idle,
            violation=violation,
            weights=given.weights,
            present=roll.present,
            awake=roll.awake,
            before=before,
            stored=partial(every_pair, flat.tree_of),
        )

    def grow(state: State, round: int) -> State:
        levels = state.bank.regret.shape[0]
        room = experts.room_for(config, round + (config.cover == "doubling"), levels)
        if room == levels:
            return state
        samples = experts.widen_samples(state.samples, room)
        return state._replace(bank=experts.widen(state.bank, room), samples=samples)

    method = Method(
        init=init,
        logits=lambda state, x: problem.model.scores(state.meta.primal, x),
        adapt=adapt,
        step=step,
        dual=lambda state: state.meta.dual,
        grow=grow,
    )
    return wrap(problem, config, method)


def inner_steps(problem: Problem, config: FairSAOMLConfig, state: State, levels: int) -> Steps:
    """eta_{t,I}: falls with the root of the interval's length, base^k (line 7, D8)."""
    root = jnp.sqrt(jnp.asarray(intervals.lengths(levels, config.base), jnp.float32))
    if config.steps == "scaled":
        primal, dual = config.inner_primal_step / root, config.inner_dual_step / root
    else:
        radius = (1 + 2 * config.tolerance) ** 0.5 - 1  # S
        bound = jnp.maximum(len(problem.schema.features) ** 0.5 + radius, state.longest_row)  # G
        primal = dual = radius / (bound * root)
    lowest = 0.0 if config.inner_dual == "clipped" else -jnp.inf  # Departs from Eq. 12: clipped.
    floor = jnp.full(levels, lowest)
    longest = None if config.gradient_bound is None else jnp.full(levels, config.gradient_bound)
    return Steps(primal=primal, dual=dual, damping=jnp.zeros(levels), bound=longest, floor=floor)


def learn(given: Given, meta: PrimalDual, pairs: PrimalDual) -> tuple[PrimalDual, PrimalDual]:
    """N_meta times: awake experts adapt from the meta pair, then the meta pair moves (D17).

    Returns the meta pair and all experts' pairs. Experts take turns: only the awake adapt, and one
    program serves any number of them. The numbers must come from the round alone.
    """
    problem, config, roll = given.problem, given.config, given.roll
    adapting, sleeping = META_GRADIENTS[config.meta_gradient]
    previous, times = meta, config.meta_iterations

    def violations_of(level: Int[Array, ""] | int, violation: Array) -> Array:
        sleeper = experts.at((given.samples, given.hands.query, pairs), level)
        return put(violation, level, violations_asleep(problem, given.deployed, *sleeper, times))

    def iterate(carry: tuple, draw: tuple) -> tuple:
        (meta, pairs), (iteration, violation) = carry, draw
        if config.meta_start == "previous":
            meta = previous

        def turn(level: Int[Array, ""] | int) -> Turn:
            expert = experts.at((supports, queries, given.weights, given.inner), level)
            return Turn(problem, given.deployed, iteration, config.inner_steps, *expert)

        def awake(level: Int[Array, ""] | int, sums: tuple) -> tuple:
            gradient, violation, pairs = sums
            slope, gaps, adapted = adapting(turn(level), meta)
            return added(gradient, slope), put(violation, level, gaps), put(pairs, level, adapted)

        def asleep(level: Int[Array, ""] | int, gradient: Params) -> Params:
            assert sleeping is not None

            def pushed() -> Params:
                return added(gradient, sleeping(turn(level), meta, experts.at(pairs, level)))

            # Without weight nobody pushes: most who have slept for long. (Seeds as a batch all do.)
            return jax.lax.cond(given.weights[level] > 0, pushed, lambda: gradient)

        # Not `zeros_like`: of as many seeds as theta is, or the loop would be traced for one first.
        nothing = jax.tree.map(lambda leaf: 0.0 * leaf, meta.primal)
        sums = nothing, violation, pairs
        gradient, violation, pairs = jax.lax.fori_loop(0, roll.awake_count, awake, sums)
        if sleeping is not None:
            gradient = jax.lax.fori_loop(roll.awake_count, roll.present_count, asleep, gradient)
        return (meta_step(given, meta, gradient, violation, pairs.dual), pairs), None

    # Who adapts draws supports; whose slope is taken draws queries.
    supports = experts.laid_out(given.samples, given.hands.support, roll.awake_count)
    pushing = roll.awake_count if sleeping is None else roll.present_count
    queries = experts.laid_out(given.samples, given.hands.query, pushing)
    levels, constraints = pairs.dual.shape
    unknown = jnp.zeros((levels, times, constraints))
    violation = jax.lax.fori_loop(roll.awake_count, roll.present_count, violations_of, unknown)
    draws = jnp.arange(times), jnp.swapaxes(violation, 0, 1)
    return jax.lax.scan(iterate, (meta, pairs), draws)[0]


def meta_step(
    given: Given,
    meta: PrimalDual,
    gradient: Params,
    violation: Float[Array, "level constraint"],
    duals: Float[Array, "level constraint"],
) -> PrimalDual:
    """Projected descent of theta, clipped ascent of lambda on the augmented L_t (Eq. 13 to 15)."""
    config = given.config
    damping = config.dual_damping * (config.meta_primal_step + config.meta_dual_step)
    ascent = given.weights @ (violation - damping * duals)
    gradient = project(gradient, config.gradient_bound)
    primal = project(move(meta.primal, gradient, config.meta_primal_step), config.radius)
    return PrimalDual(primal, jnp.maximum(meta.dual + config.meta_dual_step * ascent, 0.0))


def credit(given: Given, meta: PrimalDual, bank: Bank) -> tuple[Bank, Float[Array, "constraint"]]:
    """R += F(meta) - F(expert), C += its size (lines 26, 27).

    Departs there (D11): on a draw of rows that no expert has adapted to; lambda is the meta one in
    both terms, so that an expert is not credited for a low price; and of bounded size. The
    violations of the meta pair come beside.
    """
    config, present = given.config, given.roll.present
    hand = given.hands.query if config.credit_rows == "query" else given.hands.support
    fresh = jax.vmap(partial(buffers.pick, iteration=config.meta_iterations))(given.samples, hand)

    def cost(pair: PrimalDual, rows: Batch) -> tuple[Float[Array, ""], Array]:
        return lagrangian(given.problem, pair, rows, given.deployed)

    metas = experts.spread(meta, present.shape[0])
    own = bank.pair if config.credit_dual == "own" else bank.pair._replace(dual=metas.dual)
    both = jax.tree.map(lambda one, other: jnp.stack([one, other]), metas, own)
    (of_meta, of_expert), violations = jax.vmap(jax.vmap(cost), in_axes=(0, None))(both, fresh)
    # Same sign as evaluate.regret: positive means the expert won.
    bank = experts.credited(bank, of_meta - of_expert, present, config.credit_bound)
    return bank, given.weights @ violations[0]
