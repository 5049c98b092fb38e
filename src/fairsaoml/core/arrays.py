"""Formulas that serve NumPy's arrays and JAX's, traced or not, alike."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

Of = TypeVar("Of")
Made = TypeVar("Made")

# For the shapes of what is one or the other.
if TYPE_CHECKING:
    Array = Any
else:
    Array = jax.Array | np.ndarray | np.generic


def library(array: Any) -> Any:
    """The functions for an array: NumPy's for its own, JAX's for all others.

    >>> library(np.zeros(2)).__name__, library(jnp.zeros(2)).__name__
    ('numpy', 'jax.numpy')
    """
    return np if isinstance(array, np.ndarray | np.generic) else jnp


def choose(when: Bool[Array, ""], new: Any, old: Any) -> Any:
    """One of two states."""
    if library(when) is np:
        return new if when else old
    return jax.lax.cond(when, lambda new, old: new, lambda new, old: old, new, old)


def sigmoid(z: Any) -> Any:
    """1 / (1 + exp(-z))."""
    if library(z) is jnp:
        return jax.nn.sigmoid(z)
    half = np.tanh(0.5 * z)  # it never overflows
    half *= 0.5
    half += 0.5
    return half


def softplus(z: Any) -> Any:
    """log(1 + exp(z)), which does not overflow."""
    if library(z) is jnp:
        return jax.nn.softplus(z)
    small = np.abs(z)
    np.negative(small, out=small)
    np.exp(small, out=small)
    np.log1p(small, out=small)
    small += np.maximum(z, 0.0)
    return small


def latest(function: Callable[[Of], Made]) -> Callable[[Of], Made]:
    """A function that keeps its last result, for as long as it is asked about the same object."""
    kept: list[tuple[Of, Made] | None] = [None]

    @wraps(function)
    def call(of: Of) -> Made:
        last = kept[0]  # another thread may write it meanwhile
        if last is None or last[0] is not of:
            last = kept[0] = of, function(of)
        return last[1]

    return call
