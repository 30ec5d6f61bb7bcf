"""The decoder of Produce requests, compared with kio."""

from __future__ import annotations

import uuid
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.codec import decode_request
from barnabas.protocol.decode.produce import ProduceBody, ProducePartition, ProduceTopic, decode_produce
from barnabas.protocol.errors import FrameError
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from tests.protocol.filled_messages import filled, from_the_future, read, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames

SPEC = APIS[ApiKey.PRODUCE]
VERSIONS = range(SPEC.min_version, SPEC.max_version + 1)
ZERO_ID = uuid.UUID(int=0)


def as_body(version: int, request: Any) -> ProduceBody:
    """kio's request in the decoder's tuples."""
    topics = [
        ProduceTopic(
            None if version >= 13 else topic.name,
            (topic.topic_id or ZERO_ID) if version >= 13 else None,
            [ProducePartition(partition.index, partition.records) for partition in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return ProduceBody(request.transactional_id, request.acks, to_milliseconds(request.timeout), topics)


@pytest.mark.parametrize(
    "recorded", served_frames("request", ApiKey.PRODUCE), ids=lambda recorded: recorded.title
)
def test_recorded_requests_are_decoded_like_kio(recorded: RecordedFrame) -> None:
    body = decode_produce(recorded.version, recorded.frame, recorded.body_offset)

    own = read(message_class(ApiKey.PRODUCE, recorded.version, "request"), recorded.body)
    assert body == as_body(recorded.version, own)


@given(
    version=st.sampled_from(VERSIONS),
    transactional_id=st.none() | st.text(max_size=200),
    acks=st.integers(-1, 1),
    timeout_ms=st.integers(0, 2**31 - 1),
    topics=st.lists(
        st.tuples(
            st.text(max_size=200),
            st.uuids(),
            st.lists(st.tuples(st.integers(0, 2**31 - 1), st.none() | st.binary(max_size=300)), max_size=4),
        ),
        max_size=4,
    ),
)
def test_requests_of_kio_are_decoded(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Any
) -> None:
    request_class: Any = message_class(ApiKey.PRODUCE, version, "request")
    topic_class, partition_class = nested_classes(request_class)
    request = request_class(
        transactional_id=transactional_id,
        acks=acks,
        timeout=milliseconds(timeout_ms),
        topic_data=tuple(
            topic_class(
                **({"topic_id": topic_id} if version >= 13 else {"name": name}),
                partition_data=tuple(
                    partition_class(index=index, records=records) for index, records in partitions
                ),
            )
            for name, topic_id, partitions in topics
        ),
    )

    assert decode_produce(version, written(request), 0) == as_body(version, request)


def nested_classes(request_class: type) -> tuple[Any, Any]:
    module = import_module(request_class.__module__)
    return module.TopicProduceData, module.PartitionProduceData


@pytest.mark.parametrize("version", VERSIONS)
def test_the_codec_returns_produce_bodies(version: int) -> None:
    request = filled(message_class(ApiKey.PRODUCE, version, "request"))

    body = decode_request(ApiKey.PRODUCE, version, b"header" + written(request), 6)

    assert body == as_body(version, request)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= SPEC.flexible_version])
def test_unknown_tagged_fields_are_skipped(version: int) -> None:
    request = filled(message_class(ApiKey.PRODUCE, version, "request"))

    assert decode_produce(version, written(from_the_future(request)), 0) == as_body(version, request)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_views_of_the_request(version: int) -> None:
    frame = bytearray(written(filled(message_class(ApiKey.PRODUCE, version, "request"))))
    (records, *_) = [
        partition.records
        for topic in decode_produce(version, frame, 0).topics
        for partition in topic.partitions
    ]
    assert records is not None
    assert records.obj is frame

    position = frame.index(records)
    frame[position] ^= 0xFF

    assert records[0] == frame[position]


def test_a_topic_without_a_name_is_refused() -> None:
    with pytest.raises(FrameError, match="no name"):
        decode_produce(7, b"\xff\xff\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\x00\x00\x00\x00", 0)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (7, b"\xff\xff\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"),
        (7, b"\xff\xff\x00\x01\x00\x00\x00\x00\xff\xff\xff\xfe"),
        (7, b"\xff\xfe\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"),
        (13, b"\x00\x00\x01\x00\x00\x00\x00\x00\x00"),
    ],
)
def test_null_and_negative_lengths_are_refused(version: int, body: bytes) -> None:
    with pytest.raises(FrameError):
        decode_produce(version, body, 0)
