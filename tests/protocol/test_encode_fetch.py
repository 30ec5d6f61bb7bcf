"""The encoder of Fetch responses, compared with kio."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.encode.fetch import FetchPartitionResult, FetchTopicResult, encode_fetch_response
from barnabas.protocol.encode.throttle import with_throttle_time
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.message_parts import NodeEndpoint
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from tests.protocol.filled_messages import made, read, written
from tests.protocol.range_fetches import RANGE_VERSIONS, range_fetch
from tests.protocol.recorded_frames import RecordedFrame, served_frames
from tests.protocol.result_strategies import (
    endpoints,
    error_codes,
    leaders,
    names,
    numbers,
    record_buffers,
)

VERSIONS = range(APIS[ApiKey.FETCH].min_version, APIS[ApiKey.FETCH].max_version + 1)
TOPIC_ID = UUID(int=7)


def as_kio(version: int, topics: list[FetchTopicResult], nodes: list[NodeEndpoint], **top: Any) -> Any:
    kio = import_module(f"kio.schema.fetch.v{version}.response")
    return made(
        range_fetch(version).response if version in RANGE_VERSIONS else kio.FetchResponse,
        responses=tuple(
            made(
                range_fetch(version).topic_response
                if version in RANGE_VERSIONS
                else kio.FetchableTopicResponse,
                topic=topic.topic_name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    _partition_as_kio(version, kio, partition) for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
        node_endpoints=tuple(kio.NodeEndpoint(**node._asdict()) for node in nodes) if version >= 16 else (),
        **top,
    )


def _partition_as_kio(version: int, kio: Any, partition: FetchPartitionResult) -> Any:
    tagged: dict[str, Any] = {}
    if partition.diverging is not None and version >= 12:
        epoch, end_offset = partition.diverging
        tagged["diverging_epoch"] = kio.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if partition.current_leader is not None and version >= 12:
        leader_id, leader_epoch = partition.current_leader
        tagged["current_leader"] = kio.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    if partition.snapshot_id is not None and version >= 12:
        end_offset, epoch = partition.snapshot_id
        tagged["snapshot_id"] = kio.SnapshotId(end_offset=end_offset, epoch=epoch)
    if partition.looked_until is not None:
        tagged["looked_until_offset"] = partition.looked_until
    aborted = partition.aborted
    return made(
        range_fetch(version).partition_data if version in RANGE_VERSIONS else kio.PartitionData,
        partition_index=partition.partition_index,
        error_code=ErrorCode(partition.error_code),
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else tuple(
            kio.AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in aborted
        ),
        records=b"".join(partition.records),
        **tagged,
    )


@pytest.mark.parametrize(
    "recorded", served_frames("response", ApiKey.FETCH), ids=lambda recorded: recorded.title
)
def test_recorded_responses_are_written_byte_by_byte(recorded: RecordedFrame) -> None:
    response: Any = read(message_class(ApiKey.FETCH, recorded.version, "response"), recorded.body)
    topics = [
        FetchTopicResult(
            getattr(topic, "topic", ""),
            getattr(topic, "topic_id", TOPIC_ID),
            [
                FetchPartitionResult(
                    partition.partition_index,
                    partition.error_code,
                    partition.high_watermark,
                    partition.last_stable_offset,
                    partition.log_start_offset,
                    None
                    if partition.aborted_transactions is None
                    else [
                        (aborted.producer_id, aborted.first_offset)
                        for aborted in partition.aborted_transactions
                    ],
                    [partition.records] if partition.records else [],
                )
                for partition in topic.partitions
            ],
        )
        for topic in response.responses
    ]

    encoded = encode_fetch_response(recorded.version, response.error_code, response.session_id, topics)
    throttle_time_ms = to_milliseconds(response.throttle_time)
    buffers = with_throttle_time(ApiKey.FETCH, recorded.version, encoded, throttle_time_ms)

    assert b"".join(buffers) == recorded.body


partitions = st.builds(
    FetchPartitionResult,
    numbers(31),
    error_codes,
    numbers(63),
    numbers(63),
    numbers(63),
    st.none() | st.lists(st.tuples(numbers(63), numbers(63)), max_size=3),
    record_buffers,
    st.none() | st.tuples(st.integers(0, 2**31 - 1), numbers(63)),
    leaders,
    st.none() | st.tuples(st.integers(0, 2**63 - 1), numbers(31)),
    st.none() | st.integers(0, 2**63 - 1),
)
topic_lists = st.lists(
    st.builds(FetchTopicResult, names, st.uuids(), st.lists(partitions, max_size=3)), max_size=3
)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=25)
@given(
    throttle_time_ms=numbers(31),
    error_code=error_codes,
    session_id=numbers(31),
    topics=topic_lists,
    node_endpoints=endpoints,
)
def test_responses_equal_those_of_kio(
    version: int,
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
    topics: list[FetchTopicResult],
    node_endpoints: list[NodeEndpoint],
) -> None:
    if version not in RANGE_VERSIONS:  # such a client cannot ask for a hash range
        topics = [topic._replace(partitions=list(map(_without_range, topic.partitions))) for topic in topics]
    expected = as_kio(
        version,
        topics,
        node_endpoints,
        throttle_time=milliseconds(throttle_time_ms),
        error_code=ErrorCode(error_code),
        session_id=session_id,
    )

    encoded = encode_fetch_response(version, error_code, session_id, topics, node_endpoints=node_endpoints)
    buffers = with_throttle_time(ApiKey.FETCH, version, encoded, throttle_time_ms)

    assert b"".join(buffers) == written(expected)


def _without_range(partition: FetchPartitionResult) -> FetchPartitionResult:
    return partition._replace(looked_until=None)


@pytest.mark.parametrize("version", [4, 12, 18])
def test_records_are_passed_through_uncopied(version: int) -> None:
    first, second = memoryview(b"first batch"), b"second batch"
    partition = FetchPartitionResult(0, 0, 2, 2, 0, None, [first, second])

    buffers = encode_fetch_response(version, 0, 0, [FetchTopicResult("orders", TOPIC_ID, [partition])])

    assert buffers[1] is first
    assert buffers[2] is second
