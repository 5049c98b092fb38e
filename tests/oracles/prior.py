"""The running class prior of D25, by its definition."""

from collections.abc import Sequence

__all__ = ["running_prior"]


def running_prior(base_rates: Sequence[float], discount: float = 0.7) -> float:
    """Discounted mean of the tasks' base rates, the last one at full weight.

    >>> round(running_prior([0.2, 0.9]), 4)  # (0.7 * 0.2 + 0.9) / 1.7
    0.6118
    """
    ages = range(len(base_rates) - 1, -1, -1)
    weights = [discount**age for age in ages]
    return sum(w * r for w, r in zip(weights, base_rates, strict=True)) / sum(weights)
