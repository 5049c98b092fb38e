"""What every learner must do, ours or another package's: `check_learner("fairsaoml")`.

Each check takes a `Subject` and raises AssertionError with the learner's name and what is wrong.
Learners are checked in a small size, on rounds whose groups differ, so that prices on unfairness
are paid. Programs that should do the same (compiled, eager, scanned, vmapped, padded otherwise) are
held to the learner's `agreement` (1e-5) over five rounds, integers exactly; the same program with
the same key to the byte.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.core.errors import ConfigError
from fairsaoml.core.keys import round_keys
from fairsaoml.core.problem import make_problem
from fairsaoml.core.types import Attribute, Batch, RoundInfo, Schema, State, Task
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.prequential import stacked
from fairsaoml.learners.registry import Entry
from fairsaoml.learners.registry import entry as registered_entry

__all__ = ["CHECKS", "Subject", "check_learner", "subject_of"]

ROUNDS = 5
ROWS = 24
PADDINGS = (32, 64)
HORIZON = 6  # two levels: enough to branch on
FAR = 300  # a round that an endless stream's first storage has no room for
TOLERANCE = 1e-5  # between programs that round differently
# Half the time to compile; each program runs a few times only.
# A branch in a program's text that computes something: to choose between two states may be batched.
BRANCH = re.compile(r'"stablehlo.case"\(.*?\) \(\{\n\s*(?!stablehlo.return)\S')
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
COMMON_FLAGS = ("empty", "one_class", "one_group", "dual_pinned", "not_finite")
BAD = (15, 3)  # rounds before bad batches, and how many of those there are
GOTTEN_OVER = 0.02  # of accuracy, ten rounds later
EASY_ROUNDS = 30  # so many rounds of an easy stream must leave a trace

SCHEMA = Schema(
    features=("merit", "proxy", "noise"), attributes=(Attribute("group", ("one", "other")),)
)
SMALL = {
    "model": "mlp",
    "hidden": (4,),
    "capacity": 16,
    "support": 4,
    "query": 4,
    "meta_iterations": 2,
    "tasks_kept": 3,
}


class Seen(NamedTuple):
    """What a round shows: what it was scored with, and the diagnostics of learning from it."""

    scores: Any
    margins: Any
    info: RoundInfo


class Subject:
    """A registered learner in a small size, and its compiled round, kept from check to check."""

    def __init__(self, name: str, entry: Entry, horizon: int | None = HORIZON) -> None:
        self.name, self.entry = name, entry
        rules = {name: item.metadata["rule"] for name, item in entry.settings.items()}
        settings = {**SMALL, "horizon": horizon}
        self.config = entry.config.from_dict(
            {k: v for k, v in settings.items() if k in rules and rules[k].holds(v)}
        )
        self.problem = make_problem(self.config, SCHEMA)
        self.learner = entry.factory(self.problem, self.config)
        self.traces: dict[int, int] = {}  # by padding

    @cached_property
    def step(self) -> Callable:
        """The compiled step, which counts how often it is compiled."""

        def counted(key: Any, round: Any, state: State, batch: Batch) -> tuple[State, RoundInfo]:
            self.traces[batch.y.shape[0]] = self.traces.get(batch.y.shape[0], 0) + 1
            return self.learner.step(key, round, state, batch)

        return quick(counted)

    @cached_property
    def first(self) -> State:
        return quick(self.learner.init)(jax.random.key(0))

    @cached_property
    def look(self) -> Callable:
        """What can be seen of a state: scores, margins, and margins after a few labels."""

        def look(state: State, batch: Batch) -> dict[str, Any]:
            few = jax.tree.map(lambda leaf: leaf[:8], batch)
            adapted = self.learner.adapt(state, few)
            return {
                "scores": self.learner.scores(state, batch.x),
                "margins": self.learner.margins(state, batch.x),
                "adapted": self.learner.margins(adapted, batch.x),
            }

        return quick(look)

    @cached_property
    def scan(self) -> Callable:
        """All rounds as one program: what each was scored with, and its diagnostics."""

        def one(state: State, turn: tuple) -> tuple[State, Seen]:
            round, batch = turn
            scores = self.learner.scores(state, batch.x)
            margins = self.learner.margins(state, batch.x)
            state, info = self.learner.step(round_key(0, round), round, state, batch)
            return state, Seen(scores=scores, margins=margins, info=info)

        numbers = np.arange(1, ROUNDS + 1, dtype=np.int32)
        whole = quick(lambda state, stack: jax.lax.scan(one, state, (numbers, stack)))

        def scan(rounds: Sequence[Task]) -> tuple[State, Seen]:
            stack = jax.tree.map(lambda *leaves: np.stack(leaves), *batches(rounds))
            return whole(self.first, stack)

        return scan

    @cached_property
    def course(self) -> list[tuple[State, Any]]:
        """State and diagnostics after each of the rounds, by the compiled step."""
        return list(self.run_rounds(self.step, batches(tasks())))

    def run_rounds(
        self, step: Callable, rounds: Sequence[Batch], seed: int = 0
    ) -> Iterator[tuple[State, Any]]:
        """The state and the diagnostics after each round; round t has its own key."""
        state = self.first
        for round, batch in enumerate(rounds, start=1):
            state, info = step(round_key(seed, round), np.int32(round), state, batch)
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
            exact = not np.issubdtype(left.dtype, np.floating) or tolerance == 0
            same = (
                np.array_equal(left, right)
                if exact
                else np.allclose(left, right, rtol=tolerance, atol=tolerance)
            )
            where = jax.tree_util.keystr(path)
            self.require(same, f"{what} differ in {where}: {_few(left)} against {_few(right)}")

    def require_same_course(self, other: Sequence[tuple], what: str, seed: int = 0) -> None:
        """Two courses over the rounds look alike at every round."""
        rounds = batches(tasks())
        own = list(self.run_rounds(self.step, rounds, seed))
        for round, (one, another, batch) in enumerate(zip(own, other, rounds, strict=True), 1):
            where = f"{what}, round {round},"
            self.require_equal(one[1], another[1], where)
            self.require_equal(self.look(one[0], batch), self.look(another[0], batch), where)

    def require_finite(self, tree: Any, what: str) -> None:
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            where = jax.tree_util.keystr(path)
            self.require(np.all(np.isfinite(leaf)), f"{what}: {where} is not finite")


def check_learner(name: str, entry: Entry | None = None) -> None:
    """Every check, on a registered learner or on an entry that is to be registered."""
    subject = subject_of(name) if entry is None else Subject(name, entry)
    for check in CHECKS:
        check(subject)


@lru_cache
def subject_of(name: str) -> Subject:
    """A registered learner, prepared once."""
    return Subject(name, registered_entry(name))


def quick(function: Callable) -> Callable:
    return jax.jit(function, compiler_options=QUICK)


# The rounds


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
    return [jax.tree.map(lambda leaf: leaf[0], stacked([task], padding)) for task in rounds]


def round_key(seed: int, round: Any) -> Any:
    return round_keys(jax.random.key(seed), round).step


def described(tree: Any) -> list[tuple]:
    """Every leaf's place, shape and dtype."""
    return [
        (jax.tree_util.keystr(path), leaf.shape, leaf.dtype)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]


