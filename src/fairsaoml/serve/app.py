"""The HTTP side of a service: its routes, and what runs beside the requests.

`page/openapi.json` describes the routes to clients; a test checks that it describes every one.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from fairsaoml import __version__
from fairsaoml.core.errors import DataError
from fairsaoml.files import read_json
from fairsaoml.serve import access
from fairsaoml.serve.access import Refused
from fairsaoml.serve.reading import parse, to_json
from fairsaoml.serve.service import Service
from fairsaoml.serve.store import FullDisk
from fairsaoml.serve.views import WINDOW, Views

TICK_SECONDS = 1.0
MOST_TOGETHER = 256  # requests
PAGE = Path(__file__).parent / "page"
FILES = ("index.html", "icon.svg", "page.css", "page.js", "uPlot.iife.min.js", "uPlot.min.css")
STATUSES: dict[type, int] = {FullDisk: 507, ClientDisconnect: 400}  # where an error tells none
SEVERITY = (200, 422, 409, 507)  # an answer's status is the worst of its rows
HEARTBEAT_SECONDS = 15.0  # a comment to clients that listen, so that proxies keep the connection
NDJSON = "application/x-ndjson"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
METHODS, HEADERS = ("GET", "POST"), ("authorization", "content-type")  # from elsewhere

Handler = Callable[[Request], Awaitable[Any]]  # returns a response, or plain data


class App:
    """The HTTP side of a service.

    Args:
        service: decides and learns.
        tokens: by scope; none where only this machine is served.
        origin: pages from there may call it; by default only its own page may.
    """

    def __init__(self, service: Service, tokens: dict[str, str], origin: str | None = None) -> None:
        self.service, self._tokens = service, tokens
        self.views = Views(service)
        self.writer = ThreadPoolExecutor(1, "writer")
        self.learner = ThreadPoolExecutor(1, "learner")
        self.predictions = Gather(service.decide, self.writer)
        self.happened = asyncio.Event()  # set and replaced whenever there is something to learn
        self.watchers = 0
        self.ending = False
        self.problem = ""  # why learning stopped
        # A router alone: what Starlette's middleware does for errors is done here.
        self.router = Router(
            routes=[
                self._route("POST", "/v1/predict", "decide", self._predict),
                self._route("POST", "/v1/labels", "label", self._taking("labels", service.label)),
                self._route("POST", "/v1/never", "label", self._taking("ids", service.never)),
                self._route("POST", "/v1/erase", "label", self._taking("ids", service.erase)),
                self._route("GET", "/v1/decisions/{id:path}", "read", self._decision),
                self._route("GET", "/v1/model", "read", self._model),
                self._route("GET", "/v1/rounds", "read", self._rounds),
                self._route("GET", "/v1/fairness", "read", self._fairness),
                self._route("GET", "/v1/events", "read", self._events),
                self._route("GET", "/metrics", "read", self._metrics),
                self._route("GET", "/v2/health/live", "", self._live),
                self._route("GET", "/v2/health/ready", "", self._ready),
                self._route("GET", "/v2/models/{model}/ready", "", self._ready),
                self._route("GET", "/openapi.json", "", self._openapi),
                self._route("GET", "/", "", self._file),
                self._route("GET", "/page/{name}", "", self._file),
            ],
            lifespan=self._lifespan,
            redirect_slashes=False,
            middleware=[Middleware(CORSMiddleware, [origin], METHODS, HEADERS)] if origin else [],
        )

    def _route(self, method: str, path: str, scope: str, handler: Handler) -> Route:
        """Return a route for whoever has the token of this scope; an empty one is anybody's."""
        return Route(path, partial(self._answer, path, scope, handler), methods=[method])

    async def _answer(self, path: str, scope: str, handler: Handler, request: Request) -> Response:
        """Check the token, turn errors into words, count."""
        begun, status = time.perf_counter(), 500
        try:
            if scope:
                access.require(self._tokens, scope, request.headers)
            answer = await handler(request)
            response = answer if isinstance(answer, Response) else as_json(answer)
            status = response.status_code
        except (Refused, DataError, UnicodeDecodeError, FullDisk, ClientDisconnect) as problem:
            status = getattr(problem, "status", None) or STATUSES.get(type(problem), 422)
            words = str(problem) or "the request did not come whole"
            headers = {"www-authenticate": "Bearer"} if status == 401 else None
            response = as_json({"error": words}, status, headers)
        finally:
            self.views.observe(path, status, time.perf_counter() - begun, time.time())
        return response

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

    # Routes

    async def _predict(self, request: Request) -> Response:
        """Decide rows."""
        rows, is_lines = await listed(request, "rows", access.MOST_ROWS)
        answers = await self.predictions.ask(rows)
        status = max((answer.status for answer in answers), key=SEVERITY.index, default=200)
        decisions = [
            answer.content if answer.status in (200, 507) else {"row": place, **answer.content}
            for place, answer in enumerate(answers)
        ]
        if is_lines:
            lines = b"".join(to_json(one) + b"\n" for one in decisions)
            return Response(lines, status, media_type=NDJSON)
        return as_json({"decisions": decisions}, status)

    def _taking(self, name: str, work: Callable[[list[Any]], dict[str, Any]]) -> Handler:
        """Return a route that lets the thread that writes take the items of a request."""

        async def take(request: Request) -> Response:
            items, _ = await listed(request, name, access.MOST_LABELS)
            content = await asyncio.get_running_loop().run_in_executor(self.writer, work, items)
            return as_json(content, 422 if content.get("errors") else 200)

        return take

    async def _decision(self, request: Request) -> dict[str, Any]:
        """What was decided, and why."""
        return await asyncio.to_thread(self.views.decision, request.path_params["id"])

    async def _model(self, request: Request) -> dict[str, Any]:
        """What runs."""
        content = await asyncio.to_thread(self.views.model)
        return {**content, "traffic": self.views.traffic(), "problem": self.problem or None}

    async def _rounds(self, request: Request) -> dict[str, Any]:
        """The journal's lines after a round."""
        return await asyncio.to_thread(self.views.rounds, whole(request, "since", 0))

    async def _fairness(self, request: Request) -> dict[str, Any]:
        """Is it fair now: figures with intervals."""
        return await asyncio.to_thread(self.views.fairness, whole(request, "window", WINDOW))

    async def _events(self, request: Request) -> Response:
        """Rounds and alarms as they happen."""
        if self.watchers >= access.MOST_WATCHERS:
            raise Refused(503, f"expected at most {access.MOST_WATCHERS} listeners; try later")
        asked = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = int(asked) if is_whole(asked) else self.views.last_event()

        async def stream() -> AsyncIterator[str]:
            nonlocal after
            self.watchers += 1
            try:
                yield ": listening\n\n"
                while not self.ending:
                    happened = self.happened
                    for number, kind, content in await asyncio.to_thread(self.views.events, after):
                        after = number
                        yield f"id: {number}\nevent: {kind}\ndata: {content}\n\n"
                    try:
                        await asyncio.wait_for(happened.wait(), HEARTBEAT_SECONDS)
                    except TimeoutError:
                        yield ": still here\n\n"
            finally:
                self.watchers -= 1

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)

    async def _metrics(self, request: Request) -> Response:
        """Metrics for Prometheus."""
        content = await asyncio.to_thread(self.views.metrics)
        return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _live(self, request: Request) -> dict[str, Any]:
        """Whether the process lives."""
        return {"live": True}

    async def _ready(self, request: Request) -> Response:
        """Whether it takes requests; where a model is named, of this one."""
        ours, name = self.service.folder.parent.resolve().name, request.path_params.get("model")
        if name not in (None, ours):
            raise Refused(404, f"no model {name!r} here; it is called {ours!r}")
        content = {} if name is None else {"name": name}
        return as_json({**content, "ready": not self.ending}, 503 if self.ending else 200)

    async def _openapi(self, request: Request) -> dict[str, Any]:
        """The description of all routes."""
        return document()

    async def _file(self, request: Request) -> Response:
        """The page to watch, and its files."""
        name = request.path_params.get("name", FILES[0])
        if name not in FILES:
            raise Refused(404, "no such file")
        return FileResponse(PAGE / name, headers=SAFE)


