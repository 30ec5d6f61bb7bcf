"""Requests and responses on the client's side, for the APIs of share consumers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.api import ClientApi, read_correlation_id
from barnabas.protocol.client.consumer_apis import (
    API_VERSIONS,
    FIND_COORDINATOR,
    METADATA,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_GROUP_HEARTBEAT,
)
from barnabas.protocol.client.share_acknowledge_response import ShareAcknowledgeReply
from barnabas.protocol.client.share_fetch_response import ShareFetchReply
from barnabas.protocol.codec import decode_request, encode_response
from barnabas.protocol.errors import ErrorCode, FrameError
from barnabas.protocol.header import decode_request_header
from barnabas.protocol.kio_messages import message_class
from tests.protocol.filled_messages import as_fields, common_fields, filled, from_the_future, written
from tests.protocol.recorded_frames import RecordedFrame, served_frames

ALL: list[ClientApi[Any, Any]] = [
    API_VERSIONS,
    FIND_COORDINATOR,
    METADATA,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_GROUP_HEARTBEAT,
]
OWN_RESPONSES: dict[ApiKey, type[Any]] = {
    ApiKey.SHARE_FETCH: ShareFetchReply,
    ApiKey.SHARE_ACKNOWLEDGE: ShareAcknowledgeReply,
}
BY_KIO = [api for api in ALL if api.key not in OWN_RESPONSES]


def versions(apis: list[ClientApi[Any, Any]]) -> list[Any]:
    return [
        pytest.param(api, version, id=f"{api.key.name.lower()}-v{version}")
        for api in apis
        for version in range(api.min_version, api.max_version + 1)
    ]


def is_response(api: ClientApi[Any, Any], value: Any) -> bool:
    """Whether the value has all fields of the API's newest response."""
    own_class = OWN_RESPONSES.get(api.key)
    if own_class is not None:
        return type(value) is own_class
    return set(as_fields(newest(api, "response"))) <= set(as_fields(value))


def newest(api: ClientApi[Any, Any], direction: Any) -> Any:
    return filled(message_class(api.key, api.max_version, direction))


@pytest.mark.parametrize(("api", "version"), versions(BY_KIO))
def test_a_broker_reads_a_clients_request(api: ClientApi[Any, Any], version: int) -> None:
    request = newest(api, "request")
    frame = api.encode(version, 7, "café", request)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header = decode_request_header(frame[4:])
    assert header[:4] == (api.key, version, 7, "café")
    read = decode_request(api.key, version, frame[4:], header.body_offset)
    if version == api.max_version:
        understood, asked = common_fields(as_fields(read), as_fields(request))
        assert understood == asked == as_fields(request)


@pytest.mark.parametrize(("api", "version"), versions(BY_KIO))
def test_a_client_reads_a_brokers_response(api: ClientApi[Any, Any], version: int) -> None:
    response = newest(api, "response")
    header = b"\0\0\0\7" + (b"" if api is API_VERSIONS else b"\0")
    frame = header + b"".join(encode_response(api.key, version, response))
    assert read_correlation_id(frame) == 7
    read = api.decode(version, frame)
    assert [field.name for field in fields(read)] == [field.name for field in fields(response)]
    if version == api.max_version:
        assert read == response


@pytest.mark.parametrize("api", BY_KIO, ids=lambda api: api.key.name.lower())
def test_tagged_fields_of_newer_brokers_are_skipped(api: ClientApi[Any, Any]) -> None:
    response = newest(api, "response")
    header = b"\0\0\0\7" + (b"" if api is API_VERSIONS else b"\0")
    assert api.decode(api.max_version, header + written(from_the_future(response))) == response


def spoken(recorded: RecordedFrame) -> ClientApi[Any, Any] | None:
    apis = [one for one in ALL if one.key == recorded.api_key]
    return next((one for one in apis if one.min_version <= recorded.version <= one.max_version), None)


@pytest.mark.parametrize(
    "recorded",
    [pytest.param(one, id=one.title) for one in served_frames("response") if spoken(one) is not None],
)
def test_responses_of_apache_kafka_are_read(recorded: RecordedFrame) -> None:
    api = spoken(recorded)
    assert api is not None
    assert read_correlation_id(recorded.frame) == recorded.correlation_id
    assert is_response(api, api.decode(recorded.version, recorded.frame))


def test_an_old_brokers_answer_to_api_versions_is_read_in_version_0() -> None:
    v0: Any = message_class(ApiKey.API_VERSIONS, 0, "response")
    response = API_VERSIONS.decode(
        4, b"\0\0\0\7" + written(v0(error_code=ErrorCode.unsupported_version, api_keys=()))
    )
    assert response.error_code is ErrorCode.unsupported_version


@pytest.mark.parametrize(("api", "version"), versions(ALL))
@given(damage=st.binary(max_size=40))
def test_random_bytes_are_a_response_or_a_frame_error(
    api: ClientApi[Any, Any], version: int, damage: bytes
) -> None:
    try:
        response = api.decode(version, b"\0\0\0\7" + damage)
    except FrameError:
        return
    assert is_response(api, response)


def test_a_frame_without_a_header_is_an_error() -> None:
    with pytest.raises(FrameError):
        read_correlation_id(b"\0\0\0")
    with pytest.raises(FrameError):
        METADATA.decode(13, b"\0\0\0\7\1")
