"""What each group was promised: its rows by tenths of their probability, and what they needed."""

from typing import Any

import numpy as np

from fairsaoml.core.types import Attribute

__all__ = ["chances_by_group"]

TENTHS = 10


def chances_by_group(
    scores: Any,
    y: Any,
    group: Any,
    attributes: tuple[Attribute, ...],
    threshold: Any = None,
) -> dict[str, Any]:
    """Return, by attribute and level, rows, positive labels and summed probability by tenths.

    Args:
        scores: logits.
        y, group: the rows' labels and group codes.
        attributes: what the codes mean; rows of a group never declared are left out.
        threshold: the probability that each row needed, where the learner can say it.

    >>> sex = Attribute(name="sex", levels=("f", "m"))
    >>> chances = chances_by_group(np.array([0.0]), np.array([1.0]), np.array([[1]]), (sex,))
    >>> chances["sex"]["m"]["tenths"][5], chances["sex"]["f"]["tenths"][5]
    ([1, 1, 0.5], [0, 0, 0.0])
    """
    chance = 1 / (1 + np.exp(-np.clip(np.asarray(scores, np.float64), -50, 50)))
    tenth = np.minimum((chance * TENTHS).astype(np.int64), TENTHS - 1)
    chances: dict[str, Any] = {}
    for column, (name, levels) in enumerate(attributes):
        code = group[:, column].astype(np.int64)
        places = code * TENTHS + tenth
        rows, positive, summed = (
            np.bincount(places, weights, TENTHS * (len(levels) + 1)).reshape(-1, TENTHS)
            for weights in (None, y, chance)
        )
        chances[name] = {
            level: {
                "tenths": [
                    [int(rows[i, k]), int(positive[i, k]), float(summed[i, k])]
                    for k in range(TENTHS)
                ],
                **_needed(threshold, code == i),
            }
            for i, level in enumerate(levels)
        }
    return chances


def _needed(threshold: Any, own: np.ndarray) -> dict[str, float]:
    """The mean threshold of a group's rows; one beyond 0 or 1 is as good as 0 or 1."""
    if threshold is None or not own.any():
        return {}
    return {"threshold": float(np.clip(threshold[own], 0, 1).mean())}
