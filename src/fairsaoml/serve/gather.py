"""Requests that come together are done together: one batch at a time, by one thread."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

__all__ = ["Gather"]

MOST_TOGETHER = 256  # requests


class Gather:
    """Hands what has come since the last batch to `work`, and each caller its own answer.

    A batch begins as soon as the one before has ended, whatever the event loop is busy with.

    Args:
        work: takes requests and returns an answer for each; runs in `executor`.
        executor: of one thread, so that batches never overlap.
    """

    def __init__(self, work: Callable[[list[Any]], Sequence[Any]], executor: Executor) -> None:
        self._work, self._executor = work, executor
        self._waiting: deque[tuple[Any, asyncio.Future]] = deque()
        self._lock = threading.Lock()
        self._is_running = False

    async def ask(self, request: Any) -> Any:
        """Return the answer to one request."""
        answer = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append((request, answer))
            begins, self._is_running = not self._is_running, True
        if begins:
            self._executor.submit(self._run)
        return await answer

    def _run(self) -> None:
        with self._lock:
            size = min(len(self._waiting), MOST_TOGETHER)
            self._is_running = size > 0
            batch = [self._waiting.popleft() for _ in range(size)]
        if batch:
            self._answer(batch)
            self._executor.submit(self._run)  # after whatever else waits for this thread

    def _answer(self, batch: list[tuple[Any, asyncio.Future]]) -> None:
        try:
            results = self._work([request for request, _ in batch])
        except Exception as problem:
            if len(batch) > 1:  # nobody pays for another one's request
                for one in batch:
                    self._answer([one])
                return
            results = [problem]
        answers = [answer for _, answer in batch]
        answers[0].get_loop().call_soon_threadsafe(_deliver, answers, results)


def _deliver(answers: list[asyncio.Future], results: Sequence[Any]) -> None:
    for answer, result in zip(answers, results, strict=True):
        if answer.done():  # the client went away
            continue
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)
