"""A round of the paper's learner against a round of each of the six it was compared with.

Everyone has its default settings, so everyone takes 20 gradient samples of 100 + 100 rows from a
round. Rounds 33 to 64 are learned in turn, in which FairSAOML wakes two of its six experts on
average. What a gradient sample costs differs: the detail says of how many rows a gradient is taken.
"""

from typing import Any

from benchmarks.cycle import CYCLE, cycle_of
from benchmarks.measure import Measured, at_most, taking_turns
from benchmarks.rows import made_rows
from benchmarks.workload import Size
from fairsaoml.learners import registry

__all__ = ["measure"]

OURS = "fairsaoml"
BASELINES = ("mask-ftml", "fair-fml", "fair-aogd", "fair-glc", "aod", "cbce")
SIZE = Size("usual", features=20, per_class=100, rows=1024, levels=6)


def measure(full: bool) -> list[Measured]:
    """Ratios of the time of a round; below 1 the paper's claim holds."""
    rows = made_rows(SIZE, CYCLE)
    contenders = {
        name: cycle_of(name, config_of(name), rows, SIZE.horizon) for name in (OURS, *BASELINES)
    }
    seconds = taking_turns(contenders, turns=20 if full else 5, warmup=1)
    ours = seconds.pop(OURS)
    return [
        Measured(
            f"{OURS}'s round against {name}'s",
            ours / theirs,
            at_most(1),
            f"{1e3 * ours / CYCLE:.1f} ms and {gradients(OURS):,.0f} rows' gradients against "
            f"{1e3 * theirs / CYCLE:.1f} ms and {gradients(name):,.0f}",
        )
        for name, theirs in seconds.items()
    ]


def config_of(name: str) -> Any:
    """Defaults; whoever wants to know the horizon is told it."""
    known = registry.entry(name).config.__dataclass_fields__
    return registry.configure(name, {"horizon": SIZE.horizon} if "horizon" in known else {})


def gradients(name: str) -> float:
    """Of how many rows a round takes a gradient, on average.

    >>> gradients("fair-glc"), gradients("fair-fml"), gradients("aod"), gradients("fairsaoml")
    (4000, 8000, 24000, 15750.0)
    """
    config = config_of(name)
    support, query = 2 * config.support, 2 * getattr(config, "query", 0)
    awake = {OURS: (2 - 2 / 2**SIZE.levels), "aod": SIZE.levels, "cbce": SIZE.levels}
    return config.meta_iterations * awake.get(name, 1) * (support + query)
