"""Tuning the registered learners: each trial runs on `synthetic` and on a stream's first domain.

`synthetic` has changes of domain, the stream's first domain is the real thing. What comes after it
is never looked at, so that later domains are reported on rows that no setting was chosen on. With
several streams, the settings must do well on all of them. Only the horizon is that of the whole
stream, as in the run that the settings are for: it says how many rounds there will be, nothing of
what is in them.

A trial rarely compiles. Integers and strings shape a learner's program, so each combination of them
is compiled once; floats are arguments of the program.
"""

import multiprocessing
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, fields
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError, DataError, FairSAOMLError
from fairsaoml.core.keys import init_key, run_keys
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Batch, Key, Task
from fairsaoml.evaluate.compilation import use_cache
from fairsaoml.evaluate.metrics import count, counts_to_json
from fairsaoml.evaluate.prequential import all_rounds, rounds_of, run_rounds
from fairsaoml.evaluate.round import Outcome
from fairsaoml.evaluate.threads import one_thread
from fairsaoml.files import tidy, write_json, write_text
from fairsaoml.learners import registry
from fairsaoml.runs.runner import Interrupted
from fairsaoml.runs.spec import split_settings
from fairsaoml.streams.catalog import open_stream, setting_names
from fairsaoml.streams.stream import Stream, checked
from paper.drawing.front import draw_front
from paper.settings import save_settings
from paper.tuning.scores import Scores, scores_of
from paper.tuning.search import GOAL, RULE, Objective, Trial, choose, front, tune
from paper.tuning.space import Space, space_for

__all__ = [
    "REHEARSAL",
    "Excerpt",
    "TuningSpec",
    "first_domain",
    "learner_objective",
    "tune_learner",
    "whole_stream",
    "with_traced",
]

REHEARSAL = "synthetic"  # every learner is tuned on this stream too
UNDIVIDED = 3  # of a stream without domains, the first one in so many tasks is used
# Measured: a third less time to compile than the default, none lost in running.
QUICKLY: dict[str, str | bool] = {"xla_backend_optimization_level": "1"}
TUNING_SCHEMA = 1
TRIALS, FRONT, DATABASE = "trials.json", "front.svg", "study.db"

Config = TypeVar("Config", bound=LearnerConfig)


@dataclass(frozen=True, kw_only=True)
class TuningSpec:
    """A learner, the streams it is tuned on, and its fixed settings; equal specs are one study."""

    stream: str  # or several, with commas
    learner: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # fixed ones, the stream's too
    seeds: int = 2

    @property
    def name(self) -> str:
        """The study's name: what must be equal for trials to be comparable."""
        content = {
            "fixed": dict(self.settings),
            "space": {key: list(range) for key, range in self.space.items()},
            "default": self.default,
            "version": version("fairsaoml"),
        }
        digest = sha256(repr(content).encode()).hexdigest()[:8]
        return f"{self.learner} on {self.stream}, {self.seeds} seeds, {digest}"

    @property
    def command(self) -> str:
        """The command that repeats the search, without the number of trials."""
        words = ["python", "-m", "paper", "tune", self.stream, "--learner", self.learner]
        words += ["--seeds", str(self.seeds)]
        for key, value in self.settings.items():
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)

    @property
    def streams(self) -> list[str]:
        return self.stream.split(",")

    @property
    def fixed(self) -> dict[str, Any]:
        """The learner's settings that are not searched."""
        of_streams = {key for name in self.streams for key in setting_names(name)}
        rest = {key: value for key, value in self.settings.items() if key not in of_streams}
        return split_settings(self.streams[0], self.learner, rest)[1]

    @property
    def config(self) -> LearnerConfig:
        """The learner as it is before tuning."""
        return registry.configure(self.learner, self.fixed)

    @property
    def space(self) -> Space:
        return space_for(self.config, fixed=self.settings)

    @property
    def default(self) -> dict[str, Any]:
        """The untuned value of everything that is searched."""
        return {key: getattr(self.config, key) for key in self.space}

    def excerpts(self) -> list["Excerpt"]:
        """Return what the settings are tried on."""
        seeds, of_streams = range(self.seeds), self.settings.keys() - self.fixed.keys()
        streams = {}
        for name in self.streams:
            keys = of_streams.intersection(setting_names(name))
            streams[name] = open_stream(name, {key: self.settings[key] for key in keys})
        rehearsal = streams.pop(REHEARSAL, None) or open_stream(REHEARSAL)
        firsts = [first_domain(stream, seeds) for stream in streams.values()]
        return [whole_stream(rehearsal, seeds), *firsts]


class Excerpt(NamedTuple):
    """Rounds of a stream that settings are tried on."""

    name: str
    stream: Stream
    seeds: Sequence[int]
    rounds: list[list[Task]]  # by round, then seed; one for all seeds where rows are real
    batches: Batch  # the same, padded, for the compiled program


