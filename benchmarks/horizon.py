"""A late round against an early one in a stream whose end nobody knows.

With base 2 the rounds 33 to 64 and 4,065 to 4,096 wake the same levels one after another, so each
of the two is a whole cycle of a learner's rounds, 6 levels being present in the first and 12 in the
second. Both are learned in turn.
"""

from benchmarks.cycle import CYCLE, cycle_of
from benchmarks.measure import Measured, at_most, taking_turns
from benchmarks.rows import Rows, made_rows
from benchmarks.workload import SMALL
from fairsaoml.core.intervals import levels_needed
from fairsaoml.learners import registry

__all__ = ["measure"]

LEARNERS = ("fairsaoml-decoupled", "fairsaoml", "aod")
EARLY, LATE = 64, 4096
SLACK = 1.1
BASE = 2


def measure(full: bool) -> list[Measured]:
    """The default, whose memories are the same at all times, and two with experts on intervals."""
    rows = made_rows(SMALL, CYCLE)
    return [of_learner(learner, rows, turns=20 if full else 3) for learner in LEARNERS]


def of_learner(learner: str, rows: Rows, turns: int) -> Measured:
    """Time that grows as the number of levels does is what is allowed."""
    known = registry.entry(learner).settings
    unknown = {"horizon": None, "base": BASE}
    config = registry.configure(learner, {name: unknown[name] for name in unknown if name in known})
    contenders = {str(last): cycle_of(learner, config, rows, last) for last in (EARLY, LATE)}
    early, late = taking_turns(contenders, turns=turns, warmup=1).values()
    levels = [levels_needed(last, BASE) if "base" in known else 1 for last in (EARLY, LATE)]
    return Measured(
        f"{learner}: round {LATE:,} against round {EARLY}, horizon unknown",
        late / early,
        at_most(SLACK * levels[1] / levels[0]),
        f"{1e3 * late / CYCLE:.1f} ms and {levels[1]} levels against {1e3 * early / CYCLE:.1f} ms "
        f"and {levels[0]}; means of {CYCLE} rounds",
    )
