"""What every learner must do, ours or another package's: `check_learner("fairsaoml")`.

Each check takes a `Subject` and raises AssertionError with the learner's name and what is wrong.
Learners are checked in a small size, on rounds whose groups differ, so that prices on unfairness
are paid. Programs that should do the same (compiled, eager, scanned, vmapped, padded otherwise) are
held to the learner's `agreement` (1e-5) over five rounds, integers exactly; the same program with
the same key to the byte.
"""

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fairsaoml.checks import small
from fairsaoml.checks.small import Subject, batches, described, subject_of, tasks
from fairsaoml.core.errors import ConfigError
from fairsaoml.core.types import State, Task
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.seeds import part_of, together
from fairsaoml.learners.registry import Entry

__all__ = ["CHECKS", "Subject", "after_bad_batches", "check_learner", "subject_of"]

FAR = 300  # a round that an endless stream's first storage has no room for
TOLERANCE = 1e-5  # between programs that round differently
COMMON_FLAGS = ("empty", "one_class", "one_group", "dual_pinned", "not_finite")
BAD = (15, 3)  # rounds before bad batches, and how many of those there are
GOTTEN_OVER = 0.02  # of accuracy, ten rounds later
FRESH = 1000  # rows that accuracy is measured on
EASY_ROUNDS = 30  # so many rounds of an easy stream must leave a trace


def check_learner(name: str, entry: Entry | None = None) -> None:
    """Run every check on a learner.

    Args:
        name: The learner's name; a registered one, unless there is an entry.
        entry: An entry that is to be registered.

    Raises:
        AssertionError: The learner fails a check; the message says which law and where.
    """
    subject = subject_of(name) if entry is None else Subject(name, entry)
    for check in CHECKS:
        check(subject)


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


def check_structure_is_stable(subject: Subject) -> None:
    """A step returns what it was given: structure, shapes, dtypes; float32 and no random keys.

    Traced under strict promotion, so that no dtype changes unasked; what cannot be traced is said.
    """
    batch, shapes = batches(tasks())[0], subject.shapes
    with jax.numpy_dtype_promotion("strict"):
        before = shapes("init", jax.random.key(0))
        seen = {name: shapes(name, before, batch.x) for name in ("scores", "margins")}
        # Not `subject.step`: where promotion is not strict, it would count this as a compilation.
        after, info = shapes("step", jax.random.key(0), np.int32(1), before, batch)
        states = {"step": after}
        if subject.learner.adapt:
            states["adapt"] = shapes("adapt", before, batch)
    for name, row in seen.items():
        subject.require(row.dtype == jnp.float32, f"expected {name} in float32, got {row.dtype}")
    for name, state in states.items():
        same = described(before) == described(state)
        subject.require(same, f"{name} returns a state of another structure, shape or dtype")
    for leaf in jax.tree.leaves((before, info)):
        problem = f"expected float32, int32 and bool, got {leaf.dtype}"
        known = leaf.dtype in (jnp.float32, jnp.int32, jnp.bool_)
        subject.require(known, f"{problem}; keys are handed in, never kept")


def check_scores_before_any_step(subject: Subject) -> None:
    """A learner that has seen nothing already scores: finite logits, one a row."""
    batch = batches(tasks())[0]
    seen = subject.look(subject.first, batch)
    subject.require_finite(seen, "before any step")
    for name in ("scores", "margins"):
        subject.require(seen[name].shape == batch.y.shape, f"expected {name}, one for each row")


def check_same_key_same_result(subject: Subject) -> None:
    """The same program, key and rows give the same bytes, and nothing is changed in place."""
    rounds = batches(tasks())
    now: list[Any] = [rounds, subject.first]
    before = [jax.tree.map(np.array, one) for one in now]
    for seen in subject.run_rounds(subject.step, rounds):
        now.append(seen)
        before.append(jax.tree.map(np.array, seen))
    what = "a step changes nothing in place, but rows or states before and after it"
    subject.require_equal(before, now, what, tolerance=0)
    look, other = (subject.look(subject.first, rounds[0]) for _ in range(2))
    subject.require_equal(look, other, "two looks at the same state", tolerance=0)
    again = list(subject.run_rounds(subject.step, rounds))
    subject.require_equal(now[2:], again, "two identical runs", tolerance=0)