def _few(values: np.ndarray) -> str:
    return np.array2string(values.ravel()[:4], precision=8)


# The checks


def check_config_round_trips(subject: Subject) -> None:
    """Settings survive JSON, and a misspelled one is refused."""
    config, kind = subject.config, subject.entry.config
    again = kind.from_dict(json.loads(json.dumps(config.to_dict())))
    subject.require(again == config, f"settings change on the way through JSON: {again}")
    subject.require(kind.from_dict(kind().to_dict()) == kind(), "default settings do not survive")
    try:
        kind.from_dict({"no_such_setting": 1})
    except ConfigError:
        return
    subject.require(False, "an unknown setting must raise ConfigError")


def check_scores_before_any_step(subject: Subject) -> None:
    """A learner that has seen nothing already scores: finite logits, one a row."""
    batch = batches(tasks())[0]
    seen = subject.look(subject.first, batch)
    subject.require_finite(seen, "before any step")
    subject.require(seen["scores"].shape == batch.y.shape, "expected one score a row")
    subject.require(seen["margins"].shape == batch.y.shape, "expected one margin a row")


def check_structure_is_stable(subject: Subject) -> None:
    """A step returns what it was given: structure, shapes, dtypes; float32 and no random keys.

    Traced under strict promotion, so that no dtype changes unasked.
    """
    batch = jax.tree.map(jnp.asarray, batches(tasks())[0])
    with jax.numpy_dtype_promotion("strict"):
        before = jax.eval_shape(subject.learner.init, jax.random.key(0))
        after, info = jax.eval_shape(
            subject.learner.step, jax.random.key(0), jnp.int32(1), before, batch
        )
        adapted = jax.eval_shape(subject.learner.adapt, before, batch)
    for name, state in (("step", after), ("adapt", adapted)):
        same = described(before) == described(state)
        subject.require(same, f"{name} returns a state of another structure, shape or dtype")
    for leaf in jax.tree.leaves((before, info)):
        subject.require(
            leaf.dtype in (jnp.float32, jnp.int32, jnp.bool_),
            f"expected float32, int32 and bool, got {leaf.dtype}; keys are handed in, never kept",
        )


