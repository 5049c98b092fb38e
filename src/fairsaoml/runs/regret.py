"""Regret of a run that is on disk."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from fairsaoml.core.errors import RunError
from fairsaoml.core.types import Task
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.regret import regret as figures
from fairsaoml.learners import registry
from fairsaoml.runs.folder import ROUNDS, read_spec
from fairsaoml.runs.journal import read_rounds
from fairsaoml.runs.spec import RunSpec, Setup, reopened_stream
from fairsaoml.streams.stream import checked


def regret(
    folder: str | PathLike,
    *,
    windows: str | None = None,
    adapted: bool = False,
    every_round: bool = False,
    adapting: bool = False,
    comparator: bool = True,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Measure a run's regret and its largest sums of violations on windows of rounds.

    Args:
        folder: the run's.
        windows: lengths such as "1,4,16", or "all"; None: powers of two, and all rounds.
        adapted: measure the scores after a few labels of each round.
        every_round: the best fair model is fair in every round of its window, not only over it.
        adapting: the best models adapt in each round as the learner does, and so does the run.
        comparator: solve for the best fixed models; without, only violations are measured.
        on_progress: called with the windows solved so far and their number.

    Returns:
        Plain data: the run, and for each window length the largest regret to the best fair model
        and to the best of all, violations, and what is proven of both.

    Raises:
        RunError: the folder holds no run, or no round of it, or later rows of it are not kept.
        DataError: the rows of the run are not what they were.
    """
    folder, adapted = Path(folder), adapted or adapting
    content = read_spec(folder)
    spec = RunSpec.from_json(content)
    lines = read_rounds(folder / ROUNDS)
    if not lines:
        raise RunError(
            f"expected at least one round in {folder}, got none; let the run do a round first, or "
            f"give a model from Python new rows with `fairsaoml learn {folder} FILE`"
        )
    series = [figures.journal_series(lines, seed, adapted=adapted) for seed in spec.seeds]
    rounds = len(series[0].loss)
    lengths = figures.chosen_windows(windows, rounds)
    run = {"run": str(folder), "learner": spec.learner, "stream": spec.stream}
    options: dict[str, Any] = {"seeds": spec.seeds, "windows": lengths, "adapted": adapted}
    if not comparator:
        return run | figures.violations(series, content["constraints"], **options)
    if "before" in content:
        raise RunError(
            f"expected a run whose rows are kept, got a model from Python in {folder}; measure "
            "violations alone: --no-comparator, comparator=False in Python"
        )
    use_cache()
    stream = reopened_stream(content["stream"], folder)
    if stream.length is not None and rounds > stream.length:
        raise RunError(
            f"expected the rows of all {rounds} rounds, got those of {stream.length}: rows that "
            "were learned later are not kept; measure violations alone"
        )
    setup = Setup.of(spec, stream, content["learner"]["config"])
    kind = registry.entry(spec.learner).config
    settings = {name: getattr(kind, name) for name in kind.retired} | setup.config

    def tasks(seed: int) -> list[Task]:
        return [checked(task, stream.schema, at) for at, task in enumerate(stream.tasks(seed), 1)]

    return run | figures.regret(
        series,
        tasks,
        setup.problem,
        settings,
        shared=not stream.seeded,
        every_round=every_round,
        adapting=setup.learner if adapting else None,
        on_progress=on_progress,
        **options,
    )
