"""The decoupled learner's two halves in NumPy, float64, written from their formulas.

`solve_experts` is one head's round on given features, memory by memory; `dual` is the objective
that the multipliers minimise, for a solver to minimise anew.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

BORROWED, FIRST_RIDGE, BIAS_RIDGE, DOUBT = 30.0, 0.25, 0.1, 4.0
SIZES = (2.0, 1.0, 0.5, 0.25, 0.0625, 0.0)


class Past(NamedTuple):
    """What a head's experts remember: lists over memories."""

    rows: list
    curvature: list
    slope: list
    theta: list
    ridge: np.ndarray
    size: np.ndarray
    seen: float


def nothing(memories: int, width: int) -> Past:
    return Past(
        rows=[0.0] * memories,
        curvature=[np.zeros((width, width)) for _ in range(memories)],
        slope=[np.zeros(width) for _ in range(memories)],
        theta=[np.zeros(width) for _ in range(memories)],
        ridge=np.zeros(width),
        size=np.zeros(width),
        seen=0.0,
    )


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def loss(z: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, z) - target * z


def solve_experts(past, features, target, weight, keeps, mix, blocks) -> Past:
    """One head's round: forget, set the ridges, borrow, two chord steps, remember."""
    memories, count = len(keeps), weight.sum()
    seen, size = past.seen + count, past.size + weight @ features**2
    ridge = np.full(len(size), BIAS_RIDGE)
    for begin, end in blocks:
        guess = FIRST_RIDGE * max(size[begin:end].sum() / max(seen, 1), 1)
        alpha = past.ridge[begin]
        if alpha > 0:
            decided = squares = 0.0
            for k in range(memories):
                diagonal = np.diag(past.curvature[k])[begin:end]
                decided += mix[k] * (diagonal / (diagonal + alpha)).sum()
                squares += mix[k] * (past.theta[k][begin:end] ** 2).sum()
            guess = np.clip((DOUBT + decided) / (DOUBT / guess + squares), 0.1, 1e3)
        ridge[begin:end] = guess
    rows = [keep * n for keep, n in zip(keeps, past.rows, strict=True)]
    curvature = [keep * h for keep, h in zip(keeps, past.curvature, strict=True)]
    slope = [keep * b for keep, b in zip(keeps, past.slope, strict=True)]
    whole = [None] * memories
    for k in reversed(range(memories)):
        h, b = curvature[k], slope[k]
        if k + 1 < memories and rows[k + 1] > 0:
            part = min(1.0, BORROWED / rows[k + 1])
            h, b = h + part * whole[k + 1][0], b + part * whole[k + 1][1]
        whole[k] = (h, b)
    theta = [one.copy() for one in past.theta]
    if past.seen == 0:
        rate = (weight @ target + 0.5) / (count + 1)
        for one in theta:
            one[0] = np.log(rate / (1 - rate))
    bend = np.zeros(len(target))
    for k in range(memories):
        chance = sigmoid(features @ theta[k])
        bend += mix[k] * np.maximum(chance * (1 - chance), 1e-3)
    present = features.T @ (features * (weight * bend)[:, None])
    for k in range(memories):
        h = whole[k][0] + np.diag(ridge) + 1e-6 * np.diag(whole[k][0]).max() * np.eye(len(ridge))

        def objective(at, h=h, b=whole[k][1]):
            return weight @ loss(features @ at, target) + at @ h @ at / 2 - b @ at

        for _ in range(2):
            gradient = features.T @ (weight * (sigmoid(features @ theta[k]) - target))
            gradient += h @ theta[k] - whole[k][1]
            step = np.linalg.solve(h + present, gradient)
            theta[k] = min((theta[k] - size * step for size in SIZES), key=objective)
    gradients = [features.T @ (weight * (sigmoid(features @ one) - target)) for one in theta]
    return Past(
        rows=[n + count for n in rows],
        curvature=[h + present for h in curvature],
        slope=[b + present @ one - g for b, one, g in zip(slope, theta, gradients, strict=True)],
        theta=theta,
        ridge=ridge,
        size=size,
        seen=seen,
    )


def dual(multiplier, row, accuracy, lean, centre, width, ridge) -> float:
    """E[(a - sum lambda w + sum d |lambda| u)_+] + ridge, as it stands: with its corners."""
    distance = accuracy - lean @ multiplier + centre @ (width * np.abs(multiplier))
    return row @ np.maximum(distance, 0) + 0.5 * ridge @ multiplier**2


def best_dual(start, *problem) -> float:
    """The dual's minimum, by a solver that needs no slope, from several points."""
    starts = [start, np.zeros_like(start), start / 2]
    found = [
        minimize(dual, one, args=problem, method="Powell", options={"xtol": 1e-9, "ftol": 1e-12})
        for one in starts
    ]
    return min(one.fun for one in found)
