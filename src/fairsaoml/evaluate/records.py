"""From a compiled round's scores to what journals, tables and pages see: plain numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.types import Attribute, Schema, State, Task
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.measures import Adapted
from fairsaoml.evaluate.metrics import count, with_counts
from fairsaoml.evaluate.round import Outcome

TENTHS = 10


class RoundResult(NamedTuple):
    """A finished round, for all seeds."""

    round: int
    records: list[dict[str, Any]]  # one line of rounds.jsonl each
    predictions: list[tuple[Task, np.ndarray, np.ndarray]]  # task, scores, decisions; by seed
    state: State  # seed axis first; valid until the next round is asked for


def finished(
    round: int,
    tasks: Sequence[Task],
    outcomes: Sequence[Outcome],
    state: State,
    schema: Schema,
    seeds: Sequence[int],
    seconds: float,
) -> RoundResult:
    """Host side of a round: from scores to records."""
    records, predictions = [], []
    for index, (seed, one) in enumerate(zip(seeds, outcomes, strict=True)):
        task = tasks[index % len(tasks)]
        one = _unpadded(one, len(task.y))
        records.append(line(round, seed, task, record(task, one, schema), seconds))
        predictions.append((task, one.scores, one.margins > 0))
    return RoundResult(round=round, records=records, predictions=predictions, state=state)


def _unpadded(one: Outcome, rows: int) -> Outcome:
    """What was seen of the rows that are there: padding stands behind them."""
    by_row = (one.scores, one.margins, one.plain_margins, one.threshold)
    scores, margins, plain, threshold = (None if v is None else v[:rows] for v in by_row)
    return one._replace(scores=scores, margins=margins, plain_margins=plain, threshold=threshold)


def line(
    round: int, seed: int, task: Task, figures: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    """One line of the journal: round, seed and task, the figures, and how long it took."""
    return {
        "round": round,
        "seed": int(seed),
        "domain": task.domain,
        **({"period": list(task.period)} if task.period else {}),
        "rows": len(task.y),
        **({"left_out": task.left_out} if task.left_out else {}),
        **({"new_groups": task.new_groups} if task.new_groups else {}),
        **figures,
        "seconds": seconds,
    }


def record(task: Task, one: Outcome, schema: Schema) -> dict[str, Any]:
    """What a line of the journal says of a learner's round."""
    info, decided = one.info, one.margins > 0
    raised = [words for flag, words in WARNINGS.items() if info.flags.get(flag)]
    plain = {}  # what the same learner would have decided had fairness no price
    if one.plain_margins is not None:
        without = one.plain_margins > 0
        figures = tally(task.y, without, task.group, schema)
        kept = {name: figures[name] for name in ("accuracy", "balanced_accuracy", "counts")}
        plain = {"plain": {"changed": int(np.count_nonzero(without != decided)), **kept}}
    return {
        **tally(task.y, decided, task.group, schema),
        "loss": float(one.loss) if len(task.y) else None,
        "violation": [float(value) for value in one.violation],
        "dual": [float(value) for value in info.dual],
        "weights": [float(value) for value in info.weights[info.present]],
        "awake": [int(level) for level in np.flatnonzero(info.awake)],
        "chances": chances_by_group(
            one.scores, task.y, task.group, schema.attributes, one.threshold
        ),
        **plain,
        "warnings": [*task.warnings, *raised],
        "adapted": after_adapting(task, one.adapted, schema),
    }


def after_adapting(task: Task, adapted: Adapted | None, schema: Schema) -> dict[str, Any] | None:
    """The figures after a few labels of the round, on the rows held out; None: it has none."""
    if adapted is None:
        return None
    held = np.flatnonzero(adapted.held_out)  # padding is not held out
    return {
        **tally(task.y[held], adapted.margins[held] > 0, task.group[held], schema),
        "loss": float(adapted.loss) if len(held) else None,
        "violation": [float(value) for value in adapted.violation],
    }


def tally(y: Any, decisions: Any, group: Any, schema: Schema) -> dict[str, Any]:
    """Counts by group, and the figures made of them."""
    return with_counts(count(y, decisions, group, schema.attributes))


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
    chances: dict[str, dict[str, Any]] = {}
    for column, (name, levels) in enumerate(attributes):
        code = group[:, column].astype(np.int64)
        places = code * TENTHS + tenth
        rows, positive, summed = (
            np.bincount(places, weights, TENTHS * (len(levels) + 1)).reshape(-1, TENTHS)
            for weights in (None, y, chance)
        )
        chances[name] = {}
        for i, level in enumerate(levels):
            tenths = zip(rows[i], positive[i], summed[i], strict=True)
            own: dict[str, Any] = {
                "tenths": [[int(n), int(y1), float(total)] for n, y1, total in tenths]
            }
            if threshold is not None and rows[i].any():
                # One beyond 0 or 1 is as good as 0 or 1.
                own["threshold"] = float(np.clip(threshold[code == i], 0, 1).mean())
            chances[name][level] = own
    return chances
