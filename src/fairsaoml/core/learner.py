"""The round that every learner shares, around the part that is its own.

`wrap` makes a `Learner` of a `Method`, as an optax wrapper makes one transformation of another. It
keeps the class prior and adds it back (D25), leaves an empty task untaught (D20), refuses an update
that is not finite, counts the rounds in which a violation has no price (D14), and reports.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from fairsaoml.core import prior
from fairsaoml.core.arrays import Array, choose, library
from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError
from fairsaoml.core.prior import Deployed, Prior
from fairsaoml.core.types import Batch, Explanation, Key, Learner, Problem, RoundInfo, Shown

__all__ = ["Method", "PlainMethod", "Update", "Wrapped", "wrap", "wrap_plain"]

SMALL = 4096  # numbers: leaves of no more are looked through together, as a smaller program
PINNED_ROUNDS = 10  # so many rounds of "unfair, yet no price" are worth a warning (D14)

Learned = Any  # a pytree: what a method remembers from round to round
Rows = Float[Array, "row feature"]
Groups = Int[Array, "row attribute"] | None
Round = Int[Array, ""]


class Update(NamedTuple):
    """What a method makes of a round."""

    learned: Learned
    violation: Float[Array, "constraint"]  # of the model that it ends with
    idle: Learned = None  # what it is after a round without rows; None: as it was before
    weights: Float[Array, "level"] | None = None  # of the experts that decided; None: no experts
    present: Bool[Array, "level"] | None = None
    awake: Bool[Array, "level"] | None = None
    # Where a method learns on another form of what it keeps: that of before, and the way back.
    before: Learned = None
    stored: Callable[[Learned], Learned] | None = None


class Method(NamedTuple):
    """What makes a learner its own. `Deployed` is how its logits become decisions.

    Logits are those of even classes, and a threshold on them decides (D25).
    """

    init: Callable[[Key], Learned]
    logits: Callable[[Learned, Float[Array, "row feature"]], Float[Array, "row"]]
    adapt: Callable[[Round, Learned, Batch, Deployed], Learned] | None  # to a few labels, if at all
    step: Callable[[Key, Round, Learned, Batch, Deployed], Update]
    dual: Callable[[Learned], Float[Array, "constraint"]]  # the price of each constraint, >= 0
    grow: Callable[[Learned, int], Learned] = lambda learned, round: learned


class PlainMethod(NamedTuple):
    """What makes a learner its own that computes with NumPy and says itself what it decides.

    Its scores are calibrated as they are. `turn` is a round: the update, and what was shown of the
    rows before it. A state is never changed, only replaced.
    """

    init: Callable[[], Learned]
    show: Callable[[Learned, Rows, Groups], Shown]
    turn: Callable[[Learned, Batch], tuple[Update, Shown]]
    dual: Callable[[Learned], Float[Array, "constraint"]]  # the price of each constraint, >= 0
    explain: Callable[[Learned, Rows, Groups], Explanation] | None = None
    flags: Callable[[Learned], dict[str, Bool[Array, ""]]] = lambda learned: {}
    # What is not finite where anything that was learned is not: all of it, or less to look through.
    suspects: Callable[[Learned], Any] = lambda learned: learned


class Wrapped(NamedTuple):
    """What the next round needs."""

    learned: Learned
    prior: Prior
    round: Round  # the last one
    pinned: Int[Array, ""]  # rounds in a row with a violation and no price (D14)


def wrap(problem: Problem, config: LearnerConfig, method: Method) -> Learner:
    """The learner of a method: `fairsaoml.core.types.Learner` says what its functions do."""

    def scores(state: Wrapped, x: Rows) -> Float[Array, "row"]:
        return method.logits(state.learned, x) + prior.log_odds(state.prior)

    def margins(state: Wrapped, x: Rows, group: Groups = None) -> Float[Array, "row"]:
        return scores(state, x) - prior.threshold(state.prior, problem.decision)

    def adapt(state: Wrapped, support: Batch) -> Wrapped:
        deployed = prior.deployed(state.prior, problem.decision, config.gap)
        assert method.adapt is not None
        learned = method.adapt(state.round + 1, state.learned, support, deployed)
        return state._replace(learned=learned)

    def step(key: Key, round: Round, old: Wrapped, batch: Batch) -> tuple[Wrapped, RoundInfo]:
        seen = prior.observe(old.prior, batch, config.prior_discount)
        deployed = prior.deployed(seen, problem.decision, config.gap)
        update = method.step(key, round, old.learned, batch, deployed)
        finite = all_finite((update._replace(before=None, stored=None), seen))
        return _after(problem, method.dual, round, old, batch, seen, update, finite)

    def grow(state: Wrapped, round: int) -> Wrapped:
        learned = method.grow(state.learned, round)
        return state if learned is state.learned else state._replace(learned=learned)

    return Learner(
        init=lambda key: _before(method.init(key), jnp),
        scores=scores,
        margins=margins,
        adapt=adapt if method.adapt else None,
        step=step,
        grow=grow,
    )


def wrap_plain(problem: Problem, config: LearnerConfig, method: PlainMethod) -> Learner:
    """The learner of a method that computes with NumPy."""

    def show(state: Wrapped, x: Rows, group: Groups = None) -> Shown:
        return method.show(state.learned, np.asarray(x), group)

    def explain(state: Wrapped, x: Rows, group: Groups = None) -> Explanation:
        assert method.explain is not None
        return method.explain(state.learned, np.asarray(x), group)

    def turn(
        key: Key, round: Round, old: Wrapped, batch: Batch
    ) -> tuple[Wrapped, RoundInfo, Shown]:
        # What is not finite is looked for when all is done.
        with np.errstate(all="ignore"):
            seen = prior.observe(old.prior, batch, config.prior_discount)
            update, shown = method.turn(old.learned, batch)
            suspects = method.suspects(update.learned), update.violation, seen
            finite = np.isfinite(np.concatenate([f.ravel() for f in floats(suspects)]).sum())
            state, info = _after(problem, method.dual, round, old, batch, seen, update, finite)
        return state, info._replace(flags=info.flags | method.flags(state.learned)), shown

    return Learner(
        init=lambda key: _before(method.init(), np),
        scores=lambda state, x: show(state, x).scores,
        margins=lambda state, x, group=None: show(state, x, group).margins,
        adapt=None,
        step=lambda *round: turn(*round)[:2],
        explain=method.explain and explain,
        show=show,
        turn=turn,
    )


def _before(learned: Learned, xp: Any) -> Wrapped:
    """The state before any round, of arrays of a library."""
    zero = xp.zeros((), xp.int32)
    return Wrapped(learned=learned, prior=prior.no_prior(xp), round=zero, pinned=zero)


def _after(
    problem: Problem,
    dual: Callable[[Learned], Float[Array, "constraint"]],
    round: Round,
    old: Wrapped,
    batch: Batch,
    seen: Prior,
    update: Update,
    finite: Bool[Array, ""],
) -> tuple[Wrapped, RoundInfo]:
    """The state after a round, and what is told of it: no update where there is nothing finite."""
    xp = library(batch.weight)
    has_rows = batch.weight.sum() > 0
    before = old.learned if update.before is None else update.before
    learned = choose(has_rows & finite, update.learned, before)
    if update.idle is not None:
        learned = choose(has_rows | ~finite, learned, update.idle)
    prices = dual(learned)
    if update.violation.shape != prices.shape:
        raise ConfigError(
            "expected a violation and a price for each constraint, got arrays of the shapes "
            f"{update.violation.shape} and {prices.shape}; return one number per constraint"
        )
    pinned = pinned_rounds(old.pinned, prices, update.violation)
    state = Wrapped(
        learned=update.stored(learned) if update.stored else learned,
        prior=choose(finite, seen, old.prior),
        round=round,
        pinned=xp.where(has_rows & finite, pinned, old.pinned),
    )
    one = xp.ones(1, bool)  # a learner without experts is one that is always awake
    return state, RoundInfo(
        weights=xp.ones(1, xp.float32) if update.weights is None else update.weights,
        present=one if update.present is None else update.present,
        awake=one if update.awake is None else update.awake,
        dual=prices,
        flags=flags(problem, batch, state.pinned, finite),
    )


def all_finite(tree: Any) -> Bool[Array, ""]:
    """Whether all numbers are finite; where not, a round teaches nothing: NaN never spreads."""
    leaves = floats(tree)
    small = jnp.concatenate([jnp.zeros(1), *(f.ravel() for f in leaves if f.size <= SMALL)])
    large = [leaf for leaf in leaves if leaf.size > SMALL]
    # A sum is finite where its parts are: one pass each, and nothing to compare.
    return jnp.isfinite(jnp.stack([jnp.sum(leaf * 0.0) for leaf in [small, *large]]).sum())


def floats(tree: Any) -> list[Array]:
    """The arrays of a tree that could hold what is not finite."""
    return [leaf for leaf in jax.tree.leaves(tree) if leaf.dtype.kind == "f"]


def pinned_rounds(
    pinned: Int[Array, ""], dual: Float[Array, "constraint"], violation: Float[Array, "constraint"]
) -> Int[Array, ""]:
    """Rounds in a row in which some constraint is violated while its price is zero (D14)."""
    xp = library(dual)
    return xp.where(xp.any((dual <= 0) & (violation > 0)), pinned + 1, 0)


def flags(
    problem: Problem, batch: Batch, pinned: Int[Array, ""], finite: Bool[Array, ""]
) -> dict[str, Bool[Array, ""]]:
    """What a person should be warned of; the words are in `evaluate.records`."""
    xp = library(batch.weight)
    rows = batch.weight.sum()
    ones = (batch.weight * batch.y).sum()
    one_group = xp.zeros((), bool)
    for codes, (_, levels) in zip(batch.group.T, problem.schema.attributes, strict=True):
        members = codes == xp.arange(len(levels), dtype=codes.dtype)[:, None]
        here = xp.where(members, batch.weight, 0.0).sum(1) > 0
        one_group |= here.any() & ~here.all()
    return {
        "empty": rows == 0,
        "one_class": (rows > 0) & ((ones == 0) | (ones == rows)),
        "one_group": one_group,
        "dual_pinned": pinned >= PINNED_ROUNDS,
        "not_finite": ~finite,
    }
