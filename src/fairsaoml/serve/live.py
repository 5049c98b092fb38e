"""A run's model in service: it decides from one state while the next one is learned.

A state is never changed. Learning makes another one, and whoever holds `Live` swaps it in whole.
"""

import copy
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairsaoml.core.errors import RunError
from fairsaoml.core.types import Task
from fairsaoml.evaluate.records import line, tally
from fairsaoml.serve.model import RunModel, probability
from fairsaoml.serve.online import OnlineLearner
from fairsaoml.serve.reading import Reader
from fairsaoml.serve.reasons import reasons_to_bytes

__all__ = ["Decided", "Learned", "Live", "LiveModel"]


class Decided(NamedTuple):
    """What was decided, for each row."""

    decision: list[int]
    probability: list[float]
    why: Sequence[bytes | None]


class Live(NamedTuple):
    """What decides now: the state after so many rounds."""

    online: OnlineLearner
    round: int

    def decide(self, x: np.ndarray, group: np.ndarray | None = None) -> Decided:
        """Decide rows; a learner that was asked to be aware looks at their groups."""
        scores, margins, why = self.online.explained(x, group)
        return Decided(
            decision=(margins > 0).astype(int).tolist(),
            probability=probability(scores).tolist(),
            why=[None] * len(x) if why is None else reasons_to_bytes(why),
        )


class Learned(NamedTuple):
    """A round: what decides from now on, and the line of the journal."""

    live: Live
    record: dict[str, Any]


class LiveModel:
    """The model of a run's folder: where it stands, how it reads rows, how it learns a round.

    Args:
        folder: the run's.
        saved: where the service keeps what it has learned since.
    """

    def __init__(self, folder: Path, saved: Path) -> None:
        model = RunModel(folder)
        self.reader = Reader(model)
        self.model, self._saved = model, saved
        online = model.online
        if saved.exists():
            online = OnlineLearner.load(saved)
            if (online.schema, online.learner) != (model.online.schema, model.online.learner):
                raise RunError(
                    f"expected the model of {folder} in {saved}, got another one; remove {saved} "
                    "to begin again from the run, or serve the run it was begun from"
                )
        self.live = Live(online=online, round=online.round)

    def task(self, rows: Sequence[Mapping[str, Any]], labels: Sequence[int]) -> Task:
        """Return labelled rows, with their groups among their columns, as a task."""
        y = np.array(labels, np.float32)
        return Task(x=self.reader.encode(rows), y=y, group=self.reader.codes(rows))

    def learn(self, live: Live, task: Task, decided: np.ndarray, seconds: float = 0.0) -> Learned:
        """Learn one round and return the state after it.

        Args:
            live: the state before.
            task: labelled rows.
            decided: the decisions on them as they were issued.
            seconds: for the journal.
        """
        online = copy.copy(live.online)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            online.learn(task)
        info = online.info
        assert info is not None
        weights = np.asarray(info.weights)[np.asarray(info.present)]
        figures = {
            **tally(task.y, decided, task.group, online.schema),
            "dual": [float(value) for value in info.dual],
            "weights": [float(value) for value in weights],
            "memory": memory(weights, online.round),
            "warnings": [*(str(one.message) for one in caught), *online.notes],
        }
        record = line(online.round, online.seed, task, figures, seconds)
        return Learned(live=Live(online=online, round=online.round), record=record)

    def warm_up(self, live: Live, rows: int) -> None:
        """Compile the round of so many rows, by learning one that is thrown away."""
        schema = live.online.schema
        x, y = np.zeros((rows, len(schema.features)), np.float32), np.arange(rows) % 2
        group = np.zeros((rows, len(schema.attributes)), np.int32)
        copy.copy(live.online).learn(Task(x=x, y=y, group=group))

    def save(self, live: Live) -> None:
        """Keep what was learned: a restarted service goes on from here."""
        live.online.save(self._saved)


def memory(weights: Sequence[float] | np.ndarray, round: int) -> float:
    """Return how many rounds the weights look back: level k looks back 2^k, the last to the first.

    >>> memory([0.5, 0.0, 0.5], 3), memory([1.0, 0.0, 0.0], 100), memory([0.0, 0.0, 1.0], 100)
    (2.0, 1.0, 100.0)
    """
    spans = [min(2**level, round) for level in range(len(weights))]
    spans[-1:] = [round]
    return float(np.dot(weights, spans))
