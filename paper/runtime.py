"""How long a round takes: measured by itself, one process at a time, one seed, few rounds.

The runs of figures share the machine with one another, and their seeds run together; their times
say how long the evaluation took, not how long a learner takes.
"""

import time
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from fairsaoml.core.errors import RunError
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.prequential import prequential
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.files import read_json, write_json
from fairsaoml.runs.spec import RunSpec, Setup
from paper.plan import digest

__all__ = ["ROUNDS", "WARM_UP", "measured", "timing_file"]

WARM_UP = 2  # rounds that are not counted: the first one compiles
ROUNDS = 24  # that are; with the warm-up they lie in every stream's first domain


def timing_file(spec: RunSpec, out: Path) -> Path:
    """Return where a measurement is kept."""
    stream = Path(spec.stream).name.replace(":", "-")
    return out / "runtime" / stream / f"{spec.learner}-{digest(spec)}.json"


def measured(spec: RunSpec, file: Path, *, force: bool = False) -> dict[str, Any]:
    """Measure the seconds of a round, once; the result is kept in `file`.

    Args:
        spec: what to run.
        file: where the result is kept.
        force: measure again.

    Returns:
        The median and the quartiles of rounds in steady state. `first` is the first round's time:
        it compiles, or reads the program from the cache of compiled ones.

    Raises:
        RunError: the stream is too short.
    """
    if file.exists() and not force:
        return read_json(file)
    use_cache()
    one_thread()
    begun = time.perf_counter()
    setup = Setup.of(spec)
    results = prequential(setup.stream, setup.learner, setup.problem, spec.seeds)
    rounds = [
        result.records[0]["seconds"] * len(spec.seeds)
        for result in islice(results, WARM_UP + ROUNDS)
    ]
    steady = rounds[WARM_UP:]
    if len(steady) < 2:
        raise RunError(
            f"expected at least {WARM_UP + 2} rounds in {spec.stream} to time, got {len(rounds)}"
        )
    low, _, high = quantiles(steady, n=4)
    timing = {
        "learner": spec.learner,
        "stream": spec.stream,
        "command": spec.command,
        "rounds": len(steady),
        "median": median(steady),
        "quartiles": [low, high],
        "first": rounds[0],
        "whole": time.perf_counter() - begun,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, timing)
    return read_json(file)
