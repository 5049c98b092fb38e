"""What an alternative must do: decide a task's rows, then learn from their labels."""

import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairsaoml.core.types import Task

__all__ = ["Alternative", "Decide", "Decisions", "Fit", "Refitted", "constant"]

Decisions = NDArray[np.int64]  # (row,) 0 or 1
Decide = Callable[[Any, Any], Decisions]  # of features and group codes
Fit = Callable[[Any, Any, Any], Decide]  # of features, labels of both classes, group codes

NOTHING_LEARNED = 0  # the class of every row before the first labels, as our learners decide


class Alternative(ABC):
    """A model of another library. Its warnings are recorded in the round's line."""

    @abstractmethod
    def decide(self, x: Any, group: Any) -> Decisions:
        """Return the class of each row, by what was learned so far; class 0 if that is nothing."""

    @abstractmethod
    def learn(self, task: Task) -> None:
        """Learn from a task with at least one row."""


class Refitted(Alternative):
    """A model that is fitted from scratch on the rows of the last `window` tasks (None: all).

    With `every` > 1 a fit is kept for so many rounds; the first task's labels are used at once. If
    all rows have one class, that class is decided.
    """

    def __init__(self, fit: Fit, *, window: int | None, every: int) -> None:
        self._fit = fit
        self._past: deque[Task] = deque(maxlen=window)
        self._every = every
        self._learned = 0
        self._decide = constant(NOTHING_LEARNED)

    def decide(self, x: Any, group: Any) -> Decisions:
        return self._decide(x, group)

    def learn(self, task: Task) -> None:
        self._past.append(task)
        self._learned += 1
        if (self._learned - 1) % self._every:
            return
        x, y, group = (
            np.concatenate([getattr(past, name) for past in self._past])
            for name in ("x", "y", "group")
        )
        labels = np.unique(y).astype(int)
        if len(labels) < 2:
            warnings.warn(
                f"all rows to fit on have y = {labels[0]}: that is what is decided", stacklevel=2
            )
            self._decide = constant(labels[0])
        else:
            self._decide = self._fit(x, y.astype(int), group)


def constant(label: int) -> Decide:
    """Return a function that decides the same class for every row.

    >>> constant(1)([[0.5], [0.7]], [[0], [1]])
    array([1, 1])
    """
    return lambda x, group: np.full(len(x), label)
