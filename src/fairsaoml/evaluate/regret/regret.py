"""Regret on windows of time: FairSAR (Eq. 4), SAR (Eq. 3) and static regret (Eq. 2) of a run.

    FairSAR(T, tau) = max over [s, s+tau-1] of  sum_t f_t(theta_t) - min_theta sum_t f_t(theta),

theta in the learner's ball and with no positive sum of violations over the window; SAR leaves the
constraints out; static regret is the one window of all rounds. Beside it stands the other half of
Eq. 4, the largest sum of each violation over a window of the same length.

f_t and g_t are the journal's `loss` and `violation`: the mean logistic loss of the deployed scores
over all rows of a round, and the smooth gaps of the same scores, before anything of the round was
learned. Positive means that the comparator won.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairsaoml.core.errors import ConfigError, DataError
from fairsaoml.core.types import Learner, Problem, Task
from fairsaoml.evaluate.regret.comparator import Comparators, best_models
from fairsaoml.evaluate.regret.pool import Adapting, adapting_models, best_of_pool, fit_pool
from fairsaoml.evaluate.regret.rounds import Floats, Ints, held_out, linear_rounds, window_sums

EXACT = (
    "linear model, gaps of logits: a convex program, solved to a duality gap of at most "
    "{gap:.1e} per round, constraints kept to {excess:.1e}"
)
HALF_EXACT = (
    "linear model: the comparator without constraints is solved to a duality gap of at most "
    "{gap:.1e} per round; with them the problem is not convex (score={score}), and the best of a "
    "pool of {models} fair models stands in: FairSAR is a lower bound"
)
APPROXIMATE = (
    "a network: the best of a pool of {models} models stands in for the best model of each window; "
    "both regrets are lower bounds"
)

ADAPTING = (
    "models adapt to each round by the learner's base learner before they are measured: the best "
    "of a pool of {models} stands in for the best of each window; both regrets are lower bounds"
)


class Worst(NamedTuple):
    """The window of a length with the largest value; rounds count from 1, both ends inside."""

    value: float
    first: int
    last: int


class LossSeries(NamedTuple):
    """What a learner was charged, round by round."""

    loss: Floats  # (round,)
    violation: Floats  # (round, constraint)
    first: int = 1  # a journal may begin later, where a model was trained elsewhere


def proven_growth(rounds: int, window: int) -> dict[str, float]:
    """What Theorem 1 proves for FairSAOML, up to constant factors; logarithms of at least 1.

    `rounds` are its T, `window` its tau. The violation is as printed; the printed proof drops a
    term F tau, and yields `violation_of_proof`.

    >>> round(proven_growth(rounds=16, window=16)["violation_of_proof"], 3)  # 2 x 4
    8.0
    """
    T, tau, log = rounds, window, max(math.log(rounds), 1.0)
    return {
        "loss": (tau * log) ** 0.5,
        "violation": (tau * T * log) ** 0.25,
        "violation_of_proof": T**0.25 * tau**0.5,
    }


def doubling(most: int) -> list[int]:
    """1, 2, 4, ... up to `most`.

    >>> doubling(10)
    [1, 2, 4, 8]
    """
    return [1 << power for power in range(most.bit_length())] if most > 0 else []


def chosen_windows(asked: str | None, rounds: int) -> list[int]:
    """Window lengths as people ask for them: powers of two, all, or a list.

    >>> chosen_windows(None, 6), chosen_windows("all", 3), chosen_windows("4,1", 6)
    ([1, 2, 4, 6], [1, 2, 3], [1, 4])
    """
    if asked is None:
        return sorted({*doubling(rounds), rounds})
    if asked == "all":
        return list(range(1, rounds + 1))
    words = [word.strip() for word in asked.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= rounds for word in words):
        raise ConfigError(
            f"expected window lengths from 1 to {rounds}, such as 1,4,16, or all; got {asked!r}"
        )
    return sorted({int(word) for word in words})


def journal_series(
    lines: Iterable[Mapping[str, Any]], seed: int, *, adapted: bool = False
) -> LossSeries:
    """One seed's journal as series; an empty task is charged nothing (D20)."""
    of_seed = sorted((line for line in lines if line["seed"] == seed), key=lambda li: li["round"])
    figures = [(line["adapted"] or {}) if adapted else line for line in of_seed]
    if any("loss" not in line for line in figures):
        raise DataError(
            "expected loss and violation of the adapted scores in the journal, got none; leave out "
            "--adapted for a learner that does not adapt; if an older version ran it, run it anew"
        )
    return LossSeries(
        loss=np.array([line["loss"] or 0.0 for line in figures]),
        violation=np.array([line["violation"] for line in figures]).reshape(len(figures), -1),
        first=of_seed[0]["round"],
    )


