"""Our generator gives the numbers of `jax.random`, bit by bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairsaoml.core import threefry

SEEDS = (0, 1, 2**32 - 1)


def key_of(seed):
    return jax.random.key(np.uint32(seed), impl=threefry.NAME)


def words(keys):
    return np.asarray(jax.random.key_data(keys))


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5)])
@pytest.mark.parametrize("name", ["bits", "uniform", "normal"])
def test_draws_are_those_of_jax(name, shape):
    for seed in SEEDS:
        ours = jax.jit(lambda key: getattr(threefry, name)(key, shape))(key_of(seed))
        theirs = jax.jit(lambda key: getattr(jax.random, name)(key, shape))(key_of(seed))
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_keys_are_those_of_jax():
    for seed in SEEDS:
        key = key_of(seed)
        for count in (1, 2, 6):
            np.testing.assert_array_equal(
                words(threefry.split(key, count)), words(jax.random.split(key, count))
            )
        for number in (0, 3, 2**31 - 1):
            np.testing.assert_array_equal(
                words(threefry.fold_in(key, number)), words(jax.random.fold_in(key, number))
            )


def test_a_number_for_each_row_does_not_depend_on_how_many_there_are():
    ours = threefry.uniform_each(key_of(3), jnp.arange(5))
    for row in range(5):
        assert ours[row] == jax.random.uniform(jax.random.fold_in(key_of(3), row))


def test_keys_of_seeds_are_those_of_jax():
    keys = threefry.from_seeds(np.array(SEEDS, np.uint32))
    np.testing.assert_array_equal(words(keys), np.stack([words(key_of(seed)) for seed in SEEDS]))
