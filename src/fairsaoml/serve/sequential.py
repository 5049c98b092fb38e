"""Is one group's rate below a share of another's? A test that may be looked at every round.

A bet on unfairness: of a pair of rows, one of each group, D = X_low - ratio X_high has a mean of at
least 0 while the ratio is kept, so the capital of whoever multiplies it by 1 - bet D never grows on
average (a test supermartingale: Shafer 2021; Waudby-Smith and Ramdas 2024). By Ville's inequality
it ever reaches 1 / level with a chance of at most `level`, however often one looks.

The world may change at any time, so the capital is not staked at once: a share of it starts in each
round, and what started before a change cannot lose what starts after it. The shares decrease like
1 / (t log^2 t), whose sum is finite: the whole remains one test for all time.
"""

import math
from typing import Any

import numpy as np

__all__ = ["bet", "capital"]

BETS = np.array([0.02, 0.06, 0.15, 0.35, 0.7])  # below 1: no capital is ever lost whole
ALL_SHARES = 2.11  # the sum of 1 / (t log^2 t) from 2 on
LARGEST = 1e300  # stake that JSON can hold
BEGINNING: dict[str, Any] = {"rounds": 0, "unspent": 1.0, "staked": [0.0] * len(BETS)}


def bet(
    state: dict[str, Any] | None, ratio: float, low: np.ndarray, high: np.ndarray
) -> dict[str, Any]:
    """Bet on rate(low) < ratio * rate(high) for one more round.

    Args:
        state: what the rounds before have left, plain data; None before the first.
        ratio: that is asked for.
        low: the round's decisions on rows of the group that may be treated worse, in order.
        high: those on rows of the other group.

    Returns:
        The state after the round.

    >>> fair = unfair = None
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(20):
    ...     high = rng.random(100) < 0.5
    ...     fair = bet(fair, 0.9, rng.random(100) < 0.5, high)
    ...     unfair = bet(unfair, 0.9, rng.random(100) < 0.35, high)
    >>> capital(fair) < 1, capital(unfair) > 1000
    (True, True)
    """
    state, pairs = state or BEGINNING, min(len(low), len(high))
    if not pairs:
        return state
    rounds = state["rounds"] + 1
    share = 1 / (ALL_SHARES * (rounds + 1) * math.log(rounds + 1) ** 2)
    # Rows of the larger group are averaged: every row counts, and D stays within its bounds.
    difference = _blocks(low, pairs) - ratio * _blocks(high, pairs)
    growth = np.log1p(-BETS[:, None] * difference[None, :]).sum(axis=1)
    staked = (np.asarray(state["staked"]) + share / len(BETS)) * np.exp(growth)
    staked = np.minimum(staked, LARGEST).tolist()
    return {"rounds": rounds, "unspent": state["unspent"] - share, "staked": staked}


def capital(state: dict[str, Any]) -> float:
    """Return what one unit has become: at least 1 / level is evidence at that level."""
    return state["unspent"] + sum(state["staked"])


def _blocks(values: np.ndarray, count: int) -> np.ndarray:
    """Return the means of so many runs of about equal length.

    >>> _blocks(np.array([1.0, 0.0, 1.0, 1.0, 0.0]), 2)
    array([0.5       , 0.66666667])
    """
    edges = np.arange(count + 1) * len(values) // count
    return np.add.reduceat(values, edges[:-1], dtype=float) / np.diff(edges)
