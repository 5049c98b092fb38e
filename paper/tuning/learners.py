"""Tuning the registered learners: each trial is played on `synthetic` and on a stream's beginning.

`synthetic` shows changes of domain, the stream's first domain shows the real thing; what comes
after it is never looked at, so that later domains are reported on rows no setting was chosen on.
Several streams may be named: then settings are looked for that do well on all of them.
Only the horizon is that of the whole stream: it is what the learner is told in the run that the
settings are for, and it says how many rounds there will be, nothing of what is in them.

A trial does not compile. Whole numbers and words shape a learner's program, so every combination
of them is compiled once; numbers with a point only enter it, and are its arguments.
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
    "Part",
    "TuningSpec",
    "beginning",
    "learner_objective",
    "tune_learner",
    "with_traced",
]

REHEARSAL = "synthetic"  # the stream that every learner is tuned on besides
UNDIVIDED = 3  # of a stream without domains, one task in so many is its beginning
# Measured for fairsaoml-live: a third less time to compile than the default, none lost in running.
QUICKLY: dict[str, str | bool] = {"xla_backend_optimization_level": "1"}
TUNING_SCHEMA = 1
TRIALS, FRONT, DATABASE = "trials.json", "front.svg", "study.db"

Config = TypeVar("Config", bound=LearnerConfig)


@dataclass(frozen=True, kw_only=True)
class TuningSpec:
    """What is tuned on what, with which settings fixed; equal specs are one study."""

    stream: str  # or several, with commas
    learner: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # fixed ones, the stream's too
    seeds: int = 2

    @property
    def name(self) -> str:
        """The study's name: what must be equal for trials to be comparable."""
        parts = {
            "fixed": dict(self.settings),
            "space": {key: list(range) for key, range in self.space.items()},
            "default": self.default,
            "version": version("fairsaoml"),
        }
        digest = sha256(repr(parts).encode()).hexdigest()[:8]
        return f"{self.learner} on {self.stream}, {self.seeds} seeds, {digest}"

    @property
    def command(self) -> str:
        """The command that repeats it, but for the number of trials."""
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

    def parts(self) -> list["Part"]:
        """What the settings are tried on."""
        seeds, theirs = range(self.seeds), self.settings.keys() - self.fixed.keys()
        own = {
            name: open_stream(name, {key: self.settings[key] for key in theirs.intersection(known)})
            for name in self.streams
            for known in [setting_names(name)]
        }
        rehearsal = own.pop(REHEARSAL, None) or open_stream(REHEARSAL)
        return [whole(rehearsal, seeds), *(beginning(stream, seeds) for stream in own.values())]


class Part(NamedTuple):
    """Rounds of a stream that settings are tried on."""

    name: str
    stream: Stream
    seeds: Sequence[int]
    rounds: list[list[Task]]  # by round, then seed; one for all seeds where rows are real
    batches: Batch  # the same, padded, for the compiled program


def whole(stream: Stream, seeds: Sequence[int]) -> Part:
    """All rounds of a stream."""
    return _part(stream.name, stream, seeds, list(rounds_of(stream, seeds)))


