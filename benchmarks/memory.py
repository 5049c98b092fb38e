"""Memory of a process that goes on learning: `python -m benchmarks.memory LEARNER ROUNDS`.

A fresh process learns tiny tasks with the horizon unknown. Its resident memory is read after 200
rounds and after the last one, and so is the size of the learner's state.
"""

import gc
import json
import sys
from pathlib import Path

import jax

from benchmarks.child import answer_of
from benchmarks.measure import Measured, at_most

__all__ = ["measure"]

EARLY, LATE = 200, 10_000
FEW_LATE = 1_000  # rounds, in the quick form, of learners that are not the default
LEARNERS = ("fairsaoml-decoupled", "fairsaoml")
TINY = {"model": "logistic", "capacity": 16, "support": 4, "meta_iterations": 2}
MEGA = 1024 * 1024


def measure(full: bool) -> list[Measured]:
    """The default learner over all rounds, the others over fewer unless it is the full form."""
    return [
        row
        for learner in LEARNERS
        for row in of_learner(learner, LATE if full or learner == LEARNERS[0] else FEW_LATE)
    ]


def of_learner(learner: str, rounds: int) -> list[Measured]:
    """Resident memory, and bytes of state per level."""
    early, late = answer_of("memory", learner, str(rounds))
    after = f"after {rounds:,} rounds against after {EARLY}"
    memory = Measured(
        f"{learner}: resident memory {after}",
        late["resident"] / early["resident"],
        at_most(1.05),
        f"{late['resident'] / MEGA:.0f} MB against {early['resident'] / MEGA:.0f} MB",
    )
    if not early["per_level"]:  # its state has no levels that could grow
        return [memory]
    return [
        memory,
        Measured(
            f"{learner}: bytes of state per level {after}",
            late["per_level"] / early["per_level"],
            at_most(1),
            f"{late['per_level']:,.0f} bytes, {late['levels']} levels of storage against "
            f"{early['levels']}",
        ),
    ]


def resident() -> int:
    """Bytes of this process that are in memory (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("expected VmRSS in /proc/self/status, found none; this needs Linux")


def sizes(state: object, levels: int) -> dict[str, float]:
    """What a learner and its process hold; what has no level counts as no level's."""
    leaves = jax.tree.leaves(state)
    shared = sum(leaf.nbytes for leaf in leaves if leaf.shape[:1] != (levels,))
    whole = sum(leaf.nbytes for leaf in leaves)
    gc.collect()
    return {"resident": resident(), "per_level": (whole - shared) / levels, "levels": levels}


def main(learner: str, rounds: int) -> None:
    """In the child: learn, and print both sizes."""
    from benchmarks.rows import made_rows
    from benchmarks.workload import SMALL
    from fairsaoml.learners.registry import entry
    from fairsaoml.serve.online import OnlineLearner

    rows = made_rows(SMALL._replace(features=5, rows=64), 16)
    known = entry(learner).settings
    settings = {name: value for name, value in TINY.items() if name in known}
    online = OnlineLearner(rows.schema, learner, settings)
    found = []
    for round in range(1, rounds + 1):
        online.learn(rows.tasks[round % len(rows.tasks)])
        if round in (EARLY, rounds):
            assert online.info is not None
            found.append(sizes(online.state, len(online.info.weights)))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
