"""Many small convex quadratic programs at once: the inner problem of the exact comparator.

For every window of a batch,

    min  theta' H theta / 2 + q' theta
    s.t. sum_t |a_ti' theta| <= c_i  for every constraint i,   |theta| <= R,

by a primal-dual interior-point method. An upper limit u_ti >= |a_ti' theta| stands for each term,
so everything is smooth; the u are eliminated by hand, and what is left is one system of the size
of theta per window and iteration.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_ITERATIONS = 60
FIRST_CENTRING = 0.2  # how much of the complementarity the first iteration aims to leave
LEAST_CENTRING = 0.02  # and one after a long step
TO_THE_EDGE = 0.99  # how much of the way to the boundary a step may go
INSIDE = 0.9  # of the limits, where the first point lies
SMALLEST_LIMIT = 1e-9  # c = 0 has no interior; so much per term is let through
# Of the mean diagonal: keeps features that are constant in a window solvable. Its pull is left over
# in proofs without a ball, which therefore show gaps down to about 1e-7 and no smaller.
RIDGE = 1e-10

Floats = NDArray[np.float64]
SIDES = np.array([1.0, -1.0])[:, None, None]  # a term is below its upper limit, and above minus it


class Limits(NamedTuple):
    """What a window's model must keep."""

    terms: Floats  # (window, round, constraint, parameter): a
    most: Floats  # (window, constraint): c
    radius: float | None  # R

    def some(self, which: Any) -> "Limits":
        """Return the limits of some of the windows."""
        return self._replace(terms=self.terms[which], most=self.most[which])


class Solution(NamedTuple):
    """The minimisers and the prices of their limits."""

    point: Floats  # (window, parameter)
    signed: Floats  # (window, round, constraint): nu, |nu_ti| <= price_i
    price: Floats  # (window, constraint): lambda
    ball: Floats  # (window,): kappa; the ball pulls by kappa theta

    @classmethod
    def unbound(cls, point: Floats, limits: Limits) -> "Solution":
        """Points that no limit pulls at."""
        shape = limits.terms.shape[:3]
        prices = (np.zeros(shape), np.zeros(limits.most.shape), np.zeros(shape[0]))
        return cls(point.copy(), *prices)

    def put(self, which: NDArray[Any], solved: "Solution") -> None:
        """Write down the solutions of some of the windows."""
        for every, some in zip(self, solved, strict=True):
            every[which] = some


def minimise(hessian: Floats, linear: Floats, limits: Limits, tolerance: float) -> Solution:
    """Solve all programs until complementarity is below `tolerance` (in units of the objective).

    >>> limits = Limits(terms=np.ones((1, 1, 1, 1)), most=np.ones((1, 1)), radius=None)
    >>> best = minimise(np.ones((1, 1, 1)), np.array([[-3.0]]), limits, 1e-9)  # min (x - 3)^2 / 2
    >>> best.point.round(6).tolist(), best.price.round(6).tolist()  # |x| <= 1; pulls by 2
    ([[1.0]], [[2.0]])
    """
    count, rounds, constraints, size = limits.terms.shape
    trace = np.trace(hessian, axis1=1, axis2=2) / size
    hessian = hessian + (RIDGE * (trace + RIDGE))[:, None, None] * np.eye(size)
    free: Floats = np.linalg.solve(hessian, -linear[:, :, None])[:, :, 0].astype(np.float64)
    most = np.maximum(limits.most, SMALLEST_LIMIT * rounds)
    radius = np.inf if limits.radius is None else limits.radius
    limits, best = Limits(limits.terms, most, radius), Solution.unbound(free, limits)
    values = times(limits.terms.reshape(count, -1, size), free)
    reach = np.abs(values).reshape(count, rounds, constraints).sum(axis=1)
    bound = (reach > most).any(axis=1) | ((free**2).sum(axis=1) > radius**2)
    if bound.any():
        some = limits.some(bound)
        best.put(bound, _interior(hessian[bound], linear[bound], some, free[bound], tolerance))
    return best