def check_one_compilation_per_padding(subject: Subject) -> None:
    """Many rounds, one program for each padded size."""
    for padding in PADDINGS:
        for _ in subject.run_rounds(subject.step, batches(tasks(rounds=9), padding)):
            pass
        times = subject.traces[padding]
        subject.require(times == 1, f"compiled {times} times for rounds of one padded size")


def check_same_key_same_result(subject: Subject) -> None:
    """The same program, key and rows give the same bytes."""
    again = list(subject.run_rounds(subject.step, batches(tasks())))
    subject.require_equal(subject.course, again, "two identical runs", tolerance=0)


def check_eager_agrees(subject: Subject) -> None:
    """Uncompiled, operation by operation, the rounds come out the same."""
    rounds = batches(tasks())
    with jax.disable_jit():
        eager = list(subject.run_rounds(subject.learner.step, rounds))
    subject.require_same_course(eager, "compiled and eager rounds")


def check_scan_agrees(subject: Subject) -> None:
    """One scan over all rounds comes out as the rounds one by one."""
    _, scanned = subject.scan(tasks())
    for index, (_, info) in enumerate(subject.course):
        one = jax.tree.map(lambda leaf: leaf[index], scanned.info)  # noqa: B023
        subject.require_equal(info, one, f"loop and scan, round {index + 1},")
        if index + 1 < ROUNDS:
            state, batch = subject.course[index][0], batches(tasks())[index + 1]
            subject.require_equal(
                subject.look(state, batch)["scores"],
                scanned.scores[index + 1],
                f"loop and scan, round {index + 2}, scores",
            )


def check_vmap_agrees(subject: Subject) -> None:
    """Seeds as an axis come out as each seed alone."""
    rounds, seeds = batches(tasks()), (0, 1)
    together = quick(jax.vmap(subject.learner.step, in_axes=(0, None, 0, None)))
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(seeds)), subject.first)
    courses: list[list[tuple[State, RoundInfo]]] = [[] for _ in seeds]
    for round, batch in enumerate(rounds, start=1):
        keys = jnp.stack([round_key(seed, round) for seed in seeds])
        states, infos = together(keys, np.int32(round), states, batch)
        for seed, course in zip(seeds, courses, strict=True):
            course.append(jax.tree.map(lambda leaf: leaf[seed], (states, infos)))  # noqa: B023
    for seed, course in zip(seeds, courses, strict=True):
        subject.require_same_course(course, "alone and vmapped over seeds", seed=seed)


def check_paddings_agree(subject: Subject) -> None:
    """Rows of weight 0 change nothing."""
    padded = list(subject.run_rounds(subject.step, batches(tasks(), PADDINGS[1])))
    subject.require_same_course(padded, "paddings")


