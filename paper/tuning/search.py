"""The search for settings: a study of trials that can be stopped and continued.

    tune(objective, space, default=..., name=..., storage=..., trials=60) -> [Trial, ...]

`objective(settings) -> Scores` tries settings and says how accurate and how fair they are; `space`
says which values each setting may take (`space`). `learners` and `alternatives` have the objectives
of this package. The first trial is always the default.

Optuna proposes (TPE, two objectives to maximise) and its storage remembers. Every proposal depends
on the trials before it alone, so a study that was killed and continued tries the same settings as
one that never stopped. A trial whose process died is marked as failed and its settings are tried
again; a failed trial does not count.

For several trials at once, call `tune` in several processes or on several machines with one storage
and one name, as `learners` does: they share the budget.
"""

import math
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from statistics import fmean
from typing import Any, NamedTuple

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.runs.runner import Interrupted, interruptible
from paper.tuning.scores import Scores, StreamScores
from paper.tuning.space import Choice, Space

__all__ = ["GOAL", "RULE", "Objective", "Trial", "choose", "front", "tune"]

GOAL = 0.9  # the ratio that is fair enough
STEP_DOWN = 0.05  # by how much more the goal may be missed, while no trial reaches it
RULE = (
    f"the most accurate trial with a ratio of {GOAL} or more on each stream; where there is none, "
    f"the mean shortfall may be {STEP_DOWN}, and so on. For a learner without constraints: "
    "the most accurate"
)
DIGITS = 3  # significant digits of a number that is tried
UNKNOWN = (None, 0)  # the process of a trial that does not say whose it is
DATABASE_PATIENCE = 60.0  # seconds to wait for another process that writes to the same file

Settings = dict[str, Any]
Objective = Callable[[Settings], Scores]


class Trial(NamedTuple):
    """Settings that were tried, and their scores."""

    number: int  # in the order they were begun; failed trials have one too
    settings: Settings
    scores: Scores
    seconds: float
    is_default: bool


