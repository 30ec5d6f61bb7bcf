"""Requests and responses of every served version in the shapes of their APIs."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey, ApiSpec
from barnabas.protocol.codec import (
    OWN_DECODERS,
    decode_request,
    encode_response,
    prepare,
    shape_version,
)
from barnabas.protocol.errors import FrameError
from barnabas.protocol.header import decode_request_header
from barnabas.protocol.kio_messages import Entity, message_class
from barnabas.protocol.lift import converter
from tests.protocol.filled_messages import (
    as_fields,
    common_fields,
    filled,
    read,
    served_versions,
    written,
)
from tests.protocol.recorded_frames import RecordedFrame, served_frames

VERSIONS = pytest.mark.parametrize(
    ("spec", "version"), served_versions(), ids=lambda value: str(getattr(value, "name", value))
)
GENERIC_VERSIONS = pytest.mark.parametrize(
    ("spec", "version"),
    [(spec, version) for spec, version in served_versions() if spec.key not in OWN_DECODERS],
    ids=lambda value: str(getattr(value, "name", value)),
)


DAMAGES = st.binary(max_size=6) | st.sampled_from([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"])


@pytest.mark.parametrize("recorded", served_frames("request"), ids=lambda recorded: recorded.title)
def test_recorded_requests_are_encoded_byte_by_byte(recorded: RecordedFrame) -> None:
    request_class = message_class(recorded.api_key, recorded.version, "request")

    assert written(read(request_class, recorded.body)) == recorded.body


@pytest.mark.parametrize(
    "recorded",
    [recorded for recorded in served_frames("request") if recorded.api_key not in OWN_DECODERS],
    ids=lambda recorded: recorded.title,
)
def test_recorded_requests_are_decoded_in_their_shape(recorded: RecordedFrame) -> None:
    request = decode_request(recorded.api_key, recorded.version, recorded.frame, recorded.body_offset)

    own = read(message_class(recorded.api_key, recorded.version, "request"), recorded.body)
    shape = message_class(recorded.api_key, shape_version(recorded.api_key, recorded.version), "request")
    assert field_names(shape) <= as_fields(request).keys()
    own_fields, shape_fields = common_fields(as_fields(own), as_fields(request))
    assert shape_fields == own_fields


@pytest.mark.parametrize("recorded", served_frames("response"), ids=lambda recorded: recorded.title)
def test_recorded_responses_are_encoded_byte_by_byte(recorded: RecordedFrame) -> None:
    own_class = message_class(recorded.api_key, recorded.version, "response")
    shape = message_class(recorded.api_key, shape_version(recorded.api_key, recorded.version), "response")
    lift = converter(own_class, shape)
    own = read(own_class, recorded.body)
    response = own if lift is None else lift(own)

    assert encode_response(recorded.api_key, recorded.version, response) == [recorded.body]


@GENERIC_VERSIONS
def test_requests_of_every_version_reach_their_shape(spec: ApiSpec, version: int) -> None:
    own = filled(message_class(spec.key, version, "request"))
    header = b"header"

    request = decode_request(spec.key, version, header + written(own), len(header))

    shape = message_class(spec.key, shape_version(spec.key, version), "request")
    assert field_names(shape) <= as_fields(request).keys()
    own_fields, shape_fields = common_fields(as_fields(own), as_fields(request))
    assert shape_fields == own_fields


@VERSIONS
def test_responses_in_their_shape_are_encoded_for_every_version(spec: ApiSpec, version: int) -> None:
    shape = filled(message_class(spec.key, shape_version(spec.key, version), "response"))

    (body,) = encode_response(spec.key, version, shape)

    own = read(message_class(spec.key, version, "response"), body)
    own_fields, shape_fields = common_fields(as_fields(own), as_fields(shape))
    assert own_fields == shape_fields


@VERSIONS
def test_no_request_ends_before_its_last_byte(spec: ApiSpec, version: int) -> None:
    body = written(filled(message_class(spec.key, version, "request")))

    for end in range(len(body)):
        with pytest.raises(FrameError):
            decode_request(spec.key, version, body[:end], 0)


@VERSIONS
def test_surplus_bytes_after_a_request_are_ignored(spec: ApiSpec, version: int) -> None:
    body = written(filled(message_class(spec.key, version, "request")))

    with_surplus = decode_request(spec.key, version, body + b"\x01\x00\x00", 0)

    assert with_surplus == decode_request(spec.key, version, body, 0)


def test_librdkafkas_request_for_all_topics_has_three_surplus_bytes() -> None:
    frame = bytes.fromhex("0003 000d 00000003 0007 72646b61666b61 00 00 000000 010000")

    request = decode_request(ApiKey.METADATA, 13, frame, decode_request_header(frame).body_offset)

    assert as_fields(request) == {
        "topics": None,
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }


@settings(max_examples=300)
@given(st.sampled_from(served_versions()), st.data())
def test_damaged_requests_are_read_or_refused(served: tuple[ApiSpec, int], data: st.DataObject) -> None:
    spec, version = served
    body = bytearray(written(filled(message_class(spec.key, version, "request"))))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(body)))
        body[position : position + 1] = data.draw(DAMAGES)

    try:
        decode_request(spec.key, version, bytes(body), 0)
    except FrameError as error:
        assert str(error)


def field_names(entity_type: type[Entity]) -> set[str]:
    return {field.name for field in dataclasses.fields(entity_type)}


@pytest.mark.parametrize(
    ("api_key", "version", "expected"),
    [
        (ApiKey.FETCH, 4, 12),
        (ApiKey.FETCH, 12, 12),
        (ApiKey.FETCH, 13, 18),
        (ApiKey.PRODUCE, 12, 12),
        (ApiKey.PRODUCE, 13, 13),
        (ApiKey.FIND_COORDINATOR, 3, 3),
        (ApiKey.FIND_COORDINATOR, 4, 6),
        (ApiKey.DELETE_TOPICS, 5, 5),
        (ApiKey.DELETE_TOPICS, 6, 6),
        (ApiKey.METADATA, 0, 10),
        (ApiKey.SHARE_FETCH, 1, 2),
    ],
)
def test_each_version_has_its_shape(api_key: ApiKey, version: int, expected: int) -> None:
    assert shape_version(api_key, version) == expected


def test_a_version_that_is_not_served_is_an_assertion_error() -> None:
    with pytest.raises(AssertionError, match="FETCH is not served in version 3"):
        decode_request(ApiKey.FETCH, 3, b"", 0)


def test_prepared_versions_decode_requests() -> None:
    prepare(ApiKey.PRODUCE, 13)
    prepare(ApiKey.DELETE_GROUPS, 2)

    assert as_fields(decode_request(ApiKey.DELETE_GROUPS, 2, b"\x02\x02g\x00", 0)) == {"groups_names": ("g",)}


def test_importing_the_codec_loads_no_message() -> None:
    program = """
import sys
import barnabas.protocol.codec
print(*(name for name in sys.modules if name.startswith("kio.schema.") and "_header" not in name))
"""
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout

    assert set(loaded.split()) <= {"kio.schema.errors", "kio.schema.types"}
