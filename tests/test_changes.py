"""When the world has changed: each change is named once, near its round, and chance is not one."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fairsaoml.evaluate.confidence import Share
from fairsaoml.evaluate.metrics import RATES, Counts
from fairsaoml.report.changes import LABELS, Series

Levels = Callable[[int], tuple[float, float]]  # share of positive labels and accuracy of a round


def series(levels: Levels, *, seed: int = 0, rounds: int = 40, rows: int = 1000) -> Series:
    random = np.random.default_rng(seed)
    made = []
    for number in range(rounds):
        base, accuracy = levels(number)
        y1 = int(random.binomial(rows, base))
        hit, right = (int(random.binomial(n, np.clip(accuracy, 0, 1))) for n in (y1, rows - y1))
        made.append(Counts(rows, hit + rows - y1 - right, y1, hit, rows - y1, rows - y1 - right))
    labels = [lambda counts: Share(counts.y1_rows, counts.rows)]
    return Series(made, {LABELS: labels, "accuracy": [RATES["accuracy"].share]})


def places(found: Series) -> Sequence[int]:
    return [split.at for split in found.splits()]


@pytest.mark.parametrize("rows", [30, 1000])
@pytest.mark.parametrize("base", [0.03, 0.5])
@pytest.mark.parametrize("swing", [0.0, 0.05])
def test_a_world_that_stays_has_no_change(rows: int, base: float, swing: float) -> None:
    """Neither where rounds are few, many or small, nor where a learner's accuracy swings."""
    false = 0
    for seed in range(20):
        random = np.random.default_rng(100 + seed)
        rounds = int(random.integers(4, 120))
        accuracies = 0.7 + swing * random.normal(size=rounds)
        stays = series(lambda t: (base, accuracies[t]), seed=seed, rounds=rounds, rows=rows)  # noqa: B023
        false += bool(places(stays))
    assert false <= 1


def test_changes_are_located_in_single_rounds_wherever_they_are() -> None:
    """Six rounds apart, ten apart, and near the beginning."""
    for seed in range(20):
        found = places(
            series(lambda t: (0.46 if t < 3 or t >= 9 else 0.33, 0.7), seed=seed, rounds=20)
        )
        assert len(found) == 2
        assert abs(found[0] - 3) <= 1
        assert abs(found[1] - 9) <= 1


def test_a_fall_that_a_learner_makes_up_for_in_a_round_is_a_change() -> None:
    for seed in range(20):
        accuracies = [0.75] * 30 + [0.5] + [0.75] * 30
        found = series(lambda t: (0.5, accuracies[t]), seed=seed, rounds=61)  # noqa: B023
        fell = [split for split in found.splits() if found.apart("accuracy", split) > 0]
        assert len(fell) == 1
        assert abs(fell[0].at - 30) <= 1


def test_a_change_within_a_round_is_one_change() -> None:
    shares = [0.7] * 12 + [0.6] + [0.47] * 12
    assert len(places(series(lambda t: (shares[t], 0.7), rounds=25))) == 1
