"""Twenty rounds of every learner are what they were: a changed algorithm is noticed."""

import pytest

import golden
import tiny
from fairsaoml.learners import registry

# Every machine rounds float32 in its own way, and a run magnifies that from round to round: by
# 1e-6 in the first ten rounds, by 3e-4 in twenty, where the optimiser is switched off and on.
EARLY, CLOSE, FAR = 10, 1e-3, 2e-2
FLIPPED = 2.5 / 60  # two rows of a task that lie on the threshold
COUNTED = ("accuracy", "adapted_accuracy")


def differs(ours, theirs, name, round, agreement):
    if name in COUNTED:
        return abs(ours - theirs) > FLIPPED
    tolerance = max(CLOSE if round <= EARLY else FAR, agreement)
    return ours != pytest.approx(theirs, rel=tolerance, abs=tolerance / 10)


@pytest.mark.parametrize("learner", tiny.GOLDEN, indirect=True, scope="session")
def test_twenty_rounds_are_what_they_were(finished, learner):
    ours, theirs = golden.essence(tiny.records(finished)), golden.load(learner)
    agreement = registry.entry(learner).agreement
    assert len(ours) == len(theirs) == golden.ROUNDS * len(tiny.SEEDS)
    changed = [
        f"round {one['round']}, seed {one['seed']}: {name} {one[name]} was {other[name]}"
        for one, other in zip(ours, theirs, strict=True)
        for name in other
        if differs(one[name], other[name], name, one["round"], agreement)
    ]
    assert not changed, "; ".join(changed[:5]) + " (meant? `make golden LEARNERS=NAME`)"


def test_every_learner_has_a_golden_run():
    missing = [learner for learner in registry.BUILTIN if not golden.exists(learner)]
    assert not missing, "`make golden` writes them"
