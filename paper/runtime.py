"""How long a round takes: measured by itself, one process at a time, one seed, few rounds.

Runs that fill figures share the machine with one another, and their seeds play together; their
times say how long the evaluation took, not how long a learner takes.
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
    """Where a measurement is kept."""
    stream = Path(spec.stream).name.replace(":", "-")
    return out / "runtime" / stream / f"{spec.learner}-{digest(spec)}.json"


def measured(spec: RunSpec, file: Path, *, force: bool = False) -> dict[str, Any]:
    """Seconds of a round in steady state, quartiles with it; measured once and kept in `file`.

    `first` is the first round's: it compiles, or finds the program in the cache of compiled ones.
    """
    if file.exists() and not force:
        return read_json(file)
    use_cache()
    one_thread()
    begun = time.perf_counter()
    game = Setup.of(spec)
    rounds = [
        played.records[0]["seconds"] * len(spec.seeds)
        for played in islice(
            prequential(game.stream, game.learner, game.problem, spec.seeds), WARM_UP + ROUNDS
        )
    ]
    steady = rounds[WARM_UP:]
    if len(steady) < 2:
        raise RunError(
            f"expected at least {WARM_UP + 2} rounds in {spec.stream} to time, got {len(rounds)}"
        )
    low, _, high = quantiles(steady, n=4)
    found = {
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
    write_json(file, found)
    return read_json(file)
