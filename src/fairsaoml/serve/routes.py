"""What the service answers: a route is a function here and an entry in ROUTES."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from fairsaoml.core.errors import DataError
from fairsaoml.serve.deciding import Answer
from fairsaoml.serve.limits import MOST_LABELS, MOST_ROWS, MOST_WATCHERS, TooMuch, read_body
from fairsaoml.serve.views import WINDOW
from fairsaoml.serve.wire import parse, to_json

if TYPE_CHECKING:
    from fairsaoml.serve.app import App

__all__ = ["NDJSON", "ROUTES", "Endpoint", "said"]

PAGE = Path(__file__).parent / "page"
ASSETS = ("icon.svg", "page.css", "page.js", "uPlot.iife.min.js", "uPlot.min.css")
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


class JSON(Response):
    """Plain data as an answer."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return to_json(content)


class Endpoint(NamedTuple):
    """A route: what it is called, who may call it, and what it does."""

    method: str
    path: str
    scope: str  # of the token; empty: anybody
    summary: str
    function: Callable[["App", Request], Awaitable[Response]]


def said(error: str, status: int) -> Response:
    """An error in words."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    return JSON({"error": error}, status, headers)


async def listed(request: Request, name: str, most: int) -> tuple[list[Any], bool]:
    """Return the items of a body, JSON `{name: [...]}` or NDJSON, and whether it was the latter.

    Raises:
        TooMuch: another type, no such JSON, or too many items.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", NDJSON):
        raise TooMuch(415, f"expected content-type application/json or {NDJSON}, got {kind!r}")
    body = await read_body(request)
    items: Any
    try:
        if kind == NDJSON:
            items = [parse(line) for line in body.splitlines() if line.strip()]
        else:
            whole = parse(body)
            items = whole.get(name) if isinstance(whole, dict) else None
    except (ValueError, RecursionError) as problem:
        raise TooMuch(400, f"expected JSON, got what is none ({problem})") from None
    if not isinstance(items, list):
        raise TooMuch(400, f'expected {{"{name}": [...]}}, got something else')
    if len(items) > most:
        raise TooMuch(413, f"expected at most {most} {name}, got {len(items)}; send them in parts")
    return items, kind == NDJSON


async def predict(app: "App", request: Request) -> Response:
    rows, lines = await listed(request, "rows", MOST_ROWS)
    answers: list[Answer] = await app.predictions.ask(rows)
    worst = max((answer.status for answer in answers), default=200)
    status = 409 if any(answer.status == 409 for answer in answers) and worst < 500 else worst
    said = [
        answer.content if answer.status in (200, 507) else {"row": place, **answer.content}
        for place, answer in enumerate(answers)
    ]
    if lines:
        content = b"".join(to_json(one) + b"\n" for one in said)
        return Response(content, status, media_type=NDJSON)
    return JSON({"decisions": said}, status)


async def labels(app: "App", request: Request) -> Response:
    return await written(app, request, "labels", app.service.label)


async def never(app: "App", request: Request) -> Response:
    return await written(app, request, "ids", app.service.never)


async def erase(app: "App", request: Request) -> Response:
    return await written(app, request, "ids", app.service.erase)


async def written(
    app: "App", request: Request, name: str, work: Callable[[list[Any]], dict[str, Any]]
) -> Response:
    """Let the thread that writes take the items of a request."""
    items, _ = await listed(request, name, MOST_LABELS)
    content = await asyncio.get_running_loop().run_in_executor(app.writer, work, items)
    return JSON(content, 422 if content.get("errors") else 200)


async def decision(app: "App", request: Request) -> Response:
    id = request.path_params["id"]
    found = await asyncio.to_thread(app.views.decision, id)
    return said(f"no decision under the id {id!r}", 404) if found is None else JSON(found)


async def model(app: "App", request: Request) -> Response:
    content = await asyncio.to_thread(app.views.model)
    return JSON({**content, "traffic": app.metrics.traffic(), "problem": app.problem or None})


async def rounds(app: "App", request: Request) -> Response:
    return JSON(await asyncio.to_thread(app.views.rounds, whole(request, "since", 0)))


async def fairness(app: "App", request: Request) -> Response:
    window = whole(request, "window", WINDOW)
    content = await asyncio.to_thread(app.views.fairness, window)
    return JSON({**content, "alarm_history": app.views.alarms()})


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


async def events(app: "App", request: Request) -> Response:
    if app.watchers >= MOST_WATCHERS:
        return said(f"expected at most {MOST_WATCHERS} listeners; try again later", 503)
    asked = request.headers.get("last-event-id") or request.query_params.get("after", "")
    after = int(asked) if is_whole(asked) else app.views.last_event()

    async def stream() -> AsyncIterator[str]:
        nonlocal after
        app.watchers += 1
        try:
            yield ": listening\n\n"
            while not app.ending:
                happened = app.happened
                for number, kind, content in await asyncio.to_thread(app.views.events, after):
                    after = number
                    yield f"id: {number}\nevent: {kind}\ndata: {content}\n\n"
                try:
                    await asyncio.wait_for(happened.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            app.watchers -= 1

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


async def metrics(app: "App", request: Request) -> Response:
    content = await asyncio.to_thread(app.metrics.text)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


async def live(app: "App", request: Request) -> Response:
    return JSON({"live": True})


async def ready(app: "App", request: Request) -> Response:
    return JSON({"ready": not app.ending}, 503 if app.ending else 200)


async def model_ready(app: "App", request: Request) -> Response:
    name = request.path_params["model"]
    ours = app.service.folder.parent.resolve().name
    if name != ours:
        return said(f"no model {name!r} here; it is called {ours!r}", 404)
    return JSON({"name": name, "ready": not app.ending}, 503 if app.ending else 200)


async def openapi(app: "App", request: Request) -> Response:
    from fairsaoml.serve.openapi import document

    return JSON(document())


async def page(app: "App", request: Request) -> Response:
    return FileResponse(PAGE / "index.html", headers=SAFE)


async def asset(app: "App", request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return said("no such file", 404)
    return FileResponse(PAGE / name, headers=SAFE)


ROUTES = (
    Endpoint("POST", "/v1/predict", "decide", "Decide rows", predict),
    Endpoint("POST", "/v1/labels", "label", "Take labels of decided rows", labels),
    Endpoint("POST", "/v1/never", "label", "Wait no longer for labels", never),
    Endpoint("POST", "/v1/erase", "label", "Forget rows", erase),
    Endpoint("GET", "/v1/decisions/{id:path}", "read", "What was decided, and why", decision),
    Endpoint("GET", "/v1/model", "read", "What runs", model),
    Endpoint("GET", "/v1/rounds", "read", "The journal's lines after a round", rounds),
    Endpoint("GET", "/v1/fairness", "read", "Is it fair now: figures with intervals", fairness),
    Endpoint("GET", "/v1/events", "read", "Rounds and alarms as they happen", events),
    Endpoint("GET", "/metrics", "read", "Metrics for Prometheus", metrics),
    Endpoint("GET", "/v2/health/live", "", "Whether the process lives", live),
    Endpoint("GET", "/v2/health/ready", "", "Whether it takes requests", ready),
    Endpoint("GET", "/v2/models/{model}/ready", "", "Whether the model takes rows", model_ready),
    Endpoint("GET", "/openapi.json", "", "This document", openapi),
    Endpoint("GET", "/", "", "The page to watch", page),
    Endpoint("GET", "/page/{name}", "", "Files of the page", asset),
)
