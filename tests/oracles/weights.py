"""Expert weights by the direct formulas, where float64 does not overflow (R up to about 2000)."""

from collections.abc import Mapping

import numpy as np

__all__ = ["adanormalhedge", "normalized", "phi", "uniform"]


def phi(regret: float, abs_regret: float) -> float:
    """Phi(R, C) = exp([R]_+^2 / 3C), and 1 in the corners (D12).

    >>> phi(3.0, 3.0), phi(-1.0, 2.0), phi(2.0, 0.0)
    (2.718281828459045, 1.0, 1.0)
    """
    if regret <= 0 or abs_regret <= 0:
        return 1.0
    return float(np.exp(regret**2 / (3 * abs_regret)))


def adanormalhedge(
    credits: Mapping[int, tuple[float, float]], form: str = "paper"
) -> dict[int, float]:
    """p = w / sum w, of (R, C) by level.

    paper (Eq. 9):                        w = (Phi(R+1, C+1) - Phi(R-1, C-1)) / 2
    original (Luo and Schapire 2015):     w = (Phi(R+1, C+1) - Phi(R-1, C+1)) / 2

    >>> adanormalhedge({0: (0.0, 0.0), 1: (0.0, 0.0)})
    {0: 0.5, 1: 0.5}
    >>> adanormalhedge({0: (-5.0, 5.0), 1: (1.0, 1.0)})
    {0: 0.0, 1: 1.0}
    """
    behind = {"paper": -1, "original": +1}[form]
    mass = {
        level: max(0.0, (phi(R + 1, C + 1) - phi(R - 1, C + behind)) / 2)
        for level, (R, C) in credits.items()
    }
    return normalized(mass)


def normalized(mass: Mapping[int, float]) -> dict[int, float]:
    """Shares of the whole; all zero: uniform (D12)."""
    total = sum(mass.values())
    if total == 0:
        return uniform(list(mass))
    return {level: part / total for level, part in mass.items()}


def uniform(levels: list[int]) -> dict[int, float]:
    return {level: 1 / len(levels) for level in levels}