def worst(values: Floats, length: int, start: Ints | None = None) -> Worst:
    """The largest of the values of windows of a length, which begin at `start`, or at every round.

    >>> print(worst(window_sums(np.array([0.1, -0.3, 0.2, 0.4]), 2).round(9), 2))
    Worst(value=0.6, first=3, last=4)
    """
    at = int(values.argmax())
    first = (at if start is None else int(start[at])) + 1
    return Worst(value=float(values[at]), first=first, last=first + length - 1)


def largest_regret(loss: Floats, best: Comparators) -> Worst:
    """The largest of sum f_t(theta_t) - comparator's loss, over the comparator's windows."""
    regrets = window_sums(loss, best.length)[best.start] - best.loss
    return worst(regrets, best.length, best.start)


def violations(
    series: Sequence[LossSeries],
    constraints: Sequence[str],
    *,
    seeds: Sequence[int],
    windows: Sequence[int],
    adapted: bool,
) -> dict[str, Any]:
    """The largest sum of each violation over windows, as figures over seeds; no comparator."""
    rounds, entries = len(series[0].loss), []
    for window in windows:
        violation = {}
        for i, name in enumerate(constraints):
            of_seeds = [worst(window_sums(one.violation[:, i], window), window) for one in series]
            violation[name] = _figure(of_seeds, series[0].first)
        proven = proven_growth(rounds, window)
        entries.append({"window": window, "violation": violation, "proven": proven})
    return {
        "form": "adapted" if adapted else "zero-shot",
        "rounds": rounds,
        "seeds": list(seeds),
        "constraints": list(constraints),
        "comparator": None,
        "windows": entries,
    }


