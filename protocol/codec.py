"""Decodes request bodies into messages, and encodes messages into response bodies, for all served versions.

kio decodes a request in the request's own version. The message is then lifted to the API's *shape*, the one
version that the handler uses (`lift`). A response goes the other way. The shape of an API is its newest
version; older shapes exist where the structure changed. Each converter is built once per API and version, and
kio's modules are loaded only then, because loading all of them would take a second.

Requests that carry or acknowledge records have decoders of their own in `decode`. Such responses have
encoders in `encode`, and so have responses that repeat the same content for thousands of resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from barnabas.protocol.api import APIS, ApiKey
from barnabas.protocol.decode.fetch import FetchBody, decode_fetch
from barnabas.protocol.decode.produce import ProduceBody, decode_produce
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody, decode_share_acknowledge
from barnabas.protocol.decode.share_fetch import ShareFetchBody, decode_share_fetch
from barnabas.protocol.kio_messages import (
    Entity,
    message_class,
    message_reader,
    message_writer,
)
from barnabas.protocol.varint import Buffer

RequestBody = Entity | ProduceBody | FetchBody | ShareFetchBody | ShareAcknowledgeBody

OWN_DECODERS: Final[Mapping[int, Callable[[int, Buffer, int], RequestBody]]] = {
    ApiKey.PRODUCE: decode_produce,
    ApiKey.FETCH: decode_fetch,
    ApiKey.SHARE_FETCH: decode_share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: decode_share_acknowledge,
}
"""From the version, the frame and the body's offset to the only shape of an API that is decoded without
kio. `broker.testing.request_names` reads the groups and topics of these requests, too."""

_OLDER_SHAPES: Final[Mapping[ApiKey, tuple[int, ...]]] = {
    ApiKey.PRODUCE: (12,),  # topics by name, then by id
    ApiKey.FETCH: (12,),  # topics by name, then by id
    ApiKey.METADATA: (10,),  # with the operations allowed on the cluster, then without
    ApiKey.OFFSET_COMMIT: (9,),  # topics by name, then by id
    ApiKey.OFFSET_FETCH: (7, 9),  # one group, then several, then topics by id
    ApiKey.FIND_COORDINATOR: (3,),  # one key, then several
    ApiKey.LEAVE_GROUP: (2,),  # one member, then several
    ApiKey.ADD_PARTITIONS_TO_TXN: (3,),  # one transaction, then several
    ApiKey.TXN_OFFSET_COMMIT: (5,),  # topics by name, then by id
    ApiKey.DELETE_TOPICS: (5,),  # names, then names or ids
    ApiKey.UPDATE_FEATURES: (1,),  # answers for each feature, then for all
}
"""The versions of the older shapes, ascending: each serves the versions up to its own."""


def decode_request(api_key: int, version: int, frame: Buffer, body_offset: int) -> RequestBody:
    """The request whose body starts at `body_offset` of `frame`, in the shape of its API.

    `version` must be a served one. Raises `FrameError` on a malformed body. Surplus bytes after a whole body
    are ignored, as in Kafka, because librdkafka sends some.
    """
    return request_decoder(api_key, version)(frame, body_offset)


def encode_response(api_key: int, version: int, entity: Entity) -> list[bytes]:
    """The body, without a header, of a response in the shape of its API.

    Fields that the client's `version` lacks are dropped; a null that it cannot express becomes an empty
    value.
    """
    return [_response_encoder(api_key, version, type(entity))(entity)]


def shape_version(api_key: int, version: int) -> int:
    """The version of the messages that a handler receives and returns when a client uses `version`."""
    key = ApiKey(api_key)
    older_shapes = _OLDER_SHAPES.get(key, ())
    return next((shape for shape in older_shapes if version <= shape), APIS[key].max_version)


def prepare(api_key: int, version: int) -> None:
    """Build the codec of this API and version now, so that its first request does not wait for it."""
    request_decoder(api_key, version)
    shape = message_class(api_key, shape_version(api_key, version), "response")
    _response_encoder(api_key, version, shape)


@cache
def request_decoder(api_key: int, version: int) -> Callable[[Buffer, int], RequestBody]:
    """`decode_request` for this API and version."""
    assert APIS[ApiKey(api_key)].serves(version), (
        f"{ApiKey(api_key).name} is not served in version {version}."
    )
    own_decoder = OWN_DECODERS.get(api_key)
    if own_decoder is not None:
        return partial(own_decoder, version)
    shape = message_class(api_key, shape_version(api_key, version), "request")
    return message_reader(message_class(api_key, version, "request"), shape)


@cache
def _response_encoder(api_key: int, version: int, shape: type[Entity]) -> Callable[[Entity], bytes]:
    assert APIS[ApiKey(api_key)].serves(version), (
        f"{ApiKey(api_key).name} is not served in version {version}."
    )
    return message_writer(shape, message_class(api_key, version, "response"))
