"""Add a learner in NumPy: functions that are called as they are, on rows as they come.

This one remembers the mean row of each label and forgets a tenth of it every round. A row is scored
by how much nearer it is to the one than to the other.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairsaoml import Batch, Learner, Problem, make_problem, open_stream, prequential
from fairsaoml.checks import check_learner
from fairsaoml.core.config import LearnerConfig, number, setting
from fairsaoml.core.learner import PlainMethod, Update, wrap_plain
from fairsaoml.core.types import Shown
from fairsaoml.learners.registry import Entry


@dataclass(frozen=True, kw_only=True)
class MeansConfig(LearnerConfig):
    """Settings of the learner, besides those that all share."""

    memory: float = setting(0.9, number(0, 1), "share of the past that is kept each round")


class Means(NamedTuple):
    """What the next round needs: weighted sums of the rows of either label, and their weights."""

    sums: np.ndarray  # (label, feature)
    rows: np.ndarray  # (label, 1)


def means(problem: Problem, config: MeansConfig) -> Learner:
    """A learner that knows the mean row of each label, and no fairness."""
    features = len(problem.schema.features)

    def init() -> Means:
        return Means(np.zeros((2, features), np.float32), np.ones((2, 1), np.float32))

    def show(state: Means, x: np.ndarray, group: np.ndarray | None) -> Shown:
        negative, positive = state.sums / state.rows
        scores = (x - (positive + negative) / 2) @ (positive - negative)
        return Shown(scores=scores, margins=scores)

    def turn(state: Means, batch: Batch) -> tuple[Update, Shown]:
        shown = show(state, batch.x, batch.group)
        weight = np.stack([batch.weight * (batch.y == label) for label in (0, 1)])
        new = Means(weight @ np.clip(batch.x, -3, 3), weight.sum(1, keepdims=True))
        kept = np.float32(config.memory)
        learned = Means(*(kept * old + more for old, more in zip(state, new, strict=True)))
        return Update(learned=learned, violation=nothing), shown

    nothing = np.zeros(len(problem.constraints), np.float32)  # no price on any unfairness
    return wrap_plain(problem, config, PlainMethod(init, show, turn, lambda state: nothing))


ENTRY = Entry(MeansConfig, means, "knows the mean row of each label", "this example")


if __name__ == "__main__":
    check_learner("means", ENTRY)
    stream = open_stream("synthetic", {"tasks": 4})
    config = MeansConfig(memory=0.8)
    problem = make_problem(config, stream.schema)
    for result in prequential(stream, means(problem, config), problem, seeds=[0]):
        line = result.records[0]
        print(f"round {line['round']}: {line['domain']}, accuracy {line['accuracy']:.3f}")
