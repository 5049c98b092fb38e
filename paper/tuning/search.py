"""Tuning: settings tried one after another, in a study that can be stopped and gone on with.

    tune(objective, space, default=..., name=..., storage=..., trials=60) -> [Trial, ...]

`objective(settings) -> Scores` tries settings and says how accurate and how fair they are; `space`
says which values each setting may take (`space`). Both may be anybody's: the learners' own
are in `learners`, and whoever brings another objective gets the same search with the same
budget. The first trial is always the default.

Optuna proposes (TPE, two objectives, both to be high) and its storage remembers. Every proposal
follows from the trials before it alone, so a study that was killed and gone on with tries the same
settings as one that never stopped. A trial whose process died is marked as failed and its settings
are tried again; a trial that failed is in nobody's budget.

Who wants several trials at once calls `tune` in several processes, or on several machines, with
one storage and one name (`learners` does): they share the budget.
"""

import math
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from fairsaoml.core.errors import ConfigError, RunError
from fairsaoml.runs.runner import Interrupted, interruptible
from paper.tuning.scores import Measured, Scores
from paper.tuning.space import Choice, Space

__all__ = ["GOAL", "RULE", "Objective", "Trial", "choose", "front", "tune"]

GOAL = 0.9  # the ratio that is fair enough
STEP_DOWN = 0.05  # by how much more the goal may be missed while nobody reaches it
RULE = (
    f"the most accurate trial with a ratio of {GOAL} or more on each stream; where there is none, "
    f"what is lacking on average may be {STEP_DOWN}, and so on. A learner that knows no fairness: "
    "the most accurate"
)
DIGITS = 3  # significant digits of a number that is tried
NOBODY = (None, 0)  # the process of a trial that does not say whose it is
DATABASE_PATIENCE = 60.0  # seconds to wait for another process that writes to the same file

Settings = dict[str, Any]
Objective = Callable[[Settings], Scores]


class Trial(NamedTuple):
    """Settings that were tried."""

    number: int  # in the order they were begun; those that failed have one too
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

    `default` gives a value for every name in `space`. `name` is the study's in its storage: what
    is not comparable must not share it. `storage` is an address of a database that Optuna can use
    ("sqlite:///study.db", "postgresql://..."), or a journal file's path, for network disks that
    cannot lock. `on_trial` is called after each that is made here.

    Ctrl-C lets the trial at hand end and raises `Interrupted`; twice, it does not wait. An error in
    the objective ends the call; what is done is kept, and what failed is tried again by the next.
    """
    for setting, range in space.items():
        if not range.holds(default[setting]):
            raise ConfigError(f"expected a default of {setting} within {range}, got {default}")
    with _Study(storage, name, space, default) as study:
        study.release_the_dead()
        study.begin_with_the_default()
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
    """The trials that no other one beats in accuracy and ratio, least accurate first.

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
    """The one to use, by `RULE`; `fair` is whether the learner knows fairness.

    Lowering the goal by steps keeps a learner that falls short of it from being set to its least
    accurate trial for a hundredth of ratio. What one stream has above the goal does not make up
    for what another lacks.

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
        ratios = [found.ratio for found in trial.scores.streams.values()] or [trial.scores.ratio]
        lacking = fmean(max(0.0, GOAL - ratio) for ratio in ratios)
        return math.ceil(round(lacking / STEP_DOWN, 9)) if fair else 0

    return min(
        trials,
        key=lambda t: (steps_down(t), -t.scores.accuracy, -t.scores.ratio, t.number),
    )


class _Study:
    """What is used of Optuna: one study, by the verbs that tuning needs."""

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

    def __enter__(self) -> "_Study":
        return self

    def __exit__(self, *raised: object) -> None:
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

    def release_the_dead(self) -> None:
        """Trials whose process is gone failed; their settings are tried again."""
        for trial in self._running():
            host, _ = trial.user_attrs.get("process", NOBODY)
            if host == self._process[0] and not self._is_being_made(trial):
                self.give_up(trial)

    def begin_with_the_default(self) -> None:
        """The first trial of a study is the default."""
        if not self._study.get_trials(deepcopy=False):
            self._study.enqueue_trial(self._default)

    def ask(self, budget: int) -> Any | None:
        """A trial to be made, unless enough are done or are being made on this machine.

        Another machine's are in the budget when they are done: nobody can tell from here that they
        ever will be. What is too much in the end is left out.
        """
        done, running = len(self._finished()), self._running()
        if done + sum(map(self._is_being_made, running)) >= budget:
            return None
        # Seeded by its place: a study gone on with does not repeat its first proposals.
        self._study.sampler = self._optuna.samplers.TPESampler(seed=done + len(running))
        trial = self._study.ask(self._space)
        trial.set_user_attr("process", self._process)
        return trial

    def settings(self, trial: Any) -> Settings:
        """What is tried: numbers as a person would write them, but for the default's own."""
        return {
            key: value if value == self._default[key] else _rounded(value)
            for key, value in trial.params.items()
        }

    def tell(self, trial: Any, settings: Settings, scores: Scores, seconds: float) -> Trial:
        """Keep what settings scored."""
        streams = {name: found._asdict() for name, found in scores.streams.items()}
        trial.set_user_attr("settings", settings)
        trial.set_user_attr("streams", streams)
        trial.set_user_attr("seconds", seconds)
        self._study.tell(trial, [scores.accuracy, scores.ratio])
        return next(one for one in self.done() if one.number == trial.number)

    def give_up(self, trial: Any) -> None:
        """A trial that came to nothing; its settings wait to be tried again."""
        self._study.tell(trial.number, state=self._states.FAIL)
        if trial.params.keys() == self._space.keys():
            self._study.enqueue_trial(dict(trial.params))

    def done(self) -> list[Trial]:
        """The trials that came to an end, in the order they were begun."""
        return [self._trial(found) for found in self._finished()]

    def _trial(self, found: Any) -> Trial:
        accuracy, ratio = found.values
        streams = {
            name: Measured(**figures | {"notes": tuple(figures["notes"])})
            for name, figures in found.user_attrs["streams"].items()
        }
        return Trial(
            number=found.number,
            settings=found.user_attrs["settings"],
            scores=Scores(accuracy=accuracy, ratio=ratio, streams=streams),
            seconds=found.user_attrs["seconds"],
            is_default=found.user_attrs["settings"] == self._default,
        )

    def _finished(self) -> list[Any]:
        return self._study.get_trials(deepcopy=False, states=(self._states.COMPLETE,))

    def _running(self) -> list[Any]:
        return self._study.get_trials(deepcopy=False, states=(self._states.RUNNING,))

    def _is_being_made(self, trial: Any) -> bool:
        """Whether another process of this machine has a trial at hand; this one has none."""
        host, pid = trial.user_attrs.get("process", NOBODY)
        here, own = self._process
        return host == here and pid != own and _is_alive(pid)


def _rounded(value: Any) -> Any:
    """A setting as a person would write it down.

    >>> _rounded(0.0123456), _rounded(20), _rounded("eo")
    (0.0123, 20, 'eo')
    """
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
