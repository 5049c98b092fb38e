"""`fairsaoml run` on a large file, from its start to its page, against the bare learner.

The bare side has the same tasks encoded already, and decides and learns each of them. What a run of
3,000 rows takes (imports, loading programs, the page) is not held against the large one.
"""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Measured, at_most
from benchmarks.start import TABLE_ROWS, run_table, seconds, write_table
from fairsaoml.runs.spec import RunSpec, Setup
from fairsaoml.serve.online import OnlineLearner

__all__ = ["measure"]

ROWS, MANY_ROWS, TASK = 150_000, 660_000, 3_000
TURNS = 3  # medians: what is measured is the difference of two processes


def measure(full: bool) -> list[Measured]:
    """Seconds of the command less those of a small table, over those of the bare rounds."""
    rows = MANY_ROWS if full else ROWS
    with TemporaryDirectory() as scratch:
        small, large = Path(scratch) / "small.csv", Path(scratch) / "large.csv"
        write_table(small, TABLE_ROWS)
        write_table(large, rows)
        cache = Path(scratch) / "cache"

        def command(table: Path, tasks: int) -> float:
            return seconds(lambda: run_table(table, cache, "--tasks", str(tasks)))

        command(small, 1)  # compiles
        turns = [
            (command(small, 1), command(large, rows // TASK), bare_rounds(large, rows // TASK))
            for _ in range(TURNS)
        ]
        start, whole, bare = map(median, zip(*turns, strict=True))
    return [
        Measured(
            f"`fairsaoml run`, {rows:,} rows, beyond what {TABLE_ROWS:,} take, against the learner",
            (whole - start) / bare,
            at_most(2),
            f"{whole:.1f} s less {start:.1f} s against {bare:.1f} s; made rows, {TASK:,} a task",
        )
    ]


def bare_rounds(table: Path, tasks: int) -> float:
    """Seconds of deciding and learning, on rows that are encoded already."""
    settings = {"label": "paid", "positive": "yes", "sensitive": ("sex",), "tasks": tasks}
    stream = Setup.of(RunSpec(stream=str(table), stream_settings=settings)).stream
    encoded = list(stream.tasks(0))

    def learned() -> OnlineLearner:
        online = OnlineLearner(stream.schema)
        for task in encoded:
            online.decide(task.x)
            online.learn(task)
        return online

    first = OnlineLearner(stream.schema)
    first.decide(encoded[0].x)
    first.learn(encoded[0])  # compiles
    return seconds(learned)