def as_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return plain data as an answer."""
    return Response(to_json(content), status, headers, "application/json")


def document() -> dict[str, Any]:
    """Return the OpenAPI document of this version."""
    content = read_json(PAGE / "openapi.json")
    content["info"]["version"] = __version__
    return content


async def listed(request: Request, name: str, most: int) -> tuple[list[Any], bool]:
    """Return the items of a body, JSON `{name: [...]}` or NDJSON, and whether it was the latter.

    Raises:
        Refused: another type, no such JSON, or too many items.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", NDJSON):
        raise Refused(415, f"expected content-type application/json or {NDJSON}, got {kind!r}")
    body = await access.read_body(request)
    try:
        if kind == NDJSON:
            content = {name: [parse(line) for line in body.splitlines() if line.strip()]}
        else:
            content = parse(body)
    except (ValueError, RecursionError) as problem:
        raise Refused(400, f"expected JSON, got what is none ({problem})") from None
    items = content.get(name) if isinstance(content, dict) else None
    if not isinstance(items, list):
        raise Refused(400, f'expected {{"{name}": [...]}}, got something else')
    if len(items) > most:
        raise Refused(413, f"expected at most {most} {name}, got {len(items)}; send them in parts")
    return items, kind == NDJSON


def whole(request: Request, name: str, default: int) -> int:
    """Return a whole number of the query."""
    text = request.query_params.get(name, str(default))
    if not is_whole(text):
        raise DataError(f"expected {name} to be a whole number, got {text[:50]!r}")
    return int(text)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number that the store can hold.

    >>> is_whole("12"), is_whole("-1"), is_whole("9" * 30)
    (True, False, False)
    """
    return text.isdecimal() and len(text) <= 12


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

    async def ask(self, request: Any) -> Any:
        """Return the answer to one request."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        self._executor.submit(self._run)  # for whatever waits by then, perhaps nothing
        return await answer

    def _run(self) -> None:
        size = min(len(self._waiting), MOST_TOGETHER)
        if size:
            self._answer([self._waiting.popleft() for _ in range(size)])

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
