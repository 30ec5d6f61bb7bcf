"""The decoder of Fetch requests, compared with kio."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.codec import decode_request
from barnabas.protocol.decode.fetch import (
    HASH_RANGE_TAG,
    FetchBody,
    FetchPartition,
    FetchTopic,
    decode_fetch,
)
from barnabas.protocol.errors import FrameError
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.primitive import milliseconds, to_milliseconds
from barnabas.protocol.varint import unsigned_varint
from tests.protocol.filled_messages import UNKNOWN_TAG, filled, from_the_future, made, read, written
from tests.protocol.range_fetches import RANGE_VERSIONS, range_fetch
from tests.protocol.recorded_frames import RecordedFrame, served_frames

SPEC = APIS[ApiKey.FETCH]
VERSIONS = range(SPEC.min_version, SPEC.max_version + 1)
ZERO_ID = UUID(int=0)
INT32S = st.integers(-(2**31), 2**31 - 1)
INT64S = st.integers(-(2**63), 2**63 - 1)

PARTITIONS = st.fixed_dictionaries(
    {
        "partition": INT32S,
        "current_leader_epoch": INT32S,
        "fetch_offset": INT64S,
        "last_fetched_epoch": INT32S,
        "log_start_offset": INT64S,
        "partition_max_bytes": INT32S,
        "replica_directory_id": st.none() | st.uuids(),
        "high_watermark": INT64S,
        "hash_range": st.none() | st.binary(max_size=200),
    }
)
NAMES_AND_IDS = st.fixed_dictionaries({"topic": st.text(max_size=200), "topic_id": st.none() | st.uuids()})


def request_class(version: int) -> Any:
    return message_class(ApiKey.FETCH, version, "request")


def reference(version: int, topic: Any) -> str | UUID:
    named: str | UUID = (topic.topic_id or ZERO_ID) if version >= 13 else topic.topic
    return named


def as_partition(version: int, one: Any) -> FetchPartition:
    return FetchPartition(
        one.partition,
        getattr(one, "current_leader_epoch", -1),
        one.fetch_offset,
        getattr(one, "last_fetched_epoch", -1),
        getattr(one, "log_start_offset", -1),
        one.partition_max_bytes,
        getattr(one, "replica_directory_id", None),
        getattr(one, "high_watermark", 2**63 - 1),
        getattr(one, "hash_range", None),
    )


def as_body(version: int, request: Any) -> FetchBody:
    """kio's request in the decoder's tuples."""
    return FetchBody(
        to_milliseconds(request.max_wait),
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        getattr(request, "session_id", 0),
        getattr(request, "session_epoch", -1),
        [
            FetchTopic(reference(version, topic), [as_partition(version, one) for one in topic.partitions])
            for topic in request.topics
        ],
        [
            (reference(version, topic), list(topic.partitions))
            for topic in getattr(request, "forgotten_topics_data", ())
        ],
        getattr(request, "cluster_id", None),
        request.replica_state.replica_id if version >= 15 else -1,
    )


@pytest.mark.parametrize(
    "recorded", served_frames("request", ApiKey.FETCH), ids=lambda recorded: recorded.title
)
def test_recorded_requests_are_decoded_like_kio(recorded: RecordedFrame) -> None:
    body = decode_fetch(recorded.version, recorded.frame, recorded.body_offset)

    assert body == as_body(recorded.version, read(request_class(recorded.version), recorded.body))


@given(
    version=st.sampled_from(VERSIONS),
    topics=st.lists(st.tuples(NAMES_AND_IDS, st.lists(PARTITIONS, max_size=3)), max_size=3),
    forgotten=st.lists(st.tuples(NAMES_AND_IDS, st.lists(INT32S, max_size=3)), max_size=3),
    numbers=st.fixed_dictionaries(
        dict.fromkeys(("min_bytes", "max_bytes", "session_id", "session_epoch", "replica_id"), INT32S)
    ),
    isolation_level=st.integers(-128, 127),
    max_wait=INT32S.map(milliseconds),
    rack_id=st.text(max_size=200),
    cluster_id=st.none() | st.text(max_size=200),
)
def test_requests_of_kio_are_decoded(
    version: int, topics: Any, forgotten: Any, numbers: dict[str, int], **values: Any
) -> None:
    kio_class = request_class(version)
    module = import_module(kio_class.__module__)
    topic_class, partition_class = module.FetchTopic, module.FetchPartition
    if version in RANGE_VERSIONS:
        kio_class, topic_class, partition_class, *_ = range_fetch(version)
    if version >= 15:
        values["replica_state"] = module.ReplicaState(replica_id=numbers["replica_id"], replica_epoch=-1)
    if version >= 7:
        values["forgotten_topics_data"] = tuple(
            made(module.ForgottenTopic, **named, partitions=tuple(indexes)) for named, indexes in forgotten
        )
    wanted = tuple(
        made(
            topic_class,
            **named,
            partitions=tuple(made(partition_class, **one) for one in partitions),
        )
        for named, partitions in topics
    )
    request = made(kio_class, topics=wanted, **numbers, **values)

    assert decode_fetch(version, written(request), 0) == as_body(version, request)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_codec_returns_fetch_bodies(version: int) -> None:
    request = filled(request_class(version))

    body = decode_request(ApiKey.FETCH, version, b"header" + written(request), 6)

    assert body == as_body(version, request)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= SPEC.flexible_version])
def test_unknown_tagged_fields_are_skipped(version: int) -> None:
    request = filled(request_class(version))

    assert decode_fetch(version, written(from_the_future(request)), 0) == as_body(version, request)


def test_a_hash_range_in_a_request_with_topic_names_is_skipped() -> None:
    body = written(from_the_future(filled(request_class(12)))).replace(
        unsigned_varint(UNKNOWN_TAG), unsigned_varint(HASH_RANGE_TAG)
    )

    assert decode_fetch(12, body, 0) == as_body(12, filled(request_class(12)))


@pytest.mark.parametrize("version", RANGE_VERSIONS)
def test_a_hash_range_that_is_cut_short_is_refused(version: int) -> None:
    body = written(filled(range_fetch(version).request))
    for size_bytes in range(len(body)):
        with pytest.raises(FrameError):
            decode_fetch(version, body[:size_bytes], 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_is_cut_short_is_refused(version: int) -> None:
    body = written(filled(request_class(version)))
    for size_bytes in range(len(body)):
        with pytest.raises(FrameError):
            decode_fetch(version, body[:size_bytes], 0)


def test_a_topic_without_a_name_is_refused() -> None:
    with pytest.raises(FrameError, match="no name"):
        decode_fetch(4, bytes(17) + b"\x00\x00\x00\x01" + b"\xff\xff" + bytes(4), 0)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        pytest.param(4, bytes(17) + b"\xff\xff\xff\xff", id="topics"),
        pytest.param(4, bytes(17) + b"\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff", id="partitions"),
        pytest.param(18, bytes(21) + b"\x01\x00\x01\x00", id="forgotten topics"),
        pytest.param(18, bytes(21) + b"\x01\x01\x01" + b"\x01\x01\x01\x00", id="a replica state cut short"),
    ],
)
def test_null_for_an_array_and_bad_tags_are_refused(version: int, body: bytes) -> None:
    with pytest.raises(FrameError):
        decode_fetch(version, body, 0)
