"""Sleeping coin betting (Jun et al. 2017): a bettor on each expert, whose wealth is its weight."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairsaoml.core.weights import Credit, Present, normalise

INTEGER_BITS = 32  # of a round's number


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
    """Weights of the experts: prior x positive bet, over those present.

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
    return normalise(jnp.where(somebody, log_mass, log_prior), present)