def check_one_compilation_per_padding(subject: Subject) -> None:
    """Many rounds, one program for each padded size."""
    for padding in small.PADDINGS if subject.compiles else ():
        course, times = subject.course(padding), subject.traces[padding]
        problem = f"compiled {times} times for {len(course)} rounds of one padded size"
        subject.require(times == 1, problem)


def check_rows_are_scored_one_by_one(subject: Subject) -> None:
    """A row's score is its own: the same alone, beside others, and in however long a batch."""
    state, fresh = subject.course()[-1][0], _fresh(seed=2)
    few = batches([_first(small.ROWS, fresh), _first(1, fresh)])
    together, alone = (subject.look(state, batch) for batch in few)
    for name in ("scores", "margins"):
        what = f"{name} of a row beside others and alone"
        subject.require_equal(together[name][0], alone[name][0], what)
    what = f"margins of rows in a batch of {small.PADDINGS[0]} and in one of {FRESH}"
    short, long = together["margins"], subject.margins(state, fresh.x)
    subject.require_equal(short[: small.ROWS], long[: small.ROWS], what)


def check_a_turn_shows_what_was_known(subject: Subject) -> None:
    """A turn is a step, and decides its rows by the state before it, whatever their labels are."""
    learner = subject.learner
    if learner.turn is None:
        return
    states = [subject.first, *(state for state, _ in subject.course())]
    for round, (state, batch) in enumerate(zip(states, batches(tasks()), strict=False), 1):
        number = np.int32(round)
        known = {
            "scores": learner.scores(state, batch.x),
            "margins": learner.margins(state, batch.x, batch.group),
        }
        half = (batch.weight * (np.arange(small.PADDINGS[0]) % 2)).astype(np.float32)
        other = batch._replace(y=1 - batch.y, weight=half)
        for labels, rows in ("its labels", batch), ("other labels and weights", other):
            *stepped, shown = learner.turn(None, number, state, rows)
            where = f"round {round}, with {labels},"
            own = {name: getattr(shown, name) for name in known}
            shapes = [np.shape(values) for values in own.values()]
            problem = f"expected a score and a margin for each row, got the shapes {shapes}"
            subject.require(shapes == [batch.y.shape] * 2, f"{where} {problem}")
            subject.require_equal(known, own, f"{where} what the state says and what a turn shows")
            step = learner.step(None, number, state, rows)
            subject.require_equal(step, tuple(stepped), f"{where} a step and a turn", tolerance=0)


def check_eager_agrees(subject: Subject) -> None:
    """Uncompiled, operation by operation, the rounds come out the same."""
    if not subject.compiles:
        return
    rounds = jax.tree.map(jnp.asarray, batches(tasks()))
    with jax.disable_jit():
        eager = list(subject.run_rounds(subject.learner.step, rounds))
    subject.require_same_course(eager, "compiled and eager rounds")


def check_scan_and_vmap_agree(subject: Subject) -> None:
    """One scan over all rounds, seeds as an axis, comes out as rounds one by one, each seed alone.

    Scores are those before the round.
    """
    if not subject.compiles:
        return
    rounds = batches(tasks())

    def one(states: State, turn: tuple) -> tuple[State, tuple]:
        round, batch = turn
        scores = jax.vmap(subject.learner.scores, in_axes=(0, None))(states, batch.x)
        keys = jnp.stack([small.round_key(seed, round) for seed in small.SEEDS])
        states, info = subject.together(keys, round, states, batch)
        return states, (states, info, scores)

    numbers = np.arange(1, small.ROUNDS + 1, dtype=np.int32)
    turns = numbers, together(rounds)
    states = together([subject.first] * len(small.SEEDS))
    scan = subject.program(lambda states, turns: jax.lax.scan(one, states, turns)[1])
    *scanned, scores = jax.device_get(scan(states, turns))
    for seed in small.SEEDS:
        course = [part_of(tuple(scanned), (round, seed)) for round in range(small.ROUNDS)]
        subject.require_same_course(course, "alone, and scanned and vmapped over seeds", seed)
    for round in range(1, small.ROUNDS):
        look = subject.look(subject.course()[round - 1][0], rounds[round])
        what = f"loop and scan, round {round + 1}, scores"
        subject.require_equal(look["scores"], scores[round, 0], what)


def check_paddings_agree(subject: Subject) -> None:
    """Rows of weight 0 change nothing."""
    subject.require_same_course(subject.course(small.PADDINGS[1]), "paddings")


