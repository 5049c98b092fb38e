"""Enforce the shapes in jaxtyping annotations: a call that breaks one is an error.

As a program, it traces a round of every learner with the shapes enforced, which compiles nothing:
a test runs it. `make shapes` enforces them in all tests, which takes longer.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from beartype import beartype
from jaxtyping import TypeCheckError, install_import_hook

SOURCE = Path(__file__).parent.parent / "src"


def annotated() -> Iterator[str]:
    """The modules that write shapes down."""
    for path in sorted((SOURCE / "fairsaoml").rglob("*.py")):
        if "from jaxtyping import" in path.read_text():
            yield ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def enforce() -> None:
    """Check every call of these modules' functions from now on, arguments and results."""
    install_import_hook(list(annotated()), "shapes.checked")


def checked(function: Callable) -> Callable:
    """The function with its shapes checked; one without shapes as it is.

    Other types are left to mypy: settings take a list where they keep a tuple.
    """
    shaped = any("jaxtyping" in repr(hint) for hint in function.__annotations__.values())
    return beartype(function) if shaped else function


def trace() -> None:
    """Trace a round of every learner, of a known and of an endless stream."""
    from fairsaoml.checks import small as checks
    from fairsaoml.evaluate.round import run_round
    from fairsaoml.learners.registry import BUILTIN

    batch = jax.tree.map(jnp.asarray, checks.batches(checks.tasks())[0])
    key, round = jax.random.key(0), jnp.int32(1)
    for name, entry in BUILTIN.items():
        for horizon in (checks.HORIZON, None) if "horizon" in entry.settings else (None,):
            checked = checks.Subject(name, entry, horizon)
            learner, problem = checked.learner, checked.problem

            def one_round(key, round, state, learner=learner, problem=problem):
                return run_round(learner, problem, key, round, state, batch)

            if learner.turn:
                task = checks.batches(checks.tasks())[0]
                run_round(learner, problem, None, np.int32(1), learner.init(None), task)
                continue
            state = jax.eval_shape(learner.init, key)
            jax.eval_shape(one_round, key, round, state)
        print(name)


def refuse() -> None:
    """See that a wrong shape is refused."""
    from fairsaoml.core.problem import balanced_loss
    from fairsaoml.core.types import Batch

    batch = Batch(x=jnp.ones((2, 1)), y=jnp.ones(2), group=None, weight=jnp.ones(2))
    try:
        balanced_loss(jnp.ones((2, 2)), batch)
    except TypeCheckError:
        print("refused")


if __name__ == "__main__":
    enforce()
    refuse()
    trace()
