"""One connection: backpressure, failures and the end, with a transport that the test controls.
`test_request_order` has its order."""

import asyncio
import socket
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from barnabas.broker.network.connection import ConnectionLimits
from barnabas.broker.network.handler import Handler
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import FrameError
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.connection_bench import Bench, Wait, plain, quick, waiting
from tests.broker.network.edge_fakes import (
    PLAIN_API,
    WAITING_API,
    FakeTransport,
    always,
    body,
    request_frame,
    settle,
)

NO_LENGTH = b"\xff\xff\xff\xff"
"""Bytes in the place of a frame's length."""


async def test_requests_answered_at_once_share_one_write_and_make_no_task() -> None:
    bench = Bench()
    task_count = len(asyncio.all_tasks())
    bench.receive(plain(1), plain(2), plain(3))
    assert bench.transport.writes and len(bench.transport.writes) == 1
    assert bench.transport.answers() == [(1, b"plain 1"), (2, b"plain 2"), (3, b"plain 3")]
    assert len(asyncio.all_tasks()) == task_count


async def test_a_request_may_come_byte_by_byte() -> None:
    bench = Bench()
    for byte in plain(1) + plain(2):
        bench.receive(bytes([byte]))
    assert bench.transport.answers() == [(1, b"plain 1"), (2, b"plain 2")]


async def test_large_answers_are_written_without_being_joined() -> None:
    records = memoryview(bytes(300_000))
    seen: list[object] = []

    class Recording(FakeTransport):
        def writelines(self, list_of_data: Any) -> None:
            seen.extend(list_of_data)

    bench = Bench(handlers={PLAIN_API: always(EncodedBody([b"prefix", records]))})
    bench.transport = Recording()
    bench.connection.connection_made(bench.transport)
    bench.receive(plain(1))
    assert any(buffer is records for buffer in seen)


async def test_reading_pauses_at_the_bound_of_requests_in_flight_and_resumes_below() -> None:
    bench = Bench(ConnectionLimits(requests_in_flight_max=2))
    bench.receive(waiting(1), waiting(2), quick(3))
    assert (bench.transport.is_reading(), bench.plain_count) == (False, 0)
    bench.waits[0].set_result(body("done"))
    await settle()
    assert (bench.transport.is_reading(), bench.plain_count) == (False, 1)
    bench.waits[1].set_result(body("done"))
    await settle()
    assert bench.transport.is_reading()
    assert [correlation_id for correlation_id, _ in bench.transport.answers()] == [1, 2, 3]


async def test_reading_pauses_at_the_bound_of_bytes_held_by_requests() -> None:
    request_bytes = len(waiting(1)) - 4
    bench = Bench(ConnectionLimits(bytes_in_flight_max=2 * request_bytes))
    bench.receive(waiting(1))
    assert bench.transport.is_reading()
    bench.receive(waiting(2))
    assert not bench.transport.is_reading()
    bench.waits[0].set_result(body("done"))
    await settle()
    assert bench.transport.is_reading()


async def test_reading_pauses_at_the_bound_of_bytes_held_by_waiting_answers() -> None:
    bench = Bench(ConnectionLimits(bytes_in_flight_max=100), {PLAIN_API: always(EncodedBody([bytes(100)]))})
    bench.receive(waiting(1), plain(2))
    assert not bench.transport.is_reading()
    bench.waits[0].set_result(body("done"))
    await settle()
    assert bench.transport.is_reading()
    assert [correlation_id for correlation_id, _ in bench.transport.answers()] == [1, 2]


async def test_a_client_that_does_not_read_is_not_read_either() -> None:
    bench = Bench()
    bench.transport.stalled_protocol = bench.connection
    bench.receive(plain(1))
    assert not bench.transport.is_reading()
    bench.receive(plain(2))
    assert bench.plain_count == 1
    bench.transport.stalled_protocol = None
    bench.connection.resume_writing()
    assert bench.transport.is_reading()
    assert bench.transport.answers() == [(1, b"plain 1"), (2, b"plain 2")]