def check_vmap_keeps_branches(subject: Subject) -> None:
    """A switch or loop on the round stays one under vmap over seeds: the round is not an axis.

    Batched, a switch computes every branch, and a loop goes on for all while anyone goes on.
    """
    if not subject.compiles:
        return
    batch, key, round = batches(tasks())[0], jax.random.key(0), np.int32(1)
    keys, states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (key, subject.first))
    alone = _branches(subject.step.trace(key, round, subject.first, batch).jaxpr.jaxpr)
    together = _branches(subject.together.trace(keys, round, states, batch).jaxpr.jaxpr)
    branches, loops = f"{together[0]} of {alone[0]} branches are left", together[1] - alone[1]
    subject.require(together[0] == alone[0], f"vmapped over seeds, {branches}")
    subject.require(not loops, f"vmapped over seeds, {loops} loops wait for the slowest seed")


def check_odd_rounds_stay_finite(subject: Subject) -> None:
    """One class, one group, a single row, no row at all: said in a flag, survived, learned past."""
    usual = tasks()
    one = usual[1]
    odd = {
        "one_class": one._replace(y=np.ones_like(one.y)),
        "one_group": one._replace(group=np.zeros_like(one.group)),
        "empty": _first(0, one),
        "": _first(1, one),
    }
    for first, later in zip(odd, [*odd][1:] + [*odd][:1], strict=True):
        rounds = batches([odd[first], usual[0], odd[later], usual[1]])
        course = list(subject.run_rounds(subject.step, rounds))
        name = " and a later one of ".join(flag or "single row" for flag in (first, later))
        looks = [subject.look(state, rounds[-1]) for state, _ in course]
        subject.require_finite(looks, f"a first round of {name}")
        finite = not any(info.flags["not_finite"] for _, info in course)
        subject.require(finite, f"a first round of {name} made the update infinite")
        for place, flag in ((0, first), (2, later)):
            raised = not flag or course[place][1].flags[flag]
            subject.require(raised, f"a round of {flag} must raise its flag")


def check_diagnostics_are_sound(subject: Subject) -> None:
    """Prices >= 0, one for each constraint; weights >= 0, sum 1, none for who is absent."""
    price = (len(subject.problem.constraints),)
    for _, info in subject.course():
        dual, weights, absent = map(np.asarray, (info.dual, info.weights, ~info.present))
        flags = f"expected the flags {', '.join(COMMON_FLAGS)}, and others only of {list(WARNINGS)}"
        for holds, problem in (
            (set(COMMON_FLAGS) <= set(info.flags) <= set(WARNINGS), flags),
            (dual.shape == price, "expected a price per constraint"),
            (np.all(dual >= 0), f"a price is negative: {dual}"),
            (np.all(weights >= 0), f"a weight is negative: {weights}"),
            (abs(weights.sum() - 1) < TOLERANCE, f"weights sum to {weights.sum()}"),
            (not weights[absent].any(), "someone absent has weight"),
            (not np.any(info.awake & absent), "someone absent is awake"),
        ):
            subject.require(holds, problem)


def check_no_peeking(subject: Subject) -> None:
    """What comes later changes nothing, to the byte; a round's labels do not reach its scores."""
    usual = tasks()
    turn = 2  # after so many rounds the labels change; one round later the features, for a round
    changed = [task._replace(y=1 - task.y) for task in usual]
    changed[turn + 1] = changed[turn + 1]._replace(x=-usual[turn + 1].x)

    def shown(rounds: list[Task]) -> list[tuple]:
        course = list(subject.run_rounds(subject.step, batches(rounds)))
        states = [subject.first, *(state for state, _ in course)]
        looks = [subject.look(*pair) for pair in zip(states, batches(rounds), strict=False)]
        rounds_seen = zip(looks, course, strict=True)
        return [(look["scores"], look["margins"], info) for look, (_, info) in rounds_seen]

    before, after = map(shown, (usual, [*usual[:turn], *changed[turn:]]))
    for index, (one, other) in enumerate(zip(before, after, strict=True)):
        where = f"with another future, round {index + 1},"
        if index <= turn:
            subject.require_equal(one[:2], other[:2], f"{where} scores", tolerance=0)
        if index < turn:
            subject.require_equal(one[2], other[2], where, tolerance=0)
    mattered = np.any(np.asarray(before[-1][0]) != np.asarray(after[-1][0]))
    subject.require(mattered, "what was changed never mattered: the learner does not learn")


