"""Request bodies into messages, messages into response bodies, for every API and version that is served.

kio decodes a request as its own version has it; it is then lifted to the API's *shape*, the one version
that the handler speaks (`lift`). A response goes the other way. An API has one shape, its newest version,
or two where its structure changed. Each step is put together once per API and version, and kio's modules
are loaded only then: all of them would take a second. What kio must not see, `tolerant` finds first.
Requests that carry records or follow every record have decoders of their own in `decode`, and such responses
have encoders in `encode`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from io import BytesIO
from typing import Final, Literal, cast

from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.protocol import Entity

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.decode.produce import ProduceBody, decode_produce
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody, decode_share_acknowledge
from barnabas.protocol.decode.share_fetch import ShareFetchBody, decode_share_fetch
from barnabas.protocol.errors import FrameError
from barnabas.protocol.lift import converter
from barnabas.protocol.tolerant import Edit, apply_edits, compile_walk
from barnabas.protocol.varint import Buffer, RecordFormatError

__all__ = [
    "Entity",
    "RequestBody",
    "decode_request",
    "encode_response",
    "message_class",
    "prepare",
    "shape_version",
]

RequestBody = Entity | ProduceBody | ShareFetchBody | ShareAcknowledgeBody

_OWN_DECODERS: Final[Mapping[int, Callable[[int, Buffer, int], RequestBody]]] = {
    ApiKey.PRODUCE: decode_produce,
    ApiKey.SHARE_FETCH: decode_share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: decode_share_acknowledge,
}
"""From version, frame and the body's offset to the one shape of an API that kio has no part in."""

_OLDER_SHAPES: Final = {
    ApiKey.PRODUCE: 12,  # topics by name, then by id
    ApiKey.FETCH: 12,  # topics by name, then by id
    ApiKey.FIND_COORDINATOR: 3,  # one key, then several
    ApiKey.DELETE_TOPICS: 5,  # names, then names or ids
}
"""The version of the older shape, where there are two: it serves all versions up to its own."""

_UNREADABLE: Final = (
    IndexError,
    KeyError,
    OverflowError,
    RecordFormatError,
    SerialError,
    ValueError,
    struct.error,
)
"""What kio and the walk before it raise on bytes that are no message."""


def decode_request(api_key: int, version: int, frame: Buffer, body_offset: int) -> RequestBody:
    """The request whose body starts at `body_offset` of `frame`, in the shape of its API.

    `version` must be one that is served. Raises `FrameError` on a body that cannot be read. Surplus bytes
    behind a whole body are ignored, as Kafka does: librdkafka sends some.
    """
    return _request_decoder(api_key, version)(frame, body_offset)


def encode_response(api_key: int, version: int, entity: Entity) -> list[bytes]:
    """The body, without a header, of a response that is given in the shape of its API.

    Fields that `version`, the client's, lacks are dropped; a null that it cannot say becomes an empty value.
    """
    return [_response_encoder(api_key, version, type(entity))(entity)]


def shape_version(api_key: int, version: int) -> int:
    """The version of the messages that a handler gets and answers when a client speaks `version`."""
    key = ApiKey(api_key)
    older_shape = _OLDER_SHAPES.get(key, -1)
    return older_shape if version <= older_shape else APIS[key].max_version


def message_class(api_key: int, version: int, direction: Literal["request", "response"]) -> type[Entity]:
    """kio's class for one API, version and direction, loaded if need be."""
    name = APIS[ApiKey(api_key)].name
    module = import_module(f"kio.schema.{name}.v{version}.{direction}")
    class_name = name.title().replace("_", "") + direction.title()
    return cast("type[Entity]", getattr(module, class_name))


def prepare(api_key: int, version: int) -> None:
    """Does now what the first request of this API and version would otherwise wait for."""
    _request_decoder(api_key, version)
    shape = message_class(api_key, shape_version(api_key, version), "response")
    _response_encoder(api_key, version, shape)


@cache
def _request_decoder(api_key: int, version: int) -> Callable[[Buffer, int], RequestBody]:
    assert APIS[ApiKey(api_key)].serves(version), (
        f"{ApiKey(api_key).name} is not served in version {version}."
    )
    own_decoder = _OWN_DECODERS.get(api_key)
    if own_decoder is not None:
        return partial(own_decoder, version)
    source = message_class(api_key, version, "request")
    lift = converter(source, message_class(api_key, shape_version(api_key, version), "request"))
    walk, read = compile_walk(source), entity_reader(source)

    def decode(frame: Buffer, body_offset: int) -> Entity:
        edits: list[Edit] = []
        try:
            end = walk(frame, body_offset, edits)
            if end > len(frame):
                raise FrameError(f"A request's body would have to reach byte {end} of {len(frame)}.")
            if edits:
                frame, body_offset = apply_edits(frame, body_offset, edits), 0
            entity, _ = read(frame, body_offset)
        except _UNREADABLE as error:
            raise FrameError(f"A request cannot be read as {source.__name__} v{version}: {error}") from error
        return entity if lift is None else cast("Entity", lift(entity))

    return decode


@cache
def _response_encoder(api_key: int, version: int, shape: type[Entity]) -> Callable[[Entity], bytes]:
    assert APIS[ApiKey(api_key)].serves(version), (
        f"{ApiKey(api_key).name} is not served in version {version}."
    )
    target = message_class(api_key, version, "response")
    lower, write = converter(shape, target), entity_writer(target)

    def encode(entity: Entity) -> bytes:
        buffer = BytesIO()
        write(buffer, entity if lower is None else lower(entity))
        return buffer.getvalue()

    return encode
