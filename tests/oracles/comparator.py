"""The best fixed model of a window by scipy's SLSQP, straight from the definition.

Nothing is shared with the solver under test: losses and gaps are written out row by row, and each
|a . w| has an upper limit of its own as one more unknown, so that everything is smooth.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

__all__ = ["best_model", "gap_of_means", "mean_loss"]


def mean_loss(theta, x, y, offset):
    """Mean logistic loss of the scores w . x + b + offset."""
    z = x @ theta[:-1] + theta[-1] + offset
    return np.mean(np.logaddexp(0, z) - y * z)


def gap_of_means(theta, x, y, group, label=None):
    """Mean score of group 1 minus that of group 0, among rows of a label; None: unknown."""
    spoken = np.ones(len(y), bool) if label is None else y == label
    one, other = spoken & (group == 1), spoken & (group == 0)
    if not one.any() or not other.any():
        return None
    z = x @ theta[:-1]
    return z[one].mean() - z[other].mean()


def best_model(tasks, offsets, *, labels=(), tolerance=0.0, radius=None, every_round=False):
    """theta and summed loss of the best model of these tasks: (x, y, group) each.

    `labels` are the constraints: None for demographic parity, 1 and 0 for equalized odds; they hold
    over all tasks together, or in each.
    """
    size = tasks[0][0].shape[1] + 1
    eye = np.eye(size)
    terms, allowed = [], []  # by constraint: the gaps as linear functions of theta, and the limit
    for label in labels:
        rows = []
        for x, y, group in tasks:
            gaps = [gap_of_means(unit, x, y, group, label) for unit in eye]
            if gaps[0] is not None:
                rows.append(gaps)
        terms.append(np.array(rows).reshape(-1, size))
        allowed.append(tolerance * len(rows))
    counts = [len(rows) for rows in terms]
    every = np.concatenate(terms) if terms else np.zeros((0, size))
    ends = np.cumsum([0, *counts])

    def objective(v):
        return sum(
            mean_loss(v[:size], x, y, o) for (x, y, _), o in zip(tasks, offsets, strict=True)
        )

    def slope(v):
        total = np.zeros(len(v))
        for (x, y, _), o in zip(tasks, offsets, strict=True):
            rows = np.hstack([x, np.ones((len(x), 1))])
            total[:size] += rows.T @ (expit(rows @ v[:size] + o) - y) / len(y)
        return total

    limits = [
        {"type": "ineq", "fun": lambda v: v[size:] - every @ v[:size]},
        {"type": "ineq", "fun": lambda v: v[size:] + every @ v[:size]},
    ]
    for i, most in enumerate(allowed):
        own = slice(size + ends[i], size + ends[i + 1])
        limits.append({"type": "ineq", "fun": lambda v, own=own, most=most: most - v[own].sum()})
    if every_round:
        limits.append({"type": "ineq", "fun": lambda v: tolerance - v[size:]})
    if radius is not None:
        limits.append({"type": "ineq", "fun": lambda v: radius**2 - v[:size] @ v[:size]})
    start = np.concatenate([np.full(size, 1e-3), np.full(len(every), 1e-2)])
    found = minimize(
        objective,
        start,
        jac=slope,
        constraints=limits if len(every) or radius is not None else (),
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    assert found.success, found.message
    return found.x[:size], objective(found.x)
