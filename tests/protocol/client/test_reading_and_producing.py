"""Fetch, Produce and DescribeTransactions between this project's client and its broker.

The broker's decoders and encoders have tests of their own against kio and recorded frames.
"""

from __future__ import annotations

from datetime import UTC
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kio.serial import entity_reader, entity_writer

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.consumer_apis import FETCH
from barnabas.protocol.client.fetch_request import FetchBody, FetchedPartition, encode_fetch_request
from barnabas.protocol.client.produce_request import encode_produce_request
from barnabas.protocol.client.producer_apis import DESCRIBE_TRANSACTIONS, PRODUCE
from barnabas.protocol.codec import decode_request
from barnabas.protocol.decode.produce import ProduceBody, ProducePartition, ProduceTopic, decode_produce
from barnabas.protocol.encode.fetch import FetchPartitionResult, FetchTopicResult, encode_fetch_response
from barnabas.protocol.encode.produce import (
    LEADER_VERSION,
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.extended.packed import pack_hash_range
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.message_parts import (
    NO_TAGS,
    NODE_ENDPOINTS_TAG,
    NodeEndpoint,
    compact_endpoints,
    tagged_field,
    tagged_fields,
)
from barnabas.protocol.record_keys.hash_range import HashRange

ORDERS = UUID(int=7)
FETCH_VERSIONS = range(13, 19)
PRODUCE_VERSIONS = range(9, 12)
ENDPOINT = NodeEndpoint(5, "host", 9092)

FETCH_RESULT = FetchPartitionResult(3, 6, 10, 9, 2, [(1, 2), (3, 4)], [b"abc", b"de"], current_leader=(5, 8))
PRODUCE_RESULT = ProducePartitionResult(1, 2, 3, 4, 5, [(1, "bad"), (2, None)], "message", (5, 8))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_the_broker_decodes_a_clients_fetch(version: int) -> None:
    wanted = [
        FetchedPartition(TopicIdPartition(ORDERS, 4), 5, 6),
        FetchedPartition(TopicIdPartition(UUID(int=8), 0), 9, 10),
    ]
    body = encode_fetch_request(version, FetchBody(1, 2, 3, 1, wanted))
    request: Any = decode_request(ApiKey.FETCH, version, body, 0)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level) == (
        1,
        2,
        3,
        1,
    )
    assert (request.session_id, request.session_epoch, request.replica_id) == (0, -1, -1)
    found = [
        (topic.reference, one.partition, one.fetch_offset, one.partition_max_bytes, one.current_leader_epoch)
        for topic in request.topics
        for one in topic.partitions
    ]
    assert found == [(ORDERS, 4, 5, 6, -1), (UUID(int=8), 0, 9, 10, -1)]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_the_broker_decodes_the_hash_range_of_a_clients_fetch(version: int) -> None:
    hashes = HashRange(5, 1 << 30)
    wanted = [
        FetchedPartition(TopicIdPartition(ORDERS, 4), 5, 6, hashes),
        FetchedPartition(TopicIdPartition(ORDERS, 5), 5, 6),
    ]
    body = encode_fetch_request(version, FetchBody(1, 2, 3, 1, wanted))
    request: Any = decode_request(ApiKey.FETCH, version, body, 0)
    found = [one.hash_range for topic in request.topics for one in topic.partitions]
    assert found == [pack_hash_range(hashes), None]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_the_offset_up_to_which_the_broker_has_looked_is_read_and_unknown_tags_are_skipped(
    version: int,
) -> None:
    looked = FETCH_RESULT._replace(looked_until=77)
    topics = [FetchTopicResult("", ORDERS, [looked])]
    frame = b"".join(encode_fetch_response(version, 0, 0, topics))
    (result,) = FETCH.decode_body(version, frame, 0).topics[0].partitions
    assert (result.looked_until, result.current_leader) == (77, (5, 8))
    known = tagged_fields([(1, b"\0\0\0\5\0\0\0\x08\0"), (10_000, b"\0" * 7 + b"M")])
    assert known in frame
    with_more = b"\3" + known[1:] + tagged_field(10_001, b"news")
    (again,) = FETCH.decode_body(version, frame.replace(known, with_more), 0).topics[0].partitions
    assert again == result


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetched_records_are_read_without_a_copy(version: int) -> None:
    frame = _fetch_response(version)
    reply = FETCH.decode_body(version, frame, 0)
    (topic,) = reply.topics
    (result,) = topic.partitions
    assert topic.topic_id == ORDERS
    assert result._replace(records=()) == FETCH_RESULT._replace(records=())
    (records,) = result.records
    assert isinstance(records, memoryview)
    assert (bytes(records), records.obj) == (b"abcde", frame)
    assert reply.node_endpoints == ([ENDPOINT] if version >= 16 else [])


