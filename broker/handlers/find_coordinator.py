"""FindCoordinator (key 10): which broker keeps the state of a group, or of a transactional id (KIP-699 for
several keys at a time).

- Groups of every kind (type 0) are this node's, and so are transactional ids (type 1).
- Share coordinators (type 2, from version 6 on) are for brokers among themselves: on their listener alone,
  for keys `group:topicId:partition`. COORDINATOR_NOT_AVAILABLE where share state is not kept in its topic.
- INVALID_REQUEST for any other type, or key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from barnabas.broker.network.dispatch import EncodedBody
from barnabas.broker.turns import Turns, in_turns
from barnabas.coordinator.share_state.share_coordinator import is_coordinator_key
from barnabas.protocol.encode.find_coordinator import (
    RESPONSE_END,
    encode_coordinator_of,
    encode_node,
    encode_response_start,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequestBatch,
    FindCoordinatorRequestSingle,
    FindCoordinatorResponseSingle,
)
from barnabas.protocol.primitive import BrokerId, i32, milliseconds
from barnabas.protocol.varint import Buffer

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.dispatch import Reply, RequestContext

_BATCH_FROM, _SHARE_FROM = 4, 6
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2


class _Node(NamedTuple):
    node_id: int
    host: str
    port: int
    error_code: ErrorCode
    error_message: str


def handle_find_coordinator(
    broker: Broker,
    context: RequestContext,
    request: FindCoordinatorRequestSingle | FindCoordinatorRequestBatch,
) -> Reply:
    if context.api_version >= _BATCH_FROM:
        return in_turns(_find_all(broker, context, cast("FindCoordinatorRequestBatch", request)))
    node = _find(broker, context, request.key_type, cast("FindCoordinatorRequestSingle", request).key)
    # Kafka has this text for success here, and none in the newer versions.
    return FindCoordinatorResponseSingle(
        throttle_time=milliseconds(0),
        error_code=node.error_code,
        error_message=node.error_message or "NONE",
        node_id=BrokerId(node.node_id),
        host=node.host,
        port=i32(node.port),
    )


async def _find_all(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequestBatch
) -> EncodedBody:
    """A client may look for very many at once; each distinct answer is encoded once."""
    turns, encoded = Turns(), dict[_Node, bytes]()
    buffers: list[Buffer] = [encode_response_start(len(request.coordinator_keys))]
    for key in request.coordinator_keys:
        node = _find(broker, context, request.key_type, key)
        if node not in encoded:
            encoded[node] = encode_node(*node)
        buffers.append(encode_coordinator_of(key, encoded[node]))
        await turns.took(1)
    return EncodedBody([*buffers, RESPONSE_END])


def _find(broker: Broker, context: RequestContext, key_type: int, key: str) -> _Node:
    is_share = key_type == _SHARE and context.listener.inter_broker and context.api_version >= _SHARE_FROM
    if is_share and is_coordinator_key(key) and broker.share_state is None:
        return _nowhere(
            ErrorCode.coordinator_not_available, "Share state is kept in the partitions' own logs."
        )
    if key_type in (_GROUP, _TRANSACTION) or (is_share and is_coordinator_key(key)):
        listener = context.listener
        return _Node(broker.node_id, listener.advertised_host, listener.advertised_port, ErrorCode.none, "")
    return _nowhere(ErrorCode.invalid_request, f"There are no coordinators of type {key_type} for clients.")


def _nowhere(error_code: ErrorCode, message: str) -> _Node:
    return _Node(-1, "", -1, error_code, message)