def beginning(stream: Stream, seeds: Sequence[int]) -> Part:
    """A stream up to its first change of domain, or the first third of one that has no change.

    Of the task after it nothing but the name of its domain is looked at.
    """
    rounds = rounds_of(stream, seeds)
    domains = groupby(rounds, key=lambda tasks: tasks[0].domain)
    name, first = next(domains, ("", iter(())))
    own = list(first)
    if next(domains, None) is None:
        name, own = "its first third", own[: -(-len(own) // UNDIVIDED)]
    return _part(f"{stream.name}, {name}", stream, seeds, own)


def _part(name: str, stream: Stream, seeds: Sequence[int], rounds: Sequence[Any]) -> Part:
    if not rounds:
        raise DataError(f"expected at least one task in {stream.name}, got none")
    tasks = [
        [checked(task, stream.schema, round) for task in arrived]
        for round, arrived in enumerate(rounds, start=1)
    ]
    batches = jax.device_put(all_rounds(tasks, shared=not stream.seeded))
    return Part(name=name, stream=stream, seeds=seeds, rounds=tasks, batches=batches)


def learner_objective(spec: TuningSpec, parts: Sequence[Part]) -> Objective:
    """From settings to scores: the learner played on every part, all seeds at once."""
    programs: dict[Any, Callable] = {}
    fixed = spec.config.to_dict()
    arguments = {item.name for item in fields(spec.config) if isinstance(item.default, float)}

    def objective(settings: dict[str, Any]) -> Scores:
        lines = {}
        for at, part in enumerate(parts):
            config = _configured(spec.learner, fixed | settings, part.stream.length)
            moving = {key: np.float32(settings[key]) for key in settings if key in arguments}
            shape = tuple((key, settings[key]) for key in settings if key not in arguments)
            if (at, shape) not in programs:
                programs[at, shape] = _compiled(spec.learner, config, part, moving)
            program = programs[at, shape]
            decisions = jax.device_get(program(moving, run_keys(part.seeds), part.batches))
            lines[part.name] = _lines(part, decisions)
        return scores_of(lines)

    return objective


def _configured(learner: str, settings: Mapping[str, Any], length: int | None) -> LearnerConfig:
    """Validated settings, with the horizon that a run of the whole stream has (D16)."""
    told = dict(settings)
    if "horizon" in told and told["horizon"] is None:
        told["horizon"] = length
    return registry.configure(learner, told)


def with_traced(config: Config, values: Mapping[str, Any]) -> Config:
    """The same settings with some numbers that are known only when the program runs.

    Around the validation, on purpose: a traced number has no value yet that could be checked. The
    values that will be put in its place were checked when `config` was made.
    """
    traced = copy(config)
    for key, value in values.items():
        object.__setattr__(traced, key, value)
    return traced


def _compiled(
    learner: str, config: LearnerConfig, part: Part, moving: Mapping[str, Any]
) -> Callable[[Mapping[str, Any], Key, Batch], Any]:
    """The program of a part: numbers, keys and rows in, (seed, round, row) decisions out."""

    def play_seed(moving: Mapping[str, Any], key: Key, batches: Batch) -> Any:
        own = with_traced(config, moving)
        problem = make_problem(own, part.stream.schema)
        built = registry.entry(learner).factory(problem, own)
        state = built.grow(built.init(init_key(key)), len(part.rounds))
        return run_rounds(built, problem, key, state, batches, keep=_decisions)[1]

    rows = 0 if part.stream.seeded else None
    program = jax.jit(jax.vmap(play_seed, in_axes=(None, 0, rows)))
    lowered = program.lower(moving, run_keys(part.seeds), part.batches)
    return lowered.compile(compiler_options=QUICKLY)


def _decisions(outcome: Outcome) -> Any:
    return outcome.margins > 0


def _lines(part: Part, decisions: Any) -> list[dict[str, Any]]:
    """What `measured` needs of every round and seed."""
    lines = []
    for round, tasks in enumerate(part.rounds, start=1):
        for seed in range(len(part.seeds)):
            task = tasks[seed % len(tasks)]
            made = decisions[seed, round - 1, : len(task.y)]
            counts = count(task.y, made, task.group, part.stream.schema.attributes)
            counted = counts_to_json(counts)
            lines.append({"round": round, "domain": task.domain, "counts": counted})
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
    """Tune a learner; write `trials.json` and `front.svg` into a folder, and the choice to `save`.

    The study is kept in the folder too (SQLite: whole after a kill, safe with several processes),
    or wherever `storage` says. The same call goes on with it.
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
    tried = search()  # and what a worker left behind
    result = report(spec, tried)
    write_json(folder / TRIALS, result)
    write_text(folder / FRONT, draw_front(result))
    if save is not None:
        words = [f"{spec.command} --trials {len(tried)}", *_praise(result)]
        own = spec.stream if len(spec.streams) == 1 else None
        save_settings(save, own, result["chosen"]["settings"], words)
    return result


def _search(
    spec: TuningSpec, address: str, trials: int, on_trial: Callable[[Trial], None]
) -> Callable[[], list[Trial]]:
    """Go on with the study of a spec; calls share what they compile."""
    use_cache()
    one_thread()
    return partial(
        tune,
        learner_objective(spec, spec.parts()),
        spec.space,
        default=spec.default,
        name=spec.name,
        storage=address,
        trials=trials,
        on_trial=on_trial,
    )


@contextmanager
def _workers(count: int, spec: TuningSpec, address: str, trials: int) -> Iterator[None]:
    """Other processes that work on the same study, and are waited for at the end.

    Not threads: two at once that play `fairsaoml-newton` never return (jax 0.10.2, a CPU with two
    cores; neither xla_cpu_multi_thread_eigen=False nor synchronous dispatch helps). When this
    process is stopped, theirs are too, whatever they have at hand; it is tried again next time.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    team = [
        spawn.Process(target=_work, args=(spec, address, trials), daemon=True) for _ in range(count)
    ]
    try:
        for process in team:
            process.start()
        yield
        for process in team:
            process.join()
    finally:
        for process in team:
            if process.pid is not None:
                process.terminate()
                process.join()


def _work(spec: TuningSpec, address: str, trials: int) -> None:
    """A worker's life. It ends with the process that it works for, at the latest after a trial."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C is for the one it works for
    boss = multiprocessing.parent_process()

    def look_up(trial: Trial) -> None:
        if boss is not None and not boss.is_alive():
            raise Interrupted("nobody is left to work for")

    # Whatever goes wrong here goes wrong again where it can be said, when the rest is finished.
    with suppress(FairSAOMLError):
        _search(spec, address, trials, look_up)()


def report(spec: TuningSpec, trials: Sequence[Trial]) -> dict[str, Any]:
    """What `trials.json` says: every trial, which are on the front, and the one that is chosen."""
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
                        name: found._asdict() for name, found in trial.scores.streams.items()
                    },
                    "seconds": trial.seconds,
                }
                for trial in trials
            ],
        }
    )


def _praise(result: Mapping[str, Any]) -> list[str]:
    """Why these settings, for the head of a file."""
    number = result["chosen"]["trial"]
    trial = next(trial for trial in result["trials"] if trial["trial"] == number)
    seen = [
        f"{name}: accuracy {found['accuracy']:.3f}, ratio {found['ratio']:.2f}"
        for name, found in trial["streams"].items()
    ]
    return [f"trial {number} of {len(result['trials'])}; {'; '.join(seen)}"]
