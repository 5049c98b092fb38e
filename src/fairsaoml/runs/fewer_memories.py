"""Checkpoints of the default learner from when it had more experts and a larger sample.

Of eight memories five are left, and the heads of the groups have fewer experts than the label's;
the sample is half as large and holds features in place of columns.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fairsaoml.core import heads
from fairsaoml.core.errors import RunError
from fairsaoml.core.feature_maps import RELU_COLUMNS, Directions, Knots, RichMap
from fairsaoml.core.roster import KEEPS, LINEAR, RICH, roster
from fairsaoml.core.row_sample import CAPACITY, RARE_CAPACITY, SEGMENT

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
FIRST = {"linear": LINEAR[0], "rich": RICH[0]}  # of the memories that a map's experts had
SMALLEST_SHARE = 1e-3
PER_ROW = ("y", "group", "weight", "born")

Arrays = dict[str, np.ndarray]


def fewer_memories(
    manifest: dict[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, Any], Arrays]:
    """Schema 5 to 6. The shares of experts that are gone go to those of the next longer memory."""
    return manifest, _by_seed(arrays, ".sample.usual.x", _with_five_memories)


def fewer_experts(
    manifest: dict[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, Any], Arrays]:
    """Schema 6 to 7. The heads of the groups have three experts instead of seven."""
    return manifest, _by_seed(arrays, ".heads.log_weights", _with_fewer_experts)


def _by_seed(
    arrays: Mapping[str, np.ndarray], end: str, migrated: Callable[[Arrays], Arrays]
) -> Arrays:
    """All arrays, those of every state of the default learner, of which one ends so, migrated."""
    moved = dict(arrays)
    for learned in [name.removesuffix(end) for name in arrays if name.endswith(end)]:
        mine = {
            name.removeprefix(f"{learned}."): moved.pop(name)
            for name in arrays
            if name.startswith(f"{learned}.")
        }
        shape = mine["heads.clock"].shape
        states = [
            migrated({name: values[seed] for name, values in mine.items()})
            for seed in np.ndindex(shape)
        ]
        for name, values in states[0].items():
            together = np.stack([state[name] for state in states])
            moved[f"{learned}.{name}"] = together.reshape(shape + values.shape)
    return moved


def _with_five_memories(state: Arrays) -> Arrays:
    """One seed's arrays."""
    new = dict(state)
    for name in ("rows", "bend", "products", "mass", "slope", "theta"):
        new[f"heads.linear.{name}"] = state[f"heads.linear.{name}"][:, KEPT]
    log_weights = np.full((len(state["heads.log_weights"]), 7), -np.inf, np.float32)
    for old, heir in enumerate(HEIR):
        log_weights[:, heir] = np.logaddexp(
            log_weights[:, heir], state["heads.log_weights"][:, old]
        )
    new["heads.log_weights"] = log_weights
    new["heads.turn"] = np.zeros((), np.int32)
    relus = _directions(new.pop("heads.map.direction"), new.pop("heads.map.offset"))
    new |= {f"heads.map.relus.{name}": values for name, values in relus._asdict().items()}
    rich = _map(new, "heads.map", relus)
    for ring, capacity in (("usual", CAPACITY), ("rare", RARE_CAPACITY)):
        new |= _ring(new, f"sample.{ring}", capacity, rich)
    return new


def _with_fewer_experts(state: Arrays) -> Arrays:
    """One seed's arrays; what the experts that are gone had of a head goes to the others."""
    who = roster(_kinds(state))
    new = {name: values for name, values in state.items() if name.split(".")[1] not in FIRST}
    log_weights, width = new.pop("heads.log_weights"), state["heads.rich.theta"].shape[-1]
    of_map = ["linear" if one < who.linear else "rich" for one in range(len(who.head))]

    def of_expert(name: str, one: int) -> np.ndarray:
        of = of_map[one]
        return state[f"heads.{of}.{name}"][who.head[one], who.memory[one] - FIRST[of]]

    def wide(vectors: Iterable[np.ndarray]) -> np.ndarray:
        return np.stack([np.pad(vector, (0, width - len(vector))) for vector in vectors])

    experts = range(len(who.head))
    for name in ("rows", "bend"):
        new[f"heads.experts.{name}"] = np.stack([of_expert(name, one) for one in experts])
    for name in ("slope", "theta"):
        new[f"heads.experts.{name}"] = wide(of_expert(name, one) for one in experts)
    new["heads.experts.ridge"] = wide(
        state[f"heads.{of_map[one]}.ridge"][who.head[one]] for one in who.longest
    )
    for number, crew in enumerate(who.crews):
        of = "linear" if crew.turn is None else "rich"
        for name in ("products", "mass"):
            values = state[f"heads.{of}.{name}"][crew.kind, crew.memory - FIRST[of]]
            new[f"heads.experts.{name}[{number}]"] = values
    column = who.memory + np.where(np.array(of_map) == "linear", 0, len(KEEPS) - FIRST["rich"])
    kept = np.exp(log_weights - log_weights.max(1, keepdims=True))[who.head, column]
    kept += np.float32(SMALLEST_SHARE)
    new["heads.share"] = (kept / (who.of_head @ kept)[who.head]).astype(np.float32)
    for ring in ("usual", "rare"):
        features = new.pop(f"sample.{ring}.features")
        for number, begin in enumerate(range(0, features.shape[1], SEGMENT)):
            new[f"sample.{ring}.features[{number}]"] = features[:, begin : begin + SEGMENT]
    return new


def _kinds(state: Arrays) -> tuple[int, ...]:
    """The kinds of rows that a state's heads learn from, by the groups that it has seen."""
    heads, counts = len(state["heads.log_weights"]), state["sample.counts"]
    if len(counts) == 1:
        of_label = [(heads - 1) // 2]
    else:
        levels = [int(np.count_nonzero(seen)) for seen in counts]
        of_label = [1 if count == 2 else count for count in levels]
    kinds = (0, *(kind for count in of_label for kind in (1, 2) for _ in range(count)))
    if len(kinds) != heads:
        raise RunError(
            f"expected the groups of {heads} heads, got those of {len(kinds)}: a group was not "
            "seen yet; continue with the version of fairsaoml that wrote it, or start again"
        )
    return kinds


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
