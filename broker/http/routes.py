"""One row for each operation of HTTP. The application serves this table, and the OpenAPI document describes
it.

Parameters, bodies and answers are msgspec structs: they check the client's input, and give the schemas. A
part of the broker, or a program that embeds it, adds operations by adding rows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Generic, Literal, NamedTuple, Protocol, TypeVar, get_origin

from msgspec import DecodeError, Struct, ValidationError, convert, json
from msgspec.structs import fields
from starlette.responses import Response

from barnabas.broker.http.problem import Problem
from barnabas.broker.http.protection import JSON_TYPE, SAFE_METHODS

Method = Literal["GET", "POST", "PUT", "DELETE"]

TEXT_TYPE: Final = "text/plain"


class NoParameters(Struct, forbid_unknown_fields=True):
    """The query of an operation without parameters, or the body of one that takes none."""


QueryT = TypeVar("QueryT", bound=Struct)
BodyT = TypeVar("BodyT", bound=Struct)


class Received(NamedTuple):
    """A request as it was received."""

    path: Mapping[str, str]
    """The parameters of the path, without percent-encoding."""
    query: Mapping[str, Sequence[str]]
    """Each parameter's values."""
    body: bytes
    headers: Mapping[str, str]
    client: str
    """The client's address."""


@dataclass(frozen=True, slots=True)
class Call(Generic[QueryT, BodyT]):
    """One decoded request."""

    path: Mapping[str, str]
    """The parameters of the path."""
    query: QueryT
    body: BodyT
    headers: Mapping[str, str]
    client: str


class Operation(Protocol):
    """An operation as the application and the OpenAPI document see it; `Route` has the fields' meanings."""

    @property
    def method(self) -> Method: ...
    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def tag(self) -> str: ...
    @property
    def query(self) -> type[Struct]: ...
    @property
    def body(self) -> type[Struct]: ...
    @property
    def answer(self) -> type[Struct] | None: ...
    @property
    def media_type(self) -> str: ...
    @property
    def status(self) -> HTTPStatus: ...
    @property
    def failures(self) -> Sequence[HTTPStatus]: ...
    @property
    def is_change(self) -> bool: ...
    @property
    def has_body(self) -> bool: ...
    async def serve(self, received: Received) -> Response: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[QueryT, BodyT]):
    """One operation.

    `handle` answers with a struct, which is sent as JSON, with None (204), or with a complete response of
    `media_type`. It may raise Problem, ApiError or StorageError.
    """

    method: Method
    path: str
    """With parameters in braces: /api/v1/topics/{topic}."""
    handle: Callable[[Call[QueryT, BodyT]], Awaitable[Struct | Response | None]]
    name: str
    """The operation's id in the OpenAPI document; unique."""
    summary: str
    tag: str
    query: type[QueryT]
    body: type[BodyT]
    answer: type[Struct] | None = None
    """The struct of an answer in JSON."""
    media_type: str = JSON_TYPE
    status: HTTPStatus = HTTPStatus.OK
    """The status of success; NO_CONTENT if `handle` answers with None."""
    failures: tuple[HTTPStatus, ...] = ()
    """The errors of this operation, besides those that any request may get."""

    @property
    def is_change(self) -> bool:
        """Whether it needs the token."""
        return self.method not in SAFE_METHODS

    @property
    def has_body(self) -> bool:
        return self.body is not NoParameters

    async def serve(self, received: Received) -> Response:
        """The response. Raises Problem, ApiError, StorageError."""
        call = Call(
            received.path,
            _decode_query(self.query, received.query),
            _decode_body(self.body, received.body),
            received.headers,
            received.client,
        )
        answer = await self.handle(call)
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response(status_code=self.status)
        return json_response(answer, self.status)


def json_response(answer: Struct, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(json.encode(answer), status, media_type=JSON_TYPE)


def _decode_query(kind: type[QueryT], values: Mapping[str, Sequence[str]]) -> QueryT:
    lists = {one.encode_name for one in fields(kind) if get_origin(one.type) is tuple}
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
