"""FindCoordinator (key 10): which broker keeps the state of a group, or of a transactional id (KIP-699 for
several keys at a time).

- Groups of every kind (type 0) are this node's, and so are transactional ids (type 1).
- Share coordinators (type 2, from version 6 on) are for brokers among themselves: on their listener alone,
  for keys `group:topicId:partition`. COORDINATOR_NOT_AVAILABLE where share state is not kept in its topic.
- INVALID_REQUEST for any other type, or key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from barnabas.coordinator.share_state.share_coordinator import is_coordinator_key
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequestBatch,
    FindCoordinatorRequestSingle,
    FindCoordinatorResponseBatch,
    FindCoordinatorResponseSingle,
)
from barnabas.protocol.primitive import BrokerId, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.dispatch import Reply, RequestContext

_BATCH_FROM, _SHARE_FROM = 4, 6
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2


class _Node(NamedTuple):
    error_code: ErrorCode
    error_message: str
    node_id: BrokerId
    host: str
    port: i32


def handle_find_coordinator(
    broker: Broker,
    context: RequestContext,
    request: FindCoordinatorRequestSingle | FindCoordinatorRequestBatch,
) -> Reply:
    if context.api_version >= _BATCH_FROM:
        # Kafka has no text for success here, and "NONE" in the older versions.
        keys = cast("FindCoordinatorRequestBatch", request).coordinator_keys
        coordinators = tuple(
            Coordinator(key=key, **_find(broker, context, request.key_type, key)._asdict()) for key in keys
        )
        return FindCoordinatorResponseBatch(throttle_time=milliseconds(0), coordinators=coordinators)
    node = _find(broker, context, request.key_type, cast("FindCoordinatorRequestSingle", request).key)
    message = node.error_message or "NONE"
    return FindCoordinatorResponseSingle(
        throttle_time=milliseconds(0), **node._replace(error_message=message)._asdict()
    )


def _find(broker: Broker, context: RequestContext, key_type: int, key: str) -> _Node:
    is_share = key_type == _SHARE and context.listener.inter_broker and context.api_version >= _SHARE_FROM
    if is_share and is_coordinator_key(key) and broker.share_state is None:
        return _nowhere(
            ErrorCode.coordinator_not_available, "Share state is kept in the partitions' own logs."
        )
    if key_type in (_GROUP, _TRANSACTION) or (is_share and is_coordinator_key(key)):
        listener = context.listener
        return _Node(
            ErrorCode.none,
            "",
            BrokerId(broker.node_id),
            listener.advertised_host,
            i32(listener.advertised_port),
        )
    return _nowhere(ErrorCode.invalid_request, f"There are no coordinators of type {key_type} for clients.")


def _nowhere(error_code: ErrorCode, message: str) -> _Node:
    return _Node(error_code, message, BrokerId(-1), "", i32(-1))
