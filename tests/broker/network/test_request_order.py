"""The order of one connection: the requests that run together, and the order of their answers."""

import asyncio

from barnabas.broker.network.connection import ConnectionLimits
from barnabas.broker.network.handler import NO_RESPONSE, RequestContext
from barnabas.protocol.api import ApiKey
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.connection_bench import Bench, plain, quick, waiting
from tests.broker.network.edge_fakes import (
    PLAIN_API,
    body,
    request_frame,
    settle,
)


async def test_answers_keep_the_order_of_the_requests() -> None:
    bench = Bench()
    bench.receive(waiting(1), quick(2), waiting(3), quick(4))
    assert bench.plain_count == 2
    bench.waits[1].set_result(body("second wait"))
    await settle()
    assert bench.transport.answers() == []
    bench.waits[0].set_result(body("first wait"))
    await settle()
    assert bench.transport.answers() == [
        (1, b"first wait"),
        (2, b"plain 1"),
        (3, b"second wait"),
        (4, b"plain 2"),
    ]


async def test_answers_completed_in_one_pass_share_one_write() -> None:
    bench = Bench()
    bench.receive(waiting(1), waiting(2), waiting(3))
    for wait in bench.waits:
        wait.set_result(body("done"))
    await settle()
    assert len(bench.transport.writes) == 1
    assert [correlation_id for correlation_id, _ in bench.transport.answers()] == [1, 2, 3]


async def test_the_only_outstanding_answer_is_written_at_once() -> None:
    bench = Bench()
    bench.receive(waiting(1))
    bench.waits[0].set_result(body("done"))
    await asyncio.sleep(0)
    assert bench.transport.answers() == [(1, b"done")]


async def test_a_handler_may_be_a_coroutine() -> None:
    async def handle(context: RequestContext, request: object) -> EncodedBody:
        await asyncio.sleep(0)
        return body(f"{context.client_host} {context.client_id} {context.connection_id}")

    bench = Bench(handlers={PLAIN_API: handle})
    bench.receive(plain(1))
    await settle()
    assert bench.transport.answers() == [(1, b"/127.0.0.1 test 7")]


async def test_a_request_of_another_api_waits_for_all_outstanding_ones() -> None:
    bench = Bench()
    bench.receive(waiting(1), waiting(2), plain(3), plain(4))
    assert (len(bench.waits), bench.plain_count, bench.transport.is_reading()) == (2, 0, False)
    bench.waits[1].set_result(body("two"))
    await settle()
    assert bench.plain_count == 0
    bench.waits[0].set_result(body("one"))
    await settle()
    assert bench.transport.answers() == [(1, b"one"), (2, b"two"), (3, b"plain 1"), (4, b"plain 2")]
    assert bench.transport.is_reading()


async def test_no_request_is_started_after_a_coroutine() -> None:
    gate, begun = asyncio.Event(), 0

    async def handle(context: RequestContext, request: object) -> EncodedBody:
        nonlocal begun
        begun += 1
        await gate.wait()
        return body(f"{begun} begun")

    bench = Bench(handlers={PLAIN_API: handle})
    bench.receive(plain(1))
    await settle()
    assert bench.transport.is_reading()
    bench.receive(plain(2))
    await settle()
    assert (begun, bench.transport.is_reading()) == (1, False)
    gate.set()
    await settle()
    assert bench.transport.answers() == [(1, b"1 begun"), (2, b"2 begun")]
    assert bench.transport.is_reading()


async def test_a_request_without_a_response_is_skipped_in_the_order() -> None:
    async def handle(context: RequestContext, request: object) -> object:
        return NO_RESPONSE

    bench = Bench(handlers={ApiKey.METADATA: handle})
    bench.receive(request_frame(ApiKey.METADATA, 1, body=b"\0\0\0\0"), plain(2))
    await settle()
    assert bench.transport.answers() == [(2, b"plain 1")]


async def test_a_waiting_request_is_hurried_when_another_arrives() -> None:
    bench = Bench()
    bench.receive(waiting(1))
    assert bench.waits[0].hurried_count == 0
    bench.receive(plain(2))
    assert bench.waits[0].hurried_count == 1


async def test_a_waiting_request_is_hurried_when_another_cannot_be_started() -> None:
    bench = Bench(ConnectionLimits(requests_in_flight_max=1))
    bench.receive(waiting(1), plain(2))
    assert bench.plain_count == 0
    assert bench.waits[0].hurried_count == 1
