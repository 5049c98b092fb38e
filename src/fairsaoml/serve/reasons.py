"""Why a row was decided as it was, in 38 bytes beside the decision: the model of then is gone."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairsaoml.core.types import Explanation

__all__ = ["reasons_from_bytes", "reasons_to_bytes"]

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
