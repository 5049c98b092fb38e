"""Choices that are the same in every run: every so many-th row, bits hashed from their place."""

import numpy as np
from jaxtyping import Float, Int

from fairsaoml.core.arrays import Array


def mixed(bits: Array) -> Array:
    """Bits of which each depends on all (Wellons' lowbias32), in place."""
    shifted = np.empty_like(bits)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        np.right_shift(bits, shift, out=shifted)
        bits ^= shifted
        bits *= np.uint32(factor)
    np.right_shift(bits, 16, out=shifted)
    bits ^= shifted
    return bits


def uniform(bits: Array) -> Float[Array, "..."]:
    """Numbers above 0 and below 1, one for each hash of 32 bits."""
    return ((bits >> 9).astype(np.float32) + np.float32(0.5)) / np.float32(2.0**23)


def nth_rows(count: int, most: int) -> Int[Array, "some"]:
    """Places of at most `most` of `count` rows, evenly thinned.

    >>> nth_rows(3, 2).tolist(), nth_rows(2, 5).tolist()
    ([0, 2], [0, 1])
    """
    kept = min(count, most)
    return ((np.arange(kept) + 0.5) * (count / max(kept, 1))).astype(np.intp)
