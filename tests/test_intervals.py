"""The geometric cover is what Eq. 5 and Eq. 6 say, in whole numbers."""

from hypothesis import given
from hypothesis import strategies as st

from fairsaoml.core.intervals import (
    cover,
    interval,
    is_present,
    is_start,
    lengths,
    level_count,
    levels_needed,
    starts,
)

BASES = st.integers(2, 5)
HORIZONS = st.integers(1, 200)
ROUNDS = st.integers(1, 10_000)


@given(HORIZONS, BASES)
def test_each_level_partitions_time(horizon, base):
    for blocks in cover(horizon, base):
        rounds = [t for first, last in blocks for t in range(first, last + 1)]
        assert rounds == list(range(1, horizon + 1))


@given(HORIZONS, BASES)
def test_blocks_of_level_k_have_length_base_to_the_k_but_for_the_last(horizon, base):
    for level, blocks in enumerate(cover(horizon, base)):
        assert all(last - first + 1 == base**level for first, last in blocks[:-1])
        assert 1 <= blocks[-1][1] - blocks[-1][0] + 1 <= base**level


@given(ROUNDS, BASES, st.integers(0, 6))
def test_a_round_lies_in_its_interval_and_the_interval_starts_where_it_says(round, base, level):
    first, last = interval(round, level, base)
    assert first <= round <= last
    assert is_start(first, base**level)
    assert not any(is_start(t, base**level) for t in range(first + 1, last + 1))


@given(ROUNDS, BASES, st.integers(1, 12))
def test_awake_levels_are_a_prefix(round, base, levels):
    awake = starts(round, base, levels)
    assert awake == list(range(len(awake)))
    assert awake  # level 0 starts in every round


def test_eighteen_rounds_have_the_papers_cover():
    levels = cover(18, base=2)
    assert lengths(len(levels), base=2) == [1, 2, 4, 8]
    assert levels[0] == [(t, t) for t in range(1, 19)]
    assert levels[1] == [(t, t + 1) for t in range(1, 18, 2)]
    assert levels[2] == [(1, 4), (5, 8), (9, 12), (13, 16), (17, 18)]
    assert levels[3] == [(1, 8), (9, 16), (17, 18)]


def test_the_target_set_of_round_five_is_the_papers():
    awake = starts(round=5, base=2, levels=level_count(18, 2))
    assert [interval(5, level, 2, horizon=18) for level in awake] == [(5, 5), (5, 6), (5, 8)]


def test_the_level_count_of_a_power_is_exact():
    # log(243) / log(3) is 4.999... in floating point.
    assert level_count(243, 3) == 5
    assert level_count(242, 3) == 4
    assert [level_count(base**power, base) for base in (2, 3, 5, 10) for power in (1, 7, 15)] == [
        1, 7, 15, 1, 7, 15, 1, 7, 15, 1, 7, 15,
    ]  # fmt: skip


@given(st.integers(1, 10**12), BASES)
def test_the_level_count_is_the_floor_of_the_logarithm_and_at_least_one(horizon, base):
    levels = level_count(horizon, base)
    assert base**levels <= horizon or levels == 1
    assert horizon < base ** (levels + 1)


@given(BASES, st.integers(1, 8))
def test_with_unknown_horizon_level_k_joins_at_base_to_the_k_plus_one(base, level):
    length = base**level
    assert not is_present(length, length)
    assert is_present(length + 1, length)
    assert is_start(length + 1, length)  # it joins awake
    assert levels_needed(length + 1, base) == levels_needed(length, base) + 1 == level + 1


@given(ROUNDS, BASES)
def test_present_levels_are_a_prefix_as_long_as_the_levels_needed(round, base):
    present = [bool(is_present(round, length)) for length in lengths(16, base)]
    assert present == [True] * levels_needed(round, base) + [False] * (
        16 - levels_needed(round, base)
    )


def test_lengths_never_leave_32_bits():
    assert max(lengths(64, base=5)) == 2**31 - 1
    assert starts(round=2**31 - 1, base=5, levels=64)[0] == 0
