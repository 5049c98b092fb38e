"""One schedule of random keys: all that is random in a run comes from its seed and the round.

A state holds no key, so a run that is resumed draws what it would have drawn.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core import threefry
from fairsaoml.core.types import Key


class RoundKeys(NamedTuple):
    """A round's keys."""

    split: Key  # which rows are labelled for `adapted` (D18)
    step: Key


def run_keys(seeds: Sequence[int]) -> Key:
    """One key for each seed, seed axis first."""
    return threefry.from_seeds(np.asarray(seeds, np.uint32))


def init_key(run_key: Key) -> Key:
    """The key of `Learner.init`: that of round 0."""
    return threefry.fold_in(run_key, 0)


def round_keys(run_key: Key, round: Any) -> RoundKeys:
    """The keys of a round, from 1."""
    split, step = threefry.split(threefry.fold_in(run_key, round))
    return RoundKeys(split=split, step=step)
