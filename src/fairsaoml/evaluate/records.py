"""From a compiled round's scores to what journals, tables and pages see: plain numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.types import Attribute, Schema, Shown, State, Task
from fairsaoml.evaluate.flags import WARNINGS
from fairsaoml.evaluate.measures import Adapted
from fairsaoml.evaluate.metrics import count, counts_to_json, totals, with_counts
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
        # Of the rows that are there: padding stands behind them.
        shown = Shown(*(None if by_row is None else by_row[: len(task.y)] for by_row in one.shown))
        figures = record(task, one._replace(shown=shown), schema)
        records.append(line(round, seed, task, figures, seconds))
        predictions.append((task, shown.scores, shown.margins > 0))
    return RoundResult(round=round, records=records, predictions=predictions, state=state)


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
    shown, info = one.shown, one.info
    decided = shown.margins > 0
    raised = [words for flag, words in WARNINGS.items() if info.flags.get(flag)]
    plain: dict[str, Any] = {}  # what the same learner would have decided had fairness no price
    if shown.plain_margins is not None:
        without = shown.plain_margins > 0
        counts = count(task.y, without, task.group, schema.attributes)
        figures = totals(counts)
        plain["plain"] = {
            "changed": int(np.count_nonzero(without != decided)),
            "accuracy": figures["accuracy"],
            "balanced_accuracy": figures["balanced_accuracy"],
            "counts": counts_to_json(counts),
        }
    return {
        **tally(task.y, decided, task.group, schema),
        "loss": float(one.loss) if len(task.y) else None,
        "violation": [float(value) for value in one.violation],
        "dual": [float(value) for value in info.dual],
        "weights": [float(value) for value in info.weights[info.present]],
        "awake": [int(level) for level in np.flatnonzero(info.awake)],
        "chances": chances_by_group(shown, task.y, task.group, schema.attributes),
        **plain,
        "warnings": [*task.warnings, *raised],
        "adapted": adapted_figures(task, one.adapted, schema),
    }


def adapted_figures(task: Task, adapted: Adapted | None, schema: Schema) -> dict[str, Any] | None:
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
    shown: Shown, y: Any, group: Any, attributes: Sequence[Attribute]
) -> dict[str, Any]:
    """Return, by attribute and level, rows, positive labels and summed probability by tenths.

    Args:
        shown: the rows' logits, and the probability that each needed, where the learner says it.
        y, group: the rows' labels and group codes.
        attributes: what the codes mean; rows of a group never declared are left out.

    >>> sex = Attribute(name="sex", levels=("f", "m"))
    >>> even = Shown(scores=np.array([0.0]), margins=np.array([0.0]))
    >>> chances = chances_by_group(even, np.array([1.0]), np.array([[1]]), (sex,))
    >>> chances["sex"]["m"]["tenths"][5], chances["sex"]["f"]["tenths"][5]
    ([1, 1, 0.5], [0, 0, 0.0])
    """
    chance = 1 / (1 + np.exp(-np.clip(np.asarray(shown.scores, np.float64), -50, 50)))
    tenth = np.minimum((chance * TENTHS).astype(np.int64), TENTHS - 1)
    # A threshold beyond 0 or 1 is as good as 0 or 1.
    needed = None if shown.threshold is None else np.clip(shown.threshold, 0, 1)
    chances: dict[str, dict[str, Any]] = {}
    for column, (name, levels) in enumerate(attributes):
        code = group[:, column].astype(np.int64)
        places, slots = code * TENTHS + tenth, TENTHS * (len(levels) + 1)
        rows, positive = np.bincount(places, None, slots), np.bincount(places, y, slots)
        columns = (rows, positive.astype(np.int64), np.bincount(places, chance, slots))
        tenths = [*map(list, zip(*(one.tolist() for one in columns), strict=True))]
        chances[name] = {}
        for i, level in enumerate(levels):
            own: dict[str, Any] = {"tenths": tenths[i * TENTHS : (i + 1) * TENTHS]}
            if needed is not None and any(number for number, *_ in own["tenths"]):
                own["threshold"] = float(needed[code == i].mean())
            chances[name][level] = own
    return chances