def test_a_fetch_response_that_is_cut_short_is_refused() -> None:
    frame = _fetch_response(17)
    for size in range(len(frame)):
        with pytest.raises(FrameError):
            FETCH.decode_body(17, frame[:size], 0)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_the_broker_decodes_a_clients_produce(version: int) -> None:
    parts = [ProducePartition(3, memoryview(b"records")), ProducePartition(4, None)]
    body = ProduceBody("id", -1, 5, [ProduceTopic("orders", None, parts)])
    assert decode_produce(version, encode_produce_request(version, body), 0) == body


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_response_is_decoded_completely(version: int) -> None:
    topics = [ProduceTopicResult("orders", ORDERS, [PRODUCE_RESULT])]
    frame = b"".join(encode_produce_response(version, topics))
    names_leaders = version >= LEADER_VERSION
    if names_leaders:
        endpoints = tagged_fields([(NODE_ENDPOINTS_TAG, compact_endpoints([ENDPOINT]))])
        frame = frame.removesuffix(NO_TAGS) + endpoints
    reply = PRODUCE.decode_body(version, frame, 0)
    expected = PRODUCE_RESULT if names_leaders else PRODUCE_RESULT._replace(current_leader=None)
    assert reply.topics == [("orders", [expected])]
    assert reply.node_endpoints == ([ENDPOINT] if names_leaders else [])
    for size in range(len(frame)):
        with pytest.raises(FrameError):
            PRODUCE.decode_body(version, frame[:size], 0)


def test_describe_transactions_requests_equal_those_of_kio() -> None:
    body = DESCRIBE_TRANSACTIONS.encode_body(0, ["one", "two"])
    request, _ = entity_reader(DescribeTransactionsRequest)(body, 0)
    assert request == DescribeTransactionsRequest(transactional_ids=("one", "two"))  # type: ignore[arg-type]


def test_an_ended_transaction_without_a_start_time_is_decoded() -> None:
    kios: Any = TransactionState
    state = kios(
        error_code=ErrorCode.none,
        transactional_id="one",
        transaction_state="CompleteCommit",
        transaction_timeout=_zero(),
        transaction_start_time=_epoch(),
        producer_id=9,
        producer_epoch=3,
        topics=(TopicData(topic="orders", partitions=(1, 2)),),  # type: ignore[arg-type]
    )
    buffer = BytesIO()
    response: Any = DescribeTransactionsResponse
    entity_writer(DescribeTransactionsResponse)(
        buffer, response(throttle_time=_zero(), transaction_states=(state,))
    )
    minus_one = buffer.getvalue().replace(
        b"\0" * 8 + (9).to_bytes(8, "big"), b"\xff" * 8 + (9).to_bytes(8, "big")
    )
    assert minus_one != buffer.getvalue()
    (found,) = DESCRIBE_TRANSACTIONS.decode_body(0, minus_one, 0)
    assert found == (0, "one", "CompleteCommit", 9, 3)


def _fetch_response(version: int) -> bytes:
    topics = [FetchTopicResult("orders", ORDERS, [FETCH_RESULT])]
    return b"".join(encode_fetch_response(version, 0, 9, topics, node_endpoints=[ENDPOINT]))


def _zero() -> Any:
    from datetime import timedelta

    return timedelta(0)


def _epoch() -> Any:
    from datetime import datetime

    return datetime(1970, 1, 1, tzinfo=UTC)
