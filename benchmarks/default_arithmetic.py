"""A round of the default learner against its own arithmetic: products and solves, back to back.

They follow from shapes: what heads say of rows and of the sample, gradients, curvature, its factors
and steps of those whose turn it is, and the dual's Newton steps. NumPy and SciPy do them, on one
thread or on two, whichever is fastest; no exponential, no rows gathered, nothing remembered.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg.lapack import spotrf, spotrs
from threadpoolctl import threadpool_limits

from benchmarks.measure import Measured, at_most, taking_turns
from benchmarks.rows import made_rows
from benchmarks.workload import SIZES, Size
from fairsaoml.core import heads, roster, row_sample, rule_solver
from fairsaoml.learners import registry
from fairsaoml.serve.online import OnlineLearner

__all__ = ["measure"]

KINDS = (0, 1, 2)  # of the label's head and two of the group's
RATES = 4  # equalized odds of two groups
TURNS, TURNS_IN_FULL = 10, 40
TASKS = 8


def measure(full: bool) -> list[Measured]:
    """How many times its arithmetic a round takes, by size."""
    return [of_size(size, TURNS_IN_FULL if full else TURNS) for size in SIZES]


def of_size(size: Size, turns: int) -> Measured:
    """The round and the bare arithmetic take turns."""
    rows = made_rows(size, TASKS)
    online = OnlineLearner(rows.schema)

    def play() -> None:
        online.learn(rows.tasks[online.round % TASKS])

    bare = arithmetic(size.rows, size.features)

    def on(threads: int) -> None:
        with threadpool_limits(threads):
            bare()

    ways: dict[str, Callable[[], object]] = {f"{n} threads": partial(on, n) for n in (1, 2)}
    seconds = taking_turns({"ours": play} | ways, turns=turns)
    ours = seconds.pop("ours")
    best = min(seconds, key=seconds.__getitem__)
    return Measured(
        f"{size.name}: round of {registry.DEFAULT} against its arithmetic",
        ours / seconds[best],
        at_most(2),
        f"{1e3 * ours:.1f} ms against {1e3 * seconds[best]:.1f} ms (NumPy, {best})",
    )


def arithmetic(rows: int, features: int) -> Callable[[], None]:
    """All products and solves of a round that learns so many rows."""
    random = np.random.default_rng(0)
    who = roster.roster(KINDS)
    some = min(rows, 2 * heads.PER_LABEL)
    sample = row_sample.CAPACITY + row_sample.RARE_CAPACITY
    lean = made(random, RATES, sample)
    seen = [made(random, heads.width(features), count) for count in (rows, sample, some)]
    rich = len(who.head) - who.linear
    maps = [
        # How many experts see so many features, and how many of them step in a round.
        (who.linear, 1 + features, who.linear),
        (rich, heads.width(features), rich // roster.TURNS),
    ]
    experts = [
        (made(random, count, width), np.eye(width, dtype=np.float32), steps)
        for count, width, steps in maps
    ]

    def all_of_it() -> None:
        half = seen[-1][:, : some // 2]
        for _ in range(2):  # curvature, by label
            half @ half.T
        for theta, matrix, steps in experts:
            mine, old, few = (of[: len(matrix)] for of in seen)
            theta @ old
            said = theta @ mine
            said @ mine.T  # the gradient
            stepping = theta[:steps]
            for _ in range(2):  # what is said of some rows, and how a step moves it
                stepping @ few
            for vector in stepping:
                factor, _ = spotrf(matrix, lower=True)
                spotrs(factor, vector, lower=True)
                for _ in range(2):
                    matrix @ vector
        for steps, every in zip(rule_solver.NEWTON_STEPS, rule_solver.EVERY, strict=True):
            looked = lean[:, ::every]
            for _ in range(steps):
                looked @ looked.T
                for _ in range(2):  # where a step begins, and where it ends
                    looked[:, 0] @ looked

    return all_of_it


def made(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A matrix of single precision."""
    return random.standard_normal((rows, columns), np.float32)