def regret(
    series: Sequence[LossSeries],
    passes: Callable[[int], Sequence[Task]],
    problem: Problem,
    config: Mapping[str, Any],
    *,
    seeds: Sequence[int],
    windows: Sequence[int],
    shared: bool,
    adapted: bool = False,
    every_round: bool = False,
    adapting: Learner | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Regrets and violations of a run's seeds, by window length.

    A comparator is a fixed model, or one that adapts in each round (G_t in Eq. 4), which is no
    convex problem.

    Args:
        series: losses and violations of each seed, round by round.
        passes: gives the tasks of a seed.
        problem: what was learned.
        config: the learner's settings, as plain data.
        seeds: the run's.
        windows: lengths in rounds.
        shared: whether the tasks of all seeds are the same.
        adapted: compare the adapted figures, on the rows held out.
        every_round: a comparator is fair in every round of its window, as Theta is in the paper,
            and not only over it.
        adapting: the learner as which comparators adapt in each round; None: they are fixed.
        on_progress: called with the windows solved so far and their number.

    Returns:
        Plain data.
    """
    rounds = len(series[0].loss)
    lengths = sorted({*windows, rounds})
    solvers = []  # one for all seeds where their rows are the same
    for seed in seeds[:1] if shared and not adapted else seeds:
        tasks = list(passes(seed))[:rounds]
        scored = held_out(tasks, seed) if adapted else None
        adapt = adapting and adapting_models(adapting, problem, config, tasks, seed)
        solvers.append(_Solver(tasks, problem, config, scored, lengths, every_round, adapt))
    names = [constraint.name for constraint in problem.constraints]
    report = violations(series, names, seeds=seeds, windows=lengths, adapted=adapted)
    losses = [one.loss for one in series]
    done, total = 0, len(solvers) * sum(rounds - n + 1 for n in lengths)
    for length, entry in zip(lengths, report["windows"], strict=True):
        for solver in solvers:
            solver.solve(length)
            done += rounds - length + 1
            on_progress(done, total)
        for key, fair in (("fair_regret", True), ("regret", False)):
            best = cycle(solver.solved[length][fair] for solver in solvers)
            entry[key] = _figure([*map(largest_regret, losses, best)], series[0].first)
    whole = report["windows"][-1]
    return report | {
        "comparator": _said(solvers, config, adapting is not None) | {"every_round": every_round},
        "windows": [entry for entry in report["windows"] if entry["window"] in windows],
        "static": {key: whole[key] for key in ("fair_regret", "regret", "violation")},
    }


class _Solver:
    """Comparators of one pass over the tasks, from short windows to long."""

    def __init__(
        self,
        tasks: Sequence[Task],
        problem: Problem,
        config: Mapping[str, Any],
        scored: Sequence[NDArray[np.bool_]] | None,
        lengths: Sequence[int],
        every_round: bool,
        adapted: Adapting | None,
    ) -> None:
        self.linear = config["model"] == "logistic" and adapted is None
        self.convex = self.linear and (config["score"] == "logit" or not problem.constraints)
        self.solved: dict[int, dict[bool, Comparators]] = {}  # by length; fair, and free
        self._every_round, self._radius = every_round, config["radius"]
        self._last: dict[bool, Comparators] = {}
        if self.linear:
            rounds = linear_rounds(tasks, problem, config, scored)
            self._rounds = rounds._replace(every_round=every_round)
        if not self.convex:
            self.pool = fit_pool(tasks, problem, config, lengths, scored=scored, adapted=adapted)

    def solve(self, length: int) -> None:
        self._last = {fair: self._best(length, fair=fair) for fair in (True, False)}
        self.solved[length] = self._last

    def _best(self, length: int, *, fair: bool) -> Comparators:
        if not (self.convex or (self.linear and not fair)):
            return best_of_pool(self.pool, length, fair=fair, every_round=self._every_round)
        near = self._last.get(fair)
        return best_models(self._rounds, length, radius=self._radius, fair=fair, near=near)


def _said(solvers: Sequence[_Solver], config: Mapping[str, Any], adapting: bool) -> dict[str, Any]:
    """What is guaranteed of the comparators, in words and numbers."""
    first = solvers[0]
    solved = [one for solver in solvers for one in solver.solved.values()]
    exact = [False] * first.linear + [True] * first.convex
    gap = max((float(one[fair].gap.max()) for one in solved for fair in exact), default=None)
    excess = max(max(float(one[True].violation.max(initial=0.0)), 0.0) for one in solved)
    models = 0 if first.convex else first.pool.loss.shape[1]
    words = EXACT if first.convex else HALF_EXACT if first.linear else APPROXIMATE
    words = ADAPTING if adapting else words
    return {
        "kind": "exact" if first.convex else "approximate",
        "words": words.format(gap=gap or 0.0, excess=excess, models=models, score=config["score"]),
        "radius": config["radius"],
        "gap_per_round": gap,
        "largest_excess": excess,
        "adapts": adapting,
    }


def _figure(of_seeds: Sequence[Worst], first: int) -> dict[str, Any]:
    """Seeds in one figure; `rounds` are those of the worst seed's worst window.

    `first` is the round that the journal begins with.
    """
    values = [one.value for one in of_seeds]
    top = of_seeds[int(np.argmax(values))]
    return {
        "mean": float(np.mean(values)),
        "low": min(values),
        "high": max(values),
        "rounds": [top.first + first - 1, top.last + first - 1],
    }
