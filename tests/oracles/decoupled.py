"""The decoupled learner's two halves in NumPy, float64, written from their formulas.

`solve_experts` is one head's round on given features, memory by memory; `dual` is the objective
that the multipliers minimise, for a solver to minimise anew.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

BORROWED, FIRST_RIDGE, BIAS_RIDGE, DOUBT = 30.0, 0.25, 0.1, 4.0
SIZES = (1.0, 0.4, 0.1, 0.0)


class Past(NamedTuple):
    """What a head's experts remember: lists over memories."""

    rows: list
    bend: list
    products: list
    slope: list
    theta: list
    ridge: np.ndarray


def nothing(memories: int, width: int) -> Past:
    return Past(
        rows=[0.0] * memories,
        bend=[0.0] * memories,
        products=[np.zeros((width, width)) for _ in range(memories)],
        slope=[np.zeros(width) for _ in range(memories)],
        theta=[np.zeros(width) for _ in range(memories)],
        ridge=np.zeros(width),
    )


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def loss(z: np.ndarray, target: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, z) - target * z


def solve_experts(past, features, target, weight, keeps, mix, blocks, steps) -> Past:
    """A round of experts that share a ridge, their rows being all of their kind.

    They forget, remember, borrow and, if it is their turn, step.
    """
    memories, count = len(keeps), weight.sum()
    present = features.T @ (features * weight[:, None])
    theta = [one.copy() for one in past.theta]
    if past.rows[-1] == 0:
        rate = (weight @ target + 0.5) / (count + 1)
        for one in theta:
            one[0] = np.log(rate / (1 - rate))
    chances = [sigmoid(features @ one) for one in theta]
    slopes = [features.T @ (weight * (chance - target)) for chance in chances]
    bends = [weight @ np.maximum(chance * (1 - chance), 1e-3) for chance in chances]
    rows = [keep * old + count for keep, old in zip(keeps, past.rows, strict=True)]
    products = [keep * old + present for keep, old in zip(keeps, past.products, strict=True)]
    past_slope = [keep * one for keep, one in zip(keeps, past.slope, strict=True)]
    past_bend = [keep * one for keep, one in zip(keeps, past.bend, strict=True)]
    bend = [old + new for old, new in zip(past_bend, bends, strict=True)]
    # Past and present have one shape of curvature, that of all remembered rows.
    shape = [one / many for one, many in zip(products, rows, strict=True)]
    ridge = past.ridge.copy() if not steps else np.full(features.shape[1], BIAS_RIDGE)
    for begin, end in blocks if steps else ():
        guess = FIRST_RIDGE * max(np.diag(shape[-1])[begin:end].sum(), 1)
        alpha = past.ridge[begin]
        if past.ridge[0] > 0:
            decided = large = 0.0
            for k in range(memories):
                diagonal = bend[k] * np.diag(shape[k])[begin:end]
                decided += mix[k] * (diagonal / (diagonal + alpha)).sum()
                large += mix[k] * (theta[k][begin:end] ** 2).sum()
            guess = np.clip((DOUBT + decided) / (DOUBT / guess + large), 0.1, 1e3)
        ridge[begin:end] = guess
    moved, remembered = [], []
    for k in range(memories):
        curvature = bend[k] * shape[k]
        slope = past_slope[k] + slopes[k]
        borrowed, borrowed_slope = np.zeros_like(present), np.zeros_like(slope)
        if k + 1 < memories and past.rows[k + 1] > 0:
            part = min(1.0, BORROWED / (keeps[k + 1] * past.rows[k + 1]))
            borrowed = part * past_bend[k + 1] * shape[k + 1]
            borrowed_slope = part * past_slope[k + 1] + borrowed @ (theta[k] - theta[k + 1])
        gradient = slope + borrowed_slope + ridge * theta[k]
        matrix = curvature + borrowed
        matrix = matrix + np.diag(ridge + 1e-6 * np.diag(matrix).max())
        step = np.linalg.solve(matrix, gradient)
        of_past = matrix - bends[k] / count * present

        def objective(by, k=k, gradient=gradient, step=step, slope=slopes[k], past=of_past):
            fresh = weight @ loss(features @ (theta[k] - by * step), target)
            return fresh - by * (gradient - slope) @ step + by**2 / 2 * step @ past @ step

        by = min(SIZES, key=objective) if steps else 0.0
        moved.append(theta[k] - by * step)
        remembered.append(slope - by * curvature @ step)
    return Past(rows, bend, products, remembered, moved, ridge)


def dual(multiplier, row, accuracy, lean, centre, width, ridge) -> float:
    """E[(a - sum lambda w + sum d |lambda| u)_+] + ridge, as it stands: with its corners."""
    distance = accuracy - multiplier @ lean + (width * np.abs(multiplier)) @ centre
    return row @ np.maximum(distance, 0) + 0.5 * ridge @ multiplier**2


def best_dual(start, *problem) -> float:
    """The dual's minimum, by a solver that needs no slope, from several points."""
    starts = [start, np.zeros_like(start), start / 2]
    found = [
        minimize(dual, one, args=problem, method="Powell", options={"xtol": 1e-9, "ftol": 1e-12})
        for one in starts
    ]
    return min(one.fun for one in found)