def check_vmap_keeps_branches(subject: Subject) -> None:
    """A switch or loop on the round stays one under vmap over seeds: the round is not an axis.

    Batched, a switch computes every branch, and a loop goes on for all while anyone goes on.
    """
    batch = jax.tree.map(jnp.asarray, batches(tasks())[0])
    key, round = jax.random.key(0), jnp.int32(1)

    def cases(step: Callable, *arguments: Any) -> tuple[int, int]:
        text = jax.jit(step).lower(*arguments).as_text()
        return len(BRANCH.findall(text)), text.count("applies stablehlo.or")

    alone = cases(subject.learner.step, key, round, subject.first, batch)
    keys, states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (key, subject.first))
    vmapped = jax.vmap(subject.learner.step, in_axes=(0, None, 0, None))
    together = cases(vmapped, keys, round, states, batch)
    subject.require(
        together[0] == alone[0],
        f"vmapped over seeds, {together[0]} of {alone[0]} branches are left",
    )
    subject.require(
        together[1] == alone[1],
        f"vmapped over seeds, {together[1] - alone[1]} loops wait for the slowest seed",
    )


def check_odd_rounds_stay_finite(subject: Subject) -> None:
    """One class, one group, a single row, no row at all: said in a flag, survived, learned past."""
    usual = tasks()
    one = usual[1]
    odd = {
        "one_class": one._replace(y=np.ones_like(one.y)),
        "one_group": one._replace(group=np.zeros_like(one.group)),
        "empty": Task(x=one.x[:0], y=one.y[:0], group=one.group[:0]),
        "": Task(x=one.x[:1], y=one.y[:1], group=one.group[:1]),
    }
    for flag, task in odd.items():
        for place in (0, 2):  # as the very first round, and later
            rounds = batches([*usual[:place], task, *usual[place:]])
            course = list(subject.run_rounds(subject.step, rounds))
            name = flag or "single row"
            subject.require_finite(
                [subject.look(state, rounds[-1]) for state, _ in course], f"a round of {name}"
            )
            subject.require(
                not any(info.flags["not_finite"] for _, info in course),
                f"a round of {name} made the update infinite",
            )
            subject.require(
                not flag or course[place][1].flags[flag], f"a round of {name} must raise its flag"
            )


def check_diagnostics_are_sound(subject: Subject) -> None:
    """Prices >= 0, one for each constraint; weights >= 0, sum 1, none for who is absent."""
    for _, info in subject.course:
        subject.require(
            set(COMMON_FLAGS) <= set(info.flags) <= set(WARNINGS),
            f"expected the flags {', '.join(COMMON_FLAGS)}, and others only of {list(WARNINGS)}",
        )
        dual, weights = np.asarray(info.dual), np.asarray(info.weights)
        subject.require(
            dual.shape == (len(subject.problem.constraints),), "expected a price per constraint"
        )
        subject.require(np.all(dual >= 0), f"a price is negative: {dual}")
        subject.require(np.all(weights >= 0), f"a weight is negative: {weights}")
        subject.require(abs(weights.sum() - 1) < TOLERANCE, f"weights sum to {weights.sum()}")
        absent = ~np.asarray(info.present)
        subject.require(not weights[absent].any(), "someone absent has weight")
        subject.require(not np.any(info.awake & absent), "someone absent is awake")


def check_no_peeking(subject: Subject) -> None:
    """What comes later changes nothing, to the byte; a round's labels do not reach its scores."""
    usual = tasks()
    turn = 2  # after so many rounds the labels change; one round later the features, for a round
    changed = [
        task._replace(y=1 - task.y, x=-task.x if index == turn + 1 else task.x)
        for index, task in enumerate(usual)
    ]
    before, after = (
        subject.scan(rounds)[1] for rounds in (usual, [*usual[:turn], *changed[turn:]])
    )
    for index in range(turn + 1):
        one, other = (
            jax.tree.map(lambda leaf: leaf[index], seen)  # noqa: B023
            for seen in (before, after)
        )
        where = f"with another future, round {index + 1},"
        subject.require_equal(one[:2], other[:2], f"{where} scores", tolerance=0)
        if index < turn:
            subject.require_equal(one.info, other.info, where, tolerance=0)
    subject.require(
        np.any(np.asarray(before.scores[-1]) != np.asarray(after.scores[-1])),
        "what was changed never mattered: the learner does not learn",
    )


