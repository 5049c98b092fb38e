"""Every registered learner passes the list that ships with the library, and broken ones do not."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml import checks
from fairsaoml.checks import CHECKS, Subject, subject_of
from fairsaoml.core.config import LearnerConfig
from fairsaoml.core.learner import PlainMethod, Update, wrap_plain
from fairsaoml.core.primal_dual import evaluate, move
from fairsaoml.core.prior import Deployed
from fairsaoml.core.types import Batch, Learner, Problem, RoundInfo, Shown
from fairsaoml.learners.registry import Entry, registered

QUICKLY_EAGER = ("fair-glc",)
EXAMPLES = Path(__file__).parent.parent / "examples"
EXAMPLE = EXAMPLES / "add_a_learner.py"


def cases() -> list[Any]:
    """Every check of every learner; compiling operation by operation takes up to a minute."""
    return [
        pytest.param(
            name,
            check,
            id=f"{name}-{check.__name__}",
            marks=pytest.mark.slow
            if check is checks.check_eager_agrees and name not in QUICKLY_EAGER
            else (),
        )
        for name in registered()
        for check in CHECKS
    ]


@pytest.mark.parametrize(("name", "check"), cases())
def test_every_learner_conforms(name: str, check: Callable[[Subject], None]) -> None:
    check(subject_of(name))


def test_the_example_of_a_new_learner_is_short_and_conforms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert lines[0].startswith("round 1: market-1, accuracy 0.")


# A learner as plain as can be, and ways to break it


def plain(problem: Problem, config: Any) -> Learner:
    """Gradient descent on the round's rows; the state is theta and the last round."""

    def loss(primal: Any, batch: Batch) -> Any:
        even = Deployed(rate=jnp.float32(0.5), shift=jnp.float32(0.0))
        return evaluate(problem, primal, batch, even)[0]

    def info(batch: Batch) -> RoundInfo:
        here = jnp.ones(1, bool)
        rows, ones = batch.weight.sum(), (batch.weight * batch.y).sum()
        others = (batch.weight * batch.group[:, 0].astype(jnp.float32)).sum()
        flags = {
            "empty": rows == 0,
            "one_class": (rows > 0) & ((ones == 0) | (ones == rows)),
            "one_group": (rows > 0) & ((others == 0) | (others == rows)),
            "dual_pinned": jnp.zeros((), bool),
            "not_finite": jnp.zeros((), bool),
        }
        return RoundInfo(jnp.ones(1), here, here, jnp.zeros(len(problem.constraints)), flags)

    def step(key: Any, round: Any, state: Any, batch: Batch) -> Any:
        primal = move(state[0], jax.grad(loss)(state[0], batch), 0.5)
        return (primal, round), info(batch)

    return Learner(
        init=lambda key: (problem.model.init(key), jnp.zeros((), jnp.int32)),
        scores=lambda state, x: problem.model.scores(state[0], x),
        margins=lambda state, x, group=None: problem.model.scores(state[0], x),
        adapt=lambda state, support: state,
        step=step,
    )


def subject(
    break_it: Callable[[Learner], dict[str, Any]] | None = None,
    thrown_off: str = "flipped labels move it as far as true ones",
) -> Subject:
    def factory(problem: Problem, config: Any) -> Learner:
        learner = plain(problem, config)
        return learner._replace(**break_it(learner)) if break_it else learner

    return Subject("plain", Entry(LearnerConfig, factory, "", "", thrown_off=thrown_off))


def with_info(learner: Learner, **changes: Any) -> dict[str, Any]:
    def step(*arguments: Any) -> Any:
        state, info = learner.step(*arguments)
        return state, info._replace(**changes)

    return {"step": step}


def nudged(learner: Learner, amount: Callable[..., Any]) -> dict[str, Any]:
    """A step that also adds something to every parameter."""

    def step(key: Any, round: Any, state: Any, batch: Batch) -> Any:
        (primal, turn), info = learner.step(key, round, state, batch)
        extra = amount(key, round, state, batch)
        return (jax.tree.map(lambda leaf: leaf + extra, primal), turn), info

    return {"step": step}


def keeps_a_key(learner: Learner) -> dict[str, Any]:
    def step(key: Any, round: Any, state: Any, batch: Batch) -> Any:
        rest, info = learner.step(key, round, state[0], batch)
        return (rest, key), info

    return {
        "init": lambda key: (learner.init(key), key),
        "scores": lambda state, x: learner.scores(state[0], x),
        "margins": lambda state, x: learner.margins(state[0], x),
        "step": step,
    }


def changes_dtype(learner: Learner) -> dict[str, Any]:
    def step(*arguments: Any) -> Any:
        (primal, turn), info = learner.step(*arguments)
        return (primal, turn.astype(jnp.float32)), info

    return {"step": step}


