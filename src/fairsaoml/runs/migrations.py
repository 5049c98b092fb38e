"""Checkpoints of before: from the manifest and arrays of each older schema to those of the next."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from fairsaoml.core import heads
from fairsaoml.core.buffers import EMPTY
from fairsaoml.core.errors import RunError
from fairsaoml.core.feature_maps import RELU_COLUMNS, Directions, Knots, RichMap
from fairsaoml.core.roster import LINEAR, RICH, roster
from fairsaoml.core.row_sample import CAPACITY, RARE_CAPACITY, SEGMENT

Manifest = dict[str, Any]
Arrays = Mapping[str, np.ndarray]
State = dict[str, np.ndarray]  # of one seed, its names without what stands before the state
Migration = Callable[[Manifest, Arrays], tuple[Manifest, Arrays]]

TYPICAL_BEND = np.float32(0.2)  # p (1 - p)
KEPT = [0, 1, 3, 5, 7]  # of the eight memories of schema 5
# Of the share of each expert of schema 5: its own, or the one with the next longer memory.
HEIR = [0, 1, 2, 2, 3, 3, 4, 4, 5, 6]
FIRST = {"linear": LINEAR[0], "rich": RICH[0]}  # of the memories that a map's experts had
SMALLEST_SHARE = 1e-3


def _wrapped(manifest: Manifest, arrays: Arrays) -> tuple[Manifest, Arrays]:
    """Schema 2 to 3: a learner's own part of its state is `learned`, in `core.learner.Wrapped`.

    What is the same for all learners came to stand beside it: `round`, which two families had, and
    `pinned`, which one had not. An empty slot's priority was infinite and is 2.
    """
    priors = [name for name in arrays if name.endswith(".prior.tasks")]
    if not priors:
        return manifest, arrays  # of a learner that is not ours
    (tasks,) = priors
    state = tasks.removesuffix(".prior.tasks")  # empty, or where a saved model keeps its state
    round = np.full_like(arrays[tasks], manifest["round"], np.int32)
    moved = {f"{state}.round": round, f"{state}.pinned": np.zeros_like(round)}
    for name, values in arrays.items():
        part = name.removeprefix(state)
        if part.endswith(".priority"):
            values = np.where(np.isinf(values), np.float32(EMPTY), values)
        if name.startswith(f"{state}.") and not part.startswith((".prior.", ".round", ".pinned")):
            learned = part.removeprefix(".pair") if part.startswith(".pair.") else part
            name = f"{state}.learned{learned}"
        moved[name] = values
    return manifest, moved


def _tilted(manifest: Manifest, arrays: Arrays) -> tuple[Manifest, Arrays]:
    """Schema 3 to 4: what the default learner's rule adds may grow with the probability (`tilt`).

    It did not then: with none the rule decides as it did.
    """
    tilt = {
        name.removesuffix("coefficient") + "tilt": np.zeros_like(values)
        for name, values in arrays.items()
        if name.endswith(".rule.coefficient")
    }
    return manifest, {**tilt, **arrays}


def _shared_curvature(manifest: Manifest, arrays: Arrays) -> tuple[Manifest, Arrays]:
    """Schema 4 to 5: the default learner's heads share the curvature of past rows, by label.

    Every head had a matrix of its own, and the past's slope was kept at 0 instead of at theta. The
    first head's matrix serves all: decisions are as they were, and what is approximate in it is
    forgotten like the past that it is about.
    """
    moved = dict(arrays)
    for name, curvature in arrays.items():
        if not name.endswith((".heads.linear.curvature", ".heads.rich.curvature")):
            continue
        del moved[name]
        experts = name.removesuffix(".curvature")
        rows, theta = arrays[f"{experts}.rows"], arrays[f"{experts}.theta"]
        every = rows[..., :1, :]
        ones = rows[..., 1:2, :] if rows.shape[-2] > 1 else every / 2
        mass = np.concatenate([every, ones, every - ones], axis=-2)
        share = mass / np.maximum(every, 1e-9)
        first = curvature[..., :1, :, :, :] / TYPICAL_BEND
        moved |= {
            f"{experts}.bend": TYPICAL_BEND * rows,
            f"{experts}.mass": mass,
            f"{experts}.products": (share[..., None, None] * first).astype(np.float32),
            f"{experts}.slope": np.einsum("...de,...e->...d", curvature, theta)
            - arrays[f"{experts}.slope"],
        }
    return manifest, moved


def _by_seed(end: str, migrated: Callable[[State], State]) -> Migration:
    """The migration of every state of the default learner, one of whose names ends so."""

    def migration(manifest: Manifest, arrays: Arrays) -> tuple[Manifest, Arrays]:
        moved = dict(arrays)
        for learned in [name.removesuffix(end) for name in arrays if name.endswith(end)]:
            of_seeds = {
                name.removeprefix(f"{learned}."): moved.pop(name)
                for name in arrays
                if name.startswith(f"{learned}.")
            }
            shape = of_seeds["heads.clock"].shape
            states = [
                migrated({name: values[seed] for name, values in of_seeds.items()})
                for seed in np.ndindex(shape)
            ]
            for name in states[0]:
                together = np.stack([state[name] for state in states])
                moved[f"{learned}.{name}"] = together.reshape(shape + together.shape[1:])
        return manifest, moved

    return migration


def _five_memories(state: State) -> State:
    """Schema 5 to 6: of eight memories five are left, and the sample holds features, not columns.

    The shares of experts that are gone go to those of the next longer memory.
    """
    new = dict(state)
    for name in ("rows", "bend", "products", "mass", "slope", "theta"):
        new[f"heads.linear.{name}"] = state[f"heads.linear.{name}"][:, KEPT]
    log_weights = np.full((len(state["heads.log_weights"]), max(HEIR) + 1), -np.inf, np.float32)
    np.logaddexp.at(log_weights.T, HEIR, state["heads.log_weights"].T)
    new |= {"heads.log_weights": log_weights, "heads.turn": np.zeros((), np.int32)}

    # A ReLU looks along its few columns, where it had a number for each column.
    direction = new.pop("heads.map.direction").T
    column = np.argsort(-np.abs(direction), axis=1, kind="stable")[:, :RELU_COLUMNS]
    relus = Directions(
        column=column.astype(np.int32),
        size=np.take_along_axis(direction, column, axis=1),
        offset=new.pop("heads.map.offset"),
    )
    new |= {f"heads.map.relus.{name}": values for name, values in relus._asdict().items()}
    hinges, steps = (
        Knots(*(state[f"heads.map.{sort}.{part}"] for part in Knots._fields))
        for sort in ("hinges", "steps")
    )
    fitted, mean, scale = (state[f"heads.map.{part}"] for part in ("fitted", "mean", "scale"))
    rich = RichMap(fitted, hinges, steps, relus, mean, scale)

    # The newest rows of a ring, from its first slot on.
    for ring, capacity in (("sample.usual", CAPACITY), ("sample.rare", RARE_CAPACITY)):
        weight = state[f"{ring}.weight"]
        in_order = (int(state[f"{ring}.next"]) + np.arange(len(weight))) % len(weight)
        newest = in_order[weight[in_order] > 0][-capacity:]
        room = capacity - len(newest)
        features = heads.features_of(rich, new.pop(f"{ring}.x")[newest])
        new[f"{ring}.features"] = np.pad(features, [(0, 0), (0, room)])
        for part in ("y", "group", "weight", "born"):
            old = state[f"{ring}.{part}"][newest]
            new[f"{ring}.{part}"] = np.pad(old, [(0, room), *[(0, 0)] * (old.ndim - 1)])
        new[f"{ring}.next"] = np.asarray(len(newest) % capacity, np.int32)
    return new


def _fewer_experts(state: State) -> State:
    """Schema 6 to 7: the heads of the groups have four experts instead of seven.

    What the experts that are gone had of a head goes to the others.
    """
    who = roster(_kinds(state))
    is_rich = np.arange(len(who.head)) >= who.linear
    # The experts of a head lay in order: the linear ones, then those of the rich map.
    place = who.memory + is_rich * (len(LINEAR) - FIRST["rich"])
    new = {name: values for name, values in state.items() if name.split(".")[1] not in FIRST}

    def of_both(name: str) -> list[np.ndarray]:
        """What the experts of both maps have, the columns' features padded to the rich ones."""
        linear, rich = (state[f"heads.{of}.{name}"] for of in FIRST)
        missing = rich.shape[-1] - linear.shape[-1]
        if name in ("slope", "theta", "ridge"):
            linear = np.pad(linear, [*[(0, 0)] * (linear.ndim - 1), (0, missing)])
        return [linear, rich]

    for name in ("rows", "bend", "slope", "theta"):
        new[f"heads.experts.{name}"] = np.concatenate(of_both(name), 1)[who.head, place]
    ridges = np.stack(of_both("ridge"))
    new["heads.experts.ridge"] = ridges[is_rich.astype(int), who.head][who.longest]
    for number, crew in enumerate(who.crews):
        of = "linear" if crew.turn is None else "rich"
        for name in ("products", "mass"):
            values = state[f"heads.{of}.{name}"][crew.kind, crew.memory - FIRST[of]]
            new[f"heads.experts.{name}[{number}]"] = values
    log_weights = new.pop("heads.log_weights")
    kept = np.exp(log_weights - log_weights.max(1, keepdims=True))[who.head, place]
    kept += np.float32(SMALLEST_SHARE)
    new["heads.share"] = (kept / (who.of_head @ kept)[who.head]).astype(np.float32)
    for ring in ("usual", "rare"):
        features = new.pop(f"sample.{ring}.features")
        for number, begin in enumerate(range(0, features.shape[1], SEGMENT)):
            new[f"sample.{ring}.features[{number}]"] = features[:, begin : begin + SEGMENT]
    return new


