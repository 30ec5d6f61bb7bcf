"""Unknown tagged fields, and lengths that a request cannot hold."""

from __future__ import annotations

import pytest

from barnabas.protocol.api import ApiKey, ApiSpec
from barnabas.protocol.codec import decode_request
from barnabas.protocol.errors import FrameError
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.tolerant import TAGGED_FIELDS_MAX, Edit, apply_edits
from tests.protocol.acknowledgement_requests import without_bytes
from tests.protocol.filled_messages import filled, from_the_future, served_versions, written

FLEXIBLE_VERSIONS = [
    (spec, version) for spec, version in served_versions() if version >= spec.flexible_version
]
HUGE = b"\x7f\xff\xff\xff"
HUGE_COMPACT = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize(
    ("spec", "version"), FLEXIBLE_VERSIONS, ids=lambda value: str(getattr(value, "name", value))
)
def test_unknown_tagged_fields_are_skipped_in_every_structure(spec: ApiSpec, version: int) -> None:
    request = filled(message_class(spec.key, version, "request"))
    future_body = written(from_the_future(request))
    assert future_body.count(b"skip me") >= 1

    decoded = decode_request(spec.key, version, future_body, 0)

    assert without_bytes(decoded) == without_bytes(decode_request(spec.key, version, written(request), 0))


def test_known_tagged_fields_beside_unknown_ones_are_kept() -> None:
    request = filled(message_class(ApiKey.FETCH_SNAPSHOT, 1, "request"))

    decoded = decode_request(ApiKey.FETCH_SNAPSHOT, 1, b"head" + written(from_the_future(request)), 4)

    assert decoded == request


@pytest.mark.parametrize(
    ("api_key", "version", "body"),
    [
        (ApiKey.METADATA, 5, HUGE + b"\x00"),
        (ApiKey.METADATA, 13, HUGE_COMPACT + b"\x00\x00\x00"),
        (ApiKey.DELETE_TOPICS, 1, HUGE + b"\x00\x00\x00\x00"),
        (ApiKey.DELETE_GROUPS, 2, HUGE_COMPACT + b"\x00"),
        (ApiKey.PRODUCE, 7, b"\xff\xff\x00\x01\x00\x00\x00\x00" + HUGE),
        (ApiKey.PRODUCE, 13, b"\x00\x00\x01\x00\x00\x00\x00" + HUGE_COMPACT),
        (ApiKey.SHARE_FETCH, 2, b"\x00\x00" + bytes(26) + HUGE_COMPACT + b"\x01\x00"),
    ],
)
def test_arrays_longer_than_their_request_are_refused(api_key: ApiKey, version: int, body: bytes) -> None:
    with pytest.raises(FrameError):
        decode_request(api_key, version, body, 0)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (1, b"\xff\xff\xff\xff" + bytes(4)),
        (1, b"\xff\xff\xff\xfe" + bytes(4)),
        (5, b"\x00" + bytes(4) + b"\x00"),
    ],
)
def test_null_and_negative_arrays_are_refused_in_other_fields(version: int, body: bytes) -> None:
    with pytest.raises(FrameError, match="array"):
        decode_request(ApiKey.DELETE_TOPICS, version, body, 0)


def test_null_is_accepted_in_a_nullable_field() -> None:
    request = decode_request(ApiKey.METADATA, 1, b"\xff\xff\xff\xff", 0)

    assert getattr(request, "topics", ()) is None


@pytest.mark.parametrize(
    "body",
    [
        b"\x01\x01\x00",  # the field's size is missing
        b"\x01\x01\x00\x05ab",  # the field reaches beyond the request
        b"\x01\x02\x00\x00",  # the second field is missing
        b"\x01\xff\xff\xff\xff\xff\x01",  # a count of too many bytes
    ],
)
def test_tagged_fields_that_cannot_be_read_are_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        decode_request(ApiKey.DELETE_GROUPS, 2, body, 0)


@pytest.mark.parametrize("cluster_id", [b"\x03\x02ab", b"\x01\x02"])
def test_a_known_tagged_field_of_another_size_is_refused(cluster_id: bytes) -> None:
    no_topics = bytes(8) + b"\x01"
    good = decode_request(ApiKey.FETCH_SNAPSHOT, 1, no_topics + b"\x01\x00\x02\x02a", 0)
    assert getattr(good, "cluster_id", None) == "a"

    with pytest.raises(FrameError):
        decode_request(ApiKey.FETCH_SNAPSHOT, 1, no_topics + b"\x01\x00" + cluster_id, 0)


def test_too_many_unknown_tagged_fields_are_refused() -> None:
    count = TAGGED_FIELDS_MAX + 1
    encoded_count = bytes([count & 0x7F | 0x80, count >> 7])

    with pytest.raises(FrameError, match="tagged fields"):
        decode_request(ApiKey.DELETE_GROUPS, 2, b"\x01" + encoded_count + b"\x05\x00" * count, 0)


def test_edits_replace_their_bytes_and_drop_the_header() -> None:
    assert apply_edits(b"headABCDEF", 4, [Edit(5, 6, b"-"), Edit(8, 9, b"")]) == b"A-CDF"
