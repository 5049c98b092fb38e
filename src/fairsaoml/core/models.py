"""Scoring functions: features of one row to a logit, parameters as plain pytrees."""

from collections.abc import Callable
from itertools import pairwise

import jax
import jax.numpy as jnp

from fairsaoml.core import threefry
from fairsaoml.core.registry import Registry
from fairsaoml.core.types import Key, Model, Params

__all__ = ["MODELS", "logistic", "mlp", "product"]


def logistic(features: int) -> Model:
    """z = w . e + b, from zero (D10).

    >>> model = logistic(2)
    >>> model.scores({"weight": jnp.array([1.0, 2.0]), "bias": jnp.array(0.5)}, jnp.ones((1, 2)))
    Array([3.5], dtype=float32)
    """

    def init(key: Key) -> Params:
        return {"weight": jnp.zeros(features), "bias": jnp.zeros(())}

    def score(params: Params, row: jax.Array) -> jax.Array:
        return jnp.dot(params["weight"], row) + params["bias"]

    return Model(init=init, scores=jax.vmap(score, in_axes=(None, 0)))


def mlp(features: int, hidden: tuple[int, ...]) -> Model:
    """ReLU layers of the given widths and a linear score, from the usual random start (D10).

    >>> model = mlp(3, hidden=(4,))
    >>> model.scores(model.init(jax.random.key(0)), jnp.zeros((2, 3))).tolist()
    [0.0, 0.0]
    """
    shapes = tuple(pairwise((features, *hidden, 1)))

    def init(key: Key) -> Params:
        # All layers' numbers in one draw: of more numbers, the first ones are the same.
        most = max(n * m for n, m in shapes)
        keys = threefry.split(key, len(shapes))
        # A loop: without one, each layer's kernel makes all the numbers anew.
        drawn = jax.lax.map(lambda key: threefry.normal(key, (most,)), keys)
        return [
            # Var = 2 / fan-in keeps the size of what passes a ReLU layer (He et al. 2015).
            {"weight": numbers[: n * m].reshape(n, m) * (2 / n) ** 0.5, "bias": jnp.zeros(m)}
            for numbers, (n, m) in zip(drawn, shapes, strict=True)
        ]

    def scores(params: Params, x: jax.Array) -> jax.Array:
        first, *others = params
        # Rows last: the products of a round take a quarter less time than with rows first.
        inside = product(first["weight"], x.T) + first["bias"][:, None]
        for layer in others:
            inside = product(layer["weight"], jax.nn.relu(inside)) + layer["bias"][:, None]
        return inside[0]

    return Model(init=init, scores=scores)


@jax.custom_vjp
def product(weight: jax.Array, inside: jax.Array) -> jax.Array:
    """weight.T @ inside, with gradients in which rows stay last.

    JAX's own rule makes the gradient for `inside` with rows first and turns it around, which takes
    several times as long for matrices of this size.
    """
    return weight.T @ inside


@jax.custom_vjp
def outer(one: jax.Array, other: jax.Array) -> jax.Array:
    """one @ other.T, the sum over rows of outer products: the gradient for a product's weights."""
    return one @ other.T


def _kept(function: Callable) -> Callable:
    """A forward pass that keeps what it was given."""
    return lambda *given: (function(*given), given)


def _slopes_of_product(given: tuple, slope: jax.Array) -> tuple[jax.Array, jax.Array]:
    weight, inside = given
    return outer(inside, slope), product(weight.T, slope)


def _slopes_of_outer(given: tuple, slope: jax.Array) -> tuple[jax.Array, jax.Array]:
    one, other = given
    return product(slope.T, other), product(slope, one)


product.defvjp(_kept(product), _slopes_of_product)
outer.defvjp(_kept(outer), _slopes_of_outer)


# Each makes a model from the number of features and the setting `hidden`.
MODELS: Registry[Callable[[int, tuple[int, ...]], Model]] = Registry(
    "model",
    "fairsaoml.models",
    {"mlp": mlp, "logistic": lambda features, hidden: logistic(features)},
    fits=callable,
    expected="a function of the number of features and the hidden layers",
)
