"""The bank of experts: one row per level, never one object per expert.

What all interval learners share of a round: who is present, who wakes, whose interval's sample is
emptied and filled, who gets credit, and how the bank grows in an endless stream (D16).
"""

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from fairsaoml.core import buffers, doubling_cover, intervals, threefry, weights
from fairsaoml.core.arrays import choose
from fairsaoml.core.buffers import Buffer, Hand, Pool, Shuffle, Sizes
from fairsaoml.core.config import DrawingConfig, IntervalConfig
from fairsaoml.core.types import Batch, Key, Schema

# Storage when the horizon is unknown, doubled when full: of base 2 enough for 65,536 rounds. With
# less, a service would stop for a compilation in its second hundred of rounds.
FIRST_LEVELS = 16

Tree = TypeVar("Tree")


class Bank(NamedTuple):
    """The experts, expert axis first."""

    pair: Any  # a PrimalDual, or what holds one; every leaf (level, ...)
    regret: Float[Array, "level"]  # R: positive means the expert beat the combination
    abs_regret: Float[Array, "level"]  # C


class Roll(NamedTuple):
    """Who takes part in a round, and whose interval starts with it; both are prefixes."""

    present: Bool[Array, "level"]
    awake: Bool[Array, "level"]
    present_count: Int[Array, ""]
    awake_count: Int[Array, ""]
    promoted: Bool[Array, "level"]  # who takes over the expert of the level below


class Draws(NamedTuple):
    """All the randomness of a round: each level's rows, and the order they are drawn in."""

    samples: Buffer
    order: Shuffle


def bank_of(pair: Any, levels: int) -> Bank:
    """A bank in which every expert starts at the same pair, without credit."""
    return Bank(pair=spread(pair, levels), regret=jnp.zeros(levels), abs_regret=jnp.zeros(levels))


def spread(tree: Tree, levels: int) -> Tree:
    """The same value for every level."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (levels, *leaf.shape)), tree)


def storage(config: IntervalConfig) -> int:
    """How many levels a bank has room for at its start."""
    if config.horizon is None:
        return FIRST_LEVELS
    return intervals.level_count(config.horizon, config.base)


def samples_of(config: DrawingConfig, schema: Schema, levels: int) -> Buffer:
    """An empty sample for every level's interval."""
    features, attributes = len(schema.features), len(schema.attributes)
    return spread(buffers.empty(config.capacity, features, attributes), levels)


def roll_call(
    config: IntervalConfig, round: Int[Array, ""], levels: int, cover: str = "agc"
) -> Roll:
    """Who is there at a round: all levels of a known horizon, or those that have joined (D16).

    The covers are those of `core.intervals` (agc) and `core.doubling_cover`, where levels join
    whether the horizon is known or not, and `dynamic`: an interval without an end starts in every
    round, at level 0. Where a block of level k would start, the expert of the level below moves up
    to it, and the one it finds there is given up: of all starts, about log t are kept.
    """
    length = jnp.asarray(intervals.lengths(levels, config.base), jnp.int32)
    everyone = config.horizon is not None and cover == "agc"
    of = doubling_cover if cover == "doubling" else intervals
    present = jnp.ones(levels, bool) if everyone else of.is_present(round, length)
    starting = present & of.is_start(round, length)
    fresh = starting & (length == 1) if cover == "dynamic" else starting
    return Roll(
        present=present,
        awake=fresh,
        present_count=present.sum(),
        awake_count=fresh.sum(),
        promoted=starting & ~fresh,
    )


def promote(tree: Tree, promoted: Bool[Array, "level"]) -> Tree:
    """What belongs to the level below, where an expert moves up."""
    return jax.vmap(choose)(promoted, jax.tree.map(lambda leaf: jnp.roll(leaf, 1, 0), tree), tree)


def wake(bank: Bank, pair: Any, awake: Bool[Array, "level"], *, reset: bool) -> Bank:
    """Awake experts restart from `pair`; they inherit their level's credit, or start without it."""

    def restart(old: Any, awake: Bool[Array, ""]) -> Any:
        return choose(awake, pair, old)

    forgotten = awake & reset
    return Bank(
        pair=jax.vmap(restart)(bank.pair, awake),
        regret=jnp.where(forgotten, 0.0, bank.regret),
        abs_regret=jnp.where(forgotten, 0.0, bank.abs_regret),
    )