def whole_stream(stream: Stream, seeds: Sequence[int]) -> Excerpt:
    """Return all rounds of a stream."""
    return _excerpt(stream.name, stream, seeds, list(rounds_of(stream, seeds)))


def first_domain(stream: Stream, seeds: Sequence[int]) -> Excerpt:
    """Return a stream up to its first change of domain; without a change, its first third.

    Of the task after it, nothing but the name of its domain is looked at.
    """
    rounds = rounds_of(stream, seeds)
    domains = groupby(rounds, key=lambda tasks: tasks[0].domain)
    name, first = next(domains, ("", iter(())))
    rows = list(first)
    if next(domains, None) is None:
        name, rows = "its first third", rows[: -(-len(rows) // UNDIVIDED)]
    return _excerpt(f"{stream.name}, {name}", stream, seeds, rows)


def _excerpt(name: str, stream: Stream, seeds: Sequence[int], rounds: Sequence[Any]) -> Excerpt:
    if not rounds:
        raise DataError(f"expected at least one task in {stream.name}, got none")
    tasks = [
        [checked(task, stream.schema, round) for task in arrived]
        for round, arrived in enumerate(rounds, start=1)
    ]
    batches = jax.device_put(all_rounds(tasks, shared=not stream.seeded))
    return Excerpt(name=name, stream=stream, seeds=seeds, rounds=tasks, batches=batches)


def learner_objective(spec: TuningSpec, excerpts: Sequence[Excerpt]) -> Objective:
    """Return the function from settings to scores: it runs the learner on every excerpt."""
    programs: dict[Any, Callable] = {}
    fixed = spec.config.to_dict()
    arguments = {item.name for item in fields(spec.config) if isinstance(item.default, float)}

    def objective(settings: dict[str, Any]) -> Scores:
        lines = {}
        for at, excerpt in enumerate(excerpts):
            config = _configured(spec.learner, fixed | settings, excerpt.stream.length)
            moving = {key: np.float32(settings[key]) for key in settings if key in arguments}
            shape = tuple((key, settings[key]) for key in settings if key not in arguments)
            if (at, shape) not in programs:
                programs[at, shape] = _compiled(spec.learner, config, excerpt, moving)
            program = programs[at, shape]
            decisions = jax.device_get(program(moving, run_keys(excerpt.seeds), excerpt.batches))
            lines[excerpt.name] = _lines(excerpt, decisions)
        return scores_of(lines)

    return objective


def _configured(learner: str, settings: Mapping[str, Any], length: int | None) -> LearnerConfig:
    """Validated settings, with the horizon that a run of the whole stream has (D16)."""
    whole = dict(settings)
    if "horizon" in whole and whole["horizon"] is None:
        whole["horizon"] = length
    return registry.configure(learner, whole)


def with_traced(config: Config, values: Mapping[str, Any]) -> Config:
    """Return the config with some numbers that are known only when the program runs.

    It goes around the validation on purpose: a traced number has no value yet to be checked. The
    values that will take its place were checked when `config` was made.
    """
    traced = copy(config)
    for key, value in values.items():
        object.__setattr__(traced, key, value)
    return traced


def _compiled(
    learner: str, config: LearnerConfig, excerpt: Excerpt, moving: Mapping[str, Any]
) -> Callable[[Mapping[str, Any], Key, Batch], Any]:
    """The program of an excerpt: numbers, keys and rows in, (seed, round, row) decisions out."""

    def run_seed(moving: Mapping[str, Any], key: Key, batches: Batch) -> Any:
        traced = with_traced(config, moving)
        problem = make_problem(traced, excerpt.stream.schema)
        built = registry.entry(learner).factory(problem, traced)
        state = built.grow(built.init(init_key(key)), len(excerpt.rounds))
        return run_rounds(built, problem, key, state, batches, keep=_decisions)[1]

    rows = 0 if excerpt.stream.seeded else None
    program = jax.jit(jax.vmap(run_seed, in_axes=(None, 0, rows)))
    lowered = program.lower(moving, run_keys(excerpt.seeds), excerpt.batches)
    return lowered.compile(compiler_options=QUICKLY)


def _decisions(outcome: Outcome) -> Any:
    return outcome.shown.margins > 0


def _lines(excerpt: Excerpt, decisions: Any) -> list[dict[str, Any]]:
    """What `score_stream` needs of every round and seed."""
    lines = []
    for round, tasks in enumerate(excerpt.rounds, start=1):
        for seed in range(len(excerpt.seeds)):
            task = tasks[seed % len(tasks)]
            decided = decisions[seed, round - 1, : len(task.y)]
            counts = count(task.y, decided, task.group, excerpt.stream.schema.attributes)
            line = {"round": round, "domain": task.domain, "counts": counts_to_json(counts)}
            lines.append(line)
    return lines


def tune_learner(
    spec: TuningSpec,
    folder: Path,
    *,
    trials: int = 60,
    jobs: int = 2,
    storage: str | None = None,
    save: Path | None = None,
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> dict[str, Any]:
    """Tune a learner; write `trials.json` and `front.svg` into a folder.

    The same call continues a search that was stopped.

    Args:
        spec: what to tune.
        folder: where the results go.
        trials: how many settings to try.
        jobs: how many processes try them.
        storage: where Optuna keeps the study; by default a SQLite file in the folder.
        save: a TOML file for the chosen settings.
        on_trial: is called after each trial of this process.

    Returns:
        The content of `trials.json`.

    Raises:
        ConfigError: fewer than one trial, job or seed, or a storage that cannot be used.
        Interrupted: Ctrl-C was pressed.
    """
    if spec.seeds < 1 or trials < 1 or jobs < 1:
        raise ConfigError(
            f"expected at least one trial, job and seed; got {trials}, {jobs} and {spec.seeds}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    address = storage or f"sqlite:///{(folder / DATABASE).absolute()}"
    search = _search(spec, address, trials, on_trial)
    with _workers(jobs - 1, spec, address, trials):
        search()
    finished = search()  # and what a worker left behind
    result = report(spec, finished)
    write_json(folder / TRIALS, result)
    write_text(folder / FRONT, draw_front(result))
    if save is not None:
        comments = [f"{spec.command} --trials {len(finished)}", _reason(result)]
        table = spec.stream if len(spec.streams) == 1 else None
        save_settings(save, table, result["chosen"]["settings"], comments)
    return result


def _search(
    spec: TuningSpec, address: str, trials: int, on_trial: Callable[[Trial], None]
) -> Callable[[], list[Trial]]:
    """Return a function that continues the study of a spec; its calls share what they compile."""
    use_cache()
    one_thread()
    return partial(
        tune,
        learner_objective(spec, spec.excerpts()),
        spec.space,
        default=spec.default,
        name=spec.name,
        storage=address,
        trials=trials,
        on_trial=on_trial,
    )


@contextmanager
def _workers(count: int, spec: TuningSpec, address: str, trials: int) -> Iterator[None]:
    """Start other processes that work on the same study, and wait for them at the end.

    Not threads: two threads with solvers in their programs never return (jax 0.10.2, a CPU with two
    cores; neither xla_cpu_multi_thread_eigen=False nor synchronous dispatch helps). When this
    process is stopped, they are stopped too; their unfinished trials are tried again next time.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    workers = [
        spawn.Process(target=_work, args=(spec, address, trials), daemon=True) for _ in range(count)
    ]
    try:
        for process in workers:
            process.start()
        yield
        for process in workers:
            process.join()
    finally:
        for process in workers:
            if process.pid is not None:
                process.terminate()
                process.join()


def _work(spec: TuningSpec, address: str, trials: int) -> None:
    """What a worker does. It ends with the process that started it, at the latest after a trial."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the parent
    parent = multiprocessing.parent_process()

    def stop_if_alone(trial: Trial) -> None:
        if parent is not None and not parent.is_alive():
            raise Interrupted("the parent process ended")

    # An error here occurs again in the parent, which reports it.
    with suppress(FairSAOMLError):
        _search(spec, address, trials, stop_if_alone)()


def report(spec: TuningSpec, trials: Sequence[Trial]) -> dict[str, Any]:
    """Return the content of `trials.json`: every trial, the front, and the chosen settings."""
    best = {trial.number for trial in front(trials)}
    chosen = choose(trials, fair=spec.config.constraints != "none")
    return tidy(
        {
            "schema": TUNING_SCHEMA,
            "command": f"{spec.command} --trials {len(trials)}",
            "learner": spec.learner,
            "stream": spec.stream,
            "seeds": spec.seeds,
            "rule": RULE,
            "goal": GOAL,
            "space": {key: range._asdict() for key, range in spec.space.items()},
            "default": spec.default,
            "chosen": {"trial": chosen.number, "settings": spec.fixed | chosen.settings},
            "seconds": sum(trial.seconds for trial in trials),
            "trials": [
                {
                    "trial": trial.number,
                    "accuracy": trial.scores.accuracy,
                    "ratio": trial.scores.ratio,
                    "on_front": trial.number in best,
                    "is_default": trial.is_default,
                    "settings": trial.settings,
                    "streams": {
                        stream: scores._asdict() for stream, scores in trial.scores.streams.items()
                    },
                    "seconds": trial.seconds,
                }
                for trial in trials
            ],
        }
    )


def _reason(result: Mapping[str, Any]) -> str:
    """Why these settings were chosen, for the head of a file."""
    number = result["chosen"]["trial"]
    trial = next(trial for trial in result["trials"] if trial["trial"] == number)
    streams = [
        f"{stream}: accuracy {scores['accuracy']:.3f}, ratio {scores['ratio']:.2f}"
        for stream, scores in trial["streams"].items()
    ]
    return f"trial {number} of {len(result['trials'])}; {'; '.join(streams)}"
