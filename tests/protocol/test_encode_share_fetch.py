from __future__ import annotations

from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.codec import message_class
from barnabas.protocol.encode.parts import NodeEndpoint
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from tests.protocol.filled_messages import read, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames
from tests.protocol.result_strategies import endpoints, error_codes, messages, numbers, record_buffers

TOPIC_ID = UUID(int=7)


def kio_module(version: int) -> Any:
    return import_module(f"kio.schema.share_fetch.v{version}.response")


def as_kio(version: int, topics: list[ShareFetchTopicResult], **top: Any) -> Any:
    kio = kio_module(version)
    return kio.ShareFetchResponse(
        responses=tuple(
            kio.ShareFetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(_partition_as_kio(kio, partition) for partition in topic.partitions),
            )
            for topic in topics
        ),
        **top,
    )


def _partition_as_kio(kio: Any, partition: ShareFetchPartitionResult) -> Any:
    return kio.PartitionData(
        partition_index=partition.partition_index,
        error_code=ErrorCode(partition.error_code),
        error_message=partition.error_message,
        acknowledge_error_code=ErrorCode(partition.acknowledge_error_code),
        acknowledge_error_message=partition.acknowledge_error_message,
        current_leader=kio.LeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        ),
        records=b"".join(partition.records),
        acquired_records=tuple(
            kio.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=delivery_count)
            for first, last, delivery_count in partition.acquired
        ),
    )


def as_results(response: Any) -> list[ShareFetchTopicResult]:
    return [
        ShareFetchTopicResult(
            topic.topic_id,
            [
                ShareFetchPartitionResult(
                    partition.partition_index,
                    partition.error_code,
                    partition.error_message,
                    partition.acknowledge_error_code,
                    partition.acknowledge_error_message,
                    [partition.records] if partition.records else [],
                    [
                        (entry.first_offset, entry.last_offset, entry.delivery_count)
                        for entry in partition.acquired_records
                    ],
                    partition.current_leader.leader_id,
                    partition.current_leader.leader_epoch,
                )
                for partition in topic.partitions
            ],
        )
        for topic in response.responses
    ]


@pytest.mark.parametrize(
    "recorded", served_frames("response", ApiKey.SHARE_FETCH), ids=lambda recorded: recorded.title
)
def test_recorded_responses_are_written_byte_by_byte(recorded: RecordedFrame) -> None:
    response: Any = read(message_class(ApiKey.SHARE_FETCH, recorded.version, "response"), recorded.body)

    buffers = encode_share_fetch_response(
        recorded.version,
        response.error_code,
        response.error_message,
        to_milliseconds(response.acquisition_lock_timeout),
        as_results(response),
        throttle_time_ms=to_milliseconds(response.throttle_time),
        node_endpoints=[
            NodeEndpoint(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints
        ],
    )

    assert b"".join(buffers) == recorded.body


partitions = st.builds(
    ShareFetchPartitionResult,
    numbers(31),
    error_codes,
    messages,
    error_codes,
    messages,
    record_buffers,
    st.lists(st.tuples(numbers(63), numbers(63), numbers(15)), max_size=5),
    numbers(31),
    numbers(31),
)
topic_lists = st.lists(
    st.builds(ShareFetchTopicResult, st.uuids(), st.lists(partitions, max_size=3)), max_size=3
)


@settings(deadline=None)
@given(
    version=st.sampled_from([1, 2]),
    error_code=error_codes,
    error_message=messages,
    lock_timeout_ms=numbers(31),
    topics=topic_lists,
    throttle_time_ms=numbers(31),
    node_endpoints=endpoints,
)
def test_responses_are_written_as_kio_writes_them(
    version: int,
    error_code: int,
    error_message: str | None,
    lock_timeout_ms: int,
    topics: list[ShareFetchTopicResult],
    throttle_time_ms: int,
    node_endpoints: list[NodeEndpoint],
) -> None:
    expected = as_kio(
        version,
        topics,
        throttle_time=milliseconds(throttle_time_ms),
        error_code=ErrorCode(error_code),
        error_message=error_message,
        acquisition_lock_timeout=milliseconds(lock_timeout_ms),
        node_endpoints=tuple(kio_module(version).NodeEndpoint(**node._asdict()) for node in node_endpoints),
    )

    buffers = encode_share_fetch_response(
        version,
        error_code,
        error_message,
        lock_timeout_ms,
        topics,
        throttle_time_ms=throttle_time_ms,
        node_endpoints=node_endpoints,
    )

    assert b"".join(buffers) == written(expected)


@pytest.mark.parametrize("count", [0, 1, 126, 127, 511, 512, 513, 1024, 2000])
def test_any_number_of_acquired_entries_is_written(count: int) -> None:
    acquired = [(2 * number, 2 * number + 1, number % 5 + 1) for number in range(count)]
    partition = ShareFetchPartitionResult(0, 0, None, 0, None, [], acquired)

    body = b"".join(
        encode_share_fetch_response(2, 0, None, 0, [ShareFetchTopicResult(TOPIC_ID, [partition])])
    )

    response = read(message_class(ApiKey.SHARE_FETCH, 2, "response"), body)
    assert as_results(response)[0].partitions[0].acquired == acquired


def test_records_are_passed_through_uncopied() -> None:
    first, second = memoryview(b"first batch"), b"second batch"
    partition = ShareFetchPartitionResult(0, 0, None, 0, None, [first, second], [(0, 9, 1)])

    buffers = encode_share_fetch_response(2, 0, None, 0, [ShareFetchTopicResult(TOPIC_ID, [partition])])

    assert buffers[1] is first
    assert buffers[2] is second


@pytest.mark.parametrize("version", [0, 3])
def test_other_versions_are_our_own_mistake(version: int) -> None:
    with pytest.raises(AssertionError):
        encode_share_fetch_response(version, 0, None, 0, [])
