"""A model: linear in the features and their squares."""

import jax
import jax.numpy as jnp

from fairsaoml.core.types import Model


def quadratic(features: int, hidden: tuple[int, ...]) -> Model:
    """z = b + w . x + v . x^2, from zero; it has no hidden layers."""

    def score(params: jax.Array, row: jax.Array) -> jax.Array:
        return jnp.append(jnp.append(row, row**2), 1.0) @ params

    return Model(
        init=lambda key: jnp.zeros(2 * features + 1),
        scores=jax.vmap(score, in_axes=(None, 0)),
    )
