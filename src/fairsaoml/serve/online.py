"""One object that learns round by round, decides, and can be saved.

The learners are pure functions; here their state is kept between calls, as scripts and services
need it. A round learned here is the same as in `fairsaoml run` with the same seed.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, wraps
from threading import RLock
from typing import Any, NamedTuple, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import jax
import numpy as np

from fairsaoml.core import keys, problem, threefry, types
from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.errors import ConfigError, DataError, warn
from fairsaoml.core.types import Attribute, Batch, Explanation, RoundInfo, Schema, State, Task
from fairsaoml.evaluate import compilation, flags, seeds, threads, traced
from fairsaoml.evaluate.round import shown_by
from fairsaoml.learners import registry
from fairsaoml.runs.checkpoint import structured
from fairsaoml.serve.saving import Saveable, Saved
from fairsaoml.streams.stream import checked

SEEDS = 2**32
PROGRAMS_KEPT = 64  # compiled learners: a search over more settings compiles some of them again
ROWS_AT_ONCE = 8192  # scored by one call; more rows are several calls of the same program
FEW_ROWS, MANY_ROWS = 64, 512  # decided by one call of a service


Call = TypeVar("Call", bound=Callable[..., Any])
_turns: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # a lock each; they are not pickled


def one_at_a_time(method: Call) -> Call:
    """Let the threads that learn in one model do so one after another."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        with _turns.get(self) or _turns.setdefault(self, RLock()):
            return method(self, *arguments, **options)

    return cast(Call, call)


class Programs(NamedTuple):
    """A learner's functions, compiled where they are JAX's, shared by all with its settings."""

    learner: types.Learner
    init: Callable[[np.uint32], State]
    step: Any  # (seed, round, state, batch) to state and info
    look: Any  # (state, x, group, explain) to logits, margins, and what an Explanation holds