def _kinds(state: State) -> tuple[int, ...]:
    """The kinds of rows that a state's heads learn from.

    How many levels an attribute has is not written there, and some may not have been seen. Heads
    of the same attribute and label have remembered as many rows.
    """
    heads, counts = len(state["heads.log_weights"]), state["sample.counts"]
    rows = state["heads.linear.rows"][1:, -1]
    seen = [1 + max(np.flatnonzero(count), default=0) for count in counts]
    for levels in product(*(range(least, counts.shape[1] + 1) for least in seen)):
        of_label = np.repeat(np.array([1 if count == 2 else count for count in levels], int), 2)
        alike = np.split(rows, np.cumsum(of_label)[:-1])
        if of_label.sum() == heads - 1 and all(len(set(some)) <= 1 for some in alike):
            return (0, *np.repeat(np.array([1, 2] * len(levels), int), of_label).tolist())
    raise RunError(
        f"expected the groups of {heads} heads, got counts of {counts.tolist()}; continue with the "
        "version of fairsaoml that wrote it, or start again"
    )


# From each older schema to the one after it. All have `schema`, `round`, `file` and `sha256`.
MIGRATIONS: dict[int, Migration] = {
    1: lambda manifest, arrays: (manifest, arrays),  # had no checksum of the manifest itself
    2: _wrapped,
    3: _tilted,
    4: _shared_curvature,
    5: _by_seed(".sample.usual.x", _five_memories),
    6: _by_seed(".heads.log_weights", _fewer_experts),
}
