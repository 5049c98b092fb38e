"""Checkpoints of the default learner from when it had eight memories and a larger sample.

Five of the eight are left; the sample is half as large and holds features in place of columns.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairsaoml.core import heads
from fairsaoml.core.feature_maps import RELU_COLUMNS, Directions, Knots, RichMap
from fairsaoml.core.row_sample import CAPACITY, RARE_CAPACITY

__all__ = ["fewer_memories"]

KEPT = [0, 1, 3, 5, 7]  # of the memories that there were
HEIR = [
    0,
    1,
    2,
    2,
    3,
    3,
    4,
    4,
    5,
    6,
]  # of the share of each expert: its own, or the next longer one
PER_ROW = ("y", "group", "weight", "born")

Arrays = dict[str, np.ndarray]


def fewer_memories(
    manifest: dict[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, Any], Arrays]:
    """Schema 5 to 6. The shares of experts that are gone go to those of the next longer memory."""
    end = ".sample.usual.x"
    moved = dict(arrays)
    for learned in [name.removesuffix(end) for name in arrays if name.endswith(end)]:
        mine = {name: moved.pop(name) for name in arrays if name.startswith(f"{learned}.")}
        seeds = np.ndindex(mine[f"{learned}.heads.clock"].shape)
        states = [{name: values[seed] for name, values in mine.items()} for seed in seeds]
        migrated = [_migrated(state, learned) for state in states]
        shape = mine[f"{learned}.heads.clock"].shape
        moved |= {
            name: np.stack([state[name] for state in migrated]).reshape(shape + values.shape)
            for name, values in migrated[0].items()
        }
    return manifest, moved


def _migrated(state: Arrays, learned: str) -> Arrays:
    """One seed's arrays."""
    of_heads, linear = f"{learned}.heads", f"{learned}.heads.linear"
    new = dict(state)
    for name in ("rows", "bend", "products", "mass", "slope", "theta"):
        new[f"{linear}.{name}"] = state[f"{linear}.{name}"][:, KEPT]
    log_weights = np.full((len(state[f"{of_heads}.log_weights"]), 7), -np.inf, np.float32)
    for old, heir in enumerate(HEIR):
        log_weights[:, heir] = np.logaddexp(
            log_weights[:, heir], state[f"{of_heads}.log_weights"][:, old]
        )
    new[f"{of_heads}.log_weights"] = log_weights
    new[f"{of_heads}.turn"] = np.zeros((), np.int32)
    relus = _directions(new.pop(f"{of_heads}.map.direction"), new.pop(f"{of_heads}.map.offset"))
    new |= {
        f"{of_heads}.map.relus.{name}": values
        for name, values in zip(Directions._fields, relus, strict=True)
    }
    rich = _map(new, f"{of_heads}.map", relus)
    for ring, capacity in (("usual", CAPACITY), ("rare", RARE_CAPACITY)):
        new |= _ring(new, f"{learned}.sample.{ring}", capacity, rich)
    return new


def _directions(matrix: np.ndarray, offset: np.ndarray) -> Directions:
    """The few columns of each ReLU, of a matrix of all columns by ReLUs."""
    parts = min(RELU_COLUMNS, len(matrix))
    column = np.argsort(-np.abs(matrix.T), axis=1, kind="stable")[:, :parts]
    size = np.take_along_axis(matrix.T, column, axis=1)
    return Directions(column=column.astype(np.int32), size=size, offset=offset)


def _map(state: Arrays, name: str, relus: Directions) -> RichMap:
    hinges, steps = (
        Knots(column=state[f"{name}.{sort}.column"], value=state[f"{name}.{sort}.value"])
        for sort in ("hinges", "steps")
    )
    fitted, mean, scale = (state[f"{name}.{part}"] for part in ("fitted", "mean", "scale"))
    return RichMap(fitted, hinges, steps, relus, mean, scale)


def _ring(state: Arrays, name: str, capacity: int, rich: RichMap) -> Arrays:
    """The newest rows of a ring, from its first slot on."""
    x, weight = state.pop(f"{name}.x"), state[f"{name}.weight"]
    in_order = (int(state[f"{name}.next"]) + np.arange(len(weight))) % len(weight)
    newest = in_order[weight[in_order] > 0][-capacity:]
    known = heads.features_of(rich, x[newest])
    features = np.zeros((len(known), capacity), np.float32)
    features[:, : len(newest)] = known
    ring = {f"{name}.features": features}
    for part in PER_ROW:
        old = state[f"{name}.{part}"]
        values = np.zeros((capacity, *old.shape[1:]), old.dtype)
        values[: len(newest)] = old[newest]
        ring[f"{name}.{part}"] = values
    return ring | {f"{name}.next": np.asarray(len(newest) % capacity, np.int32)}
