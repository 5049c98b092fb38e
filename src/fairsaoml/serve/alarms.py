"""Alarms: a notion below its line, inputs that drift, labels that stop; each on, and off again.

The state is plain data and is committed with the round it follows from, so a restarted service
neither repeats an alarm nor forgets one.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.types import Schema, Task
from fairsaoml.evaluate.verdict import NOTIONS, Asked
from fairsaoml.serve.sequential import RatioTest

__all__ = ["Alarm", "Alarms"]

LEVEL = 0.05  # of all streams that keep to what is asked for, so many ever see an alarm
BACK_ROUNDS = 10  # an alarm ends when so many rounds together are at or above the line
DRIFT_LEVEL = 0.01
DRIFT_ROUNDS = 10  # inputs of so many rounds are compared with those of so many before
SILENCE = 10.0  # times the longest pause between labels so far
LEAST_SILENCE = 60.0  # seconds
WORDS = {
    "selection_rate": "positive decisions",
    "true_positive_rate": "positive decisions among the truly positive",
    "false_positive_rate": "positive decisions among the truly negative",
}


class Alarm(NamedTuple):
    """Something began or ended."""

    kind: str  # fairness, drift, labels
    on: bool
    name: str  # what an alarm that ends has in common with the one that began
    message: str


class Alarms:
    """What is watched in a stream, round after round."""

    def __init__(self, schema: Schema, asked: Asked, state: dict[str, Any] | None = None) -> None:
        self.schema, self.asked = schema, asked
        self.state: dict[str, Any] = state or {"tests": {}, "drift": {}, "on": {}}
        self._rates = list(
            dict.fromkeys(rate for key in asked.judged for rate in NOTIONS[key].rates)
        )
        pairs = sum(math.perm(len(levels), 2) for _, levels in schema.attributes)
        self._enough = max(pairs * len(self._rates), 1) / LEVEL

    @property
    def on(self) -> dict[str, Any]:
        """The alarms that are on, by name."""
        return self.state["on"]

    def after_round(self, task: Task, decided: np.ndarray, about: dict[str, Any]) -> list[Alarm]:
        """Take a learned round; return what began or ended with it."""
        alarms = [*self._fairness(task, np.asarray(decided, float)), *self._drift(task.x)]
        return self._settle(alarms, about)

    def after_silence(
        self, silent: float, longest_pause: float, waiting: int, about: dict[str, Any]
    ) -> list[Alarm]:
        """Take how long no label has come, and the longest pause there was between labels."""
        name, is_on = "labels", "labels" in self.on
        limit = max(SILENCE * longest_pause, LEAST_SILENCE)
        if waiting and silent > limit and not is_on:
            message = f"No label has come for {_duration(silent)}; {waiting} decisions wait."
            return self._settle([Alarm("labels", True, name, message)], about)
        if is_on and silent <= limit:
            return self._settle([Alarm("labels", False, name, "Labels are coming again.")], about)
        return []

    def _settle(self, alarms: list[Alarm], about: dict[str, Any]) -> list[Alarm]:
        for alarm in alarms:
            if alarm.on:
                self.on[alarm.name] = {"kind": alarm.kind, "message": alarm.message, **about}
            else:
                self.on.pop(alarm.name, None)
        return alarms

    def _fairness(self, task: Task, decided: np.ndarray) -> Iterator[Alarm]:
        for column, (attribute, levels) in enumerate(self.schema.attributes):
            code = task.group[:, column]
            for rate in self._rates:
                rows = _rows_of(rate, task.y)
                shown = [decided[rows & (code == level)] for level in range(len(levels))]
                for low, high in permutations(range(len(levels)), 2):
                    name = f"{rate} {attribute}: {levels[low]} / {levels[high]}"
                    about = (attribute, rate, levels[low], levels[high])
                    yield from self._compared(name, about, shown[low], shown[high])

    def _compared(
        self, name: str, about: Sequence[str], low: np.ndarray, high: np.ndarray
    ) -> Iterator[Alarm]:
        line, tests = self.asked.ratio, self.state["tests"]
        attribute, rate, lower, higher = about
        if name not in self.on:
            test = RatioTest(line, tests.get(name))
            if test.update(low, high) >= self._enough:
                tests.pop(name, None)
                self.state.setdefault("recent", {})[name] = []
                yield Alarm(
                    "fairness",
                    True,
                    name,
                    f"{attribute} = {lower} gets fewer {WORDS[rate]} than {line:.0%} of what "
                    f"{attribute} = {higher} gets.",
                )
            else:
                tests[name] = test.to_json()
            return
        recent = self.state["recent"][name]
        recent.append([int(low.sum()), len(low), int(high.sum()), len(high)])
        del recent[:-BACK_ROUNDS]
        hits, rows, other_hits, other_rows = map(sum, zip(*recent, strict=True))
        if len(recent) == BACK_ROUNDS and hits * other_rows >= line * other_hits * rows:
            del self.state["recent"][name]
            yield Alarm(
                "fairness",
                False,
                name,
                f"{attribute} = {lower} is back: {WORDS[rate]} are at least {line:.0%} of what "
                f"{attribute} = {higher} gets, over the last {BACK_ROUNDS} rounds.",
            )

    def _drift(self, x: np.ndarray) -> Iterator[Alarm]:
        """Compare the means of inputs, ten rounds against the ten before."""
        now = {
            "rounds": 1,
            "rows": len(x),
            "sum": np.sum(x, 0, float).tolist(),
            "square": np.sum(x.astype(float) ** 2, 0).tolist(),
        }
        drift = self.state["drift"]
        drift["now"] = _added(drift.get("now"), now)
        if drift["now"]["rounds"] < DRIFT_ROUNDS:
            return
        before, drift["before"] = drift.get("before"), drift.pop("now")
        if before is None or not before["rows"]:
            return
        drift["looks"] = drift.get("looks", 0) + 1
        level = DRIFT_LEVEL / (len(before["sum"]) * drift["looks"] * (drift["looks"] + 1))
        limit = NormalDist().inv_cdf(1 - level / 2)
        score = _scores(before, drift["before"])
        moved = [self.schema.features[place] for place in np.flatnonzero(np.abs(score) > limit)]
        if moved:
            names = ", ".join(moved[:3]) + (f" and {len(moved) - 3} more" * (len(moved) > 3))
            yield Alarm("drift", True, "drift", f"Inputs have drifted: {names}.")
        elif "drift" in self.on:
            yield Alarm("drift", False, "drift", "Inputs are steady again.")


def _rows_of(rate: str, y: np.ndarray) -> np.ndarray:
    if rate == "true_positive_rate":
        return y == 1
    return y == 0 if rate == "false_positive_rate" else np.ones(len(y), bool)


def _added(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    return other if one is None else {key: _plus(one[key], other[key]) for key in other}


def _plus(one: Any, other: Any) -> Any:
    return np.add(one, other).tolist() if isinstance(one, list) else one + other


def _scores(one: dict[str, Any], other: dict[str, Any]) -> np.ndarray:
    """How far two means are from each other, in standard errors; 0 where nothing varies."""
    means, errors = [], []
    for part in (one, other):
        rows = max(part["rows"], 1)
        mean = np.asarray(part["sum"]) / rows
        means.append(mean)
        errors.append(np.maximum(np.asarray(part["square"]) / rows - mean**2, 0) / rows)
    error = np.sqrt(errors[0] + errors[1])
    return np.where(error > 1e-12, (means[1] - means[0]) / np.where(error > 1e-12, error, 1), 0.0)


def _duration(seconds: float) -> str:
    """Such as 90 minutes.

    >>> _duration(90), _duration(5400), _duration(200000)
    ('90 seconds', '90 minutes', '56 hours')
    """
    for unit, size in (("seconds", 1), ("minutes", 60), ("hours", 3600)):
        if seconds < 120 * size or unit == "hours":
            return f"{seconds / size:.0f} {unit}"
    return ""