def check_grows_for_an_endless_stream(subject: Subject) -> None:
    """Growing changes no score, is done once, and leaves a state that a step accepts."""
    endless = Subject(subject.name, subject.entry, horizon=None)
    batch = jax.tree.map(jnp.asarray, batches(tasks())[0])
    small, grow = endless.first, endless.learner.grow
    large = grow(small, FAR)
    subject.require_equal(
        endless.learner.scores(small, batch.x),
        endless.learner.scores(large, batch.x),
        "scores before and after growing",
    )
    again = described(grow(large, FAR))
    subject.require(again == described(large), "it grows for the same round twice")
    after, _ = jax.eval_shape(endless.learner.step, jax.random.key(0), jnp.int32(FAR), large, batch)
    subject.require(described(after) == described(large), "a grown state does not stay so")


def check_it_learns(subject: Subject) -> None:
    """On an easy stream that never changes it ends more accurate than it began."""
    rounds = tasks(EASY_ROUNDS, seed=1)
    fresh = tasks(rounds=1, rows=400, seed=2)[0]

    def accuracy(state: State) -> float:
        margins = np.asarray(subject.learner.margins(state, jnp.asarray(fresh.x)))
        return float(((margins > 0) == fresh.y).mean())

    *_, (last, _) = subject.run_rounds(subject.step, batches(rounds))
    began, ended = accuracy(subject.first), accuracy(last)
    subject.require(
        ended > max(began, 0.6), f"accuracy went from {began:.2f} to {ended:.2f} on an easy stream"
    )


def check_it_gets_over_bad_batches(subject: Subject) -> None:
    """Three batches with a column times 1000, or with labels flipped: ten rounds later it is gone.

    Accuracy on fresh rows is then at most GOTTEN_OVER below that of one that never saw them.
    """
    if not subject.entry.gets_over_bad_batches:
        return
    usual = tasks(BAD[0] + BAD[1] + 10, rows=PADDINGS[1], seed=3)
    fresh = tasks(rounds=1, rows=1000, seed=4)[0]
    inflate = np.array([1000, 1, 1], np.float32)
    spoilt = {
        "a column times 1000": lambda task: task._replace(x=task.x * inflate),
        "labels flipped": lambda task: task._replace(y=1 - task.y),
    }

    def accuracy(rounds: Sequence[Task]) -> float:
        *_, (last, _) = subject.run_rounds(subject.step, batches(rounds, PADDINGS[1]))
        margins = np.asarray(subject.learner.margins(last, jnp.asarray(fresh.x)))
        return float(((margins > 0) == fresh.y).mean())

    undisturbed = accuracy(usual)
    for what, spoil in spoilt.items():
        bad = range(BAD[0], BAD[0] + BAD[1])
        disturbed = accuracy([spoil(t) if i in bad else t for i, t in enumerate(usual)])
        subject.require(
            disturbed >= undisturbed - GOTTEN_OVER,
            f"ten rounds after {what} for three, accuracy is {disturbed:.3f}; "
            f"without them {undisturbed:.3f}",
        )


CHECKS: tuple[Callable[[Subject], None], ...] = (
    check_config_round_trips,
    check_scores_before_any_step,
    check_structure_is_stable,
    check_one_compilation_per_padding,
    check_same_key_same_result,
    check_eager_agrees,
    check_scan_agrees,
    check_vmap_agrees,
    check_paddings_agree,
    check_vmap_keeps_branches,
    check_odd_rounds_stay_finite,
    check_diagnostics_are_sound,
    check_no_peeking,
    check_grows_for_an_endless_stream,
    check_it_learns,
    check_it_gets_over_bad_batches,
)
