"""A round of the default learner against its own arithmetic: products and solves, back to back.

They follow from shapes: what heads say of rows and of the sample, gradients and steps, curvature
and its factors, and the dual's Newton steps. NumPy and SciPy do them, on one thread or on two,
whichever is fastest; no exponential, no rows gathered, nothing remembered.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg.lapack import spotrf, spotrs
from threadpoolctl import threadpool_limits

from benchmarks.measure import Measured, at_most, taking_turns
from benchmarks.rows import made_rows
from benchmarks.workload import SIZES, Size
from fairsaoml.core import feature_maps, heads, logistic_experts, row_sample, rule_solver
from fairsaoml.learners import registry
from fairsaoml.serve.online import OnlineLearner

__all__ = ["measure"]

HEADS, RATES = 3, 4  # the label's and two of the group's; equalized odds of two groups
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
    few = min(rows, logistic_experts.CURVATURE_ROWS)
    sample = row_sample.CAPACITY + row_sample.RARE_CAPACITY
    steps = logistic_experts.STEPS
    relus = made(random, features, feature_maps.RELUS)
    lean = made(random, sample, RATES)
    newton = len(rule_solver.STAGES) * rule_solver.NEWTON_STEPS
    maps = [
        (1 + features, heads.MEMORIES),
        (1 + features + feature_maps.width(), len(heads.RICH_MEMORIES)),
    ]
    seen = [(made(random, rows, width), made(random, sample, width)) for width, _ in maps]
    matrices = [np.eye(width, dtype=np.float32) for width, _ in maps]

    def all_of_it() -> None:
        for x, _ in seen[:1]:
            x[:, 1:] @ relus
        seen[0][1][:, 1:] @ relus
        for (x, kept), (_, memories), matrix in zip(seen, maps, matrices, strict=True):
            experts = HEADS * memories
            theta = made(random, x.shape[1], experts)
            kept @ theta
            said = x @ theta
            for _ in range(2 * steps + 1):  # gradients, and moves of what is said
                said.T @ x
            for _ in range(HEADS):
                x[:few].T @ x[:few]
            for _ in range(experts):
                factor, _ = spotrf(matrix, lower=True)
                for _ in range(steps):
                    spotrs(factor, theta[:, :1], lower=True)
                    matrix @ theta[:, 0]
        for _ in range(newton):
            lean.T @ lean
            for _ in range(len(rule_solver.STEP_SIZES)):
                lean @ lean[0]

    return all_of_it


def made(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A matrix of single precision."""
    return random.standard_normal((rows, columns), np.float32)
