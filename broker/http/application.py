"""The ASGI application: checks each request, finds its operation, and turns every failure into a problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.broker.http.problem import Problem, problem_of, problem_response
from barnabas.broker.http.protection import AccessRules, RequestHead, check_access
from barnabas.broker.http.routes import Call, Operation, Received
from barnabas.protocol.errors import ApiError
from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import StorageError

log = get_logger("http")

BODY_BYTES_MAX: Final = 64 * 1024
"""A larger request is refused (413)."""

_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""In each response that has no value of its own: browsers guess no type, share nothing with other websites,
and keep no copy.
"""


def make_application(operations: Iterable[Operation], rules: AccessRules) -> ASGIApp:
    """Serves these operations; `HEAD` is served wherever `GET` is."""
    by_path: dict[str, dict[str, Operation]] = defaultdict(dict)
    for operation in operations:
        assert operation.method not in by_path[operation.path], f"{operation.path} has two operations"
        by_path[operation.path][operation.method] = operation
    routes: list[BaseRoute] = [_route(path, of_path) for path, of_path in by_path.items()]
    handlers = {HTTPException: _refuse_http}
    application = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
    application.router.redirect_slashes = False
    return _Protection(application, rules)


def _route(path: str, operations: Mapping[str, Operation]) -> BaseRoute:
    async def serve(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await _serve(operations[method], request)

    return Route(path, serve, methods=list(operations))


async def _serve(operation: Operation, request: Request) -> Response:
    """The response of the operation, or the problem that it met."""
    try:
        return await operation.serve(await _receive(request))
    except Problem as problem:
        return problem_response(problem)
    except (ApiError, StorageError) as error:
        return problem_response(problem_of(error))
    except ClientDisconnect:
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # is not sent: the client is gone
    except Exception:
        log.exception("a request failed", operation=operation.name)
        return problem_response(Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The broker's log has the reason."))


async def _receive(request: Request) -> Received:
    query: dict[str, list[str]] = defaultdict(list)
    for name, value in request.query_params.multi_items():
        query[name].append(value)
    path = {name: unquote(str(value)) for name, value in request.path_params.items()}
    client = "" if request.client is None else request.client.host
    call = Call(path, request.headers, client)
    return Received(call, query, await _read_body(request))


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {BODY_BYTES_MAX} bytes."
            )
    return bytes(body)


async def _refuse_http(_: Request, error: HTTPException) -> Response:
    """Starlette found no operation for the path or the method."""
    status = HTTPStatus(error.status_code)
    detail = {
        HTTPStatus.NOT_FOUND: "There is no such path. /openapi.json lists all of them.",
        HTTPStatus.METHOD_NOT_ALLOWED: "The path does not have this method. /openapi.json lists all of them.",
    }.get(status, error.detail)
    return problem_response(Problem(status, detail, headers=error.headers or {}))


class _Protection:
    """Checks each request before the application sees it, and adds the headers of every response.

    Paths are matched in their encoded form, so that a group id may contain a slash.
    """

    def __init__(self, application: ASGIApp, rules: AccessRules) -> None:
        self._application = application
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "the server has no other protocol"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Date"] = formatdate(usegmt=True)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            check_access(self._rules, _head(scope))
        except Problem as problem:
            await problem_response(problem)(scope, receive, send_with_headers)
            return
        raw_path: bytes = scope["raw_path"]
        encoded: Scope = {**scope, "path": raw_path.decode("ascii")}
        await self._application(encoded, receive, send_with_headers)


def _head(scope: Scope) -> RequestHead:
    values: dict[str, Sequence[str]] = {}
    headers = Headers(scope=scope)
    for name in headers:
        values[name] = headers.getlist(name)
    return RequestHead(scope["method"], values)
