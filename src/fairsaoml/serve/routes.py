"""What the service answers: a route is a function here and an entry in ROUTES.

`page/openapi.json` describes them to clients; a test checks that it describes every one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from fairsaoml import __version__
from fairsaoml.core.errors import DataError
from fairsaoml.files import read_json
from fairsaoml.serve.access import MOST_LABELS, MOST_ROWS, MOST_WATCHERS, Refused, read_body
from fairsaoml.serve.deciding import Answer
from fairsaoml.serve.reading import parse, to_json
from fairsaoml.serve.service import Service
from fairsaoml.serve.views import WINDOW

if TYPE_CHECKING:
    from fairsaoml.serve.app import App

PAGE = Path(__file__).parent / "page"
ASSETS = ("icon.svg", "page.css", "page.js", "uPlot.iife.min.js", "uPlot.min.css")
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
    function: Callable[["App", Request], Awaitable[Response]]


def said(error: str, status: int) -> Response:
    """An error in words."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    return JSON({"error": error}, status, headers)


async def listed(request: Request, name: str, most: int) -> tuple[list[Any], bool]:
    """Return the items of a body, JSON `{name: [...]}` or NDJSON, and whether it was the latter.

    Raises:
        Refused: another type, no such JSON, or too many items.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", NDJSON):
        raise Refused(415, f"expected content-type application/json or {NDJSON}, got {kind!r}")
    body = await read_body(request)
    items: Any
    try:
        if kind == NDJSON:
            items = [parse(line) for line in body.splitlines() if line.strip()]
        else:
            whole = parse(body)
            items = whole.get(name) if isinstance(whole, dict) else None
    except (ValueError, RecursionError) as problem:
        raise Refused(400, f"expected JSON, got what is none ({problem})") from None
    if not isinstance(items, list):
        raise Refused(400, f'expected {{"{name}": [...]}}, got something else')
    if len(items) > most:
        raise Refused(413, f"expected at most {most} {name}, got {len(items)}; send them in parts")
    return items, kind == NDJSON


async def predict(app: "App", request: Request) -> Response:
    """Decide rows."""
    rows, lines = await listed(request, "rows", MOST_ROWS)
    answers: list[Answer] = await app.predictions.ask(rows)
    status = max((answer.status for answer in answers), key=SEVERITY.index, default=200)
    said = [
        answer.content if answer.status in (200, 507) else {"row": place, **answer.content}
        for place, answer in enumerate(answers)
    ]
    if lines:
        content = b"".join(to_json(one) + b"\n" for one in said)
        return Response(content, status, media_type=NDJSON)
    return JSON({"decisions": said}, status)


def taking(name: str, work: Callable[[Service, list[Any]], dict[str, Any]]) -> Any:
    """Return a route that lets the thread that writes take the items of a request."""

    async def take(app: "App", request: Request) -> Response:
        items, _ = await listed(request, name, MOST_LABELS)
        loop = asyncio.get_running_loop()
        content = await loop.run_in_executor(app.writer, work, app.service, items)
        return JSON(content, 422 if content.get("errors") else 200)

    return take


async def decision(app: "App", request: Request) -> Response:
    """What was decided, and why."""
    id = request.path_params["id"]
    found = await asyncio.to_thread(app.views.decision, id)
    return said(f"no decision under the id {id!r}", 404) if found is None else JSON(found)


async def model(app: "App", request: Request) -> Response:
    """What runs."""
    content = await asyncio.to_thread(app.views.model)
    return JSON({**content, "traffic": app.metrics.traffic(), "problem": app.problem or None})


async def rounds(app: "App", request: Request) -> Response:
    """The journal's lines after a round."""
    return JSON(await asyncio.to_thread(app.views.rounds, whole(request, "since", 0)))


async def fairness(app: "App", request: Request) -> Response:
    """Is it fair now: figures with intervals."""
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
    """Rounds and alarms as they happen."""
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
    """Metrics for Prometheus."""
    content = await asyncio.to_thread(app.metrics.text)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


async def live(app: "App", request: Request) -> Response:
    """Whether the process lives."""
    return JSON({"live": True})


async def ready(app: "App", request: Request) -> Response:
    """Whether it takes requests."""
    return JSON({"ready": not app.ending}, 503 if app.ending else 200)


async def model_ready(app: "App", request: Request) -> Response:
    """Whether the model takes rows."""
    name = request.path_params["model"]
    ours = app.service.folder.parent.resolve().name
    if name != ours:
        return said(f"no model {name!r} here; it is called {ours!r}", 404)
    return JSON({"name": name, "ready": not app.ending}, 503 if app.ending else 200)


async def openapi(app: "App", request: Request) -> Response:
    """The description of all routes."""
    return JSON(document())


def document() -> dict[str, Any]:
    """Return the OpenAPI document of this version."""
    content = read_json(PAGE / "openapi.json")
    content["info"]["version"] = __version__
    return content


async def page(app: "App", request: Request) -> Response:
    """The page to watch."""
    return FileResponse(PAGE / "index.html", headers=SAFE)


async def asset(app: "App", request: Request) -> Response:
    """Files of the page."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return said("no such file", 404)
    return FileResponse(PAGE / name, headers=SAFE)


ROUTES = (
    Endpoint("POST", "/v1/predict", "decide", predict),
    Endpoint("POST", "/v1/labels", "label", taking("labels", Service.label)),
    Endpoint("POST", "/v1/never", "label", taking("ids", Service.never)),
    Endpoint("POST", "/v1/erase", "label", taking("ids", Service.erase)),
    Endpoint("GET", "/v1/decisions/{id:path}", "read", decision),
    Endpoint("GET", "/v1/model", "read", model),
    Endpoint("GET", "/v1/rounds", "read", rounds),
    Endpoint("GET", "/v1/fairness", "read", fairness),
    Endpoint("GET", "/v1/events", "read", events),
    Endpoint("GET", "/metrics", "read", metrics),
    Endpoint("GET", "/v2/health/live", "", live),
    Endpoint("GET", "/v2/health/ready", "", ready),
    Endpoint("GET", "/v2/models/{model}/ready", "", model_ready),
    Endpoint("GET", "/openapi.json", "", openapi),
    Endpoint("GET", "/", "", page),
    Endpoint("GET", "/page/{name}", "", asset),
)
