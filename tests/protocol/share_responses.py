"""Responses to share consumers in kio's classes and the encoders' tuples, for the tests of both encoders."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hypothesis import strategies as st

from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
)
from barnabas.protocol.encode.share_fetch import ShareFetchPartitionResult, ShareFetchTopicResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from tests.protocol.result_strategies import error_codes, messages, numbers, record_buffers

_fetch_partitions = st.builds(
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
    runs=st.none(),  # kio has no such field
)
fetch_topics = st.lists(
    st.builds(ShareFetchTopicResult, st.uuids(), st.lists(_fetch_partitions, max_size=3)), max_size=3
)
_acknowledge_partitions = st.builds(
    ShareAcknowledgePartitionResult, numbers(31), error_codes, messages, numbers(31), numbers(31)
)
acknowledge_topics = st.lists(
    st.builds(ShareAcknowledgeTopicResult, st.uuids(), st.lists(_acknowledge_partitions, max_size=3)),
    max_size=3,
)


def fetch_results(response: Any) -> list[ShareFetchTopicResult]:
    """kio's response in the encoder's tuples."""
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


def acknowledge_results(response: Any) -> list[ShareAcknowledgeTopicResult]:
    """kio's response in the encoder's tuples."""
    return [
        ShareAcknowledgeTopicResult(
            topic.topic_id,
            [
                ShareAcknowledgePartitionResult(
                    partition.partition_index,
                    partition.error_code,
                    partition.error_message,
                    partition.current_leader.leader_id,
                    partition.current_leader.leader_epoch,
                )
                for partition in topic.partitions
            ],
        )
        for topic in response.responses
    ]


def fetch_response(
    version: int, topics: list[ShareFetchTopicResult], lock_timeout_ms: int, nodes: Any, **top: Any
) -> Any:
    """kio's response with the same content."""
    kio = import_module(f"kio.schema.share_fetch.v{version}.response")
    return kio.ShareFetchResponse(
        acquisition_lock_timeout=milliseconds(lock_timeout_ms),
        responses=tuple(
            kio.ShareFetchableTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(_fetch_partition(kio, partition) for partition in topic.partitions),
            )
            for topic in topics
        ),
        node_endpoints=tuple(kio.NodeEndpoint(**node._asdict()) for node in nodes),
        **top,
    )


def _fetch_partition(kio: Any, partition: ShareFetchPartitionResult) -> Any:
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


def acknowledge_response(
    version: int, topics: list[ShareAcknowledgeTopicResult], lock_timeout_ms: int, nodes: Any, **top: Any
) -> Any:
    """kio's response with the same content; version 1 has no lock timeout."""
    kio = import_module(f"kio.schema.share_acknowledge.v{version}.response")
    if version == 2:
        top["acquisition_lock_timeout"] = milliseconds(lock_timeout_ms)
    return kio.ShareAcknowledgeResponse(
        responses=tuple(
            kio.ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(
                    kio.PartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode(partition.error_code),
                        error_message=partition.error_message,
                        current_leader=kio.LeaderIdAndEpoch(
                            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
        node_endpoints=tuple(kio.NodeEndpoint(**node._asdict()) for node in nodes),
        **top,
    )


def lock_timeout_ms(response: Any) -> int:
    """0 if the version has none."""
    timeout = getattr(response, "acquisition_lock_timeout", None)
    return 0 if timeout is None else to_milliseconds(timeout)
