"""A round of the default learner against Fairlearn's reduction, refitted on the last 16 tasks.

The peer is that of `fairsaoml peers`: ExponentiatedGradient over logistic regression, on a single
thread. Both decide each task, then learn from it; of the peer's rounds those count that refit.
"""

import time
import warnings
from collections.abc import Callable
from statistics import median

from threadpoolctl import threadpool_limits

from benchmarks.measure import Measured, at_least
from benchmarks.rows import Rows, real_rows
from benchmarks.workload import Size
from fairsaoml.compare.alternatives import catalog
from fairsaoml.learners import registry
from fairsaoml.serve.online import OnlineLearner

__all__ = ["measure"]

STREAM = "stop-and-frisk:BMS"
LIKE = Size("BMS", features=71, per_class=100, rows=728, levels=6)
WINDOW = 16
PEERS = {  # the first asks for what the default learner is asked for
    "expgrad-eo": "EqualizedOdds",
    "expgrad": "DemographicParity",
}


def measure(full: bool) -> list[Measured]:
    """Two refits, of each peer five in the full form: one takes seconds."""
    catalog.listing(next(iter(PEERS)))  # or it is an error that says how to install it
    rows = real_rows(STREAM, (5 if full else 2) * WINDOW + 1, LIKE)
    return [of_peer(name, rows) for name in list(PEERS)[: None if full else 1]]


def of_peer(name: str, rows: Rows) -> Measured:
    """The peer's round over ours, medians of the rounds after the first window."""
    ours = OnlineLearner(rows.schema)
    theirs = catalog.make(name, rows.schema, 0, {"window": WINDOW, "every": WINDOW})
    mine, other = [], []
    for number, task in enumerate(rows.tasks):
        mine.append(seconds(lambda: (ours.decide(task.x), ours.learn(task))))  # noqa: B023
        refitted = seconds(lambda: (theirs.decide(task.x, task.group), theirs.learn(task)))  # noqa: B023
        if number % WINDOW == 0:
            other.append(refitted)
    ours_takes, theirs_takes = median(mine[WINDOW:]), median(other[1:])
    return Measured(
        f"{registry.DEFAULT}'s round against Fairlearn's {PEERS[name]} refitted on {WINDOW} tasks",
        theirs_takes / ours_takes,
        at_least(500),
        f"{1e3 * ours_takes:.1f} ms against {theirs_takes:.1f} s; {rows.source}",
    )


def seconds(play: Callable[[], object]) -> float:
    """How long a call takes, whatever it warns of."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        play()
        return time.perf_counter() - begun
