"""One row for each operation of HTTP. The application serves this table, and the OpenAPI document describes
it.

Parameters, bodies and answers are msgspec structs: they check the client's input, and give the schemas. A
part of the broker, or a program that embeds it, adds operations by adding rows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal, NamedTuple, TypeVar, get_origin

from msgspec import DecodeError, Struct, ValidationError, convert, json
from msgspec.structs import fields
from starlette.responses import Response

from barnabas.broker.http.problem import Problem
from barnabas.broker.http.protection import JSON_TYPE, SAFE_METHODS

Method = Literal["GET", "POST", "PUT", "DELETE"]

TEXT_TYPE: Final = "text/plain"


Answer = Struct | Response | None

QueryT = TypeVar("QueryT", bound=Struct)
BodyT = TypeVar("BodyT", bound=Struct)


class NoParameters(Struct, forbid_unknown_fields=True):
    """The query of an operation without parameters, and the body of one that takes none."""


class Call(NamedTuple):
    """The parts of a request that any operation may use."""

    path: Mapping[str, str]
    """The parameters of the path, without percent-encoding."""
    headers: Mapping[str, str]
    client: str
    """The client's address."""


class Received(NamedTuple):
    """A request as it was received."""

    call: Call
    query: Mapping[str, Sequence[str]]
    """Each parameter's values."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Handler:
    """The function of an operation, and the structs that it takes: made by `without_parameters`, `with_query`
    or `with_body`.
    """

    query: type[Struct]
    body: type[Struct]
    respond: Callable[[Received], Awaitable[Answer]]
    """Checks the query and the body before it calls the function. Raises Problem, ApiError, StorageError."""

    @property
    def has_body(self) -> bool:
        return self.body is not NoParameters


def without_parameters(handle: Callable[[Call], Awaitable[Answer]]) -> Handler:
    """For an operation that takes neither a query nor a body."""
    return with_query(NoParameters, lambda call, _: handle(call))


def with_query(kind: type[QueryT], handle: Callable[[Call, QueryT], Awaitable[Answer]]) -> Handler:
    """For an operation that takes the parameters of a query."""

    def respond(received: Received) -> Awaitable[Answer]:
        query = _decode_query(kind, received.query)
        _decode_body(NoParameters, received.body)
        return handle(received.call, query)

    return Handler(kind, NoParameters, respond)


def with_body(kind: type[BodyT], handle: Callable[[Call, BodyT], Awaitable[Answer]]) -> Handler:
    """For an operation that takes a body in JSON."""

    def respond(received: Received) -> Awaitable[Answer]:
        _decode_query(NoParameters, received.query)
        return handle(received.call, _decode_body(kind, received.body))

    return Handler(NoParameters, kind, respond)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation.

    Its handler answers with a struct, which is sent as JSON, with None (204), or with a complete response of
    `media_type`. It may raise Problem, ApiError or StorageError.
    """

    method: Method = "GET"
    path: str
    """With parameters in braces: /api/v1/topics/{topic}."""
    handler: Handler
    name: str
    """The operation's id in the OpenAPI document; unique."""
    summary: str
    tag: str
    answer: type[Struct] | None = None
    """The struct of an answer in JSON."""
    media_type: str = JSON_TYPE
    status: HTTPStatus = HTTPStatus.OK
    """The status of success; NO_CONTENT if the handler answers with None."""
    failures: tuple[HTTPStatus, ...] = ()
    """The errors of this operation, besides those that any request may get."""

    @property
    def is_change(self) -> bool:
        """Whether it needs the token."""
        return self.method not in SAFE_METHODS

    async def serve(self, received: Received) -> Response:
        """The response. Raises Problem, ApiError, StorageError."""
        answer = await self.handler.respond(received)
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response(status_code=self.status)
        return json_response(answer, self.status)


def json_response(answer: Struct, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(json.encode(answer), status, media_type=JSON_TYPE)


def _decode_query(kind: type[QueryT], values: Mapping[str, Sequence[str]]) -> QueryT:
    lists = {field.encode_name for field in fields(kind) if get_origin(field.type) is tuple}
    for name, given in values.items():
        if len(given) > 1 and name not in lists:
            raise Problem(HTTPStatus.BAD_REQUEST, f"The parameter {name} may be given once.")
    raw = {name: given if name in lists else given[0] for name, given in values.items()}
    try:
        return convert(raw, kind, strict=False)
    except ValidationError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"The query is wrong: {error}.") from None


def _decode_body(kind: type[BodyT], body: bytes) -> BodyT:
    try:
        return json.decode(body or b"{}", type=kind)
    except ValidationError as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"The body is wrong: {error}.") from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"The body is not JSON: {error}.") from None
