"""A run's model in service: it decides from one state while the next one is learned.

A state is never changed: learning makes another learner, which is swapped in whole. Why a row was
decided as it was is kept in 38 bytes beside the decision, as the model of then will be gone.
"""

import copy
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.errors import RunError
from fairsaoml.core.types import Explanation, Task
from fairsaoml.evaluate.records import line, tally
from fairsaoml.serve.model import RunModel, probability
from fairsaoml.serve.online import OnlineLearner

MOST_FEATURES = 5  # that counted most
KEPT = np.dtype(
    [
        ("plain", "<f4"),
        ("threshold", "<f4"),
        ("feature", "<u2", MOST_FEATURES),
        ("part", "<f4", MOST_FEATURES),
    ]
)
NO_FEATURE = np.iinfo(np.uint16).max


class Decided(NamedTuple):
    """What was decided, for each row."""

    decision: list[int]
    probability: list[float]
    why: Sequence[bytes | None]


def served_learner(model: RunModel, saved: Path) -> OnlineLearner:
    """Return what a service has saved of a run's model, or what the run itself has learned.

    Raises:
        RunError: another model is saved there.
    """
    if not saved.exists():
        return model.online
    online = OnlineLearner.load(saved)
    if (online.schema, online.learner) != (model.online.schema, model.online.learner):
        raise RunError(
            f"expected the model of the run in {saved}, got another one; remove {saved} "
            "to begin again from the run, or serve the run it was begun from"
        )
    return online


def decide(online: OnlineLearner, x: np.ndarray, group: np.ndarray | None = None) -> Decided:
    """Decide rows; a learner that was asked to be aware looks at their groups."""
    scores, margins, why = online.explained(x, group)
    return Decided(
        decision=(margins > 0).astype(int).tolist(),
        probability=probability(scores).tolist(),
        why=[None] * len(x) if why is None else reasons_to_bytes(why),
    )


def learn(
    online: OnlineLearner, task: Task, decided: np.ndarray
) -> tuple[OnlineLearner, dict[str, Any]]:
    """Return the learner after one more round, and the round's line for the journal.

    Args:
        online: what decides now; it stays as it is.
        task: labelled rows.
        decided: the decisions on them as they were issued.
    """
    online = copy.copy(online)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        online.learn(task)
    figures = {
        **tally(task.y, decided, task.group, online.schema),
        "dual": online.dual.tolist(),
        "weights": online.weights.tolist(),
        "memory": memory(online.weights, online.round),
        "warnings": [*(str(one.message) for one in caught), *online.notes],
    }
    return online, line(online.round, online.seed, task, figures, seconds=0.0)


def memory(weights: Sequence[float] | np.ndarray, round: int) -> float:
    """Return how many rounds the weights look back: level k looks back 2^k, the last to the first.

    >>> memory([0.5, 0.0, 0.5], 3), memory([1.0, 0.0, 0.0], 100), memory([0.0, 0.0, 1.0], 100)
    (2.0, 1.0, 100.0)
    """
    spans = [min(2**level, round) for level in range(len(weights))]
    spans[-1:] = [round]
    return float(np.dot(weights, spans))


def reasons_to_bytes(said: Explanation) -> list[bytes]:
    """Return what is kept of an explanation, for each row.

    >>> part = np.array([[0.5, -2.0, 0.0]])
    >>> said = Explanation(np.array([0.3]), np.array(0.5), np.array([0.4]), np.zeros((1, 0)), part)
    >>> reasons_from_bytes(reasons_to_bytes(said)[0], ["age", "debt", "job"])["features"]
    {'debt': -2.0, 'age': 0.5, 'job': 0.0}
    """
    contribution = np.asarray(said.contribution)
    rows, features = contribution.shape
    kept = np.zeros(rows, KEPT)
    kept["plain"], kept["threshold"] = said.plain_threshold, said.threshold
    count = min(features, MOST_FEATURES)
    kept["feature"] = NO_FEATURE
    largest = np.argsort(-np.abs(contribution), axis=1, kind="stable")[:, :count]
    kept["feature"][:, :count] = largest
    kept["part"][:, :count] = np.take_along_axis(contribution, largest, axis=1)
    return kept.view(f"V{KEPT.itemsize}").tolist()


def reasons_from_bytes(kept: bytes, names: Sequence[str]) -> dict[str, Any]:
    """Return the threshold, that without fairness, and the features that counted most."""
    one = np.frombuffer(kept, KEPT)[0]
    parts = zip(one["feature"].tolist(), one["part"].tolist(), strict=True)
    return {
        "threshold": round(float(one["threshold"]), 6),
        "threshold_without_fairness": round(float(one["plain"]), 6),
        "features": {names[place]: round(part, 6) for place, part in parts if place != NO_FEATURE},
    }
