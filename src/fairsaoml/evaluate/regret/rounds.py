"""The rounds of a run as a linear program sees them: rows, and each gap's coefficients.

Losses and gaps are those of the journal: scores are as deployed, with the log-odds of the class
prior before the round added (D25).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fairsaoml.core import prior
from fairsaoml.core.keys import round_keys, run_keys
from fairsaoml.core.types import Batch, Problem, Task
from fairsaoml.evaluate.measures import labelled_share
from fairsaoml.evaluate.seeds import bucket, stacked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rounds(NamedTuple):
    """All rounds of a run as the linear comparator sees them; the last parameter is the bias."""

    x: Floats  # (row, parameter), round after round, ones last
    y: Floats  # (row,)
    offset: Floats  # (row,): what deployment adds to the model's logit
    weight: Floats  # (row,): one over the rows of its round
    first: Ints  # (round + 1,): where each round's rows begin, and the end
    terms: Floats  # (round, constraint, parameter): a, zero where the gap is unknown
    allowed: Floats  # (round, constraint): the tolerance, 0 where the gap is unknown
    every_round: bool = False  # fair in each round of a window, not only over it

    @property
    def number(self) -> int:
        """How many rounds there are."""
        return len(self.first) - 1

    def limits(self, start: int, length: int) -> tuple[Floats, Floats]:
        """The constraints of a window: terms to be summed, and the most that each sum may be."""
        window = slice(start, start + length)
        terms, allowed = self.terms[window], self.allowed[window]
        if self.every_round:  # each round's gap is a constraint of its own
            return terms.reshape(1, -1, terms.shape[2]), allowed.reshape(-1)
        return terms, allowed.sum(axis=0)


def priors(tasks: Sequence[Task], config: Mapping[str, Any]) -> prior.Prior:
    """The class prior before each round (D25)."""
    known = np.array([len(task.y) > 0 for task in tasks], np.float32)
    shares = np.array([task.y.mean() if len(task.y) else 0.0 for task in tasks], np.float32)

    def one(old: prior.Prior, turn: tuple) -> tuple[prior.Prior, prior.Prior]:
        rate, weight = turn
        row: Any = None
        seen = Batch(x=row, y=rate[None], group=row, weight=weight[None])
        return prior.observe(old, seen, config["prior_discount"]), old

    return jax.lax.scan(one, prior.no_prior(), (shares, known))[1]


def deployment(tasks: Sequence[Task], config: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """What deployment adds to a model's logit in each round, and the threshold there (D25).

    Both depend on the labels of earlier rounds only, and on no learner.

    >>> tasks = [Task(x=None, y=np.array([1, 1, 0, 1]), group=None)] * 2
    >>> shift, threshold = deployment(tasks, {"prior_discount": 0.7, "decision": "accuracy"})
    >>> shift.round(3).tolist(), threshold.tolist()  # log 3 after the first round
    ([0.0, 1.099], [0.0, 0.0])
    """

    @jax.vmap
    def deployed(old: prior.Prior) -> tuple[Any, Any]:
        return prior.log_odds(old), prior.threshold(old, config["decision"])

    shift, threshold = deployed(priors(tasks, config))
    return np.asarray(shift, np.float64), np.asarray(threshold, np.float64)


def linear_rounds(
    tasks: Sequence[Task],
    problem: Problem,
    config: Mapping[str, Any],
    scored: Sequence[NDArray[np.bool_]] | None = None,
) -> Rounds:
    """Rounds for the exact comparator; `scored` marks the rows that count, all by default.

    The gap of logits is linear in theta: its coefficients are read off the constraint itself, as
    its gradient, so that there is one definition of it.
    """
    shift, _ = deployment(tasks, config)
    if scored is not None:
        tasks = [
            task._replace(x=task.x[rows], y=task.y[rows], group=task.group[rows])
            for task, rows in zip(tasks, scored, strict=True)
        ]
    sizes = np.array([len(task.y) for task in tasks])
    x = np.concatenate([task.x for task in tasks]).astype(np.float64)
    count, features = len(tasks), len(problem.schema.features)
    terms = np.zeros((count, len(problem.constraints), features + 1))
    allowed = np.zeros((count, len(problem.constraints)))
    if problem.constraints:
        batches = stacked(tasks, bucket(int(sizes.max(initial=0))))
        coefficients, known = jax.jit(jax.vmap(partial(_coefficients, problem)))(batches)
        coefficients = np.asarray(coefficients, np.float64)  # (round, constraint, row)
        for t, task in enumerate(tasks):
            terms[t, :, :-1] = _means(coefficients[t, :, : sizes[t]]) @ task.x
        terms *= np.asarray(known)[:, :, None]
        allowed = np.asarray(known) * np.array([c.tolerance for c in problem.constraints])
    return Rounds(
        x=np.hstack([x, np.ones((len(x), 1))]),
        y=np.concatenate([task.y for task in tasks]).astype(np.float64),
        offset=np.repeat(shift, sizes),
        weight=np.repeat(1 / np.maximum(sizes, 1), sizes),
        first=np.concatenate([[0], np.cumsum(sizes)]),
        terms=terms,
        allowed=allowed,
    )


def _coefficients(problem: Problem, batch: Batch) -> tuple[Any, Any]:
    """Each gap as a linear function of the scores, and whether it is known."""
    nothing = jnp.zeros(batch.y.shape[0])
    slopes = [jax.grad(lambda z, c=c: c.gap(z, batch).value)(nothing) for c in problem.constraints]
    known = [c.gap(nothing, batch).known for c in problem.constraints]
    return jnp.stack(slopes), jnp.stack(known)


def _means(coefficients: Floats) -> Floats:
    """Coefficients whose positive and negative sides each sum to one in double precision.

    A group's weights sum to one only to 1e-8 in single precision, and a solver finds in the rest a
    way to be fair by enormous parameters on features that add up to a constant.
    """
    positive, negative = np.maximum(coefficients, 0.0), np.maximum(-coefficients, 0.0)
    one, other = (side.sum(axis=1, keepdims=True) for side in (positive, negative))
    return positive / np.where(one > 0, one, 1.0) - negative / np.where(other > 0, other, 1.0)


def window_sums(values: Floats, length: int) -> Floats:
    """Sums over all windows of a length, along the first axis."""
    sums = np.cumsum(np.insert(values, 0, 0.0, axis=0), axis=0)
    return sums[length:] - sums[:-length]


def held_out(tasks: Sequence[Task], seed: int) -> list[NDArray[np.bool_]]:
    """The rows that a run's adapted scores were measured on."""
    batches = stacked(tasks, bucket(max(len(task.y) for task in tasks)))
    (run_key,) = run_keys([seed])

    def one(round: Any, batch: Any) -> Any:
        return labelled_share(round_keys(run_key, round).split, batch)[1]

    rounds = np.arange(1, len(tasks) + 1, dtype=np.int32)
    held = np.asarray(jax.jit(jax.vmap(one))(rounds, batches))
    return [rows[: len(task.y)] for rows, task in zip(held, tasks, strict=True)]
