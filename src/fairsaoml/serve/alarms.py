"""Alarms: a notion below its line, inputs that drift, labels that stop; each on, and off again.

The state is plain data and is committed with the round it follows from, so a restarted service
neither repeats an alarm nor forgets one.

Is one group's rate below a share of another's? That is a test which may be looked at every round: a
bet on unfairness. Of a pair of rows, one of each group, D = X_low - ratio X_high has a mean of at
least 0 while the ratio is kept, so the capital of whoever multiplies it by 1 - bet D never grows on
average (a test supermartingale: Shafer 2021; Waudby-Smith and Ramdas 2024). By Ville's inequality
it ever reaches 1 / level with a chance of at most `level`, however often one looks.

The world may change at any time, so the capital is not staked at once: a share of it starts in each
round, and what started before a change cannot lose what starts after it. The shares decrease like
1 / (t log^2 t), whose sum is finite: the whole remains one test for all time.
"""

import math
from collections.abc import Iterator
from itertools import permutations, product
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.types import Schema, Task
from fairsaoml.evaluate.verdict import NOTIONS, Asked

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
BELOW = "{low} gets fewer {what} than {line:.0%} of what {high} gets."
BACK = (
    "{low} is back: {what} are at least {line:.0%} of what {high} gets, over the last "
    f"{BACK_ROUNDS} rounds."
)
State = dict[str, Any]  # plain data
BETS = np.array([0.02, 0.06, 0.15, 0.35, 0.7])  # below 1: no capital is ever lost whole
ALL_SHARES = 2.11  # the sum of 1 / (t log^2 t) from 2 on
LARGEST = 1e300  # stake that JSON can hold
BEGINNING: State = {"rounds": 0, "unspent": 1.0, "staked": [0.0] * len(BETS)}


class Alarm(NamedTuple):
    """Something began or ended."""

    kind: str  # fairness, drift, labels
    on: bool
    name: str  # what an alarm that ends has in common with the one that began
    message: str


class Alarms:
    """What is watched in a stream, round after round."""

    def __init__(self, schema: Schema, asked: Asked, state: State | None = None) -> None:
        self.schema, self.asked = schema, asked
        self.state: State = state or {"tests": {}, "drift": {}, "on": {}}
        rates = (rate for notion in asked.judged for rate in NOTIONS[notion].rates)
        self._rates = list(dict.fromkeys(rates))
        pairs = sum(math.perm(len(levels), 2) for _, levels in schema.attributes)
        self._enough = max(pairs * len(self._rates), 1) / LEVEL

    @property
    def on(self) -> State:
        """The alarms that are on, by name."""
        return self.state["on"]

    def after_round(self, task: Task, decided: np.ndarray, about: State) -> list[Alarm]:
        """Take a learned round; return what began or ended with it."""
        alarms = [*self._fairness(task, np.asarray(decided, float)), *self._drift(task.x)]
        return self._settle(alarms, about)

    def after_silence(
        self, silent: float, longest: float, waiting: int, about: State
    ) -> list[Alarm]:
        """Take how long no label has come, and the `longest` pause there was between labels."""
        stopped = silent > max(SILENCE * longest, LEAST_SILENCE)
        if stopped == ("labels" in self.on) or (stopped and not waiting):
            return []
        message = "Labels are coming again."
        if stopped:
            message = f"No label has come for {_duration(silent)}; {waiting} decisions wait."
        return self._settle([Alarm("labels", stopped, "labels", message)], about)

    def _settle(self, alarms: list[Alarm], about: State) -> list[Alarm]:
        for alarm in alarms:
            if alarm.on:
                self.on[alarm.name] = {"kind": alarm.kind, "message": alarm.message, **about}
            else:
                self.on.pop(alarm.name, None)
        return alarms

    def _fairness(self, task: Task, decided: np.ndarray) -> Iterator[Alarm]:
        rows = {
            "selection_rate": np.ones(len(task.y), bool),
            "true_positive_rate": task.y == 1,
            "false_positive_rate": task.y == 0,
        }
        for column, (attribute, levels) in enumerate(self.schema.attributes):
            of_level = {level: task.group[:, column] == code for code, level in enumerate(levels)}
            for rate, (low, high) in product(self._rates, permutations(levels, 2)):
                name = f"{rate} {attribute}: {low} / {high}"
                shown = [decided[rows[rate] & of_level[level]] for level in (low, high)]
                begins = name not in self.on
                if self._is_below(name, *shown) if begins else self._is_back(name, *shown):
                    who = {"low": f"{attribute} = {low}", "high": f"{attribute} = {high}"}
                    words = BELOW if begins else BACK
                    message = words.format(**who, what=WORDS[rate], line=self.asked.ratio)
                    yield Alarm("fairness", begins, name, message)

    def _is_below(self, name: str, low: np.ndarray, high: np.ndarray) -> bool:
        """Whether there is enough evidence by now that a group is below its line."""
        tests = self.state["tests"]
        tests[name] = bet(tests.get(name), self.asked.ratio, low, high)
        if capital(tests[name]) < self._enough:
            return False
        del tests[name]
        self.state.setdefault("recent", {})[name] = []
        return True

    def _is_back(self, name: str, low: np.ndarray, high: np.ndarray) -> bool:
        """Whether a group that was below its line is at or above it over the last rounds."""
        recent = self.state["recent"][name]
        recent.append([int(low.sum()), len(low), int(high.sum()), len(high)])
        del recent[:-BACK_ROUNDS]
        hits, rows, other_hits, other_rows = map(sum, zip(*recent, strict=True))
        if len(recent) < BACK_ROUNDS or hits * other_rows < self.asked.ratio * other_hits * rows:
            return False
        del self.state["recent"][name]
        return True

    def _drift(self, x: np.ndarray) -> Iterator[Alarm]:
        """Compare the means of inputs, ten rounds against the ten before."""
        now = {
            "rounds": 1,
            "rows": len(x),
            "sum": np.sum(x, 0, float).tolist(),
            "square": np.sum(x.astype(float) ** 2, 0).tolist(),
        }
        drift = self.state["drift"]
        if before := drift.pop("now", None):
            now = {key: np.add(before[key], now[key]).tolist() for key in now}
        if now["rounds"] < DRIFT_ROUNDS:
            drift["now"] = now
            return
        before, drift["before"] = drift.get("before"), now
        if before is None or not before["rows"]:
            return
        drift["looks"] = drift.get("looks", 0) + 1
        level = DRIFT_LEVEL / (len(before["sum"]) * drift["looks"] * (drift["looks"] + 1))
        limit = NormalDist().inv_cdf(1 - level / 2)
        (mean, variance), (mean_now, variance_now) = map(_mean, (before, now))
        error = np.sqrt(variance + variance_now)
        is_far = (error > 1e-12) & (np.abs(mean_now - mean) > limit * error)
        moved = [self.schema.features[place] for place in np.flatnonzero(is_far)]
        if moved:
            names = ", ".join(moved[:3]) + (f" and {len(moved) - 3} more" * (len(moved) > 3))
            yield Alarm("drift", True, "drift", f"Inputs have drifted: {names}.")
        elif "drift" in self.on:
            yield Alarm("drift", False, "drift", "Inputs are steady again.")