def draw(key: Key, samples: Buffer, batch: Batch, awake: Bool[Array, "level"]) -> Draws:
    """Every level's sample of its interval, this round's rows included (D1, D2), in fresh order."""
    priorities, orders = threefry.split(key)
    arrived = buffers.arrivals(priorities, batch, samples.priority.shape[2])
    samples = jax.vmap(buffers.forget)(samples, awake)
    samples = jax.vmap(buffers.merge, in_axes=(0, None))(samples, arrived)
    keys = threefry.split(orders, awake.shape[0])
    return Draws(samples=samples, order=jax.vmap(buffers.shuffle)(keys, samples))


def combine(combiner: str, bank: Bank, present: Bool[Array, "level"]) -> Float[Array, "level"]:
    """p: the weights of the experts present, from their credit (Eq. 8, 9)."""
    if combiner == "uniform":
        return weights.uniform(present)
    printed = combiner == "ada-normal-hedge"
    return weights.ada_normal_hedge(bank.regret, bank.abs_regret, present, printed=printed)


def credited(
    bank: Bank, won: Float[Array, "level"], present: Bool[Array, "level"], most: float | None
) -> Bank:
    """R <- R + r, C <- C + |r|, r of size `most` at most; the absent stay without credit (D16)."""
    clipped = won if most is None else jnp.clip(won, -most, most)
    won = jnp.where(present, clipped, 0.0)
    return bank._replace(regret=bank.regret + won, abs_regret=bank.abs_regret + jnp.abs(won))


def mixture(weights: Float[Array, "level"], tree: Tree) -> Tree:
    """The weighted mean over experts."""
    return jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), tree)


def room_for(config: IntervalConfig, round: int, levels: int) -> int:
    """Levels of storage a round needs: as many as there are, doubled when full (D16).

    >>> room_for(IntervalConfig(base=2), 256, 8), room_for(IntervalConfig(base=2), 257, 8)
    (8, 16)
    """
    needed = intervals.levels_needed(round, config.base)
    return levels if config.horizon is not None else doubled(levels, needed)


def doubled(levels: int, needed: int) -> int:
    """`levels`, doubled until there are as many as needed."""
    return levels if levels >= needed else doubled(2 * levels, needed)


def widen(tree: Tree, room: int) -> Tree:
    """The same bank with rows for `room` levels; new rows are zeros (outside jit)."""
    return jax.tree.map(
        lambda leaf: jnp.pad(leaf, [(0, room - leaf.shape[0])] + [(0, 0)] * (leaf.ndim - 1)), tree
    )


def widen_samples(samples: Buffer, room: int) -> Buffer:
    """The same samples and empty ones, `room` in all (outside jit)."""
    new = jnp.arange(room) >= samples.priority.shape[0]
    return jax.vmap(buffers.forget)(widen(samples, room), new)


def at(tree: Tree, level: Int[Array, ""] | int) -> Tree:
    """The part of `tree` that belongs to `level`."""
    place = jnp.uint32(level)  # of a number with a sign it is asked whether it is below 0
    return jax.tree.map(lambda leaf: leaf[place], tree)


def put(tree: Tree, level: Int[Array, ""] | int, value: Any) -> Tree:
    """Return `tree` with `value` stored at `level`."""
    place = jnp.uint32(level)
    return jax.tree.map(lambda leaf, new: leaf.at[place].set(new), tree, value)


def draw_round(key: Key, batch: Batch, config: DrawingConfig) -> Pool:
    """The draws of learners without a memory: this round's rows alone, in fresh order."""
    priorities, order = threefry.split(key)
    rows = buffers.sample_of(priorities, batch, config.capacity)
    hands = buffers.deal(buffers.shuffle(order, rows), Sizes(config.support))
    return buffers.lay_out(rows, hands.support)


def laid_out(samples: Buffer, hands: Hand, levels: Int[Array, ""]) -> Pool:
    """The pools of the first levels; those of others have no rows."""

    def lay(level: Int[Array, ""], rows: tuple) -> tuple:
        return put(rows, level, buffers.lay_out(*at((samples, hands), level))[:2])

    *shapes, _ = jax.eval_shape(jax.vmap(buffers.lay_out), samples, hands)
    nothing = tuple(jnp.zeros(leaf.shape, leaf.dtype) for leaf in shapes)
    x, group = jax.lax.fori_loop(0, levels, lay, nothing)
    return Pool(x=x, group=group, hand=hands)