class OnlineLearner(Saveable):
    """A registered learner and what it has learned so far.

    `learn` is one round; `scores` are calibrated logits; rows whose margin is above 0 are decided
    positive. Rows come coded as in a `Task`: labels 0 and 1, an integer per group.

    Parameters
    ----------
    schema
        Names of the features, and the sensitive attributes with their groups.
    learner
        A name that `fairsaoml learners` lists.
    settings
        Settings of the learner that differ from its defaults, by name.
    seed
        Seed of all that is random.

    Attributes
    ----------
    round
        Number of rounds learned from.
    info
        Diagnostics of the last round, None before the first.

    Raises
    ------
    ConfigError
        Where the learner or a setting is unknown, or a value is not allowed.

    >>> schema = Schema(features=("merit",), attributes=(Attribute("sex", ("f", "m")),))
    >>> online = OnlineLearner(schema, "fair-glc", {"model": "logistic"}, seed=0)
    >>> merit = np.linspace(-1, 1, 50, dtype=np.float32)[:, None]
    >>> task = Task(x=merit, y=merit[:, 0] > 0, group=np.arange(50)[:, None] % 2)
    >>> online.learn(task).round, online.decide(np.array([[-0.9], [0.9]])).tolist()
    (1, [False, True])
    """

    _home = "online"

    def __init__(
        self,
        schema: Schema,
        learner: str = registry.DEFAULT,
        settings: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
    ) -> None:
        if not isinstance(seed, int | np.integer) or not 0 <= seed < SEEDS:
            raise ConfigError(f"seed must be a whole number from 0 to {SEEDS - 1}; got {seed!r}")
        self.schema, self.learner, self.seed = schema, learner, int(seed)
        self.config = registry.configure(learner, settings)
        self.round = 0
        self.info: RoundInfo | None = None  # diagnostics of the last round
        self.state: State = self._programs.init(np.uint32(seed))  # as the learner keeps it

    @property
    def constraints(self) -> tuple[str, ...]:
        """Names of the constraints, in the order of `info.dual`."""
        return tuple(c.name for c in problem.make_problem(self.config, self.schema).constraints)

    @property
    def explains(self) -> bool:
        """Whether the learner can tell why rows are decided as they are."""
        return self._programs.learner.explain is not None

    @property
    def dual(self) -> np.ndarray:
        """The price on each constraint's violation after the last round."""
        assert self.info is not None  # there has been a round
        return np.asarray(self.info.dual)

    @property
    def weights(self) -> np.ndarray:
        """Weights of the experts that were present in the last round."""
        assert self.info is not None
        return np.asarray(self.info.weights)[np.asarray(self.info.present)]

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the last round, in words."""
        raised = {} if self.info is None else self.info.flags
        return tuple(words for flag, words in flags.WARNINGS.items() if raised.get(flag))

    @one_at_a_time
    def learn(self, task: Task) -> Self:
        """Learn from all rows of a task at once: one round.

        Rows with NaN are left out, with a warning.

        Parameters
        ----------
        task
            Features, labels and groups, coded by the schema.

        Returns
        -------
        The learner itself.

        Raises
        ------
        DataError
            Where the rows do not fit the schema; nothing is learned then.
        """
        compilation.require_unforked()
        if not isinstance(task, Task):
            kind = type(task).__name__
            raise DataError(f"expected a Task, got {kind}; give Task(x=x, y=y, group=group)")
        round = self.round + 1
        task = checked(task, self.schema, round)
        for words in task.warnings:
            warn(words)
        programs, rows = self._programs, len(task.y)
        state = programs.learner.grow(self.state, round)
        if state is not self.state:
            # Compiled for a smaller state: some forty megabytes that are not needed again.
            programs.step.clear_cache()
            programs.look.clear_cache()
        # As `seeds.stacked` pads a task, at a tenth of the cost.
        arrays = task.x, task.y, task.group, np.ones(rows, np.float32)
        size = rows if programs.learner.turn else seeds.bucket(rows)
        batch = Batch(*(_padded(one, size) for one in arrays))
        with threads.one_blas_thread():
            state, info = programs.step(np.uint32(self.seed), np.int32(round), state, batch)
            self.info = info if programs.learner.turn else jax.device_get(info)
        self.round, self.state = round, state
        return self

    def scores(self, x: Any) -> np.ndarray:
        """Return calibrated logits of rows.

        Parameters
        ----------
        x
            Rows as in a task, (row, feature).

        Returns
        -------
        One float64 for each row: the log-odds of a positive label.
        """
        return self.scored(x)[0]

    def decide(self, x: Any, group: Any = None) -> np.ndarray:
        """Return which rows are decided positive.

        Parameters
        ----------
        x
            Rows as in a task, (row, feature).
        group
            Their group codes, (row, attribute): of use only to a learner asked to be `aware`.

        Returns
        -------
        One boolean for each row.

        Raises
        ------
        DataError
            Where rows or groups do not fit the schema, or hold NaN or infinity.
        """
        return self.margins(x, group) > 0

    def margins(self, x: Any, group: Any = None) -> np.ndarray:
        """Return how far each row is from the other decision; above 0 is positive.

        The arguments are those of `decide`.
        """
        return self.scored(x, group)[1]

    @property
    def threshold(self) -> float:
        """The score above which a row is decided positive, where the score alone decides."""
        scores, margins = self.scored(np.zeros((1, len(self.schema.features))))
        return float(scores[0] - margins[0])

    def scored(self, x: Any, group: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return both the scores and the margins of rows; the arguments are those of `decide`."""
        scores, margins = self._look(x, group, explain=False)
        return scores, margins

    def explain(self, x: Any, group: Any = None) -> Explanation | None:
        """Return why rows are decided as they are; the arguments are those of `decide`.

        Returns
        -------
        Probabilities, the thresholds they needed and what moved these, and each column's part in
        the score. None where the learner cannot tell.
        """
        return self.explained(x, group)[2]

    def explained(
        self, x: Any, group: Any = None
    ) -> tuple[np.ndarray, np.ndarray, Explanation | None]:
        """Return scores and margins of rows, and what `explain` says of them, in one pass."""
        scores, margins, *why = self._look(x, group, explain=True)
        return scores, margins, Explanation._make([*why, None]) if why else None

    def _look(self, x: Any, group: Any, *, explain: bool) -> list[np.ndarray]:
        """Return what is seen of rows, so many at a time; a scalar is the same for all.

        Two sizes of an explaining program are all that a service needs: a few rows, and many.
        """
        compilation.require_unforked()
        x, group = self._checked(x, group)
        most, parts = MANY_ROWS if explain else ROWS_AT_ONCE, []
        for first in range(0, max(len(x), 1), most):
            rows = slice(first, first + most)
            room = count = len(x[rows])
            if not self._programs.learner.turn:
                room = seeds.bucket(count)
                room = MANY_ROWS if explain and room > FEW_ROWS else room
            padded = _padded(x[rows], room), _padded(group[rows], room)
            with threads.one_blas_thread():
                said = self._programs.look(self.state, *padded, explain)
            arrays = [np.asarray(one, np.float64) for one in said]
            parts.append([one[:count] if one.ndim else one for one in arrays])
        if len(parts) == 1:
            return parts[0]
        same = zip(*parts, strict=True)
        return [np.concatenate(one) if one[0].ndim else one[0] for one in same]

    def _checked(self, x: Any, group: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and their groups as they are decided; DataError where they do not fit."""
        try:
            x = np.asarray(x, np.float32)
        except (TypeError, ValueError) as problem:
            raise DataError(f"expected rows of numbers ({problem}); encode words first") from None
        width = len(self.schema.features)
        unknown = np.array([len(levels) for _, levels in self.schema.attributes], np.int32)
        if x.ndim != 2 or x.shape[1] != width:
            raise DataError(
                f"expected rows of the {width} features of the schema, got shape {x.shape}; give a "
                "table, (row, feature)"
            )
        require_finite(x)
        if group is None:  # nobody knows
            return x, np.broadcast_to(unknown, (len(x), len(unknown)))
        group = np.asarray(group)
        if group.shape != (len(x), len(unknown)) or not ((group >= 0) & (group <= unknown)).all():
            names = ", ".join(f"{name} 0 to {len(ls)}" for name, ls in self.schema.attributes)
            raise DataError(
                f"expected {len(x)} x {len(unknown)} group codes ({names}; the last is 'not "
                f"known'), got shape {group.shape} with values {np.unique(group)[:5]}; give one of "
                "each per row"
            )
        return x, group.astype(np.int32)

    @cached_property
    def _programs(self) -> Programs:
        entry = registry.entry(self.learner)
        levels = tuple(len(levels) for _, levels in self.schema.attributes)
        return _made(entry, self.config, len(self.schema.features), levels)

    def __getstate__(self) -> dict[str, Any]:
        """Return plain arrays, so that copies and pickles hold no device buffers or programs."""
        kept = {name: value for name, value in self.__dict__.items() if name != "_programs"}
        return {**kept, "state": jax.device_get(self.state)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Take what was kept; earlier versions called the state `_state`."""
        self.__dict__ |= {"state" if name == "_state" else name: kept[name] for name in kept}

    def _saved(self) -> Saved:
        manifest = {
            "learner": self.learner,
            "config": self.config.to_dict(),
            **self.schema._asdict(),
            "seed": self.seed,
        }
        return Saved(round=self.round, arrays=(self.state, self.info), manifest=manifest)

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        manifest = saved.manifest
        attributes = tuple(Attribute(name, tuple(ls)) for name, ls in manifest["attributes"])
        schema = Schema(features=tuple(manifest["features"]), attributes=attributes)
        made = {name: manifest[name] for name in ("learner", "config", "seed")}
        self = cls.resumed(schema, **made, round=saved.round, state=None)
        state, self.info = structured(saved.arrays, self._like())
        self.state = self._placed(state)
        return self

    @classmethod
    def resumed(
        cls, schema: Schema, learner: str, config: Any, *, seed: int, round: int, state: State
    ) -> Self:
        """Return a learner that goes on from a state reached elsewhere, as in a run."""
        self = cls.__new__(cls)
        self.schema, self.learner, self.seed, self.round = schema, learner, seed, round
        self.config = registry.entry(learner).config.from_dict(config, saved=True)
        self.info = None
        self.state = self._placed(state)
        return self

    def _placed(self, state: State) -> State:
        """Return a state where the learner's functions take it from."""
        return state if self._programs.learner.turn else jax.device_put(state)

    def _like(self) -> tuple[State, RoundInfo | None]:
        """Return the structure of a state and its diagnostics; nothing is computed."""
        plain = self._programs.learner.turn
        shapes = (lambda function, *of: function(*of)) if plain else jax.eval_shape
        state = shapes(self._programs.init, np.uint32(0))
        if not self.round:
            return state, None
        x = np.zeros((0, len(self.schema.features)), np.float32)
        group = np.zeros((0, len(self.schema.attributes)), np.int32)
        none = np.zeros(0, np.float32)
        step = self._programs.step if plain else self._programs.step.shapes
        return step(np.uint32(0), np.int32(1), state, Batch(x, none, group, none))


def require_finite(x: np.ndarray, where: str = "") -> None:
    """Raise DataError where a row holds NaN or infinity."""
    values = np.ravel(x, "K")
    with np.errstate(all="ignore"):
        if np.isfinite(values @ values):  # as it is where all are, unless it overflows
            return
    broken = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(broken):
        raise DataError(
            f"expected finite numbers, got NaN or infinity in {len(broken)} rows{where}, the first "
            f"is row {broken[0]}; fill them in or leave the rows out"
        )


class LearnerAttributes:
    """What a model tells of the learner that it holds."""

    @property
    @abstractmethod
    def _learned(self) -> OnlineLearner: ...

    @property
    def n_rounds_(self) -> int:
        """Number of rounds learned from."""
        return self._learned.round

    @property
    def groups_(self) -> dict[str, tuple[str, ...]]:
        """The known groups of each sensitive column, as text."""
        return dict(self._learned.schema.attributes)

    @property
    def constraints_(self) -> tuple[str, ...]:
        """Names of the constraints, such as 'dp[sex=m]'; `dual_` is in their order."""
        return self._learned.constraints

    @property
    def dual_(self) -> np.ndarray:
        """The price on each constraint's violation; 0 where it costs nothing."""
        return self._of_last_round("dual")

    @property
    def weights_(self) -> np.ndarray:
        """Weights of the experts that were present in the last round."""
        return self._of_last_round("weights")

    def _of_last_round(self, name: str) -> np.ndarray:
        """Return a figure of the last round."""
        return getattr(self._learned, name)


def _padded(values: np.ndarray, size: int) -> Any:
    if size == len(values):
        return values
    room = np.zeros((size, *values.shape[1:]), values.dtype)
    room[: len(values)] = values
    return room


@lru_cache(maxsize=PROGRAMS_KEPT)
def _made(entry: registry.Entry, config: LearnerConfig, width: int, levels: tuple) -> Programs:
    """Return the functions compiled once for all learners of these settings and widths."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        compilation.use_cache()  # unless the calling program has set one
    features, *groups = (tuple(map(str, range(count))) for count in (width, *levels))
    attributes = (Attribute(str(place), names) for place, names in enumerate(groups))
    _, learner = registry.pose(entry, config, Schema(features, tuple(attributes)))

    def init(seed: Any) -> State:
        return learner.init(None if learner.turn else keys.init_key(threefry.from_seeds(seed)))

    def step(seed: Any, round: Any, state: State, batch: Batch) -> tuple[State, RoundInfo]:
        key = None if learner.turn else keys.round_keys(threefry.from_seeds(seed), round).step
        return learner.step(key, round, state, batch)

    def look(state: State, x: Any, group: Any, explain: bool) -> tuple[Any, ...]:
        if explain and learner.explain is not None:
            *why, shown = learner.explain(state, x, group)
            return (*(shown or shown_by(learner, state, x, group))[:2], *why)
        return shown_by(learner, state, x, group)[:2]

    if learner.turn:
        return Programs(learner, init, step, look)
    made_of = learner.made_of and f"online {learner.made_of}"
    return Programs(
        learner=learner,
        init=compilation.jit_once(init),
        step=traced.TracedOnce(step, made_of, (RoundInfo,)),
        look=compilation.jit(look, static_argnames="explain"),
    )