def check_grows_for_an_endless_stream(subject: Subject) -> None:
    """Growing changes no score, is done once, and leaves a state that a step accepts."""
    endless = Subject(subject.name, subject.entry, horizon=None)
    batch = batches(tasks())[0]
    small, grow = endless.first, endless.learner.grow
    large = grow(small, FAR)
    scores = endless.program(endless.learner.scores)
    before, after = (scores(state, batch.x) for state in (small, large))
    subject.require_equal(before, after, "scores before and after growing")
    again = described(grow(large, FAR))
    subject.require(again == described(large), "it grows for the same round twice")
    stepped, _ = endless.shapes("step", jax.random.key(0), np.int32(FAR), large, batch)
    subject.require(described(stepped) == described(large), "a grown state does not stay so")


def check_it_learns(subject: Subject) -> None:
    """On an easy stream that never changes it ends more accurate than it began."""
    *_, (last, _) = subject.run_rounds(subject.step, batches(tasks(EASY_ROUNDS, seed=1)))
    began, ended = (_accuracy(subject, state, seed=2) for state in (subject.first, last))
    problem = f"accuracy went from {began:.2f} to {ended:.2f} on an easy stream"
    subject.require(ended > max(began, 0.6), problem)


def _accuracy(subject: Subject, state: State, seed: int) -> float:
    """Of the decisions on fresh rows."""
    fresh = _fresh(seed)
    return float(((np.asarray(subject.margins(state, fresh.x)) > 0) == fresh.y).mean())


def _fresh(seed: int) -> Task:
    """Rows of no round; always as many, so that one program serves them all."""
    return tasks(rounds=1, rows=FRESH, seed=seed)[0]


def _first(rows: int, task: Task) -> Task:
    return Task(x=task.x[:rows], y=task.y[:rows], group=task.group[:rows])


def _branches(program: Any) -> tuple[int, int]:
    """How many branches of a traced program compute something, and how many loops are batched.

    To choose between two states may be batched: such a branch computes nothing. A batched loop
    asks of each element of the batch whether it goes on.
    """
    branches = loops = 0
    for equation in program.eqns:
        parts = (getattr(leaf, "jaxpr", leaf) for leaf in jax.tree.leaves(equation.params))
        inner: list[Any] = [part for part in parts if hasattr(part, "eqns")]
        name = equation.primitive.name
        branches += name == "cond" and any(part.eqns for part in inner)
        loops += name == "while" and equation.params["cond_jaxpr"].out_avals[0].shape != ()
        for part in inner:
            deeper = _branches(part)
            branches, loops = branches + deeper[0], loops + deeper[1]
    return branches, loops


def check_it_gets_over_bad_batches(subject: Subject) -> None:
    """Three bad batches: ten rounds later accuracy is at most GOTTEN_OVER below what it would be.

    A learner that by its nature cannot says why in its entry (`thrown_off`).
    """
    if subject.entry.thrown_off:
        return
    undisturbed, *disturbed = after_bad_batches(subject).items()
    for what, accuracy in disturbed:
        subject.require(
            accuracy >= undisturbed[1] - GOTTEN_OVER,
            f"ten rounds after {what} for three, accuracy is {accuracy:.3f}; "
            f"without them {undisturbed[1]:.3f}",
        )


def after_bad_batches(subject: Subject, seed: int = 3) -> dict[str, float]:
    """Accuracy on fresh rows ten rounds after three bad batches, and without any.

    The batches have a column times 1000, or labels flipped.
    """
    before, bad = BAD
    usual = tasks(before + bad + 10, rows=small.PADDINGS[1], seed=seed)
    *_, (good, _) = subject.run_rounds(subject.step, batches(usual[:before], small.PADDINGS[1]))
    inflate = np.array([1000, 1, 1], np.float32)

    def accuracy(spoil: Callable[[Task], Task]) -> float:
        rest = [*map(spoil, usual[before : before + bad]), *usual[before + bad :]]
        rounds = batches(rest, small.PADDINGS[1])
        *_, (last, _) = subject.run_rounds(subject.step, rounds, begin=good, after=before)
        return _accuracy(subject, last, seed + 1)

    return {
        "no bad batches": accuracy(lambda task: task),
        "a column times 1000": accuracy(lambda task: task._replace(x=task.x * inflate)),
        "labels flipped": accuracy(lambda task: task._replace(y=1 - task.y)),
    }


# Every function here that is called check_..., in this order.
CHECKS: tuple[Callable[[Subject], None], ...] = tuple(
    check
    for name, check in list(globals().items())
    if name.startswith("check_") and name != check_learner.__name__
)
