"""A constraint: equal selection rates among the rows whose first feature is below 0."""

from functools import partial
from typing import Any

import jax.numpy as jnp

from fairsaoml.core.fairness import Comparison, sides
from fairsaoml.core.types import Batch, Schema


def parity_among_the_young(schema: Schema) -> list[Comparison]:
    """One comparison for each attribute: its second level against the others."""

    def young(batch: Batch, index: int, levels: int) -> tuple[Any, Any]:
        one, other = sides(batch, index, level=1, levels=levels, label=None)
        counted = batch.x[:, 0] < 0
        return jnp.where(counted, one, 0.0), jnp.where(counted, other, 0.0)

    return [
        Comparison(f"young[{name}={levels[1]}]", partial(young, index=index, levels=len(levels)))
        for index, (name, levels) in enumerate(schema.attributes)
    ]
