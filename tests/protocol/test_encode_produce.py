"""The encoder of Produce responses, compared with kio."""

from __future__ import annotations

import datetime
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.encode.produce import (
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)
from barnabas.protocol.encode.throttle import with_throttle_time
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from tests.protocol.filled_messages import made, read, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames
from tests.protocol.result_strategies import error_codes, leaders, messages, names, numbers

VERSIONS = range(APIS[ApiKey.PRODUCE].min_version, APIS[ApiKey.PRODUCE].max_version + 1)
TOPIC_ID = UUID(int=7)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def as_kio(version: int, topics: list[ProduceTopicResult], throttle_time_ms: int) -> Any:
    kio = import_module(f"kio.schema.produce.v{version}.response")
    return made(
        kio.ProduceResponse,
        responses=tuple(
            made(
                kio.TopicProduceResponse,
                name=topic.topic_name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    _partition_as_kio(version, kio, partition) for partition in topic.partitions
                ),
            )
            for topic in topics
        ),
        throttle_time=milliseconds(throttle_time_ms),
    )


def _partition_as_kio(version: int, kio: Any, partition: ProducePartitionResult) -> Any:
    tagged: dict[str, Any] = {}
    if partition.current_leader is not None and version >= 10:
        leader_id, leader_epoch = partition.current_leader
        tagged["current_leader"] = kio.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    append_time_ms = partition.log_append_time_ms
    return made(
        kio.PartitionProduceResponse,
        index=partition.partition_index,
        error_code=ErrorCode(partition.error_code),
        base_offset=partition.base_offset,
        log_append_time=None
        if append_time_ms < 0
        else EPOCH + datetime.timedelta(milliseconds=append_time_ms),
        log_start_offset=partition.log_start_offset,
        record_errors=tuple(
            kio.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in partition.record_errors
        )
        if version >= 8
        else (),
        error_message=partition.error_message,
        **tagged,
    )


@pytest.mark.parametrize(
    "recorded", served_frames("response", ApiKey.PRODUCE), ids=lambda recorded: recorded.title
)
def test_recorded_responses_are_written_byte_by_byte(recorded: RecordedFrame) -> None:
    response: Any = read(message_class(ApiKey.PRODUCE, recorded.version, "response"), recorded.body)
    topics = [
        ProduceTopicResult(
            getattr(topic, "name", ""),
            getattr(topic, "topic_id", TOPIC_ID),
            [
                ProducePartitionResult(
                    partition.index,
                    partition.error_code,
                    partition.base_offset,
                    -1,
                    partition.log_start_offset,
                )
                for partition in topic.partition_responses
            ],
        )
        for topic in response.responses
    ]

    encoded = encode_produce_response(recorded.version, topics)
    throttle_time_ms = to_milliseconds(response.throttle_time)
    buffers = with_throttle_time(ApiKey.PRODUCE, recorded.version, encoded, throttle_time_ms)

    assert b"".join(buffers) == recorded.body


partitions = st.builds(
    ProducePartitionResult,
    numbers(31),
    error_codes,
    numbers(63),
    st.integers(-1, 4_000_000_000_000),
    numbers(63),
    st.lists(st.tuples(numbers(31), messages), max_size=3),
    messages,
    leaders,
)
topic_lists = st.lists(
    st.builds(ProduceTopicResult, names, st.uuids(), st.lists(partitions, max_size=3)), max_size=3
)


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=25)
@given(topics=topic_lists, throttle_time_ms=numbers(31))
def test_responses_equal_those_of_kio(
    version: int, topics: list[ProduceTopicResult], throttle_time_ms: int
) -> None:
    expected = as_kio(version, topics, throttle_time_ms)

    encoded = encode_produce_response(version, topics)
    buffers = with_throttle_time(ApiKey.PRODUCE, version, encoded, throttle_time_ms)

    assert b"".join(buffers) == written(expected)
