"""Large requests are cut into parts, and the answers to the parts are joined."""

from datetime import timedelta
from typing import Any

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v9.response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

from barnabas.broker.network.request_parts import cut_request, join_answers
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import GroupId, TopicName, i16, i32, i32Timedelta, i64, milliseconds

_NO_WAIT = i32Timedelta.parse(timedelta())


def _commit(name: str, indexes: range) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name=TopicName(name),
        partitions=tuple(
            OffsetCommitRequestPartition(
                partition_index=i32(index), committed_offset=i64(0), committed_metadata=None
            )
            for index in indexes
        ),
    )


def _create(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(
            name=TopicName(name),
            num_partitions=i32(partitions),
            replication_factor=i16(1),
            assignments=(),
            configs=(),
        )
        for name in names
    )
    return CreateTopicsRequest(topics=topics)


def _created(*names: str, throttle_ms: int = 0) -> CreateTopicsResponse:
    topics = tuple(
        CreatableTopicResult(
            name=TopicName(name), topic_id=None, error_code=ErrorCode.none, error_message=None, configs=()
        )
        for name in names
    )
    return CreateTopicsResponse(throttle_time=milliseconds(throttle_ms), topics=topics)


def _names(request: Any) -> list[str]:
    return [topic.name for topic in request.topics]


def test_each_entry_is_in_one_part_in_order() -> None:
    names = [f"t{number}" for number in range(120)]
    parts = cut_request(ApiKey.CREATE_TOPICS, _create(*names), 1)
    assert [len(part.topics) for part in parts] == [50, 50, 20]
    assert [name for part in parts for name in _names(part)] == names


def test_a_small_request_is_not_cut() -> None:
    request = _create("a", "b")
    assert cut_request(ApiKey.CREATE_TOPICS, request, 1) == [request]


def test_a_request_of_another_api_is_not_cut() -> None:
    request = _create(*(f"t{number}" for number in range(120)))
    assert cut_request(ApiKey.SHARE_GROUP_HEARTBEAT, request, 1) == [request]


@pytest.mark.parametrize("twin", ["t.0", "t_0"])
def test_names_that_collide_stay_in_one_part(twin: str) -> None:
    names = ["t.0", *(f"other{number}" for number in range(120)), twin]
    first, *_ = cut_request(ApiKey.CREATE_TOPICS, _create(*names), 1)
    assert _names(first)[:2] == ["t.0", twin]


def test_a_request_for_too_many_partitions_is_refused_as_a_whole() -> None:
    names = [f"t{number}" for number in range(120)]
    assert len(cut_request(ApiKey.CREATE_TOPICS, _create(*names, partitions=84), 1)) == 1


def test_topics_without_a_number_of_partitions_count_with_the_default() -> None:
    request = _create(*(f"t{number}" for number in range(120)), partitions=-1)
    assert len(cut_request(ApiKey.CREATE_TOPICS, request, 83)) == 3
    assert len(cut_request(ApiKey.CREATE_TOPICS, request, 84)) == 1


def test_topics_by_name_and_by_id_together_are_not_cut() -> None:
    named = [DeleteTopicState(name=TopicName(f"t{one}"), topic_id=None) for one in range(150)]
    request = DeleteTopicsRequest(topics=tuple(named), timeout=_NO_WAIT)
    assert len(cut_request(ApiKey.DELETE_TOPICS, request, 1)) == 2
    mixed = DeleteTopicsRequest(topics=(*named, DeleteTopicState(name=None, topic_id=None)), timeout=_NO_WAIT)
    assert len(cut_request(ApiKey.DELETE_TOPICS, mixed, 1)) == 1


def test_answers_are_joined_with_the_longest_throttle_time() -> None:
    request = _create("a")
    answers = [_created("a", throttle_ms=5), _created("b", throttle_ms=7), _created("c")]
    assert join_answers(ApiKey.CREATE_TOPICS, request, answers) == _created("a", "b", "c", throttle_ms=7)


def test_a_topic_of_many_partitions_is_cut_and_joined() -> None:
    topics = (_commit("a", range(450)), _commit("b", range(3)))
    request = OffsetCommitRequest(group_id=GroupId("g"), member_id="", topics=topics)
    parts = cut_request(ApiKey.OFFSET_COMMIT, request, 1)
    assert [[(one.name, len(one.partitions)) for one in part.topics] for part in parts] == [
        [("a", 200)],
        [("a", 200)],
        [("a", 50), ("b", 3)],
    ]
    joined = join_answers(ApiKey.OFFSET_COMMIT, parts[0], [_committed(part) for part in parts])
    assert isinstance(joined, OffsetCommitResponse)
    assert [(one.name, len(one.partitions)) for one in joined.topics] == [("a", 450), ("b", 3)]
    assert [one.partition_index for one in joined.topics[0].partitions] == [*range(450)]


def _committed(request: OffsetCommitRequest) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        throttle_time=milliseconds(0),
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=ErrorCode.none
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )
