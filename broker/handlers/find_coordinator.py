"""FindCoordinator (key 10, versions 0 to 6; KIP-699): the coordinator of a group or a transaction.

- `Single` is versions 0 to 3, with one key; version 0 is for groups only. `Batch` is versions 4 to 6.
- This node coordinates all groups (type 0) and all transactional ids (type 1).
- The topic of the coordinator's records is created if it does not exist. Kafka starts to create it and
  responds COORDINATOR_NOT_AVAILABLE. Here the response waits for the append, and has this error only if that
  fails.
- Only brokers look for share coordinators (type 2, from version 6 on), on their listener and with keys
  `group:topicId:partition`. COORDINATOR_NOT_AVAILABLE if share state is not kept in its topic.
- Any other type or key is INVALID_REQUEST.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, NamedTuple, cast

from kio.schema.find_coordinator.v3.request import FindCoordinatorRequest as FindCoordinatorRequestSingle
from kio.schema.find_coordinator.v3.response import FindCoordinatorResponse
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest as FindCoordinatorRequestBatch

from barnabas.coordinator.metadata.topic_names import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.coordinator.share_state.share_coordinator import is_coordinator_key
from barnabas.protocol.encode.find_coordinator import (
    RESPONSE_END,
    encode_coordinator_of,
    encode_node,
    encode_response_start,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import BrokerId, i32, milliseconds
from barnabas.protocol.varint import Buffer
from barnabas.runtime.response_budget import EncodedBody
from barnabas.runtime.turns import Turns, in_turns

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.internal_topics import InternalTopics
    from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
    from barnabas.broker.network.handler import Reply, RequestContext, Response

_BATCH_FROM, _SHARE_FROM = 4, 6
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_TOPICS = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTION_STATE_TOPIC, _SHARE: SHARE_STATE_TOPIC}
"""The topic in which the coordinators of each type keep their records."""

_Request = FindCoordinatorRequestSingle | FindCoordinatorRequestBatch


class Parts(NamedTuple):
    node_id: int
    internal_topics: InternalTopics
    share_state: ShareStateTopic | None


class _Node(NamedTuple):
    node_id: int
    host: str
    port: int
    error_code: ErrorCode
    error_message: str


def handle_find_coordinator(parts: Parts, context: RequestContext, request: _Request) -> Reply:
    topic = _TOPICS.get(request.key_type)
    if topic is None or parts.internal_topics.exists(topic):
        return _answer(parts, context, request)
    return _create_then_answer(parts, context, request, topic)


async def _create_then_answer(
    parts: Parts, context: RequestContext, request: _Request, topic: str
) -> Response:
    keys = _keys(context.api_version, request)
    if any(_refusal(parts.share_state, context, request.key_type, key) is None for key in keys):
        # A failure becomes COORDINATOR_NOT_AVAILABLE, and the client asks again.
        with contextlib.suppress(ApiError):
            await parts.internal_topics.ensure(topic)
    response = _answer(parts, context, request)
    return await response if isawaitable(response) else response


def _keys(version: int, request: _Request) -> Sequence[str]:
    if version >= _BATCH_FROM:
        return cast("FindCoordinatorRequestBatch", request).coordinator_keys
    return [cast("FindCoordinatorRequestSingle", request).key]


def _answer(parts: Parts, context: RequestContext, request: _Request) -> Reply:
    if context.api_version >= _BATCH_FROM:
        return in_turns(_find_all(parts, context, cast("FindCoordinatorRequestBatch", request)))
    node = _find(parts, context, request.key_type, cast("FindCoordinatorRequestSingle", request).key)
    # Kafka has this text for a success in these versions, and no text in the newer ones.
    return FindCoordinatorResponse(
        throttle_time=milliseconds(0),
        error_code=node.error_code,
        error_message=node.error_message or "NONE",
        node_id=BrokerId(node.node_id),
        host=node.host,
        port=i32(node.port),
    )


async def _find_all(
    parts: Parts, context: RequestContext, request: FindCoordinatorRequestBatch
) -> EncodedBody:
    """Encodes each distinct result once, because a request may have very many keys."""
    turns, encoded = Turns(), dict[_Node, bytes]()
    buffers: list[Buffer] = [encode_response_start(len(request.coordinator_keys))]
    for key in request.coordinator_keys:
        node = _find(parts, context, request.key_type, key)
        if node not in encoded:
            encoded[node] = encode_node(*node)
        buffers.append(encode_coordinator_of(key, encoded[node]))
        await turns.took(1)
    return EncodedBody([*buffers, RESPONSE_END])


def _find(parts: Parts, context: RequestContext, key_type: int, key: str) -> _Node:
    refusal = _refusal(parts.share_state, context, key_type, key)
    if refusal is not None:
        return refusal
    if not parts.internal_topics.exists(_TOPICS[key_type]):
        return _nowhere(ErrorCode.coordinator_not_available, "The coordinator's topic could not be created.")
    listener = context.listener
    return _Node(parts.node_id, listener.advertised_host, listener.advertised_port, ErrorCode.none, "")


def _refusal(
    share_state: ShareStateTopic | None, context: RequestContext, key_type: int, key: str
) -> _Node | None:
    """The error if no coordinator of this type can have this key; does not depend on the topics."""
    if key_type in (_GROUP, _TRANSACTION):
        return None
    is_share = key_type == _SHARE and context.listener.inter_broker and context.api_version >= _SHARE_FROM
    if not is_share or not is_coordinator_key(key):
        message = f"There are no coordinators of type {key_type} for clients."
        return _nowhere(ErrorCode.invalid_request, message)
    if share_state is None:
        message = "Share state is kept in the partitions' own logs."
        return _nowhere(ErrorCode.coordinator_not_available, message)
    return None


def _nowhere(error_code: ErrorCode, message: str) -> _Node:
    return _Node(-1, "", -1, error_code, message)
