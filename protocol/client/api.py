"""The client's side of the APIs: encodes requests into frames, and decodes responses (KIP-35, KIP-482).

The counterpart of `codec`. A `ClientApi` has the versions of an API that the clients of this project use. Its
users write and read only the newest of these versions; the codec converts to and from the version that both
sides know. The `_apis` modules list the APIs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.errors import FrameError
from barnabas.protocol.kio_messages import message_class, message_reader, message_writer
from barnabas.protocol.varint import Buffer

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")

CORRELATION_BYTES: Final = 4

_LENGTH: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_NO_TAGS: Final = b"\x00"


def flexible_version(key: ApiKey) -> int:
    """The first version of an API with compact lengths and tagged fields."""
    return APIS[key].flexible_version


class ClientApi(NamedTuple, Generic[RequestT, ResponseT]):
    """One API, from the oldest to the newest version in use, both inclusive."""

    key: ApiKey
    min_version: int
    max_version: int
    encode_body: Callable[[int, RequestT], bytes]
    """From the version and the request."""
    decode_body: Callable[[int, Buffer, int], ResponseT]
    """From the version, the frame and the body's offset. Raises `FrameError`."""
    feature: str | None = None
    """The feature that a broker must list, because the requests have tags of an extension (docs/protocol.md).
    Another broker would ignore these tags."""

    def encode(self, version: int, correlation_id: int, client_id: str, request: RequestT) -> bytes:
        """The whole frame of a request, with its length in front."""
        name = client_id.encode()
        header = _HEADER.pack(self.key, version, correlation_id, len(name)) + name
        if version >= flexible_version(self.key):
            header += _NO_TAGS
        body = self.encode_body(version, request)
        return b"".join((_LENGTH.pack(len(header) + len(body)), header, body))

    def decode(self, version: int, frame: Buffer) -> ResponseT:
        """The response in a frame without its length. Raises `FrameError` if it is malformed.

        A response's header has tagged fields in flexible versions, except that of ApiVersions (KIP-511).
        """
        body_offset = CORRELATION_BYTES
        if version >= flexible_version(self.key) and self.key != ApiKey.API_VERSIONS:
            if len(frame) <= body_offset or frame[body_offset] != 0:
                raise FrameError("A response's header has tagged fields, but Kafka defines none.")
            body_offset += 1
        return self.decode_body(version, frame, body_offset)


def read_correlation_id(frame: Buffer) -> int:
    """The number of the request that a response answers. Raises `FrameError` on a frame that is too short."""
    if len(frame) < CORRELATION_BYTES:
        raise FrameError(f"A response of {len(frame)} bytes is too short for its header.")
    return int.from_bytes(frame[:CORRELATION_BYTES], "big", signed=True)


def kio_api(
    key: ApiKey, versions: range, request: type[RequestT], response: type[ResponseT]
) -> ClientApi[RequestT, ResponseT]:
    """An API whose messages kio knows; `request` and `response` are its classes of the newest version.

    `versions` are the versions in use, ascending. A field that an older version lacks is dropped from a
    request, and has its default in a response.
    """
    # Any, because mypy rejects a class behind a type variable as a key of the cache.
    request_class: Any = request
    response_class: Any = response

    def encode_body(version: int, entity: RequestT) -> bytes:
        return _encoder(request_class, version)(entity)

    def decode_body(version: int, frame: Buffer, body_offset: int) -> ResponseT:
        return cast("ResponseT", _decoder(response_class, version)(frame, body_offset))

    return ClientApi(key, versions[0], versions[-1], encode_body, decode_body)


@cache
def _encoder(shape: Any, version: int) -> Callable[[Any], bytes]:
    return message_writer(shape, message_class(shape.__api_key__, version, "request"))


@cache
def _decoder(shape: Any, version: int) -> Callable[[Buffer, int], Any]:
    return message_reader(message_class(shape.__api_key__, version, "response"), shape)