def _interior(
    hessian: Floats, linear: Floats, limits: Limits, guess: Floats, tolerance: float
) -> Solution:
    """The interior-point iterations, for programs whose limits bind."""
    count, rounds, constraints, size = limits.terms.shape
    terms, most, radius = limits.terms.reshape(count, -1, size), limits.most, limits.radius
    assert radius is not None  # infinite, where there is no ball

    def by_constraint(values: Floats) -> Floats:  # (window, term) -> (window, constraint)
        return values.reshape(count, rounds, constraints).sum(axis=1)

    def to_terms(values: Floats) -> Floats:  # (window, constraint) -> (window, term)
        return np.repeat(values[:, None], rounds, axis=1).reshape(count, -1)

    ball = np.isfinite(radius)
    theta = guess * _room(by_constraint(np.abs(times(terms, guess))), most, guess, radius)[:, None]
    reach = np.abs(times(terms, theta))
    # Every upper limit takes an equal share of half the room that is left.
    upper = reach + to_terms((most - by_constraint(reach)) / (2 * max(rounds, 1)))
    pairs = 2 * terms.shape[1] + constraints + ball
    slope = np.einsum("wij,wj->wi", hessian, theta) + linear
    mu = (np.maximum(np.abs(np.einsum("wi,wi->w", slope, theta)), tolerance) / pairs)[:, None]
    push = mu / (upper - SIDES * times(terms, theta))  # (side, window, term)
    price = mu / (most - by_constraint(upper))
    inside = radius**2 - _norm_2(theta) if ball else np.ones((count, 1))
    kappa = mu / inside if ball else np.zeros((count, 1))
    diagonal = np.arange(size)
    centring = np.full((count, 1), FIRST_CENTRING)
    for _ in range(MOST_ITERATIONS):
        gap, room = upper - SIDES * times(terms, theta), most - by_constraint(upper)
        mu = ((push * gap).sum(axis=0).sum(axis=1) + (price * room).sum(axis=1))[:, None]
        if ball:  # its slack is a variable: theta may leave the ball on its way along the edge
            outside = radius**2 - _norm_2(theta) - inside
            mu = mu + kappa * inside
        residual = np.einsum("wij,wj->wi", hessian, theta) + linear
        residual += _columns(terms, push[0] - push[1]) + 2 * kappa * theta
        if (mu <= tolerance).all() and (np.abs(residual).max(axis=1) <= tolerance).all():
            break
        # Not below what was asked for: windows that are done wait for the others, well inside.
        aim = np.maximum(centring * mu, tolerance / 2) / pairs
        # Newton on the perturbed KKT system; u and lambda are eliminated by hand.
        stiffs = push / gap
        stiff, lean = stiffs[0] + stiffs[1], stiffs[0] - stiffs[1]
        pull = aim / gap[0] + aim / gap[1] - to_terms(price)
        hardness = price / room
        softness = 1 + hardness * by_constraint(1 / stiff)
        across = _columns_by(terms, lean / stiff, constraints)  # (window, constraint, parameter)
        gain = hardness / softness
        start = (aim / room - price + hardness * by_constraint(pull / stiff)) / softness
        weight = 4 * stiffs[0] * stiffs[1] / stiff
        matrix = hessian + np.swapaxes(terms, 1, 2) @ (weight[:, :, None] * terms)
        matrix += np.swapaxes(across, 1, 2) @ (gain[:, :, None] * across)
        pressure = aim / gap[0] - push[0] - aim / gap[1] + push[1] - lean * pull / stiff
        right = residual + _columns(terms, pressure) + np.einsum("wcp,wc->wp", across, start)
        if ball:
            matrix[:, diagonal, diagonal] += 2 * kappa
            outer = theta[:, :, None] * theta[:, None, :]
            matrix += (4 * kappa / inside)[:, :, None] * outer
            right += 2 * (aim / inside - kappa - kappa / inside * outside) * theta
        move = np.linalg.solve(matrix, -right[:, :, None])[:, :, 0]
        moved = times(terms, move)
        price_move = start + gain * np.einsum("wcp,wp->wc", across, move)
        upper_move = (pull - to_terms(price_move) + lean * moved) / stiff
        gap_move = upper_move - SIDES * moved
        push_move = aim / gap - push - stiffs * gap_move
        inside_move = kappa_move = np.zeros((count, 1))
        if ball:
            inside_move = outside - 2 * (theta * move).sum(axis=1)[:, None]
            kappa_move = aim / inside - kappa - kappa / inside * inside_move
        room_move = -by_constraint(upper_move)
        step = _longest(
            np.hstack([*gap, room, *push, price, inside, kappa]),
            np.hstack([*gap_move, room_move, *push_move, price_move, inside_move, kappa_move]),
        )
        theta, upper = theta + step * move, upper + step * upper_move
        push, price = push + step * push_move, price + step * price_move
        inside, kappa = inside + step * inside_move, kappa + step * kappa_move
        centring = np.clip((1 - step) ** 2, LEAST_CENTRING, 1.0)  # a short step: to the middle
    if ball:
        theta = theta * np.minimum(1.0, radius / np.sqrt(_norm_2(theta)))
    signed = (push[0] - push[1]).reshape(count, rounds, constraints)
    return Solution(point=theta, signed=signed, price=price, ball=2 * kappa[:, 0])


def _norm_2(theta: Floats) -> Floats:
    """The square of every point's norm: (window, 1)."""
    return (theta**2).sum(axis=1)[:, None]


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Every window's matrix times its vector, such as a' theta of every term: (window, row)."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def _columns(terms: Floats, weight: Floats) -> Floats:
    """sum of weight a over all terms: (window, parameter)."""
    return (weight[:, None, :] @ terms)[:, 0]


def _columns_by(terms: Floats, weight: Floats, constraints: int) -> Floats:
    """Sum of weight a over the terms of each constraint: (window, constraint, parameter)."""
    count, _, size = terms.shape
    across = np.empty((count, constraints, size))
    for i in range(constraints):  # term j belongs to constraint j mod m
        across[:, i] = _columns(terms[:, i::constraints], weight[:, i::constraints])
    return across


def _room(reach: Floats, most: Floats, theta: Floats, radius: float) -> Floats:
    """The factor that brings a point well inside its limits: (window,)."""
    with np.errstate(divide="ignore"):
        factors = [np.ones(len(theta)), INSIDE * radius / np.sqrt((theta**2).sum(axis=1))]
        factors += list((INSIDE * most / reach).T)
    return np.minimum.reduce(factors)


def _longest(values: Floats, moves: Floats) -> Floats:
    """The largest step, at most 1, that keeps positive values positive: (window, 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(moves < 0, -values / moves, np.inf)
    return np.minimum(1.0, TO_THE_EDGE * ratio.min(axis=1))[:, None]