class TestWhatWasTakenOfTheBudgetIsGivenBack:
    @pytest.fixture
    async def bench(self) -> Bench:
        return Bench(handlers={PLAIN_API: always(EncodedBody([b"records"], 7))})

    async def test_once_the_answer_is_written(self, bench: Bench) -> None:
        bench.receive(plain(1))
        assert bench.given_back_bytes == 7

    async def test_once_a_client_that_did_not_read_continues(self, bench: Bench) -> None:
        bench.transport.stalled_protocol = bench.connection
        bench.receive(plain(1))
        assert bench.given_back_bytes == 0
        bench.connection.resume_writing()
        assert bench.given_back_bytes == 7

    async def test_once_a_slow_client_has_read_it_completely(self) -> None:
        records = bytes(512 * 1024)
        bench = Bench(handlers={PLAIN_API: always(EncodedBody([records], 7))})
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        theirs.setblocking(False)
        transport, _ = await loop.create_connection(lambda: bench.connection, sock=ours)
        bench.receive(plain(1))
        read_bytes = len(await loop.sock_recv(theirs, 4096))
        assert bench.given_back_bytes == 0
        while read_bytes < len(records):
            read_bytes += len(await loop.sock_recv(theirs, 64 * 1024))
        await settle()
        assert bench.given_back_bytes == 7
        transport.close()
        theirs.close()

    async def test_when_the_client_is_gone(self, bench: Bench) -> None:
        bench.transport.stalled_protocol = bench.connection
        bench.receive(plain(1))
        bench.connection.connection_lost(None)
        assert bench.given_back_bytes == 7

    async def test_when_the_client_is_gone_before_an_answer_that_waits_for_another(self) -> None:
        replies: list[Wait | EncodedBody] = [Wait(), EncodedBody([b"records"], 7)]

        def handle(*_: object) -> Wait | EncodedBody:
            return replies.pop(0)

        bench = Bench(handlers={WAITING_API: handle})
        bench.receive(waiting(1), waiting(2))
        bench.connection.connection_lost(None)
        assert bench.given_back_bytes == 7

    async def test_when_the_answer_comes_after_the_client_has_gone(self) -> None:
        fetched = asyncio.Event()

        async def fetch(*_: object) -> EncodedBody:
            await fetched.wait()
            return EncodedBody([b"records"], 7)

        bench = Bench(handlers={PLAIN_API: fetch})
        bench.receive(plain(1))
        bench.connection.connection_lost(None)
        fetched.set()
        await settle()
        assert bench.given_back_bytes == 7


@pytest.mark.parametrize(
    "refused",
    [pytest.param(request_frame(999, 3), id="unknown API"), pytest.param(NO_LENGTH, id="no length")],
)
async def test_a_refusal_lets_earlier_requests_be_answered(refused: bytes) -> None:
    bench = Bench()
    bench.receive(waiting(1), plain(2), refused, plain(4))
    assert not bench.transport.is_closing()
    bench.waits[0].set_result(body("appended"))
    await settle()
    assert bench.transport.answers() == [(1, b"appended"), (2, b"plain 1")]
    assert bench.transport.is_closing()
    assert bench.plain_count == 1


async def test_a_refusal_waits_for_earlier_requests_without_room() -> None:
    bench = Bench(ConnectionLimits(requests_in_flight_max=1))
    bench.receive(waiting(1), plain(2), NO_LENGTH)
    assert bench.plain_count == 0
    with capture_logs() as lines:
        bench.waits[0].set_result(body("done"))
        await settle()
    assert bench.transport.answers() == [(1, b"done"), (2, b"plain 1")]
    assert bench.transport.is_closing()
    assert [line["event"] for line in lines] == ["connection refused a request"]


async def test_of_two_refusals_the_first_is_logged() -> None:
    bench = Bench()
    with capture_logs() as lines:
        bench.receive(request_frame(999, 1), NO_LENGTH)
    assert [line["reason"] for line in lines] == ["API 999 is not served."]


