"""Request and response headers, compared with recorded frames."""

from __future__ import annotations

import pytest

from barnabas.protocol.api import APIS, ApiKey, find_api
from barnabas.protocol.errors import FrameError
from barnabas.protocol.header import RequestHeader, decode_request_header, response_header
from tests.protocol.recorded_frames import RecordedFrame, served_frames

METADATA_V1 = b"\x00\x03\x00\x01\x00\x00\x00\x07"
METADATA_V9 = b"\x00\x03\x00\x09\x00\x00\x00\x07"


@pytest.mark.parametrize("recorded", served_frames("request"), ids=lambda recorded: recorded.title)
def test_recorded_request_headers_are_read(recorded: RecordedFrame) -> None:
    header = decode_request_header(recorded.frame)

    client_id_bytes = len(recorded.client_id.encode()) if recorded.client_id is not None else 0
    assert header == RequestHeader(
        recorded.api_key,
        recorded.version,
        recorded.correlation_id,
        recorded.client_id,
        10 + client_id_bytes + (recorded.header_version - 1),
        find_api(recorded.api_key),
    )


@pytest.mark.parametrize("recorded", served_frames("response"), ids=lambda recorded: recorded.title)
def test_response_headers_equal_the_recorded_ones(recorded: RecordedFrame) -> None:
    spec = find_api(recorded.api_key)
    assert spec is not None

    start = response_header(spec, recorded.version)
    encoded = start.pack(len(recorded.frame), recorded.correlation_id)

    assert encoded[4:] == recorded.frame[: recorded.body_offset]


def test_api_versions_responses_have_no_tagged_fields_in_their_header() -> None:
    assert response_header(APIS[ApiKey.API_VERSIONS], 4).pack(4, 7) == b"\x00\x00\x00\x04\x00\x00\x00\x07"


@pytest.mark.parametrize(
    ("frame", "client_id", "body_offset"),
    [
        (METADATA_V1 + b"\xff\xff", None, 10),
        (METADATA_V1 + b"\x00\x00", "", 10),
        (METADATA_V1 + b"\x00\x02\xc3\xa9rest", "é", 12),
        (METADATA_V9 + b"\xff\xff\x00", None, 11),
        (METADATA_V9 + b"\x00\x01c\x01\x05\x02xyrest", "c", 16),
        (METADATA_V9 + b"\x00\x01c\x02\x80\x01\x00\x81\x01\x01zrest", "c", 19),
    ],
)
def test_client_ids_are_read_and_tagged_fields_are_skipped(
    frame: bytes, client_id: str | None, body_offset: int
) -> None:
    assert decode_request_header(frame) == RequestHeader(
        3, METADATA_V1[3] if frame[3] == 1 else 9, 7, client_id, body_offset, APIS[ApiKey.METADATA]
    )


def test_a_view_is_read_like_bytes() -> None:
    frame = METADATA_V9 + b"\x00\x01c\x00"

    assert decode_request_header(memoryview(frame)) == decode_request_header(frame)


def test_an_unknown_api_is_read_as_if_it_were_not_flexible() -> None:
    header = decode_request_header(b"\x7f\xff\x00\x09\x00\x00\x00\x07\x00\x01c\x01")

    assert header == RequestHeader(0x7FFF, 9, 7, "c", 11, None)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        METADATA_V1 + b"\x00",
        METADATA_V1 + b"\xff\xfe",
        METADATA_V1 + b"\x00\x05abc",
        METADATA_V1 + b"\x00\x01\xff",
        METADATA_V9 + b"\x00\x01c",
        METADATA_V9 + b"\x00\x01c\x01\x05\x02x",
        METADATA_V9 + b"\x00\x01c\xff\xff\xff\xff\xff\x01",
        METADATA_V9 + b"\x00\x01c\x02\x05\x00",
    ],
)
def test_a_malformed_header_is_refused(frame: bytes) -> None:
    with pytest.raises(FrameError):
        decode_request_header(frame)
