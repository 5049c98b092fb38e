"""Models score rows one by one: no row knows of another."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core.models import logistic, mlp, product
from fairsaoml.core.problem import ProblemConfig, make_problem
from fairsaoml.core.types import Schema

FEATURES = 3
MODELS = {"logistic": logistic(FEATURES), "mlp": mlp(FEATURES, (4, 2)), "flat": mlp(FEATURES, ())}
X = jnp.asarray(np.random.default_rng(0).normal(size=(6, FEATURES)), jnp.float32)


def random_params(model):
    """The model's own shapes, no zeros."""
    params = jax.eval_shape(model.init, jax.random.key(0))
    leaves, structure = jax.tree.flatten(params)
    random = np.random.default_rng(1)
    drawn = [jnp.asarray(random.normal(size=leaf.shape), jnp.float32) for leaf in leaves]
    return jax.tree.unflatten(structure, drawn)


def test_the_linear_model_starts_at_zero():
    start = MODELS["logistic"].init(jax.random.key(3))
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(start))


def test_the_mlp_starts_at_random_with_the_variance_that_relu_keeps():
    first = mlp(400, (300,)).init(jax.random.key(0))[0]
    assert np.var(first["weight"]) == pytest.approx(2 / 400, rel=0.02)
    assert not np.asarray(first["bias"]).any()
    again = mlp(400, (300,)).init(jax.random.key(1))[0]
    assert not np.allclose(first["weight"], again["weight"])


def test_the_mlp_is_its_layers_by_hand():
    model = MODELS["mlp"]
    params = random_params(model)
    value = np.asarray(X, np.float64)
    for layer in params[:-1]:
        value = np.maximum(value @ np.asarray(layer["weight"]) + np.asarray(layer["bias"]), 0)
    by_hand = value @ np.asarray(params[-1]["weight"]) + np.asarray(params[-1]["bias"])
    scores = jax.jit(model.scores)(params, X)
    np.testing.assert_allclose(scores, by_hand[:, 0], rtol=1e-5, atol=1e-6)


def test_the_mlps_products_have_the_gradients_of_products_at_every_order():
    random = np.random.default_rng(1)
    weight, inside, tilt = (
        jnp.asarray(random.normal(size=shape), jnp.float32) for shape in [(3, 2), (3, 4), (2, 4)]
    )

    def slopes(multiply):
        def value(weight, inside):
            return jnp.sum(tilt * jnp.tanh(multiply(weight, inside)))

        def steepness(weight, inside):
            first = jax.grad(value, (0, 1))(weight, inside)
            return sum(jnp.sum(slope**2) for slope in first)

        return jax.grad(value, (0, 1))(weight, inside), jax.grad(steepness, (0, 1))(weight, inside)

    products = (product, lambda weight, inside: weight.T @ inside)
    ours, theirs = (jax.jit(partial(slopes, multiply))() for multiply in products)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5), ours, theirs)


@pytest.mark.parametrize("name", MODELS)
def test_a_rows_score_does_not_depend_on_the_other_rows(name):
    model = MODELS[name]
    params = random_params(model)
    scores = jax.jit(model.scores)
    alone = np.concatenate([scores(params, row[None]) for row in np.asarray(X)])
    np.testing.assert_allclose(scores(params, X), alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_scores_are_float32(name):
    model = MODELS[name]
    params = model.init(jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    assert model.scores(params, X).dtype == jnp.float32
    assert model.scores(params, X[:0]).shape == (0,)


def test_a_config_names_its_model():
    def shapes(**settings):
        model = make_problem(ProblemConfig(**settings), Schema(("a", "b", "c"), ())).model
        params = model.init(jax.random.key(0))
        return sorted(leaf.shape for leaf in jax.tree.leaves(params))

    assert shapes(model="logistic") == [(), (3,)]
    assert shapes(hidden=(5,)) == [(1,), (3, 5), (5,), (5, 1)]
