"""Dispatch: the choice of the handler, and the answers to requests that are not served."""

import struct
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import pytest

from barnabas.broker.config.listener import Listener
from barnabas.broker.network.dispatch import Answer, Dispatcher, PendingAnswer
from barnabas.broker.network.handler import NO_RESPONSE, Handler, RequestContext
from barnabas.broker.security.principal import ANONYMOUS
from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.errors import FrameError
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.metrics import Metrics
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.edge_fakes import PLAIN_API, ManualClock, always, body, request_frame, split_answers

P = ParamSpec("P")
T = TypeVar("T")


class Client:
    """The connection, as handlers see it."""

    connection_id = 7
    client_host = "/127.0.0.1"
    listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "localhost", 9092)
    principal = ANONYMOUS
    closed = False


def start(handler: Handler, frame: bytes, metrics: Metrics | None = None) -> Any:
    handlers = dict.fromkeys(map(int, APIS), handler)
    return Dispatcher(handlers, metrics or Metrics(), ManualClock()).start(Client(), frame[4:])


def test_a_handler_gets_the_context_and_the_decoded_request() -> None:
    seen: list[Any] = []

    def handle(context: RequestContext, request: Any) -> EncodedBody:
        seen.extend((context, request))
        return body("")

    start(handle, request_frame(ApiKey.FIND_COORDINATOR, 5, version=0, body=b"\x00\x05group"))
    context, request = seen
    assert context[:6] == (ApiKey.FIND_COORDINATOR, 0, "test", "/127.0.0.1", 7, Client.listener)
    assert request.key == "group"


class SlowThreads:
    """A thread that takes three seconds."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._clock.now_ms += 3_000
        return function(*args, **kwargs)


async def test_a_large_request_begins_when_it_has_been_read() -> None:
    seen: list[RequestContext] = []

    def handle(context: RequestContext, request: Any) -> EncodedBody:
        seen.append(context)
        return body("")

    clock = ManualClock()
    handlers = {int(ApiKey.FIND_COORDINATOR): handle}
    dispatcher = Dispatcher(handlers, Metrics(), clock, long_work=LongWork(SlowThreads(clock)))
    large = request_frame(ApiKey.FIND_COORDINATOR, 5, version=0, body=b"\x00\x05group" + bytes(40_000))
    pending = dispatcher.start(Client(), large[4:])
    assert isinstance(pending, PendingAnswer)
    await pending.reply
    assert [context.started_ms for context in seen] == [4_000]


def test_a_response_is_framed_with_its_length_and_correlation_id() -> None:
    answer = start(always(EncodedBody([b"ab", memoryview(b"cd")])), request_frame(PLAIN_API, 5))
    assert list(split_answers(b"".join(answer.buffers))) == [(5, b"abcd")]


def test_a_flexible_response_header_has_an_empty_tag_section() -> None:
    frame = request_frame(ApiKey.LIST_GROUPS, 5, version=3, body=b"\0\0")
    assert b"".join(start(always(body("x")), frame).buffers) == struct.pack(">iib", 6, 5, 0) + b"x"


def test_a_response_may_be_none_at_all() -> None:
    assert start(always(NO_RESPONSE), request_frame(PLAIN_API, 5)) == Answer([])


def test_the_reserved_bytes_of_the_budget_are_in_the_answer() -> None:
    assert start(always(EncodedBody([b"ab"], 7)), request_frame(PLAIN_API, 5)).reserved_bytes == 7


async def test_an_awaitable_reply_is_handed_on() -> None:
    async def handle(*_: object) -> EncodedBody:
        return body("later")

    pending = start(handle, request_frame(PLAIN_API, 5))
    assert isinstance(pending, PendingAnswer)
    assert await pending.reply == body("later")


@pytest.mark.parametrize("version", [6, 99, -1])
def test_api_versions_of_an_unknown_version_is_answered_in_version_0_with_its_own_range(version: int) -> None:
    frame = request_frame(ApiKey.API_VERSIONS, 7, version, body=b"\0")
    answer = b"".join(start(always(NO_RESPONSE), frame).buffers)
    # As Apache Kafka 4.4.0 answers.
    assert answer.hex() == "0000001000000007002300000001001200000005"


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (999, 0),
        (-5, 0),
        (ApiKey.LEADER_AND_ISR, 0),
        (ApiKey.METADATA, 99),
        (ApiKey.METADATA, -1),
        (ApiKey.PRODUCE, 2),
    ],
)
def test_anything_else_that_is_not_served_closes_the_connection(api_key: int, version: int) -> None:
    with pytest.raises(FrameError, match="not served"):
        start(always(NO_RESPONSE), request_frame(api_key, 7, version, body=b"\0"))
