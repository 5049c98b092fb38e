"""The smallest game that has everything: two seeds, four levels, three domains, full samples."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import pytest

from fairsaoml.core.types import Task
from fairsaoml.learners import registry
from fairsaoml.runs.spec import RunSpec
from fairsaoml.streams.stream import Stream

EMITTERS = "xla_cpu_use_fusion_emitters"  # XLA's newer ones, which are slow to compile with
FIRST = "fair-glc"  # the cheapest learner that knows fairness
LEARNERS = (FIRST, "fairsaoml")
LEVELS = {FIRST: 1, "fairsaoml": 4}  # of experts: one, and floor(log2 21)
ROUNDS = 21
SEEDS = (0, 1)
STREAM = {"tasks": ROUNDS // 3, "rows": 60}
NETWORK = {"model": "mlp", "hidden": [4]}
SHARED = {**NETWORK, "model": "logistic", "capacity": 16, "support": 4, "meta_iterations": 2}
TASKS = {**SHARED, "query": 4, "tasks_kept": 3}
SETTINGS: dict[str, dict[str, Any]] = {
    FIRST: SHARED,
    "fairsaoml": {**SHARED, "query": 4},
}
GOLDEN: dict[str, dict[str, Any]] = {
    **dict.fromkeys(registry.BUILTIN, SHARED),
    **SETTINGS,
    "fairsaoml-decoupled": {},
    "mask-ftml": TASKS,
    "fair-fml": TASKS,
}

# For what is no matter of the learner, or takes too long to be asked of both.
one_learner = pytest.mark.parametrize("learner", [FIRST], indirect=True, scope="session")


def spec(learner: str = FIRST, **changes: Any) -> RunSpec:
    """What to run. Whoever changes only the stream's rows runs the same compiled program."""
    settings = GOLDEN[learner]
    plain = RunSpec(
        stream="synthetic",
        learner=learner,
        stream_settings=STREAM,
        learner_settings=settings,
        seeds=SEEDS,
    )
    return replace(plain, **changes)


def accepted(learner: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Those of the settings that a learner has."""
    known = registry.entry(learner).settings
    return {name: value for name, value in settings.items() if name in known}


def options(learner: str = FIRST, **changes: Any) -> list[str]:
    """The same as words of a command line."""
    settings = {**STREAM, **SETTINGS[learner], **changes}
    words = ["synthetic", "--learner", learner, "--seeds", str(len(SEEDS))]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    return words


def perturbed(stream: Stream, change: Callable[[int, Task], Task]) -> Stream:
    """The same stream with `change(round, task)` in the place of each task."""

    def tasks(seed: int) -> Iterator[Task]:
        for number, task in enumerate(stream.tasks(seed), start=1):
            yield change(number, task)

    return replace(stream, tasks=tasks)


def lines(folder: Path, *, until: int | None = None) -> list[str]:
    """The journal's lines up to a round, without their times."""
    kept = []
    for line in (folder / "rounds.jsonl").read_text().splitlines():
        if until is None or json.loads(line)["round"] <= until:
            text, comma, seconds = line.rpartition(',"seconds":')
            assert comma
            assert float(seconds.removesuffix("}")) >= 0
            kept.append(text)
    return kept


def strictly(text: str) -> Any:
    """JSON without NaN and infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


def records(folder: Path) -> list[dict[str, Any]]:
    """The journal's lines as data."""
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]


@contextmanager
def optimised() -> Iterator[None]:
    """Programs compiled as they are outside the tests."""
    with pytest.MonkeyPatch.context() as patch:
        if EMITTERS in os.environ.get("XLA_FLAGS", ""):
            patch.setattr(jax, "jit", partial(jax.jit, compiler_options={EMITTERS: True}))
        jax.config.update("jax_disable_most_optimizations", False)
        try:
            yield
        finally:
            jax.config.update("jax_disable_most_optimizations", True)
