"""Expert combiners: from credit to weights that sum to one over the experts present.

Everything is in log space: exp(R^2 / 3C) overflows float32 at R = C = 300.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = [
    "Wagers",
    "ada_normal_hedge",
    "bet_fraction",
    "coin_betting",
    "discounted_hedge",
    "no_wagers",
    "paid_out",
    "uniform",
]

HEDGE_SCALE = 3.0  # the 3 in exp(R^2 / 3C)
INTEGER_BITS = 32  # of a round's number

Credit = Float[Array, "level"]
Present = Bool[Array, "level"]


def log_potential(regret: Credit, abs_regret: Credit) -> Credit:
    """log Phi(R, C) = [R]_+^2 / 3C, and 0 where R <= 0 or C <= 0 (D12)."""
    positive = (regret > 0) & (abs_regret > 0)
    return jnp.where(positive, regret**2 / (HEDGE_SCALE * jnp.where(positive, abs_regret, 1.0)), 0)


def ada_normal_hedge(
    regret: Credit, abs_regret: Credit, present: Present, *, printed: bool = True
) -> Credit:
    """Mass of each expert this round (Eq. 9).

    w(R, C) = (Phi(R+1, C+1) - Phi(R-1, C-1)) / 2 as printed in the paper; Luo and Schapire (2015)
    have C+1 in both terms (`printed=False`), and only that form satisfies their key lemma.
    All masses zero: uniform over the experts present (D12).

    >>> present = jnp.array([True, True, False])
    >>> credit = jnp.array([1.0, -1.0, 0.0])
    >>> ada_normal_hedge(credit, jnp.abs(credit), present).round(3).tolist()
    [1.0, 0.0, 0.0]
    >>> ada_normal_hedge(jnp.zeros(3), jnp.zeros(3), present).tolist()
    [0.5, 0.5, 0.0]
    """
    after = log_potential(regret + 1, abs_regret + 1)
    before = log_potential(regret - 1, abs_regret - 1 if printed else abs_regret + 1)
    rises = after > before
    fall = jnp.where(rises, before - after, -1.0)
    log_mass = jnp.where(rises, after + jnp.log(-jnp.expm1(fall)) - jnp.log(2.0), -jnp.inf)
    return _normalise(log_mass, present)


def discounted_hedge(regret: Credit, present: Present, *, rate: float) -> Credit:
    """p = softmax(rate * R) over the experts present; R forgets, so the present decides.

    >>> discounted_hedge(jnp.array([0.0, 0.3]), jnp.ones(2, bool), rate=10.0).round(2)
    Array([0.05, 0.95], dtype=float32)
    """
    return _normalise(rate * regret, present)


def uniform(present: Present) -> Credit:
    """The same weight for every expert present.

    >>> uniform(jnp.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """
    return _normalise(jnp.zeros(present.shape), present)


class Wagers(NamedTuple):
    """What a bettor on each expert has seen and won since its interval began."""

    outcomes: Int[Array, "level"]  # n: how many
    total: Float[Array, "level"]  # z: their sum, each in [-1, 1]
    log_wealth: Float[Array, "level"]  # of a wealth that starts at 1 and cannot reach 0


def no_wagers(levels: int) -> Wagers:
    """Before the first outcome: wealth 1."""
    return Wagers(
        outcomes=jnp.zeros(levels, jnp.int32),
        total=jnp.zeros(levels),
        log_wealth=jnp.zeros(levels),
    )


def bet_fraction(wagers: Wagers) -> Credit:
    """The share of the wealth that is bet on the next outcome, z / (n+1), inside (-1, 1)."""
    return wagers.total / (wagers.outcomes + 1).astype(jnp.float32)


def paid_out(wagers: Wagers, gain: Credit) -> Wagers:
    """Wealth grows by outcome x bet; a loss counts only where the bet was positive.

    >>> wagers = paid_out(paid_out(no_wagers(1), jnp.array([0.5])), jnp.array([0.4]))
    >>> jnp.exp(wagers.log_wealth).round(4).tolist()  # 1 + 0.4 x (0.5 / 2) x 1
    [1.100000023841858]
    """
    fraction = bet_fraction(wagers)
    outcome = jnp.where(fraction > 0, gain, jnp.maximum(gain, 0.0))
    return Wagers(
        outcomes=wagers.outcomes + 1,
        total=wagers.total + outcome,
        log_wealth=wagers.log_wealth + jnp.log1p(outcome * fraction),
    )


def coin_betting(wagers: Wagers, start: Int[Array, "level"], present: Present) -> Credit:
    """Sleeping coin betting (Jun et al. 2017): prior x positive bet, over those present.

    The prior of an interval that starts at round s is proportional to
    1 / (s^2 (1 + floor(log2 s))); where nobody bets, it decides alone. Below, the intervals at
    round 5: 1/75 against 1/48 and 1/48.

    >>> start, present = jnp.array([5, 4, 4, 1]), jnp.array([True, True, True, False])
    >>> [f"{share:.3f}" for share in coin_betting(no_wagers(4), start, present)]
    ['0.242', '0.379', '0.379', '0.000']
    """
    begun = jnp.maximum(start, 1)  # an absent level has no start
    doublings = (INTEGER_BITS - 1 - jax.lax.clz(begun)).astype(jnp.float32)
    log_prior = -2 * jnp.log(begun.astype(jnp.float32)) - jnp.log1p(doublings)
    fraction = bet_fraction(wagers)
    bets = fraction > 0
    log_bet = wagers.log_wealth + jnp.log(jnp.where(bets, fraction, 1.0))
    somebody = jnp.any(bets & present)
    log_mass = jnp.where(bets, log_prior + log_bet, -jnp.inf)
    return _normalise(jnp.where(somebody, log_mass, log_prior), present)


def _normalise(log_mass: Credit, present: Present) -> Credit:
    log_mass = jnp.where(present, log_mass, -jnp.inf)
    nobody = jnp.all(jnp.isneginf(log_mass))
    return jax.nn.softmax(jnp.where(nobody, jnp.where(present, 0.0, -jnp.inf), log_mass))
