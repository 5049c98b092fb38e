"""Rows learned and scored in a second on the largest stream, a year of police stops.

Each task is decided by what was learned before it and then learned from. River's logistic
regression takes row by row and scikit-learn's SGDClassifier one pass over each task: the peers of
`fairsaoml peers`. Ours are the default learner, and one of the two cheapest that know fairness.
"""

import time
from collections.abc import Callable

from benchmarks.measure import Measured, at_least
from benchmarks.rows import Rows, real_rows
from benchmarks.workload import Size
from fairsaoml.compare.alternatives import catalog
from fairsaoml.core.types import Task
from fairsaoml.serve.online import OnlineLearner

__all__ = ["measure"]

STREAM = "stop-and-frisk-arrests"
LIKE = Size("arrests", features=88, per_class=100, rows=3570, levels=7)
TASKS = 185
RIVER_TASKS = 4  # of the first ones, in the quick form: it needs a minute for twenty thousand rows
OURS = ("fairsaoml-decoupled", "fair-glc")


def measure(full: bool) -> list[Measured]:
    """Rows per second, ours over theirs."""
    catalog.listing("river-logistic")  # or it is an error that says how to install it
    rows = real_rows(STREAM, TASKS, LIKE)
    few = rows if full else rows._replace(tasks=rows.tasks[:RIVER_TASKS])
    pace = {name: rows_per_second(rows, player(name, rows)) for name in OURS}
    by_row = rows_per_second(few, peer("river-logistic", rows))
    by_task = rows_per_second(rows, peer("sgd", rows))
    source = f"{rows.source}, {rows.row_count:,} rows"
    return [
        Measured(
            f"rows per second, {name} against {who}",
            ours / theirs,
            at_least(goal),
            f"{ours:,.0f} against {theirs:,.0f} rows a second; {source}",
        )
        for name, ours in pace.items()
        for who, theirs, goal in (
            ("River's logistic regression", by_row, 50),
            ("scikit-learn's SGDClassifier", by_task, 1 / 2),
        )
    ]


def rows_per_second(rows: Rows, play: Callable[[Task], object]) -> float:
    """A pass over the tasks; each padding was compiled before."""
    begun = time.perf_counter()
    for task in rows.tasks:
        play(task)
    return rows.row_count / (time.perf_counter() - begun)


def player(name: str, rows: Rows) -> Callable[[Task], object]:
    """One of our learners, compiled for every size there is."""

    def fresh() -> OnlineLearner:
        return OnlineLearner(rows.schema, name)

    def play(task: Task) -> None:
        online.decide(task.x)
        online.learn(task)

    online = fresh()
    for task in {len(task.y).bit_length(): task for task in rows.tasks}.values():
        play(task)
    online = fresh()
    return play


def peer(name: str, rows: Rows) -> Callable[[Task], object]:
    """One of the peers."""
    made = catalog.make(name, rows.schema, 0, {})

    def play(task: Task) -> None:
        made.decide(task.x, task.group)
        made.learn(task)

    return play
