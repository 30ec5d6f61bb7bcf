"""Request bodies into messages, messages into response bodies, for every API and version that is served.

kio decodes a request as its own version has it; it is then lifted to the API's *shape*, the one version
that the handler speaks (`lift`). A response goes the other way. An API has one shape, its newest version,
and others where its structure changed. Each step is put together once per API and version, and kio's modules
are loaded only then: all of them would take a second.
Requests that carry records or follow every record have decoders of their own in `decode`, and such responses
have encoders in `encode`, as those have that say the same of thousands of resources.
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

_OWN_DECODERS: Final[Mapping[int, Callable[[int, Buffer, int], RequestBody]]] = {
    ApiKey.PRODUCE: decode_produce,
    ApiKey.FETCH: decode_fetch,
    ApiKey.SHARE_FETCH: decode_share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: decode_share_acknowledge,
}
"""From version, frame and the body's offset to the one shape of an API that kio has no part in."""

_OLDER_SHAPES: Final[Mapping[ApiKey, tuple[int, ...]]] = {
    ApiKey.PRODUCE: (12,),  # topics by name, then by id
    ApiKey.FETCH: (12,),  # topics by name, then by id
    ApiKey.METADATA: (10,),  # what may be done to the cluster, then nothing of it
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
    older_shapes = _OLDER_SHAPES.get(key, ())
    return next((shape for shape in older_shapes if version <= shape), APIS[key].max_version)


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
    shape = message_class(api_key, shape_version(api_key, version), "request")
    return message_reader(message_class(api_key, version, "request"), shape)


@cache
def _response_encoder(api_key: int, version: int, shape: type[Entity]) -> Callable[[Entity], bytes]:
    assert APIS[ApiKey(api_key)].serves(version), (
        f"{ApiKey(api_key).name} is not served in version {version}."
    )
    return message_writer(shape, message_class(api_key, version, "response"))
