"""Decodes request headers, and lays out response headers (protocol guide, "Request Header"; KIP-482).

A request's header has version 1, or 2 from the first flexible version of its API on. Version 2 adds tagged
fields, but its client id is still not compact. Response headers have the versions 0 and 1 in the same way,
except that ApiVersions always has version 0 (KIP-511), because a client reads it before it knows the broker's
versions. Tagged fields of a header are skipped, because Kafka defines none.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import Final, NamedTuple

from barnabas.protocol.api import ApiKey, ApiSpec, find_api
from barnabas.protocol.errors import FrameError
from barnabas.protocol.tuples import maker
from barnabas.protocol.varint import Buffer, RecordFormatError, read_unsigned_varint

_FIXED: Final = struct.Struct(">hhih")
_FIXED_BYTES: Final = _FIXED.size
_LENGTH_AND_CORRELATION: Final = struct.Struct(">ii")
_LENGTH_CORRELATION_AND_NO_TAGS: Final = struct.Struct(">iix")


class RequestHeader(NamedTuple):
    """The header of a request. The body starts at `body_offset` of the frame, in bytes."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    spec: ApiSpec | None
    """The served API, for any version of the request; None if the API is not served."""


_new_header = maker(RequestHeader)


def decode_request_header(frame: Buffer) -> RequestHeader:
    """The header at the start of `frame`; raises `FrameError` if it is malformed.

    The API and the version may be unknown. The header of an unknown API is read as version 1, so
    `body_offset` is then meaningless.
    """
    try:
        api_key, api_version, correlation_id, client_id_bytes = _FIXED.unpack_from(frame)
    except struct.error:
        raise FrameError(f"A request of {len(frame)} bytes is too short for its header.") from None
    position = _FIXED_BYTES + max(client_id_bytes, 0)
    if client_id_bytes < -1 or position > len(frame):
        raise FrameError(f"A client id of {client_id_bytes} bytes does not fit into its request.")
    client_id = None if client_id_bytes < 0 else _text(bytes(frame[_FIXED_BYTES:position]))
    spec = find_api(api_key)
    if spec is not None and api_version >= spec.flexible_version:
        if position < len(frame) and frame[position] == 0:
            position += 1
        else:
            position = _behind_tagged_fields(frame, position)
    return _new_header((api_key, api_version, correlation_id, client_id, position, spec))


@cache
def response_header(spec: ApiSpec, version: int) -> struct.Struct:
    """The layout of the beginning of a response frame to a request of `spec` in `version`: the length of the
    rest, and the header, which is the correlation id.
    """
    if version >= spec.flexible_version and spec.key != ApiKey.API_VERSIONS:
        return _LENGTH_CORRELATION_AND_NO_TAGS
    return _LENGTH_AND_CORRELATION


@lru_cache(maxsize=256)  # A client id has up to 32 kB.
def _text(encoded: bytes) -> str:
    """Clients send the same name with each request."""
    try:
        return str(encoded, "utf-8")
    except UnicodeDecodeError:
        raise FrameError("A client id is not UTF-8.") from None


def _behind_tagged_fields(frame: Buffer, position: int) -> int:
    try:
        count, position = read_unsigned_varint(frame, position)
        for _ in range(count):
            _, position = read_unsigned_varint(frame, position)
            size_bytes, position = read_unsigned_varint(frame, position)
            position += size_bytes
    except RecordFormatError as error:
        raise FrameError(f"A request header's tagged fields cannot be read: {error}") from None
    if position > len(frame):
        raise FrameError("A request header's tagged field reaches beyond its frame.")
    return position
