"""Algorithm 1 a second time, from the paper's text alone: the linear model, one binary attribute.

Every letter is the paper's. Nothing is shared with the library or with `oracles.paper` but the
draws, which are handed in. What the text leaves open is a field of `Reading`; its defaults are what
the equations print. Gradients are written out, those through the base learner with its Hessian.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Draw", "Reading", "Round", "algorithm_1", "eq_1"]

Vector = NDArray[np.float64]


class Draw(NamedTuple):
    """Rows of a sampled set: e with a 1 at its end, for the bias; y in {-1, 1}; s in {-1, 1}."""

    e: Vector
    y: Vector
    s: Vector


class Reading(NamedTuple):
    """Numbers the paper leaves to tuning, and what its text leaves open."""

    T: int
    base: int = 2
    N_meta: int = 2
    eta_1: float = 0.15
    eta_2: float = 0.3
    delta: float = 0.2
    epsilon: float = 0.05
    lambda_0: float = 0.0
    ball: bool = True  # theta_t is projected
    gradient: str = "stale"  # Eq. 14 at theta_{t,I}; "exact": through G_t; "first-order"
    iterations_from: str = "previous"  # Eq. 11 and 14 print theta_{t-1}; or "current"
    inner_dual: str = "free"  # Eq. 12 does not clip; or "clipped"
    credit_rows: str = "support"  # F_{t,I} is defined on D^S (Eq. 10); or "query"
    credit_dual: str = "own"  # lines 26, 27; or "meta"
    credit_bound: float = np.inf
    cover: str = "agc"  # Eq. 5; or "doubling": [i base^k, (i+1) base^k - 1], i >= 1


class Expert(NamedTuple):
    theta: Vector
    lam: float
    R: float
    C: float


class Round(NamedTuple):
    """theta_t, lambda_t, the weights that made them, and U at the end of round t."""

    theta: Vector
    lam: float
    p: dict[int, float]
    experts: dict[int, Expert]


def eq_1(theta: Vector, rows: Draw, epsilon: float) -> float:
    """g(theta) = |E[(1 / (p1 (1 - p1))) ((s + 1) / 2 - p1) h(theta, e)]| - epsilon."""
    return abs(_signed(rows) @ theta) - epsilon


def _signed(rows: Draw) -> Vector:
    """What is inside |.| of Eq. 1 is linear in theta: its coefficients."""
    p1 = np.mean(rows.s == 1)
    return np.mean((((rows.s + 1) / 2 - p1) / (p1 * (1 - p1)))[:, None] * rows.e, axis=0)


def f(theta: Vector, rows: Draw) -> float:
    """The logistic loss."""
    return float(np.mean(np.log1p(np.exp(-rows.y * (rows.e @ theta)))))


def slope_of_f(theta: Vector, rows: Draw) -> Vector:
    return np.mean((-rows.y / (1 + np.exp(rows.y * (rows.e @ theta))))[:, None] * rows.e, axis=0)


def hessian_of_f(theta: Vector, rows: Draw) -> Vector:
    chance = 1 / (1 + np.exp(-(rows.e @ theta)))
    return rows.e.T @ ((chance * (1 - chance))[:, None] * rows.e) / len(rows.y)


def slope_of_g(theta: Vector, rows: Draw) -> Vector:
    """A subgradient; at 0, where theta_0 is, |.| has many, and this is the library's."""
    signed = _signed(rows)
    return signed if signed @ theta >= 0 else -signed


def F(theta: Vector, lam: float, rows: Draw, epsilon: float) -> float:
    """Eq. 10."""
    return f(theta, rows) + lam * eq_1(theta, rows, epsilon)


def slope_of_F(theta: Vector, lam: float, rows: Draw) -> Vector:
    return slope_of_f(theta, rows) + lam * slope_of_g(theta, rows)


def levels(reading: Reading) -> range:
    """k from 0 to floor(log_base T) - 1 (Eq. 5)."""
    return range(int(np.floor(np.log(reading.T) / np.log(reading.base) + 1e-9)))


