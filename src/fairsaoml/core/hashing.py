"""Numbers that look random and are the same in every run: bits hashed from what they belong to."""

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["mixed", "uniform"]


def mixed(bits: Array) -> Array:
    """Bits of which each depends on all (Wellons' lowbias32)."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ (bits >> shift)) * jnp.uint32(factor)
    return bits ^ (bits >> 16)


def uniform(bits: Array) -> Float[Array, "..."]:
    """Numbers above 0 and below 1, one for each hash of 32 bits."""
    return ((bits >> 9).astype(jnp.float32) + 0.5) / 2.0**23
