"""Answers to fetches and acknowledgements that no healthy broker gives, from two scripted brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest

from barnabas.client import (
    BrokerError,
    GroupAuthorizationError,
    Outcome,
    ShareConsumer,
    TopicAuthorizationError,
    UnsupportedBrokerError,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody, decode_share_acknowledge
from barnabas.protocol.decode.share_fetch import ShareFetchBody, decode_share_fetch
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.records import Record, encode_records
from tests.client.scripted_broker import Answer, answer, api_versions, listen
from tests.client.virtual_world import client_loop, run_virtually
from tests.simulation.simulated_network import SimulatedNetwork

TOPIC_ID = UUID(int=7)
LOCK_MS = 30_000
PORTS = {1: 9092, 2: 9093}
ENDPOINTS = [NodeEndpoint(node_id, "broker", port) for node_id, port in PORTS.items()]

RECORD = ShareFetchPartitionResult(
    0, 0, None, 0, None, (encode_records([Record(0, 1, None, b"value")]),), [(0, 0, 1)]
)
NOTHING = ShareFetchPartitionResult(0, 0, None, 0, None, (), [])


def failed(code: ErrorCode, leader_id: int = 0, leader_epoch: int = 0) -> ShareFetchPartitionResult:
    return ShareFetchPartitionResult(0, code, None, 0, None, (), [], leader_id, leader_epoch)


class Brokers:
    """Two brokers; node 1 leads the partition until a test changes it."""

    def __init__(self, *, version: int = 2) -> None:
        self.leader_id = 1
        self.leader_epoch = 5
        self.fetches: list[tuple[int, ShareFetchBody]] = []
        """The node and the body of each fetch."""
        self.acknowledgements: list[ShareAcknowledgeBody] = []
        self.results: list[ShareFetchPartitionResult] = [RECORD]
        """The results of the next fetches, from any node; afterwards fetches are empty."""
        self.fetch_errors: list[int] = []
        """Top-level errors of the next fetches; afterwards there is none."""
        self.acknowledge_error: ErrorCode | None = ErrorCode.none
        """None leaves the partition out of the answer."""
        self.knows_leader = True
        self.lock_ms = LOCK_MS
        self.outcomes: list[Outcome] = []
        self._version = version

    async def start(self) -> None:
        for node_id, port in PORTS.items():
            await listen(self._answers(node_id), port)

    def consumer(self, **options: Any) -> ShareConsumer[bytes | None, bytes | None]:
        given: dict[str, Any] = {
            "on_outcome": self.outcomes.append,
            "random": Random(1).random,
            "prefetch_records": 0,
            **options,
        }
        return ShareConsumer("broker", group="group", topics=["orders"], **given)

    def _answers(self, node_id: int) -> dict[ApiKey, Answer]:
        def fetch(version: int, body: bytes) -> bytes:
            return self._fetch(node_id, version, body)

        return {
            ApiKey.API_VERSIONS: api_versions(
                {
                    ApiKey.METADATA: (0, 13),
                    ApiKey.FIND_COORDINATOR: (0, 6),
                    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),
                    ApiKey.SHARE_FETCH: (1, self._version),
                    ApiKey.SHARE_ACKNOWLEDGE: (1, self._version),
                }
            ),
            ApiKey.METADATA: self._metadata,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.SHARE_GROUP_HEARTBEAT: self._heartbeat,
            ApiKey.SHARE_FETCH: fetch,
            ApiKey.SHARE_ACKNOWLEDGE: self._acknowledge,
        }

    def _metadata(self, version: int, _: bytes) -> bytes:
        brokers = [{"node_id": one.node_id, "host": one.host, "port": one.port} for one in ENDPOINTS]
        partition = {
            "error_code": ErrorCode.none,
            "leader_id": self.leader_id,
            "leader_epoch": self.leader_epoch,
        }
        topic = {
            "error_code": ErrorCode.none,
            "name": "orders",
            "topic_id": TOPIC_ID,
            "partitions": [partition],
        }
        return answer("metadata", version, brokers=brokers, topics=[topic])

    def _find_coordinator(self, version: int, _: bytes) -> bytes:
        found = {"key": "group", "host": "broker", "port": PORTS[1], "error_code": ErrorCode.none}
        return answer("find_coordinator", version, coordinators=[found])

    def _heartbeat(self, version: int, _: bytes) -> bytes:
        assignment = {"topic_partitions": [{"topic_id": TOPIC_ID, "partitions": [0]}]}
        return answer(
            "share_group_heartbeat", version, member_epoch=1, heartbeat_interval=5_000, assignment=assignment
        )

    def _fetch(self, node_id: int, version: int, body: bytes) -> bytes:
        self.fetches.append((node_id, decode_share_fetch(version, body, 0)))
        code = self.fetch_errors.pop(0) if self.fetch_errors else 0
        topics: list[ShareFetchTopicResult] = []
        if not code:
            result = self.results.pop(0) if self.results else NOTHING
            topics.append(ShareFetchTopicResult(TOPIC_ID, [result]))
        endpoints = ENDPOINTS if self.knows_leader else []
        response = encode_share_fetch_response(
            version, code, None, self.lock_ms, topics, node_endpoints=endpoints
        )
        return b"\0" + b"".join(response)

    def _acknowledge(self, version: int, body: bytes) -> bytes:
        self.acknowledgements.append(decode_share_acknowledge(version, body, 0))
        results = (
            []
            if self.acknowledge_error is None
            else [ShareAcknowledgePartitionResult(0, self.acknowledge_error, None, 2, 6)]
        )
        topics = [ShareAcknowledgeTopicResult(TOPIC_ID, results)]
        response = encode_share_acknowledge_response(
            version, 0, None, self.lock_ms, topics, node_endpoints=ENDPOINTS
        )
        return b"\0" + b"".join(response)


def among(brokers: Brokers, test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        client_loop().network = SimulatedNetwork(Random(1))
        await brokers.start()
        await test()

    run_virtually(main())


@pytest.mark.parametrize("code", [ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch])
@pytest.mark.parametrize("knows_leader", [True, False])
def test_a_partition_is_followed_to_its_new_leader(code: ErrorCode, knows_leader: bool) -> None:
    brokers = Brokers()
    brokers.knows_leader = knows_leader

    async def test() -> None:
        async with brokers.consumer() as consumer:
            (record,) = await consumer.poll()
            brokers.leader_id, brokers.leader_epoch = 2, 6
            brokers.results = [failed(code, 2, 6), RECORD]
            (again,) = await consumer.poll()
            assert (record.is_held, again.is_held) == (False, True)

    among(brokers, test)
    assert [node_id for node_id, _ in brokers.fetches] == [1, 1, 2]
    assert [fetch.share_session_epoch for _, fetch in brokers.fetches] == [0, 1, 0]


def test_acknowledgements_at_a_former_leader_fail_and_the_new_one_is_read() -> None:
    brokers = Brokers()
    brokers.acknowledge_error = ErrorCode.not_leader_or_follower

    async def test() -> None:
        async with brokers.consumer() as consumer:
            (record,) = await consumer.poll()
            record.accept()
            (error,) = (await consumer.commit()).values()
            assert error is not None
            assert error.code is ErrorCode.not_leader_or_follower
            brokers.results = [RECORD]
            assert await consumer.poll()

    among(brokers, test)
    assert [node_id for node_id, _ in brokers.fetches] == [1, 2]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.share_session_not_found,
        ErrorCode.invalid_share_session_epoch,
        ErrorCode.share_session_limit_reached,
        ErrorCode.unknown_server_error,
        12_345,
    ],
)
def test_a_lost_session_is_replaced(code: int) -> None:
    brokers = Brokers()

    async def test() -> None:
        async with brokers.consumer() as consumer:
            (record,) = await consumer.poll()
            brokers.fetch_errors = [code]
            brokers.results = [RECORD]
            assert await consumer.poll()
            assert not record.is_held

    among(brokers, test)
    assert [fetch.share_session_epoch for _, fetch in brokers.fetches] == [0, 1, 0]
    assert all(len(fetch.topics) == 1 for _, fetch in brokers.fetches if fetch.share_session_epoch == 0)


@pytest.mark.parametrize(
    ("code", "error_type"),
    [
        (ErrorCode.group_authorization_failed, GroupAuthorizationError),
        (ErrorCode.invalid_request, BrokerError),
    ],
)
def test_a_lasting_error_is_raised_to_the_reader(code: ErrorCode, error_type: type[BrokerError]) -> None:
    brokers = Brokers()
    brokers.fetch_errors = [code]

    async def test() -> None:
        async with brokers.consumer() as consumer:
            with pytest.raises(error_type):
                await consumer.poll()
            assert await consumer.commit() == {}

    among(brokers, test)


def test_a_topic_without_authorization_is_raised_to_the_reader() -> None:
    brokers = Brokers()
    brokers.results = [failed(ErrorCode.topic_authorization_failed)]

    async def test() -> None:
        async with brokers.consumer() as consumer:
            with pytest.raises(TopicAuthorizationError):
                await consumer.poll()

    among(brokers, test)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id, ErrorCode.offset_not_available],
)
def test_a_failing_partition_is_retried_at_growing_intervals(code: ErrorCode) -> None:
    brokers = Brokers()
    brokers.results = [failed(code)] * 8 + [RECORD]

    async def test() -> None:
        started = asyncio.get_running_loop().time()
        async with brokers.consumer() as consumer:
            assert await consumer.poll()
        assert 4 < asyncio.get_running_loop().time() - started < 10

    among(brokers, test)
    assert len(brokers.fetches) == 9


def test_an_acknowledgement_without_an_answer_has_failed() -> None:
    brokers = Brokers()
    brokers.acknowledge_error = None

    async def test() -> None:
        async with brokers.consumer() as consumer:
            (record,) = await consumer.poll()
            record.accept()
            (error,) = (await consumer.commit()).values()
            assert error is not None
            assert error.code is ErrorCode.unknown_server_error

    among(brokers, test)


def test_a_fetch_while_records_are_held_waits_for_a_part_of_the_current_lock_duration() -> None:
    brokers = Brokers()

    async def test() -> None:
        async with brokers.consumer(max_wait_ms=60_000) as consumer:
            for lock_ms in (LOCK_MS, LOCK_MS // 2, LOCK_MS):
                brokers.lock_ms = lock_ms
                brokers.results = [RECORD]
                assert await consumer.poll()

    among(brokers, test)
    waits_ms = [fetch.max_wait_ms for _, fetch in brokers.fetches]
    assert waits_ms == [60_000, LOCK_MS // 6, LOCK_MS // 12]


def test_version_1_suffices_except_for_renewals() -> None:
    brokers = Brokers(version=1)

    async def test() -> None:
        async with brokers.consumer() as consumer:
            (record,) = await consumer.poll()
            with pytest.raises(UnsupportedBrokerError):
                await record.renew()
            record.accept()
            assert list((await consumer.commit()).values()) == [None]

    among(brokers, test)


def test_version_1_has_no_record_limit() -> None:
    brokers = Brokers(version=1)

    async def test() -> None:
        async with brokers.consumer(acquire_mode="record_limit") as consumer:
            with pytest.raises(UnsupportedBrokerError):
                await consumer.poll()

    among(brokers, test)


def test_the_last_request_releases_held_records_and_ends_the_session() -> None:
    brokers = Brokers()

    async def test() -> None:
        async with brokers.consumer() as consumer:
            await consumer.poll()

    among(brokers, test)
    (last,) = brokers.acknowledgements
    assert last.share_session_epoch == -1
    assert last.topics[0].partitions[0].acknowledgement_batches == [(0, 0, b"\2")]


def test_the_duration_of_locks_is_named_when_a_session_opens(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers()
    brokers.lock_ms = 5_000

    async def test() -> None:
        async with brokers.consumer(record_lock_duration_ms=5_000) as consumer:
            await consumer.poll()
            await consumer.poll(timeout=1)

    among(brokers, test)
    durations = [fetch.lock_duration_ms for _, fetch in brokers.fetches]
    assert len(durations) > 1
    assert durations == [5_000, *[None] * (len(durations) - 1)]
    assert "record_lock_duration_ms" not in caplog.text


def test_a_broker_that_does_not_know_the_duration_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers()

    async def test() -> None:
        async with brokers.consumer(record_lock_duration_ms=5_000) as consumer:
            await consumer.poll()
            await consumer.poll(timeout=1)

    among(brokers, test)
    warnings = [record.getMessage() for record in caplog.records if "duration" in record.getMessage()]
    assert warnings == [
        "broker:9092 locks records for 30000 ms instead of 5000 ms: it does not know record_lock_duration_ms"
    ]