def starting(reading: Reading, t: int) -> list[int]:
    """The levels with an interval that holds t and not t - 1 (Eq. 6)."""
    found = []
    for k in levels(reading):
        size = reading.base**k
        if reading.cover == "agc":
            family = [
                range((i - 1) * size + 1, min(reading.T, i * size) + 1)
                for i in range(1, reading.T + 1)
            ]
        else:
            family = [range(i * size, (i + 1) * size) for i in range(1, reading.T + 1)]
        if any(t in interval and t - 1 not in interval for interval in family):
            found.append(k)
    return found


def phi(R: float, C: float) -> float:
    """exp([R]_+^2 / 3C), and Phi(0, 0) = 1."""
    return float(np.exp(max(R, 0.0) ** 2 / (3 * C))) if R > 0 and C > 0 else 1.0


def weights(experts: dict[int, Expert]) -> dict[int, float]:
    """Eq. 8 and 9; where no expert has any, all have the same."""
    w = {k: 0.5 * (phi(E.R + 1, E.C + 1) - phi(E.R - 1, E.C - 1)) for k, E in experts.items()}
    total = sum(w.values())
    return {k: w[k] / total if total > 0 else 1 / len(w) for k in w}


def algorithm_1(
    reading: Reading,
    sampled: Callable[[int, str, int, int], Draw],
    longest: Callable[[int], float],
) -> Iterator[Round]:
    """The rounds of Algorithm 1.

    `sampled(t, "support" or "query", n, k)` is what line 17 or 21 samples in iteration n; iteration
    N_meta is the one of lines 26 and 27. `longest(t)` is the largest ||e|| up to round t.
    """
    dimension = sampled(1, "query", 0, 0).e.shape[1]
    theta, lam = np.zeros(dimension), reading.lambda_0  # line 1: the centre of the ball
    experts: dict[int, Expert] = {}  # line 2
    S = np.sqrt(1 + 2 * reading.epsilon) - 1
    for t in range(1, reading.T + 1):
        G = max(np.sqrt(dimension - 1) + S, longest(t))
        active = starting(reading, t)
        for k in active:  # lines 6 to 11
            old = experts.get(k, Expert(theta, lam, 0.0, 0.0))
            experts[k] = Expert(theta, lam, old.R, old.C)
        p = weights(experts)  # lines 12 to 14
        before = theta, lam
        for n in range(reading.N_meta):  # lines 15 to 24
            if reading.iterations_from == "previous":
                theta, lam = before
            for k in active:  # Eq. 11, 12
                rows = sampled(t, "support", n, k)
                eta = S / (G * np.sqrt(reading.base**k))
                moved = theta - eta * slope_of_F(theta, lam, rows)
                risen = lam + eta * eq_1(moved, rows, reading.epsilon)
                clipped = max(risen, 0.0) if reading.inner_dual == "clipped" else risen
                experts[k] = experts[k]._replace(theta=moved, lam=clipped)
            descent, ascent = np.zeros(dimension), 0.0
            for k, E in experts.items():  # Eq. 13 to 15
                rows = sampled(t, "query", n, k)
                at = E.theta
                if k not in active and reading.gradient == "first-order":
                    at = theta
                slope = slope_of_F(at, E.lam, rows)
                if reading.gradient == "exact":
                    if k in active:
                        eta = S / (G * np.sqrt(reading.base**k))
                        support = sampled(t, "support", n, k)
                        slope = slope - eta * hessian_of_f(theta, support) @ slope
                    else:
                        slope = np.zeros(dimension)
                descent += p[k] * slope
                damping = reading.delta * (reading.eta_1 + reading.eta_2) * E.lam
                ascent += p[k] * (eq_1(E.theta, rows, reading.epsilon) - damping)
            theta = theta - reading.eta_1 * descent
            if reading.ball and np.linalg.norm(theta) > S:
                theta = theta * S / np.linalg.norm(theta)
            lam = max(lam + reading.eta_2 * ascent, 0.0)
        for k, E in experts.items():  # lines 25 to 28
            rows = sampled(t, reading.credit_rows, reading.N_meta, k)
            own = E.lam if reading.credit_dual == "own" else lam
            r = F(theta, lam, rows, reading.epsilon) - F(E.theta, own, rows, reading.epsilon)
            r = float(np.clip(r, -reading.credit_bound, reading.credit_bound))
            experts[k] = E._replace(R=E.R + r, C=E.C + abs(r))
        yield Round(theta, lam, p, dict(experts))
