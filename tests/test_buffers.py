"""An interval's sample is uniform and bounded, and draws from it are balanced and disjoint."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from fairsaoml.core import buffers
from fairsaoml.core.buffers import Sizes
from fairsaoml.core.types import Batch

CAPACITY, LARGE = 8, 32
SLOTS = 64  # every task is padded to one size: one compilation for all tests
UNLIKELY = 1e-3  # a fixed seed either passes for good or fails for good


def task(ids, y, *, slots=SLOTS):
    """Rows that carry their own number as feature and its double as group."""
    ids = np.asarray(ids, int)

    def padded(values, dtype):
        wide = np.pad(values, [(0, slots - len(ids))] + [(0, 0)] * (np.ndim(values) - 1))
        return jnp.asarray(wide, dtype)

    return Batch(
        x=padded(ids[:, None], jnp.float32),
        y=padded(np.broadcast_to(y, ids.shape), jnp.float32),
        group=padded(2 * ids[:, None], jnp.int32),
        weight=padded(np.ones(len(ids)), jnp.float32),
    )


@jax.jit
def arrive(key, sample, batch):
    return buffers.merge(sample, buffers.arrivals(key, batch, sample.priority.shape[1]))


def sample_of(*tasks, seed=0, capacity=CAPACITY):
    """A sample after some tasks, one key each."""
    found = buffers.empty(capacity, features=1, attributes=1)
    for number, arrived in enumerate(tasks):
        found = arrive(jax.random.fold_in(jax.random.key(seed), number), found, arrived)
    return found


@partial(jax.jit, static_argnames="sizes")
def draws(sample, iteration, sizes, seed=0):
    """Support and query of an iteration."""
    hands = buffers.deal(buffers.shuffle(jax.random.key(seed), sample), sizes)
    return tuple(buffers.take(buffers.lay_out(sample, hand), iteration) for hand in hands)


def held(sample, label):
    """Numbers of the rows of a class."""
    there = sample.priority[label] < buffers.EMPTY
    return sorted(np.asarray(sample.x)[label, :, 0][there].astype(int).tolist())


def drawn(batch):
    """Numbers of the rows drawn, by class."""
    x, y, weight = np.asarray(batch.x)[:, 0], np.asarray(batch.y), np.asarray(batch.weight)
    return [x[(y == label) & (weight > 0)].astype(int).tolist() for label in (0, 1)]


def mixed(first, count):
    """Rows first .. first+count-1; odd ones are positive."""
    ids = np.arange(first, first + count)
    return task(ids, ids % 2)


def test_a_sample_holds_all_rows_while_they_fit():
    sample = sample_of(mixed(0, 6), mixed(6, 6))
    assert held(sample, 0) == [0, 2, 4, 6, 8, 10]
    assert held(sample, 1) == [1, 3, 5, 7, 9, 11]


def test_rows_keep_their_class_and_their_groups():
    sample = sample_of(mixed(0, 50), mixed(50, 50))
    for label in (0, 1):
        assert all(number % 2 == label for number in held(sample, label))
    numbers = np.asarray(sample.x)[..., 0].astype(int)
    np.testing.assert_array_equal(np.asarray(sample.group)[..., 0], 2 * numbers)


def test_capacity_is_never_exceeded_and_always_used():
    tasks = [mixed(20 * number, 20) for number in range(6)]
    for count in range(1, 7):
        sample = sample_of(*tasks[:count])
        assert sample.priority.shape == (2, CAPACITY)
        assert [len(held(sample, label)) for label in (0, 1)] == [CAPACITY, CAPACITY]


def test_a_sample_of_several_tasks_is_uniform_over_all_their_rows():
    # 12 + 4 + 16 rows of one class in unequal tasks: every row is kept equally often.
    tasks = [task(np.arange(0, 12), 1), task(np.arange(12, 16), 1), task(np.arange(16, 32), 1)]
    keep = jax.jit(jax.vmap(lambda seed: sample_of(*tasks, seed=seed).x[1, :, 0]))
    kept = np.asarray(keep(jnp.arange(2000))).astype(int)
    assert chisquare(np.bincount(kept.ravel(), minlength=32)).pvalue > UNLIKELY
    assert all(len(set(row)) == CAPACITY for row in kept)  # without replacement


@pytest.mark.parametrize("capacity", [CAPACITY, 2 * SLOTS])  # fewer slots than rows, and more
def test_a_sample_is_the_lowest_of_all_priorities_in_order(capacity):
    tasks = [mixed(0, 7), mixed(7, 30), mixed(37, 3), mixed(40, 24)]
    arrived = [
        buffers.arrivals(jax.random.fold_in(jax.random.key(0), number), rows, capacity)
        for number, rows in enumerate(tasks)
    ]
    lowest = np.sort(np.concatenate([one.priority for one in arrived], axis=1), axis=1)
    sample = sample_of(*tasks, capacity=capacity)
    np.testing.assert_array_equal(sample.priority, lowest[:, :capacity])


def test_a_sample_is_emptied_where_its_interval_starts_anew():
    sample = sample_of(mixed(0, 10))
    assert held(buffers.forget(sample, jnp.array(False)), 0) == [0, 2, 4, 6, 8]
    anew = buffers.forget(sample, jnp.array(True))
    assert held(anew, 0) == held(anew, 1) == []
    later = arrive(jax.random.key(1), anew, mixed(10, 4))
    assert [held(later, 0), held(later, 1)] == [[10, 12], [11, 13]]


def test_padding_changes_no_priority():
    plain, wide = (sample_of(task(range(20), 1, slots=slots), seed=5) for slots in (20, SLOTS))
    np.testing.assert_array_equal(plain.priority, wide.priority)
    assert held(plain, 1) == held(wide, 1)
    assert held(wide, 0) == []  # padding is nobody's row


@pytest.mark.parametrize("iteration", range(7))
def test_support_and_query_of_an_iteration_are_disjoint(iteration):
    sample = sample_of(mixed(0, 60), capacity=LARGE)
    support, query = map(drawn, draws(sample, iteration, Sizes(support=3, query=5)))
    for label in (0, 1):
        assert len(support[label]) == 3
        assert len(query[label]) == 5
        assert len(set(support[label] + query[label])) == 8
        assert set(support[label] + query[label]) <= set(held(sample, label))


def test_no_query_row_of_a_round_is_in_any_of_its_supports():
    for count in (6, 20, 60):
        both = [draws(sample_of(mixed(0, count), capacity=LARGE), i, Sizes(4, 4)) for i in range(9)]
        for label in (0, 1):
            supports, queries = (
                {row for pair in both for row in drawn(pair[kind])[label]} for kind in (0, 1)
            )
            assert supports
            assert queries
            assert not supports & queries


def test_the_supports_of_a_round_differ_and_see_their_rows_evenly():
    # 32 rows a class: 16 for supports of 8, of which as many as rows can differ.
    sample = sample_of(mixed(0, 64), capacity=LARGE)
    seen = [frozenset(drawn(draws(sample, i, Sizes(10, 10))[0])[1]) for i in range(6)]
    assert {len(rows) for rows in seen} == {8}
    assert len(set(seen)) == 6
    counts = np.unique(np.concatenate([list(rows) for rows in seen]), return_counts=True)[1]
    assert len(counts) == 16
    assert counts.max() - counts.min() <= 2


def test_a_draw_is_uniform_over_the_sample():
    sample = sample_of(task(range(12), 1), capacity=LARGE)
    many = jax.jit(jax.vmap(lambda seed: draws(sample, 1, Sizes(support=2, query=3), seed)[1].x))
    found = np.asarray(many(jnp.arange(2000)))[:, 3:, 0].astype(int)
    assert chisquare(np.bincount(found.ravel(), minlength=12)).pvalue > UNLIKELY


@pytest.mark.parametrize(
    ("count", "drawn_of"), [(8, (2, 2)), (7, (2, 2)), (1, (1, 0)), (0, (0, 0))]
)
def test_a_class_that_is_short_gives_each_draw_half_of_its_half(count, drawn_of):
    sample = sample_of(task(range(30), 0), task(range(30, 30 + count), 1), capacity=LARGE)
    support, query = map(drawn, draws(sample, 0, Sizes(support=10, query=10)))
    assert (len(support[1]), len(query[1])) == drawn_of
    assert not set(support[1]) & set(query[1])
    assert (len(support[0]), len(query[0])) == (8, 8)  # the other class is none the shorter


@pytest.mark.parametrize("label", [0, 1])
def test_a_sample_of_one_class_draws_that_class_only(label):
    sample = sample_of(task(range(30), label), capacity=LARGE)
    for batch in draws(sample, 3, Sizes(support=10, query=10)):
        assert len(drawn(batch)[label]) == 8
        assert drawn(batch)[1 - label] == []


def test_an_empty_sample_draws_nothing_and_stays_finite():
    sample = buffers.empty(CAPACITY, features=1, attributes=1)
    for batch in draws(sample, 3, Sizes(support=3, query=5)):
        assert not np.asarray(batch.weight).any()
        assert np.isfinite(batch.x).all()


def test_draws_have_one_shape_whatever_the_sample_holds():
    for capacity, (support_rows, query_rows) in {
        LARGE: (3, 5),  # as asked
        CAPACITY: (2, 3),  # half of the 3 and the 5 rows that there is room for
    }.items():
        for count in (0, 3, 40):
            sample = sample_of(mixed(0, count), capacity=capacity)
            support, query = draws(sample, 0, Sizes(support=3, query=5))
            assert support.y.tolist() == [0.0] * support_rows + [1.0] * support_rows
            assert query.y.tolist() == [0.0] * query_rows + [1.0] * query_rows
