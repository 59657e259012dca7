"""The application: requests to callers, callers to handlers, answers and errors to HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from weirflow.errors import (
    AuthenticationFailed,
    ConfigError,
    MessageTooLarge,
    NotAllowed,
    RetryLater,
    ServerDraining,
    WeirflowError,
)
from weirflow.rows.json_values import to_json
from weirflow.server.access.caller import Caller, Right
from weirflow.server.http.calls import JSON, Answer, Call, Parts
from weirflow.server.http.events import KEEP_ALIVE_SECONDS, Hubs, event
from weirflow.server.http.failures import body_of, headers_of, status_of, unforeseen
from weirflow.server.http.openapi import openapi_document
from weirflow.server.http.routes import ROUTES, Route
from weirflow.server.http.streams import progress_json
from weirflow.server.http.tickets import LIFETIME, StreamTickets

if TYPE_CHECKING:
    from weirflow.session.operation import Operation

_log = logging.getLogger(__name__)

_EVENTS = "text/event-stream"
_THREADS = 256
_PROGRESS_SECONDS = 0.5
_LONGEST_PEER = 100
Endpoint = Callable[[Request], Awaitable[Response]]


class HttpApp:
    """All of HTTP for one server.

    Args:
        parts: what the server has.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._coordinator = parts.coordinator
        self._tickets = StreamTickets()
        self._hubs: Hubs | None = None
        self._threads: anyio.CapacityLimiter | None = None
        plain: list[StarletteRoute] = [
            StarletteRoute("/healthz", self._healthz),
            StarletteRoute("/readyz", self._readyz),
            StarletteRoute("/metrics", _answered(self._metrics)),
            StarletteRoute("/openapi.json", self._openapi),
            StarletteRoute("/v1/tickets", _answered(self._ticket), methods=["POST"]),
            StarletteRoute("/v1/flows/{flow}/views/{view}/changes", _answered(self._changes)),
            StarletteRoute("/v1/streams/{stream:path}/progress", _answered(self._progress)),
        ]
        routes = [StarletteRoute(one.path, self._endpoint(one), methods=[one.method]) for one in ROUTES]
        self.asgi = Starlette(
            routes=[*plain, *routes], exception_handlers={HTTPException: _unknown_route, Exception: _unforeseen}
        )

    async def close(self) -> None:
        """End all streams of events."""
        if self._hubs is not None:
            await self._hubs.close()

    # For everybody

    async def _healthz(self, _: Request) -> Response:
        """The process runs."""
        return _json({"status": "ok"})

    async def _readyz(self, _: Request) -> Response:
        """Requests are taken."""
        if self._coordinator.draining.is_set():
            return _json({"status": "draining"}, 503)
        is_ready = self._coordinator.ready.is_set()
        return _json({"status": "ready" if is_ready else "starting"}, 200 if is_ready else 503)

    async def _openapi(self, _: Request) -> Response:
        return _json(openapi_document())

    # For callers

    async def _metrics(self, request: Request) -> Response:
        caller = await self._caller(request)

        def text() -> str:
            with self._coordinator.work(caller, Right.READ, "read metrics"):
                if "*" not in caller.flows:
                    raise NotAllowed(
                        f"The token of {caller.name!r} is not for all flows, but metrics are about all of them."
                    )
                return self._coordinator.session.metrics() + self._coordinator.measures.text()

        return Response(await self._run(text), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _ticket(self, request: Request) -> Response:
        caller = await self._caller(request)

        def issue() -> str:
            with self._coordinator.work(caller, Right.READ, "get a ticket"):
                return self._tickets.issue(caller)

        return _json({"ticket": await self._run(issue), "seconds": LIFETIME}, 201)

    def _endpoint(self, route: Route) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            caller = await self._caller(request)
            content = await self._content(request, self._coordinator.limits.of(caller).message_bytes)
            begun: list[Operation] = []
            call = Call(
                self._parts, caller, request.path_params, request.query_params, _headers(request), content, begun.append
            )

            def handle() -> Answer:
                flow = request.path_params.get("flow")
                with self._coordinator.work(caller, route.right, route.what, flow=flow, detail=_named(request)):
                    return route.handler(call)

            async with _stopping_left(request, begun):
                answer = await self._run(handle)
            headers = dict(answer.headers)
            return Response(answer.body or None, answer.status, headers, media_type=answer.media_type)

        return _answered(endpoint)

    async def _changes(self, request: Request) -> Response:
        caller = await self._caller(request, with_ticket=True)
        flow_name, view = request.path_params["flow"], request.path_params["view"]
        call = Call(self._parts, caller, request.path_params, request.query_params, _headers(request), b"")
        snapshot, progress = call.flag("snapshot"), call.flag("progress")
        from_epoch = call.number("from_epoch")
        resumed = request.headers.get("last-event-id")
        if resumed:
            if not (resumed.isascii() and resumed.isdigit() and len(resumed) < 19):  # noqa: PLR2004 - an int64
                raise ConfigError("The header Last-Event-ID must be an epoch.")
            from_epoch, snapshot = int(resumed), False
        work = self._coordinator.work(
            caller, Right.READ, "watch a view", flow=flow_name, detail=view[:_LONGEST_PEER], lasting=True
        )
        opened = contextlib.AsyncExitStack()
        opened.enter_context(work)
        try:
            flow = await self._run(lambda: self._coordinator.flow(flow_name))
            contents, left = await self._all_hubs().read(
                flow, view, from_epoch=from_epoch, snapshot=snapshot, progress=progress
            )
            opened.push_async_callback(left)
        except BaseException as error:
            if not await opened.__aexit__(type(error), error, error.__traceback__):
                raise
        return _events(contents(), opened)

    async def _progress(self, request: Request) -> Response:
        caller = await self._caller(request, with_ticket=True)
        name = request.path_params["stream"]
        resumed = request.headers.get("last-event-id", "")
        after = int(resumed) if resumed.isascii() and resumed.isdigit() and len(resumed) < 19 else -1  # noqa: PLR2004
        opened = contextlib.AsyncExitStack()
        opened.enter_context(
            self._coordinator.work(caller, Right.READ, "watch a stream", detail=name[:_LONGEST_PEER], lasting=True)
        )
        try:
            query = await self._run(lambda: self._coordinator.stream(caller, name))
        except BaseException as error:
            if not await opened.__aexit__(type(error), error, error.__traceback__):
                raise

        async def contents() -> AsyncIterator[bytes]:
            last, silent = after, 0.0
            while not self._coordinator.draining.is_set():
                news, is_active = await self._run(lambda: (query.recent_progress, query.active))
                for one in news:
                    if one.batch > last:
                        last, silent = one.batch, 0.0
                        yield event("progress", progress_json(one), one.batch)
                if not is_active:
                    yield event("end", {"reason": "the query has ended"})
                    return
                await asyncio.sleep(_PROGRESS_SECONDS)
                silent += _PROGRESS_SECONDS
                if silent >= KEEP_ALIVE_SECONDS:
                    silent = 0.0
                    yield b": still here\n\n"

        return _events(contents(), opened)

    # Inner workings

    async def _caller(self, request: Request, *, with_ticket: bool = False) -> Caller:
        peer = f"{request.client.host}:{request.client.port}" if request.client else "unknown"
        ticket = request.query_params.get("ticket") if with_ticket else None
        if ticket is not None:
            return self._tickets.redeem(ticket)
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme and scheme.lower() != "bearer":
            raise AuthenticationFailed("Only bearer tokens are accepted.", hint="send `Authorization: Bearer TOKEN`")
        caller: Caller = await self._run(lambda: self._coordinator.gate.caller(bearer.strip() or None, peer))
        return caller

    async def _content(self, request: Request, most: int) -> bytes:
        too_large = MessageTooLarge(
            f"The request has more than {most:,} bytes.", hint="send it in several, or over Arrow Flight as a stream"
        )
        told = request.headers.get("content-length", "0")
        if told.isdigit() and int(told) > most:
            raise too_large
        pieces: list[bytes] = []
        size = 0
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise too_large
            pieces.append(piece)
        return b"".join(pieces)

    async def _run(self, call: Callable[[], Any]) -> Any:
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(_THREADS)
        return await anyio.to_thread.run_sync(call, limiter=self._threads)

    def _all_hubs(self) -> Hubs:
        if self._coordinator.draining.is_set():
            raise ServerDraining("The server is about to end.", retry_after=5.0)
        if self._hubs is None:
            self._hubs = Hubs()
        return self._hubs


def _answered(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose errors are answers."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except WeirflowError as error:
            if not isinstance(error, RetryLater) and status_of(error) >= 500:  # noqa: PLR2004 - the server's failures
                _log.warning("%s %s failed: %s", request.method, request.url.path, error.code, exc_info=error)
            return _json(body_of(error), status_of(error), headers_of(error))
        except ClientDisconnect:
            return Response(status_code=499)

    return answered


@contextlib.asynccontextmanager
async def _stopping_left(request: Request, begun: list[Operation]) -> AsyncIterator[None]:
    """In the block, cancel what was begun for a client as soon as the client has left."""

    async def look() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        for operation in begun:
            operation.cancel()

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking


def _events(contents: AsyncIterator[bytes], opened: contextlib.AsyncExitStack) -> Response:
    async def closing() -> AsyncIterator[bytes]:
        async with opened:
            async for one in contents:
                yield one

    return StreamingResponse(
        closing(), media_type=_EVENTS, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(to_json(value), status, headers, media_type=JSON)


def _headers(request: Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items() if name.lower() != "authorization"}


def _named(request: Request) -> str:
    """What a request names, for the audit log."""
    others = [f"{name}={value[:_LONGEST_PEER]}" for name, value in request.path_params.items() if name != "flow"]
    return " ".join(others)


async def _unknown_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"There is no {request.method} {request.url.path[:200]} here."
    body = {"code": "ROUTE_NOT_FOUND", "message": message, "hint": "GET /openapi.json lists all", "position": None}
    return _json(body, error.status_code, dict(error.headers or {}))


async def _unforeseen(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _json(unforeseen(), 500)
