"""The OpenAPI document: one entry for each route, made from the routes themselves."""

import re
from typing import Any

from fairsaoml import __version__
from fairsaoml.serve.routes import NDJSON, ROUTES, Endpoint

__all__ = ["document"]

ID = {"oneOf": [{"type": "string", "minLength": 1, "maxLength": 200}, {"type": "integer"}]}
ROW = {
    "type": "object",
    "description": "Columns as in the run's table, null where a value is not known; `id` optional.",
    "properties": {"id": ID},
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}
LABEL = {
    "type": "object",
    "required": ["id", "label"],
    "properties": {
        "id": ID,
        "label": {"description": "One of the label's two values."},
        "group": {"description": "The sensitive value, or an object of them by column."},
    },
}
DECISION = {
    "type": "object",
    "description": "A decision; or `row`, `column` and `error` of a row that could not be read.",
    "properties": {
        "id": ID,
        "decision": {"type": "string"},
        "probability": {"type": "number"},
        "round": {"type": "integer"},
        "row": {"type": "integer"},
        "column": {"type": "string"},
        "error": {"type": "string"},
        "recorded": {"type": "boolean"},
    },
}
BODIES = {
    "/v1/predict": ("rows", ROW),
    "/v1/labels": ("labels", LABEL),
    "/v1/never": ("ids", ID),
    "/v1/erase": ("ids", ID),
}
COUNT, IDS = {"type": "integer"}, {"type": "array", "items": ID}
NUMBER, OBJECT, TEXT = {"type": "number"}, {"type": "object"}, {"type": "string"}
ANSWERS: dict[str, dict[str, Any]] = {
    "/v1/predict": {"decisions": {"type": "array", "items": DECISION}},
    "/v1/labels": {
        "taken": COUNT,
        "corrected": COUNT,
        "repeated": IDS,
        "late": IDS,
        "unknown": IDS,
        "errors": {"type": "array", "items": OBJECT},
    },
    "/v1/never": {"taken": COUNT, "unknown": IDS},
    "/v1/erase": {"erased": COUNT, "unknown": IDS},
    "/v1/decisions/{id}": {
        "id": ID,
        "at": NUMBER,
        "round": COUNT,
        "decision": TEXT,
        "probability": NUMBER,
        "row": OBJECT,
        "groups": OBJECT,
        "label": {"type": ["string", "null"]},
        "state": TEXT,
        "why": {"type": ["object", "null"]},
    },
    "/v1/model": {"learner": TEXT, "round": COUNT, "asked": OBJECT, "counts": OBJECT},
    "/v1/rounds": {"rounds": {"type": "array", "items": OBJECT}, "event": COUNT},
    "/v1/fairness": {"verdict": {"type": ["object", "null"]}, "groups": OBJECT, "alarms": OBJECT},
}
QUERIES = {"/v1/rounds": "since", "/v1/fairness": "window", "/v1/events": "after"}
MEDIA = {"/v1/events": "text/event-stream", "/metrics": "text/plain", "/": "text/html"}
PROBLEMS = {
    "400": "no JSON",
    "401": "no such token",
    "403": "another host's name",
    "409": "another row under a known id; the other rows are answered",
    "413": "too many bytes or rows",
    "415": "another content type",
    "422": "what could not be read, by row and column; the other rows are answered",
    "507": "no room on the disk; decisions are given, and marked as not recorded",
}


def document() -> dict[str, Any]:
    """Return the document, as OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for endpoint in ROUTES:
        path = endpoint.path.replace(":path}", "}")
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "fairsaoml", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(endpoint: Endpoint, path: str) -> dict[str, Any]:
    media = MEDIA.get(path, "application/json")
    schema = {"type": "object", "properties": ANSWERS.get(path, {})}
    schema["required"] = [] if path == "/v1/predict" else list(ANSWERS.get(path, {}))
    responses: dict[str, Any] = {
        "200": {"description": "as asked", "content": {media: {"schema": schema}}}
    }
    operation: dict[str, Any] = {"summary": endpoint.summary, "responses": responses}
    names = re.findall(r"{(\w+)}", path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in names
    ]
    if path in QUERIES:
        parameters.append({"name": QUERIES[path], "in": "query", "schema": COUNT})
    if parameters:
        operation["parameters"] = parameters
    if path in BODIES:
        name, item = BODIES[path]
        items = {"type": "array", "items": item}
        body = {"type": "object", "required": [name], "properties": {name: items}}
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": body}, NDJSON: {"schema": item}},
        }
        responses.update({code: {"description": words} for code, words in PROBLEMS.items()})
    if endpoint.scope:
        operation["security"] = [{"token": []}, {}]
        responses.setdefault("401", {"description": PROBLEMS["401"]})
    return operation
