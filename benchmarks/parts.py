"""Where the time of a round of the default learner goes: `python -m benchmarks.parts`.

Each part is timed where it is called, less the parts within it; the clock is the thread's own, so
that other processes do not count. Tasks are decided and then learned, as a service does.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.rows import Rows, real_rows
from benchmarks.throughput import LIKE
from benchmarks.workload import Size
from fairsaoml.core import fair_rule, heads, logistic_experts, row_sample, rule_solver
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.serve.online import OnlineLearner

__all__ = ["REST", "Round", "rounds"]

# In the order of a round. A name may stand for several functions.
PARTS: tuple[tuple[str, Any, str], ...] = (
    ("features of the rows", heads, "features_of"),
    ("what experts say of them", heads, "look"),
    ("lots", fair_rule, "lots"),
    ("feedback", fair_rule, "feedback"),
    ("credit", heads, "_credited"),
    ("curvature", logistic_experts, "_squares"),
    ("experts' steps", logistic_experts, "solve"),
    ("rows kept", row_sample, "add"),
    ("what experts say of these", heads, "probabilities"),
    ("multipliers", rule_solver, "solve"),
)
REST = "everything else"
SETTLED = 10  # rounds before the first that counts
STREAMS = (
    ("stop-and-frisk:BMS", Size("small", features=71, per_class=100, rows=510, levels=6)),
    ("stop-and-frisk-arrests", LIKE),
)
ROUNDS = 60


class Round(NamedTuple):
    """A typical round on one stream: the median milliseconds of each part, in their order."""

    rows: int
    columns: int
    source: str
    parts: dict[str, float]

    @property
    def title(self) -> str:
        return f"{self.rows:,} rows of {self.columns} columns, {sum(self.parts.values()):.1f} ms"


def rounds() -> list[Round]:
    """A typical round of a small stream, and one of a large one."""
    return [typical(real_rows(name, ROUNDS, like)) for name, like in STREAMS]


def typical(rows: Rows) -> Round:
    """Decide and learn all tasks."""
    online = OnlineLearner(rows.schema)
    spent: Counter[str] = Counter()
    history: dict[str, list[float]] = {name: [] for name, _, _ in PARTS} | {REST: []}
    with timed_parts(spent):
        for task in rows.tasks:
            spent.clear()
            begun = time.thread_time()
            online.decide(task.x)
            online.learn(task)
            spent[REST] = time.thread_time() - begun - spent.total()
            for name, seconds in history.items():
                seconds.append(1e3 * spent[name])
    counts = [len(task.y) for task in rows.tasks[SETTLED:]]
    parts = {name: median(seconds[SETTLED:]) for name, seconds in history.items()}
    return Round(round(median(counts)), len(rows.schema.features), rows.source, parts)


@contextmanager
def timed_parts(spent: Counter[str]) -> Iterator[None]:
    """While inside, every part adds its own seconds to `spent`."""
    within = [0.0]  # seconds of finished parts, for each part that is running

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **settings: Any) -> Any:
            within.append(0.0)
            begun = time.thread_time()
            try:
                return function(*args, **settings)
            finally:
                taken = time.thread_time() - begun
                spent[name] += taken - within.pop()
                within[-1] += taken

        return call

    with ExitStack() as patches:
        for name, module, function in PARTS:
            wrapper = timed(name, getattr(module, function))
            patches.enter_context(patch.object(module, function, wrapper))
        yield


if __name__ == "__main__":
    one_thread()
    for each in rounds():
        print(f"{each.title}; {each.source}")
        for name, took in each.parts.items():
            print(f"{took:8.2f} ms  {name}")