def _mean(part: State) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of inputs, and the variances of these means."""
    rows = max(part["rows"], 1)
    mean = np.asarray(part["sum"]) / rows
    return mean, np.maximum(np.asarray(part["square"]) / rows - mean**2, 0) / rows


def _duration(seconds: float) -> str:
    """Such as 90 minutes.

    >>> _duration(90), _duration(5400), _duration(200000)
    ('90 seconds', '90 minutes', '56 hours')
    """
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"


def bet(state: State | None, ratio: float, low: np.ndarray, high: np.ndarray) -> State:
    """Bet on rate(low) < ratio * rate(high) for one more round.

    Args:
        state: what the rounds before have left, plain data; None before the first.
        ratio: that is asked for.
        low: the round's decisions on rows of the group that may be treated worse, in order.
        high: those on rows of the other group.

    Returns:
        The state after the round.

    >>> fair = unfair = None
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(20):
    ...     high = rng.random(100) < 0.5
    ...     fair = bet(fair, 0.9, rng.random(100) < 0.5, high)
    ...     unfair = bet(unfair, 0.9, rng.random(100) < 0.35, high)
    >>> capital(fair) < 1, capital(unfair) > 1000
    (True, True)
    """
    state, pairs = state or BEGINNING, min(len(low), len(high))
    if not pairs:
        return state
    rounds = state["rounds"] + 1
    share = 1 / (ALL_SHARES * (rounds + 1) * math.log(rounds + 1) ** 2)
    # Rows of the larger group are averaged: every row counts, and D stays within its bounds.
    difference = _blocks(low, pairs) - ratio * _blocks(high, pairs)
    growth = np.log1p(-BETS[:, None] * difference[None, :]).sum(axis=1)
    staked = (np.asarray(state["staked"]) + share / len(BETS)) * np.exp(growth)
    staked = np.minimum(staked, LARGEST).tolist()
    return {"rounds": rounds, "unspent": state["unspent"] - share, "staked": staked}


def capital(state: State) -> float:
    """Return what one unit has become: at least 1 / level is evidence at that level."""
    return state["unspent"] + sum(state["staked"])


def _blocks(values: np.ndarray, count: int) -> np.ndarray:
    """Return the means of so many runs of about equal length.

    >>> _blocks(np.array([1.0, 0.0, 1.0, 1.0, 0.0]), 2)
    array([0.5       , 0.66666667])
    """
    edges = np.arange(count + 1) * len(values) // count
    return np.add.reduceat(values, edges[:-1], dtype=float) / np.diff(edges)
