"""Rows as matrices."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "Matrix", "Vector", "as_batch"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Batch(NamedTuple):
    x: Matrix  # (row, feature)
    y: Vector  # (row,) 0 or 1
    group: NDArray[np.int64]  # (row, attribute); code == number of levels is `unseen`
    weight: Vector  # (row,) 0 = padding


def as_batch(rows: Any) -> Batch:
    """Anything with x, y, group and weight, copied out in float64."""
    return Batch(
        x=np.array(rows.x, dtype=np.float64),
        y=np.array(rows.y, dtype=np.float64),
        group=np.array(rows.group, dtype=np.int64),
        weight=np.array(rows.weight, dtype=np.float64),
    )