def branches_on_state(learner: Learner) -> dict[str, Any]:
    def amount(key: Any, round: Any, state: Any, batch: Batch) -> Any:
        return jax.lax.switch(state[1] % 2, [lambda: jnp.zeros(()), lambda: batch.x.sum() * 0])

    return nudged(learner, amount)


def loops_on_state(learner: Learner) -> dict[str, Any]:
    def amount(key: Any, round: Any, state: Any, batch: Batch) -> Any:
        return jax.lax.fori_loop(0, state[1] % 2, lambda _, sum: sum + batch.x.sum(), 0.0)

    return nudged(learner, amount)


def grows_for_ever(learner: Learner) -> dict[str, Any]:
    def grow(state: Any, round: int) -> Any:
        return state[0], jnp.zeros(jnp.size(state[1]) + 1, jnp.int32)

    return {"grow": grow}


UNSEEDED = np.random.default_rng()
BROKEN: dict[Callable, Callable[[Learner], dict[str, Any]]] = {
    checks.check_scores_before_any_step: lambda learner: {
        "scores": lambda state, x: learner.scores(state, x) / 0
    },
    checks.check_structure_is_stable: keeps_a_key,
    checks.check_one_compilation_per_padding: changes_dtype,
    # A number made while tracing: every program has its own.
    checks.check_eager_agrees: lambda learner: nudged(learner, lambda *_: UNSEEDED.uniform(1, 2)),
    checks.check_scan_and_vmap_agree: lambda learner: nudged(
        learner, lambda *_: UNSEEDED.uniform(1, 2)
    ),
    checks.check_rows_are_scored_one_by_one: lambda learner: {
        "scores": lambda state, x: (scores := learner.scores(state, x)) - scores.mean()
    },
    checks.check_paddings_agree: lambda learner: nudged(learner, lambda *a: a[3].y.mean()),
    checks.check_vmap_keeps_branches: branches_on_state,
    checks.check_odd_rounds_stay_finite: lambda learner: nudged(
        learner, lambda *a: 0.01 / a[3].weight.sum()
    ),
    checks.check_diagnostics_are_sound: lambda learner: with_info(learner, dual=-jnp.ones(1)),
    checks.check_no_peeking: lambda learner: {"step": lambda *a: (a[2], learner.step(*a)[1])},
    checks.check_grows_for_an_endless_stream: grows_for_ever,
    checks.check_it_learns: lambda learner: nudged(learner, lambda *_: -5.0),
}


PLAIN = subject()  # its programs are compiled once for all checks


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_plain_learner_conforms(check: Callable[[Subject], None]) -> None:
    check(PLAIN)


def test_a_plain_learner_conforms_where_promotion_is_not_strict() -> None:
    """As in anybody's program; in the tests it is strict, which the checks must not count on."""
    alike = subject()
    with jax.numpy_dtype_promotion("standard"):
        for check in CHECKS:
            if check is not checks.check_eager_agrees:  # it traces nothing, and takes longest
                check(alike)


@pytest.mark.parametrize("check", BROKEN, ids=lambda check: check.__name__)
def test_a_check_finds_what_it_looks_for(check: Callable[[Subject], None]) -> None:
    with pytest.raises(AssertionError, match=r"^plain: "):
        check(subject(BROKEN[check]))


def test_a_learner_that_bad_batches_throw_off_says_so_or_is_found() -> None:
    with pytest.raises(AssertionError, match=r"plain: ten rounds after a column times 1000"):
        checks.check_it_gets_over_bad_batches(subject(thrown_off=""))


def test_a_loop_that_lets_seeds_wait_for_each_other_is_found() -> None:
    with pytest.raises(AssertionError, match="1 loops wait for the slowest seed"):
        checks.check_vmap_keeps_branches(subject(loops_on_state))


def test_a_run_that_differs_from_itself_is_found() -> None:
    broken = subject(
        lambda learner: nudged(
            learner,
            lambda *_: jax.pure_callback(
                lambda: np.float32(UNSEEDED.uniform(1, 2)), jax.ShapeDtypeStruct((), jnp.float32)
            ),
        )
    )
    with pytest.raises(AssertionError, match="two identical runs differ"):
        checks.check_same_key_same_result(broken)


def halved(learner: Learner) -> dict[str, Any]:
    return {"scores": lambda state, x: learner.scores(state, x).astype(jnp.float16)}


def branches_in_python(learner: Learner) -> dict[str, Any]:
    return nudged(learner, lambda *a: 1.0 if a[3].y.sum() > 3 else 0.0)


def in_numpy(learner: Learner) -> dict[str, Any]:
    return {"margins": lambda state, x: np.asarray(learner.margins(state, x))}


