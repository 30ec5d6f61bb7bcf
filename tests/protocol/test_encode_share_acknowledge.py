from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.codec import message_class
from barnabas.protocol.encode.parts import NodeEndpoint
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from tests.protocol.filled_messages import read, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames
from tests.protocol.result_strategies import endpoints, error_codes, messages, numbers


def as_results(response: Any) -> list[ShareAcknowledgeTopicResult]:
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


def as_kio(version: int, topics: list[ShareAcknowledgeTopicResult], lock_timeout_ms: int, **top: Any) -> Any:
    kio = import_module(f"kio.schema.share_acknowledge.v{version}.response")
    nodes = top.pop("node_endpoints")
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


@pytest.mark.parametrize(
    "recorded", served_frames("response", ApiKey.SHARE_ACKNOWLEDGE), ids=lambda recorded: recorded.title
)
def test_recorded_responses_are_written_byte_by_byte(recorded: RecordedFrame) -> None:
    response: Any = read(message_class(ApiKey.SHARE_ACKNOWLEDGE, recorded.version, "response"), recorded.body)

    buffers = encode_share_acknowledge_response(
        recorded.version,
        response.error_code,
        response.error_message,
        to_milliseconds(response.acquisition_lock_timeout) if recorded.version == 2 else 0,
        as_results(response),
        throttle_time_ms=to_milliseconds(response.throttle_time),
        node_endpoints=[
            NodeEndpoint(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints
        ],
    )

    assert b"".join(buffers) == recorded.body


partitions = st.builds(
    ShareAcknowledgePartitionResult, numbers(31), error_codes, messages, numbers(31), numbers(31)
)
topic_lists = st.lists(
    st.builds(ShareAcknowledgeTopicResult, st.uuids(), st.lists(partitions, max_size=3)), max_size=3
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
    topics: list[ShareAcknowledgeTopicResult],
    throttle_time_ms: int,
    node_endpoints: list[NodeEndpoint],
) -> None:
    expected = as_kio(
        version,
        topics,
        lock_timeout_ms,
        throttle_time=milliseconds(throttle_time_ms),
        error_code=ErrorCode(error_code),
        error_message=error_message,
        node_endpoints=node_endpoints,
    )

    buffers = encode_share_acknowledge_response(
        version,
        error_code,
        error_message,
        lock_timeout_ms,
        topics,
        throttle_time_ms=throttle_time_ms,
        node_endpoints=node_endpoints,
    )

    assert b"".join(buffers) == written(expected)


@pytest.mark.parametrize("version", [0, 3])
def test_other_versions_are_our_own_mistake(version: int) -> None:
    with pytest.raises(AssertionError):
        encode_share_acknowledge_response(version, 0, None, 0, [])
