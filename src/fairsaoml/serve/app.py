"""The HTTP side of a service: what runs beside the requests, and how each request is handled."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from fairsaoml.core.errors import DataError
from fairsaoml.serve.access import Access, Refused
from fairsaoml.serve.routes import ROUTES, Endpoint, said
from fairsaoml.serve.service import Service
from fairsaoml.serve.store import FullDisk
from fairsaoml.serve.views import Metrics, Views

TICK_SECONDS = 1.0
MOST_TOGETHER = 256  # requests


class App:
    """The HTTP side of a service.

    Args:
        service: decides and learns.
        access: the tokens.
        origin: pages from there may call it; by default only its own page may.
    """

    def __init__(self, service: Service, access: Access, origin: str | None = None) -> None:
        self.service, self.access = service, access
        self.views = Views(service)
        self.metrics = Metrics(self.views)
        self.writer = ThreadPoolExecutor(1, "writer")
        self.learner = ThreadPoolExecutor(1, "learner")
        self.predictions = Gather(service.decide, self.writer)
        self.happened = asyncio.Event()  # set and replaced whenever there is something to learn
        self.watchers = 0
        self.ending = False
        self.problem = ""  # why learning stopped
        self.stop: Callable[[], None] = lambda: None  # ends whoever serves this
        # A router alone: what Starlette's middleware does for errors is done here.
        self.router = Router(
            routes=[
                Route(one.path, Handler(self, one), methods=[one.method], name=one.path)
                for one in ROUTES
            ],
            lifespan=self._lifespan,
            redirect_slashes=False,
            middleware=[] if origin is None else [_cors(origin)],
        )

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        self.service.on_event = partial(loop.call_soon_threadsafe, self._wake)
        loop.run_in_executor(self.learner, self.service.warm_up)
        work = loop.create_task(self._work())
        yield
        self.end()
        await work
        self.writer.shutdown()
        self.learner.shutdown()
        self.service.close()

    def end(self) -> None:
        """Let what waits for something to happen end."""
        self.ending = True
        self._wake()

    def _wake(self) -> None:
        before, self.happened = self.happened, asyncio.Event()
        before.set()

    async def _work(self) -> None:
        """Close what is due and learn closed tasks, beside deciding, until the service ends."""
        loop = asyncio.get_running_loop()
        while not self.ending:
            happened, learned = self.happened, False
            try:
                await loop.run_in_executor(self.writer, self.service.tick)
                learned = await loop.run_in_executor(self.learner, self.service.learn_next)
                self.problem = ""
            except Exception as problem:  # deciding goes on with what was learned so far
                self.problem = str(problem)
            if not learned:
                with suppress(TimeoutError):
                    await asyncio.wait_for(happened.wait(), TICK_SECONDS)


def _cors(origin: str) -> Middleware:
    headers = ["authorization", "content-type"]
    return Middleware(
        CORSMiddleware, allow_origins=[origin], allow_methods=["GET", "POST"], allow_headers=headers
    )


class Handler:
    """A route as Starlette calls it: checks the token, turns errors into words, counts."""

    def __init__(self, app: App, endpoint: Endpoint) -> None:
        self._app, self._endpoint = app, endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, status = time.perf_counter(), 500
        try:
            response = await self._answer(Request(scope, receive))
            status = response.status_code
        finally:
            seconds = time.perf_counter() - begun
            self._app.metrics.observe(self._endpoint.path, status, seconds, time.time())
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            if self._endpoint.scope:
                self._app.access.require(self._endpoint.scope, request.headers)
            return await self._endpoint.function(self._app, request)
        except Refused as problem:
            return said(str(problem), problem.status)
        except FullDisk as problem:
            return said(str(problem), 507)
        except (DataError, UnicodeDecodeError) as problem:
            return said(str(problem), 422)
        except ClientDisconnect:
            return said("the request did not come whole", 400)


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
