"""A late round of the default learner against logistic regression refitted on all the past.

The peer is that of `fairsaoml peers`. Both decide a task, then learn from it, 90 tasks being known.
"""

from statistics import median

from benchmarks.fairlearn_refit import LIKE, STREAM, seconds
from benchmarks.measure import Measured, at_least
from benchmarks.rows import real_rows
from fairsaoml.compare.alternatives import catalog
from fairsaoml.learners import registry
from fairsaoml.serve.online import OnlineLearner

__all__ = ["measure"]

KNOWN, TIMED = 87, 3


def measure(full: bool) -> list[Measured]:
    """Medians of rounds 88 to 90; before them the peer only collects."""
    rows = real_rows(STREAM, KNOWN + TIMED, LIKE)
    ours = OnlineLearner(rows.schema)
    theirs = catalog.make("logistic-refit", rows.schema, 0, {"every": KNOWN})
    mine, other = [], []
    for task in rows.tasks:
        mine.append(seconds(lambda: (ours.decide(task.x), ours.learn(task))))  # noqa: B023
        other.append(seconds(lambda: (theirs.decide(task.x, task.group), theirs.learn(task))))  # noqa: B023
    takes, refits = median(mine[-TIMED:]), max(other[-TIMED:])
    return [
        Measured(
            f"{registry.DEFAULT}'s round {KNOWN + 1} against logistic regression refitted on all",
            refits / takes,
            at_least(50),
            f"{1e3 * takes:.1f} ms against {1e3 * refits:.0f} ms; {rows.source}",
        )
    ]