def tune(
    objective: Objective,
    space: Space,
    *,
    default: Mapping[str, Any],
    name: str,
    storage: str,
    trials: int = 60,
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> list[Trial]:
    """Try settings until `trials` of them are done; those done before count.

    Args:
        objective: from settings to scores. Its errors are passed on; its settings are tried again
            by the next call.
        space: the range of each setting.
        default: a value for every name in `space`; it is tried first.
        name: the study's name in its storage. What is not comparable must not share it.
        storage: a database URL that Optuna can use ("sqlite:///study.db", "postgresql://..."), or
            the path of a journal file, for network disks that cannot lock.
        trials: how many to do.
        on_trial: is called after each trial that this call has done.

    Returns:
        The finished trials in the order they were begun.

    Raises:
        ConfigError: a default outside its range, or a storage that cannot be used.
        Interrupted: Ctrl-C was pressed. The current trial is finished first, unless it is pressed
            twice.
    """
    for setting, range in space.items():
        if not range.holds(default[setting]):
            raise ConfigError(f"expected a default of {setting} within {range}, got {default}")
    with closing(_Study(storage, name, space, default)) as study:
        study.release_dead_trials()
        study.start_with_default()
        with interruptible() as interrupted:
            while not interrupted() and (asked := study.ask(trials if space else 1)):
                begun, settings = time.perf_counter(), study.settings(asked)
                try:
                    scores = objective(settings)
                except BaseException:
                    study.give_up(asked)
                    raise
                on_trial(study.tell(asked, settings, scores, time.perf_counter() - begun))
            stopped = interrupted()
        done = study.done()
        if stopped and len(done) < trials:
            raise Interrupted(
                f"stopped after {len(done)} of {trials} trials; the same command goes on"
            )
        return done[:trials]


def front(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that no other beats in accuracy and ratio, least accurate first.

    >>> def trial(number, accuracy, ratio):
    ...     return Trial(number, {}, Scores(accuracy, ratio), 1.0, False)
    >>> tried = [trial(0, 0.7, 0.8), trial(1, 0.6, 0.9), trial(2, 0.6, 0.7), trial(3, 0.5, 0.9)]
    >>> [one.number for one in front(tried)]
    [1, 0]
    """
    best: list[Trial] = []
    for trial in sorted(trials, key=lambda t: (-t.scores.accuracy, -t.scores.ratio, t.number)):
        if not best or trial.scores.ratio > best[-1].scores.ratio:
            best.append(trial)
    return best[::-1]


def choose(trials: Sequence[Trial], *, fair: bool = True) -> Trial:
    """Return the trial to use, by `RULE`; `fair` is whether the learner has constraints.

    The goal is lowered in steps so that a learner that misses it is not set to its least accurate
    trial for a hundredth of ratio. A ratio above the goal on one stream does not make up for one
    below it on another. Raises RunError if there are no trials.

    >>> def trial(number, accuracy, ratio):
    ...     return Trial(number, {}, Scores(accuracy, ratio), 1.0, False)
    >>> tried = [trial(0, 0.7, 0.91), trial(1, 0.6, 0.95), trial(2, 0.8, 0.89)]
    >>> choose(tried).number, choose(tried, fair=False).number
    (0, 2)
    >>> choose([trial(0, 0.7, 0.81), trial(1, 0.6, 0.84), trial(2, 0.75, 0.74)]).number
    0
    """
    if not trials:
        raise RunError("expected at least one trial to choose from, got none; let it run on")

    def steps_down(trial: Trial) -> int:
        ratios = [scores.ratio for scores in trial.scores.streams.values()]
        shortfall = fmean(max(0.0, GOAL - ratio) for ratio in ratios or [trial.scores.ratio])
        return math.ceil(round(shortfall / STEP_DOWN, 9)) if fair else 0

    return min(
        trials,
        key=lambda t: (steps_down(t), -t.scores.accuracy, -t.scores.ratio, t.number),
    )


class _Study:
    """One study of Optuna's, with the methods that tuning needs."""

    def __init__(self, storage: str, name: str, space: Space, default: Mapping[str, Any]) -> None:
        try:
            import optuna
        except ImportError:
            raise ConfigError(
                "expected optuna to be installed; pip install 'fairsaoml[paper]'"
            ) from None
        self._optuna = optuna
        self._default = {setting: default[setting] for setting in space}
        self._states = optuna.trial.TrialState
        self._process = [socket.gethostname(), os.getpid()]
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = {setting: self._distribution(range) for setting, range in space.items()}
        self._storage = self._open(storage)
        self._study = optuna.create_study(
            storage=self._storage,
            study_name=name,
            load_if_exists=True,
            directions=["maximize", "maximize"],
        )

    def close(self) -> None:
        """Let go of the database, if the storage is one."""
        engine = getattr(self._storage, "engine", None)
        if engine is not None:
            self._storage.remove_session()
            engine.dispose()

    def _open(self, address: str) -> Any:
        storages = self._optuna.storages
        patience = {"connect_args": {"timeout": DATABASE_PATIENCE}}
        try:
            if "://" not in address:
                return storages.JournalStorage(storages.journal.JournalFileBackend(address))
            return storages.RDBStorage(
                address, engine_kwargs=patience if address.startswith("sqlite") else None
            )
        except Exception as error:  # whatever a database's driver raises
            # Not the address: there may be a password in it.
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ConfigError(
                f"expected a storage that Optuna can use, got: {reason}; give an address such as "
                "sqlite:///study.db, or a journal file's path"
            ) from None

    def _distribution(self, range: Any) -> Any:
        kinds = self._optuna.distributions
        if isinstance(range, Choice):
            return kinds.CategoricalDistribution(range.values)
        return kinds.FloatDistribution(range.low, range.high, log=range.log)

    def release_dead_trials(self) -> None:
        """Trials whose process is gone failed; their settings are tried again."""
        for trial in self._running():
            host, _ = trial.user_attrs.get("process", UNKNOWN)
            if host == self._process[0] and not self._is_under_way(trial):
                self.give_up(trial)

    def start_with_default(self) -> None:
        """The first trial of a study is the default."""
        if not self._study.get_trials(deepcopy=False):
            self._study.enqueue_trial(self._default)

    def ask(self, budget: int) -> Any | None:
        """Return a trial to do, or None if enough are done or under way on this machine.

        Another machine's trials count when they are done: from here, nobody can tell whether they
        ever will be. A surplus is left out in the end.
        """
        done, running = len(self._finished()), self._running()
        if done + sum(map(self._is_under_way, running)) >= budget:
            return None
        # Seeded by its place: a continued study does not repeat its first proposals.
        self._study.sampler = self._optuna.samplers.TPESampler(seed=done + len(running))
        trial = self._study.ask(self._space)
        trial.set_user_attr("process", self._process)
        return trial

    def settings(self, trial: Any) -> Settings:
        """Return what is tried: numbers rounded, but for those of the default."""
        return {
            key: value if value == self._default[key] else _rounded(value)
            for key, value in trial.params.items()
        }

    def tell(self, trial: Any, settings: Settings, scores: Scores, seconds: float) -> Trial:
        """Keep the scores of a trial."""
        streams = {stream: of_stream._asdict() for stream, of_stream in scores.streams.items()}
        trial.set_user_attr("settings", settings)
        trial.set_user_attr("streams", streams)
        trial.set_user_attr("seconds", seconds)
        self._study.tell(trial, [scores.accuracy, scores.ratio])
        return next(one for one in self.done() if one.number == trial.number)

    def give_up(self, trial: Any) -> None:
        """Mark a trial as failed; its settings will be tried again."""
        self._study.tell(trial.number, state=self._states.FAIL)
        if trial.params.keys() == self._space.keys():
            self._study.enqueue_trial(dict(trial.params))

    def done(self) -> list[Trial]:
        """Return the finished trials in the order they were begun."""
        return [self._trial(frozen) for frozen in self._finished()]

    def _trial(self, frozen: Any) -> Trial:
        accuracy, ratio = frozen.values
        streams = {
            name: StreamScores(**figures | {"notes": tuple(figures["notes"])})
            for name, figures in frozen.user_attrs["streams"].items()
        }
        return Trial(
            number=frozen.number,
            settings=frozen.user_attrs["settings"],
            scores=Scores(accuracy=accuracy, ratio=ratio, streams=streams),
            seconds=frozen.user_attrs["seconds"],
            is_default=frozen.user_attrs["settings"] == self._default,
        )

    def _finished(self) -> list[Any]:
        return self._study.get_trials(deepcopy=False, states=(self._states.COMPLETE,))

    def _running(self) -> list[Any]:
        return self._study.get_trials(deepcopy=False, states=(self._states.RUNNING,))

    def _is_under_way(self, trial: Any) -> bool:
        """Whether another living process of this machine is doing a trial; this one has none."""
        host, pid = trial.user_attrs.get("process", UNKNOWN)
        return [host, pid] != self._process and host == self._process[0] and _is_alive(pid)


def _rounded(value: Any) -> Any:
    """A setting as one would write it down.

    >>> _rounded(0.0123456), _rounded(20), _rounded("eo")
    (0.0123, 20, 'eo')
    """
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)  # somebody else's is alive as well
    return True
