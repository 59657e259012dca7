"""The OpenAPI document, made of the table of routes and of what their handlers say they do."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

from weirflow._version import __version__
from weirflow.server.http.calls import ARROW, JSON
from weirflow.server.http.routes import ROUTES, Route

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
_QUERY = re.compile(r"\?(\w+)=")

_STATUSES = {
    "400": "The request, or its SQL, is wrong.",
    "401": "There is no token, or it is not valid.",
    "403": "The token may not do this.",
    "404": "Nothing has this name.",
    "429": "The token has too many requests under way.",
    "503": "The server is starting, or is about to end.",
}


@functools.cache
def openapi_document() -> dict[str, Any]:
    """The document, as JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(_PARAMETER.sub(r"{\1}", route.path), {})[route.method.lower()] = _operation(route)
    for path, described in _OTHERS.items():
        paths.setdefault(path, {}).update(described)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Weirflow", "version": __version__, "summary": "Flows, queries and operations of a server."},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR, "Rows": _ROWS},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    text = inspect.cleandoc(route.handler.__doc__ or route.what)
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": text.partition("\n")[0],
        "description": f"{text}\n\nNeeds the right to {route.right}.",
        "parameters": [*_parameters(route.path), *_behind_question_mark(text)],
        "responses": {str(route.returns): _success(route), **_failures()},
    }
    if route.body is None:
        rows: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
        operation["requestBody"] = {"content": {JSON: {"schema": rows}, ARROW: {"schema": {"type": "string"}}}}
        operation["parameters"].append(
            {"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"}}
        )
    elif route.body:
        members: dict[str, Any] = {name: {} for name in route.body}
        schema = {"type": "object", "properties": members, "additionalProperties": False}
        operation["requestBody"] = {"content": {JSON: {"schema": schema}}}
    return operation


def _success(route: Route) -> dict[str, Any]:
    if route.returns == 204:  # noqa: PLR2004 - no content
        return {"description": "Done."}
    if route.has_rows:
        return {
            "description": "Rows as JSON or, if the request accepts it, in Arrow's streaming format.",
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Rows"}}, ARROW: {"schema": {"type": "string"}}},
        }
    return {"description": "What it says.", "content": {JSON: {"schema": {"type": "object"}}}}


def _failures() -> dict[str, Any]:
    content = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": text, "content": content} for status, text in _STATUSES.items()}


def _parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]


def _behind_question_mark(text: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in _QUERY.findall(text)
    ]


def _plain(summary: str, *, media: str = JSON, open_to_all: bool = True, query: tuple[str, ...] = ()) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": summary,
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in query
        ],
        "responses": {"200": {"description": summary, "content": {media: {}}}, **({} if open_to_all else _failures())},
    }
    return {**described, "security": []} if open_to_all else described


_POSITION = {
    "type": ["object", "null"],
    "properties": {"line": {"type": "integer"}, "column": {"type": "integer"}, "fragment": {"type": "string"}},
}
_ERROR = {
    "type": "object",
    "required": ["code", "message", "hint", "position"],
    "properties": {
        "code": {"type": "string", "description": "stable; docs/troubleshooting.md has a heading for each"},
        "message": {"type": "string"},
        "hint": {"type": ["string", "null"]},
        "position": _POSITION,
        "retry_after": {"type": "number"},
    },
}
_COLUMN = {"type": "object", "properties": {"name": {"type": "string"}, "type": {"type": "string"}}}
_ROWS = {
    "type": "object",
    "required": ["columns", "rows"],
    "properties": {
        "columns": {"type": "array", "items": _COLUMN},
        "rows": {"type": "array", "items": {"type": "object"}},
        "epoch": {"type": "integer"},
    },
}
_OTHERS: dict[str, dict[str, Any]] = {
    "/healthz": {"get": _plain("Whether the process runs.")},
    "/readyz": {"get": _plain("Whether requests are taken.")},
    "/openapi.json": {"get": _plain("This document.")},
    "/metrics": {"get": _plain("Metrics in Prometheus' text format.", media="text/plain", open_to_all=False)},
    "/v1/tickets": {
        "post": _plain("A ticket that replaces the token once, for browsers' EventSource.", open_to_all=False)
    },
    "/v1/flows/{flow}/views/{view}/changes": {
        "get": {
            **_plain(
                "The deltas of a view as server-sent events; the id of an event is its epoch.",
                media="text/event-stream",
                open_to_all=False,
                query=("from_epoch", "snapshot", "progress", "ticket"),
            )
        },
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("flow", "view")
        ],
    },
    "/v1/streams/{stream}/progress": {
        "get": _plain(
            "What each batch of a streaming query did, as server-sent events.",
            media="text/event-stream",
            open_to_all=False,
            query=("ticket",),
        ),
        "parameters": [{"name": "stream", "in": "path", "required": True, "schema": {"type": "string"}}],
    },
}
