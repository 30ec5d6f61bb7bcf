"""Fetch (key 1, versions 4 to 18; KIP-74, KIP-98, KIP-227, KIP-320, KIP-516): records for ordinary consumers.

- Topics have names up to version 12, ids from 13 on. The decoder of requests is Barnabas's own.
- A fetch session, if there is one, knows the partitions of the request (`sessions.fetch_sessions`).
- The response comes when `min_bytes` are there, when a partition has an error, or after `max_wait_ms`.
  Partitions that do not exist do not end the wait while others exist, as in Kafka, because the client would
  ask for them again immediately.
- A replica is answered like a consumer, unless it follows the metadata log (`fetch_metadata_log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetch.fetch_operation import FetchOperation
from barnabas.broker.handlers.common.fetch_metadata_log import fetch_metadata_log, follows_metadata_log
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.sessions.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION
from barnabas.protocol.encode.fetch import TOPIC_ID_VERSION, encode_fetch_response
from barnabas.protocol.errors import ApiError
from barnabas.runtime.response_budget import EncodedBody

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.protocol.decode.fetch import FetchBody

_FULL_FETCH_EPOCHS = (INITIAL_EPOCH, FINAL_EPOCH)


def handle_fetch(broker: Broker, context: RequestContext, request: FetchBody) -> Reply:
    if follows_metadata_log(request, broker, context):
        return fetch_metadata_log(broker, context, request)
    try:
        operation = _begin(broker, context, request)
    except ApiError as error:
        body = encode_fetch_response(context.api_version, error.code.value, NO_SESSION, ())
        return EncodedBody(body)
    return operation.start()


def _begin(broker: Broker, context: RequestContext, request: FetchBody) -> FetchOperation:
    """The operation of a request; raises `ApiError` if its session is unknown or has another epoch."""
    sessions = broker.fetch_sessions
    by_id = context.api_version >= TOPIC_ID_VERSION
    if request.session_epoch not in _FULL_FETCH_EPOCHS:
        now_ms = broker.clock.monotonic_ms()
        session = sessions.find(request.session_id, request.session_epoch, by_id=by_id)
        if sessions.advance(session, request.topics, request.forgotten_topics, now_ms):
            return FetchOperation(broker, context, request, session)
    elif request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    return FetchOperation(broker, context, request, None)
