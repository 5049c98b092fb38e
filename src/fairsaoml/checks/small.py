"""A learner under examination: in a small size, on small rounds, its programs compiled once."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.core.keys import round_keys
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, RoundInfo, Schema, State, Task
from fairsaoml.evaluate.seeds import part_of, stacked
from fairsaoml.learners.registry import Entry
from fairsaoml.learners.registry import entry as registered_entry

ROUNDS = 5
ROWS = 24
SEEDS = (0, 1)
PADDINGS = (32, 64)
HORIZON = 6  # two levels: enough to branch on
# Half the time to compile; each program runs a few times only.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}

GROUP = Attribute("group", ("one", "other"))
SCHEMA = Schema(features=("merit", "proxy", "noise"), attributes=(GROUP,))
SMALL = {
    "model": "mlp",
    "hidden": (4,),
    "capacity": 16,
    "support": 4,
    "query": 4,
    "meta_iterations": 2,
    "tasks_kept": 3,
}


class Subject:
    """A registered learner in a small size, and its compiled round, kept from check to check."""

    def __init__(self, name: str, entry: Entry, horizon: int | None = HORIZON) -> None:
        self.name, self.entry = name, entry
        rules = {name: item.metadata["rule"] for name, item in entry.settings.items()}
        wished = {**SMALL, "horizon": horizon}.items()
        taken = {k: v for k, v in wished if k in rules and rules[k].holds(v)}
        self.config = entry.config.from_dict(taken)
        self.problem = make_problem(self.config, SCHEMA)
        self.learner = entry.factory(self.problem, self.config)
        self.traces: dict[int, int] = {}  # by padding
        self._courses: dict[int, list[tuple[State, Any]]] = {}

    @property
    def compiles(self) -> bool:
        """Whether its functions are JAX's; NumPy's are called as they are."""
        return self.learner.turn is None

    def program(self, function: Callable) -> Callable:
        """A function of the learner's, compiled if that is what is done with it."""
        return jax.jit(function, compiler_options=QUICK) if self.compiles else function

    def shapes(self, name: str, *arguments: Any) -> Any:
        """What one of the learner's functions returns, as shapes; NumPy's are called for it."""
        function = getattr(self.learner, name)
        try:
            return jax.eval_shape(function, *arguments) if self.compiles else function(*arguments)
        except Exception as error:
            done, reason = "traced" if self.compiles else "called", str(error).partition("\n")[0]
            raise AssertionError(
                f"{self.name}: {name} cannot be {done}: {type(error).__name__}: {reason}"
            ) from error

    @cached_property
    def step(self) -> Any:
        """The compiled step, which counts how often it is compiled."""

        def counted(key: Any, round: Any, state: State, batch: Batch) -> tuple[State, RoundInfo]:
            self.traces[batch.y.shape[0]] = self.traces.get(batch.y.shape[0], 0) + 1
            return self.learner.step(key, round, state, batch)

        return self.program(counted)

    @cached_property
    def first(self) -> State:
        return self.program(self.learner.init)(jax.random.key(0))

    @cached_property
    def look(self) -> Callable:
        """What can be seen of a state: scores, margins, and margins after a few labels."""

        def look(state: State, batch: Batch) -> dict[str, Any]:
            seen = {
                "scores": self.learner.scores(state, batch.x),
                "margins": self.learner.margins(state, batch.x),
            }
            if self.learner.adapt:
                few = part_of(batch, slice(8))
                seen["adapted"] = self.learner.margins(self.learner.adapt(state, few), batch.x)
            return seen

        return self.program(look)

    @cached_property
    def margins(self) -> Callable:
        """The compiled margins of rows."""
        return self.program(self.learner.margins)

    @cached_property
    def together(self) -> Any:
        """The step of several seeds at once; the round is not an axis."""
        return jax.jit(jax.vmap(self.learner.step, in_axes=(0, None, 0, None)))

    def course(self, padding: int = PADDINGS[0]) -> list[tuple[State, Any]]:
        """State and diagnostics after each of the rounds, by the compiled step."""
        if padding not in self._courses:
            rounds = batches(tasks(), padding)
            self._courses[padding] = list(self.run_rounds(self.step, rounds))
        return self._courses[padding]

    def run_rounds(
        self,
        step: Callable,
        rounds: Sequence[Batch],
        seed: int = 0,
        begin: State | None = None,
        after: int = 0,
    ) -> Iterator[tuple[State, Any]]:
        """The state and the diagnostics after each round; round t has its own key.

        `begin` is the state after so many rounds: that of a learner that has seen nothing.
        """
        state = self.first if begin is None else begin
        for round, batch in enumerate(rounds, start=after + 1):
            key = round_key(seed, round) if self.compiles else None
            number = jnp.int32(round) if self.compiles else np.int32(round)
            state, info = step(key, number, state, batch)
            yield state, info

    def require(self, holds: Any, problem: str) -> None:
        if not holds:
            raise AssertionError(f"{self.name}: {problem}")

    def require_equal(
        self, one: Any, other: Any, what: str, tolerance: float | None = None
    ) -> None:
        """Two trees agree: floats within the tolerance (the learner's), all else exactly."""
        if tolerance is None:
            tolerance = self.entry.agreement
        for (path, left), right in zip(
            jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True
        ):
            left, right = np.asarray(left), np.asarray(right)
            if tolerance and np.issubdtype(left.dtype, np.floating):
                same = np.allclose(left, right, rtol=tolerance, atol=tolerance)
            else:
                same = np.array_equal(left, right)
            where = f" in {jax.tree_util.keystr(path)}" if path else ""
            few = [np.array2string(leaf.ravel()[:4], precision=8) for leaf in (left, right)]
            self.require(same, f"{what} differ{where}: {' against '.join(few)}")

    def require_same_course(self, other: Sequence[tuple], what: str, seed: int = 0) -> None:
        """Two courses over the rounds look alike at every round."""
        rounds = batches(tasks())
        own = self.run_rounds(self.step, rounds, seed) if seed else self.course()
        for round, (one, another, batch) in enumerate(zip(own, other, rounds, strict=True), 1):
            where = f"{what}, round {round},"
            self.require_equal(one[1], another[1], where)
            self.require_equal(self.look(one[0], batch), self.look(another[0], batch), where)

    def require_finite(self, tree: Any, what: str) -> None:
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            where = jax.tree_util.keystr(path)
            self.require(np.all(np.isfinite(leaf)), f"{what}: {where} is not finite")


@cache
def subject_of(name: str) -> Subject:
    """A registered learner, prepared once."""
    return Subject(name, registered_entry(name))


def tasks(rounds: int = ROUNDS, rows: int = ROWS, seed: int = 0) -> list[Task]:
    """Labels that follow merit, groups that a proxy reveals and that are labelled differently."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(rounds):
        group = random.integers(0, 2, rows)
        merit = random.normal(size=rows)
        y = (merit + 0.8 * (group - 0.5) + 0.3 * random.normal(size=rows) > 0).astype(np.float32)
        proxy = group - 0.5 + 0.3 * random.normal(size=rows)
        x = np.stack([merit, proxy, random.normal(size=rows)], axis=1).astype(np.float32)
        made.append(Task(x=x, y=y, group=group[:, None].astype(np.int32)))
    return made


def batches(rounds: Sequence[Task], padding: int = PADDINGS[0]) -> list[Batch]:
    return [part_of(stacked([task], padding), 0) for task in rounds]


def round_key(seed: int, round: Any) -> Any:
    return round_keys(jax.random.key(seed), round).step


def described(tree: Any) -> list[tuple]:
    """Every leaf's place, shape and dtype."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf.shape, leaf.dtype) for path, leaf in leaves]
