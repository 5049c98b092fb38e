"""Requests that come together are done together: one batch at a time, by one thread."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

__all__ = ["Gather"]

MOST_TOGETHER = 256  # requests


class Gather:
    """Hands what has come since the last batch to `work`, and each caller its own answer.

    Args:
        work: takes requests and returns an answer for each; runs in `executor`.
        executor: of one thread, so that batches never overlap.
    """

    def __init__(self, work: Callable[[list[Any]], Sequence[Any]], executor: Executor) -> None:
        self._work, self._executor = work, executor
        self._waiting: deque[tuple[Any, asyncio.Future]] = deque()
        self._running: asyncio.Task | None = None

    async def ask(self, request: Any) -> Any:
        """Return the answer to one request."""
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._waiting.append((request, answer))
        if self._running is None:
            self._running = loop.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(0)  # whoever is ready to ask, asks
                size = min(len(self._waiting), MOST_TOGETHER)
                batch = [self._waiting.popleft() for _ in range(size)]
                await self._answer(batch)
        finally:
            self._running = None

    async def _answer(self, batch: list[tuple[Any, asyncio.Future]]) -> None:
        requests = [request for request, _ in batch]
        try:
            done = await asyncio.get_running_loop().run_in_executor(
                self._executor, self._work, requests
            )
        except Exception as problem:
            if len(batch) == 1:
                if not batch[0][1].done():
                    batch[0][1].set_exception(problem)
                return
            for one in batch:  # nobody pays for another one's request
                await self._answer([one])
            return
        for (_, answer), result in zip(batch, done, strict=True):
            if not answer.done():  # else the client went away
                answer.set_result(result)