@pytest.mark.parametrize(
    ("break_it", "law"),
    [
        (halved, "expected scores in float32, got float16"),
        (branches_in_python, "step cannot be traced: TracerBoolConversionError: "),
        (in_numpy, "margins cannot be traced: TracerArrayConversionError: "),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_what_cannot_be_compiled_is_said_with_its_cause(break_it: Callable, law: str) -> None:
    with pytest.raises(AssertionError, match=f"^plain: {law}") as found:
        checks.check_structure_is_stable(subject(break_it))
    assert (found.value.__cause__ is None) == (break_it is halved)


# The same in NumPy, where what a round shows is not what is asked of a state


MEANS = runpy.run_path(str(EXAMPLES / "learner_in_numpy.py"))["ENTRY"]


def shows(change: Callable[[Shown, Any, Batch], Shown]) -> Callable[[Learner], dict[str, Any]]:
    """A turn that shows something else, made of what was learned and of the rows."""

    def break_it(learner: Learner) -> dict[str, Any]:
        assert learner.turn is not None
        turn = learner.turn

        def broken(key: Any, round: Any, state: Any, batch: Batch) -> Any:
            learned, info, shown = turn(key, round, state, batch)
            after = Shown(learner.scores(learned, batch.x), learner.margins(learned, batch.x))
            return learned, info, change(shown, after, batch)

        return {"turn": broken}

    return break_it


def learns_nothing_in_turns(learner: Learner) -> dict[str, Any]:
    return {"turn": lambda *round: (round[2], *learner.turn(*round)[1:])}  # type: ignore[misc]


def changes_rows(learner: Learner) -> dict[str, Any]:
    def step(key: Any, round: Any, state: Any, batch: Batch) -> Any:
        done = learner.step(key, round, state, batch)
        batch.x[:] = 0
        return done

    return {"step": step}


def changes_state(learner: Learner) -> dict[str, Any]:
    def step(key: Any, round: Any, state: Any, batch: Batch) -> Any:
        state.learned.sums[:] += 1
        return learner.step(key, round, state, batch)

    return {"step": step}


def shows_at_random(learner: Learner) -> dict[str, Any]:
    return {"margins": lambda *a: learner.margins(*a) + UNSEEDED.normal(scale=0.01)}


def of_its_batch(learner: Learner) -> dict[str, Any]:
    return {"margins": lambda *a: (margins := learner.margins(*a)) - margins.mean()}


def column(shown: Shown, after: Shown, batch: Batch) -> Shown:
    return Shown(shown.scores[:, None], shown.margins[:, None])


def labels(shown: Shown, after: Shown, batch: Batch) -> Shown:
    return Shown(2 * batch.y - 1, 2 * batch.y - 1)


def nothing_finite(shown: Shown, after: Shown, batch: Batch) -> Shown:
    return Shown(shown.scores, shown.margins * np.nan)


@pytest.mark.parametrize(
    ("break_it", "law"),
    [
        (shows(labels), "what the state says and what a turn shows differ"),
        (shows(lambda shown, after, _: after), "what the state says and what a turn shows"),
        (shows(column), r"expected a score and a margin for each row, got the shapes \[\(32, 1\)"),
        (shows(nothing_finite), "what the state says and what a turn shows differ"),
        (learns_nothing_in_turns, "a step and a turn differ"),
        (
            changes_rows,
            "a step changes nothing in place, but rows or states before and after it differ in",
        ),
        (
            changes_state,
            "a step changes nothing in place, but rows or states before and after it differ in",
        ),
        (shows_at_random, "two looks at the same state differ"),
        (of_its_batch, "margins of a row beside others and alone differ"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_the_first_law_that_a_learner_in_numpy_breaks_is_the_telling_one(
    break_it: Callable, law: str
) -> None:
    def factory(problem: Problem, config: Any) -> Learner:
        learner = MEANS.factory(problem, config)
        return learner._replace(**break_it(learner))

    with pytest.raises(AssertionError, match=rf"^means: .*{law}"):
        checks.check_learner("means", MEANS._replace(factory=factory))


def test_a_violation_for_each_constraint_is_asked_for() -> None:
    def factory(problem: Problem, config: Any) -> Learner:
        price, three = np.zeros(len(problem.constraints), np.float32), np.zeros(3, np.float32)

        def show(state: Any, x: Any, group: Any) -> Shown:
            return Shown(x[:, 0], x[:, 0])

        def turn(state: Any, batch: Batch) -> tuple[Update, Shown]:
            return Update(learned=state, violation=three), show(state, batch.x, None)

        return wrap_plain(
            problem, config, PlainMethod(lambda: price, show, turn, lambda state: price)
        )

    law = r"^means: step cannot be called: ConfigError: expected a violation and a price for each"
    with pytest.raises(AssertionError, match=law):
        checks.check_learner("means", MEANS._replace(factory=factory))


def test_settings_that_change_on_the_way_through_json_are_found() -> None:
    class Forgetful(LearnerConfig):
        def to_dict(self) -> dict[str, Any]:
            return {**super().to_dict(), "tolerance": 0.5}

    broken = Subject("plain", Entry(Forgetful, plain, "", ""))
    with pytest.raises(AssertionError, match="settings change"):
        checks.check_config_round_trips(broken)
