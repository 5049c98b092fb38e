"""What speed rests on and can be counted: bytes, matrix products, modules that are loaded.

Compilations and shapes are counted in `checks` and in `test_prequential`.
"""

import subprocess
import sys
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters.partial_eval import dce_jaxpr

from fairsaoml.core import experts
from fairsaoml.core.types import Attribute, Batch, Schema
from fairsaoml.learners import registry

SCHEMA = Schema(features=("a", "b", "c"), attributes=(Attribute("s", ("f", "m")),))
ROWS = 64
SMALL = {"hidden": [5], "capacity": 16, "support": 6, "query": 6, "tasks_kept": 3}
ENDLESS = ("fairsaoml", "aod", "cbce")


def learner_of(name, **settings):
    """A learner in a small size; settings it does not have are left out."""
    known = registry.entry(name).config.__dataclass_fields__
    chosen = {key: value for key, value in (SMALL | settings).items() if key in known}
    return registry.build(name, registry.configure(name, chosen), SCHEMA)


def a_batch():
    random = np.random.default_rng(0)
    return Batch(
        x=random.normal(size=(ROWS, len(SCHEMA.features))).astype(np.float32),
        y=(np.arange(ROWS) % 2).astype(np.float32),
        group=(np.arange(ROWS) // 2 % 2).astype(np.int32)[:, None],
        weight=np.ones(ROWS, np.float32),
    )


@pytest.mark.parametrize("name", ENDLESS)
def test_every_level_has_as_many_bytes_as_any_other_and_nothing_else_grows(name):
    learner = learner_of(name)
    first = jax.eval_shape(learner.init, jax.random.key(0))

    def grown(round):
        return jax.eval_shape(lambda state: learner.grow(state, round), first)

    assert jax.tree.leaves(grown(200)) == jax.tree.leaves(first)
    for room, round in [(16, 257), (16, 10_000), (32, 65_537)]:
        for old, new in zip(jax.tree.leaves(first), jax.tree.leaves(grown(round)), strict=True):
            assert new.dtype == old.dtype
            if new.shape != old.shape:
                assert old.shape == (experts.FIRST_LEVELS, *old.shape[1:])
                assert new.shape == (room, *old.shape[1:])


def products(jaxpr, times=1):
    """Multiplications of all matrix products of a program, loops of known length unrolled."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (over, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            total += times * prod(equation.outvars[0].aval.shape) * prod(left[i] for i in over)
        inner = times * equation.params.get("length", 1)
        branches = equation.params.get("branches")  # of which one runs
        if branches:
            total += max(products(branch.jaxpr, times) for branch in branches)
            continue
        for part in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "eqns")
        ):
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                total += products(part, inner)
    return total


def products_of(name, iterations):
    learner = learner_of(name, horizon=4, meta_iterations=iterations)
    state = jax.eval_shape(learner.init, jax.random.key(0))
    traced = jax.make_jaxpr(learner.step)(jax.random.key(0), jnp.int32(1), state, a_batch())
    # What is computed for nobody, such as a gradient for the rows, the compiler leaves out too.
    needed, _ = dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars))
    return products(needed)


DRAWING = [
    name for name, entry in registry.registered().items() if "meta_iterations" in entry.settings
]


@pytest.mark.parametrize("name", DRAWING)
def test_a_gradient_sample_costs_the_same_products_whether_it_is_the_second_or_the_tenth(name):
    two, four, ten = (products_of(name, iterations) for iterations in (2, 4, 10))
    assert four > two
    assert ten - four == 3 * (four - two)


@pytest.mark.parametrize("name", ["fair-aogd", "fair-glc"])
def test_a_plain_gradient_sample_is_three_passes_forward_and_at_most_one_back(name):
    rows, (hidden,) = 2 * SMALL["support"], SMALL["hidden"]
    forward = rows * (len(SCHEMA.features) * hidden + hidden)
    sample = (products_of(name, 4) - products_of(name, 2)) // 2
    # The violation, and the gradient: once forward, then for the weights and for what is below.
    assert 3 * forward <= sample <= 4 * forward


def test_help_draws_no_frames():
    # They take as long to load as everything else that the first page needs.
    code = (
        "import sys; sys.argv = ['fairsaoml', '--help']\n"
        "from fairsaoml.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    assert done.stdout.endswith("False\n")
