"""The numbers of `jax.random`, by programs that compile in a fifth of the time.

JAX lowers its generator for CPUs to a loop of small kernels, again for every place that draws. The
same twenty rounds written out are one kernel. Numbers are the same, bit by bit.
"""

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erfinv
from jaxtyping import Array, Float, UInt32

from fairsaoml.core.arrays import library
from fairsaoml.core.types import Key

NAME = "threefry2x32"  # of the generator, to JAX

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # of groups of rounds, in turns
GROUPS = 5
PARITY = 0x1BD11BDA
MANTISSA = 23  # bits of a float32 behind the point
ONE = 0x3F800000  # the bits of 1.0
ABOVE_MINUS_ONE = float(np.nextafter(np.float32(-1), np.float32(0)))

Words = UInt32[Array, "*shape"]


def from_seeds(seeds: Any) -> Key:
    """`jax.random.key` of each seed."""
    xp = library(seeds)
    words = xp.asarray(seeds, xp.uint32)
    return _key(xp.stack([xp.zeros_like(words), words], axis=-1))


def fold_in(key: Key, number: Array | int) -> Key:
    """`jax.random.fold_in`: another key for each number."""
    return _key(jnp.stack(_hashed(_words(key), jnp.asarray(number, jnp.uint32))))


def split(key: Key, count: int = 2) -> Key:
    """`jax.random.split`: so many new keys."""
    words = _hashed(_words(key), jnp.arange(count, dtype=jnp.uint32))
    return _key(jnp.stack(words, axis=1))


def bits(key: Key, shape: tuple[int, ...] = ()) -> Words:
    """`jax.random.bits`: 32 of them a number."""
    one, other = _hashed(_words(key), jnp.arange(prod(shape), dtype=jnp.uint32))
    return (one ^ other).reshape(shape)


def uniform(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """`jax.random.uniform`: from 0 up to 1."""
    return _from_0_to_1(bits(key, shape))


def uniform_each(key: Key, numbers: Array) -> Float[Array, "*shape"]:
    """`uniform(fold_in(key, number))` of each number: as many as there are, no place matters."""
    folded = _hashed(_words(key), numbers.astype(jnp.uint32))
    one, other = _hashed(folded, jnp.zeros(numbers.shape, jnp.uint32))
    return _from_0_to_1(one ^ other)


def normal(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """`jax.random.normal`: of mean 0 and deviation 1."""
    low = jnp.float32(ABOVE_MINUS_ONE)
    between = jnp.maximum(low, uniform(key, shape) * (1.0 - low) + low)
    return jnp.float32(2**0.5) * erfinv(between)


def _from_0_to_1(random: Words) -> Float[Array, "*shape"]:
    mantissa = random >> (32 - MANTISSA)
    return lax.bitcast_convert_type(mantissa | jnp.uint32(ONE), jnp.float32) - 1.0


def _words(key: Key) -> tuple[Array, Array]:
    one, other = jax.random.key_data(key)
    return one, other


def _key(words: Any) -> Key:
    return jax.random.wrap_key_data(words, impl=NAME)


def _hashed(key: tuple[Array, Array], counts: Words) -> tuple[Words, Words]:
    """Threefry-2x32 of twenty rounds (Salmon et al. 2011) of the counts 0 and `counts`."""
    first, second = key
    keys = first, second, first ^ second ^ np.uint32(PARITY)
    one, other = jnp.broadcast_to(first, counts.shape), counts + second
    for group in range(GROUPS):
        for rotation in ROTATIONS[group % 2]:
            one = lax.add(one, other)
            other = lax.bitwise_xor(one, _rotated(other, rotation))
        one = lax.add(one, keys[(group + 1) % 3])
        other = lax.add(other, lax.add(keys[(group + 2) % 3], np.uint32(group + 1)))
    return one, other


def _rotated(words: Words, count: int) -> Words:
    # `lax`, because operators on arrays take five times as long to be traced.
    high = lax.shift_left(words, np.uint32(count))
    return lax.bitwise_or(high, lax.shift_right_logical(words, np.uint32(32 - count)))