async def test_a_late_refusal_lets_earlier_requests_be_answered_and_no_later_ones() -> None:
    bench = Bench()
    bench.receive(waiting(1), waiting(2), waiting(3), plain(4))
    bench.waits[1].set_exception(FrameError("not appended"))
    await settle()
    assert not bench.transport.is_closing()
    assert [wait.withdrawn_count for wait in bench.waits] == [0, 1, 1]
    bench.waits[0].set_result(body("appended"))
    await settle()
    assert bench.transport.answers() == [(1, b"appended")]
    assert bench.transport.is_closing()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(NO_LENGTH, id="negative length"),
        pytest.param(b"\x7f\xff\xff\xff", id="length above the bound"),
        pytest.param(b"\x00\x00\x00\x02ab", id="no header"),
        pytest.param(request_frame(999, 1), id="unknown API"),
        pytest.param(request_frame(ApiKey.METADATA, 1, version=99, body=b"\0"), id="unknown version"),
        pytest.param(request_frame(ApiKey.METADATA, 1, version=0), id="body cut short"),
    ],
)
async def test_an_unreadable_request_closes_the_connection_with_one_line(sent: bytes) -> None:
    bench = Bench()
    with capture_logs() as lines:
        bench.receive(sent)
    assert bench.transport.is_closing()
    assert bench.transport.writes == []
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("connection refused a request", "warning")
    ]
    assert bench.connection.closed


async def test_no_request_after_an_unreadable_one_is_started() -> None:
    bench = Bench()
    bench.receive(plain(1), request_frame(999, 2), plain(3))
    assert bench.plain_count == 1
    assert bench.transport.answers() == [(1, b"plain 1")]
    assert bench.transport.is_closing()


def _raise(*_: object) -> EncodedBody:
    raise RuntimeError("broken handler")


async def _raise_later(*_: object) -> EncodedBody:
    raise RuntimeError("broken handler")


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(_raise, id="handler raises"),
        pytest.param(_raise_later, id="coroutine raises"),
        pytest.param(always(cast("EncodedBody", "no message")), id="response cannot be encoded"),
    ],
)
async def test_a_failing_handler_is_logged_once_and_closes_its_connection(
    handler: Handler,
) -> None:
    bench = Bench(handlers={PLAIN_API: handler})
    with capture_logs() as lines:
        bench.receive(plain(1))
        await settle()
    assert bench.transport.is_closing()
    assert [line["event"] for line in lines] == ["request failed"]
    assert isinstance(lines[0]["exc_info"], Exception)


async def test_a_request_refused_late_closes_its_connection_with_one_line() -> None:
    bench = Bench()
    bench.receive(waiting(1), plain(2))
    with capture_logs() as lines:
        bench.waits[0].set_exception(FrameError("not appended"))
        await settle()
    assert bench.transport.is_closing()
    assert bench.transport.answers() == []
    assert [(line["event"], line["reason"]) for line in lines] == [
        ("connection refused a request", "not appended")
    ]


async def test_a_lost_connection_withdraws_its_waits_and_names_running_requests() -> None:
    bench = Bench()
    bench.receive(waiting(1), waiting(2))
    bench.connection.connection_lost(None)
    assert [wait.withdrawn_count for wait in bench.waits] == [1, 1]
    assert bench.unfinished == bench.waits
    bench.waits[1].set_result(body("appended"))
    await settle()
    assert bench.transport.writes == []


async def test_a_failure_after_the_connection_was_lost_is_still_logged() -> None:
    bench = Bench()
    bench.receive(waiting(1))
    bench.connection.connection_lost(None)
    with capture_logs() as lines:
        bench.waits[0].set_exception(RuntimeError("broken handler"))
        await settle()
    assert [line["event"] for line in lines] == ["request failed"]


async def test_draining_hurries_waits_and_closes_after_the_last_answer() -> None:
    bench = Bench()
    bench.receive(waiting(1), waiting(2))
    bench.connection.drain()
    assert bench.waits[1].hurried_count == 1
    assert not bench.transport.is_closing()
    bench.receive(plain(3))
    for wait in bench.waits:
        wait.set_result(body("hurried"))
    await settle()
    assert bench.transport.answers() == [(1, b"hurried"), (2, b"hurried")]
    assert bench.transport.is_closing()
    assert bench.plain_count == 0


async def test_draining_closes_an_idle_connection_at_once() -> None:
    bench = Bench()
    bench.connection.drain()
    assert bench.transport.is_closing()


async def test_a_connection_without_room_is_aborted() -> None:
    bench = Bench()
    bench.has_room = False
    bench.transport = FakeTransport()
    bench.connection.connection_made(bench.transport)
    assert bench.transport.aborted
