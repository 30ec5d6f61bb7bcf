"""Fetch (key 1, versions 4 to 18; KIP-74, KIP-98, KIP-227, KIP-320, KIP-516): records for ordinary consumers.

- Topics have names up to version 12, ids from 13 on. The decoder of requests is Barnabas's own.
- A fetch session, if there is one, knows the partitions of the request (`sessions.fetch_sessions`).
- The response comes when `min_bytes` are there, when a partition has an error, or after `max_wait_ms`.
  Partitions that do not exist do not end the wait while others exist, as in Kafka, because the client would
  ask for them again immediately.
- A replica is answered like a consumer, unless it follows the metadata log (`fetch_metadata_log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.fetch.fetch_operation import FetchOperation
from barnabas.broker.handlers.common.fetch_metadata_log import fetch_metadata_log, follows_metadata_log
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.sessions.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchSessionCache
from barnabas.coordinator.metadata.controller import Controller
from barnabas.coordinator.metadata.partition_logs import PartitionLogs
from barnabas.protocol.encode.fetch import TOPIC_ID_VERSION, encode_fetch_response
from barnabas.protocol.errors import ApiError
from barnabas.runtime.clock import Clock
from barnabas.runtime.long_work import LongWork
from barnabas.runtime.purgatory import Purgatory
from barnabas.runtime.response_budget import EncodedBody, ResponseBudget

if TYPE_CHECKING:
    from barnabas.protocol.decode.fetch import FetchBody

_FULL_FETCH_EPOCHS: Final = (INITIAL_EPOCH, FINAL_EPOCH)


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    response_budget: ResponseBudget
    quotas: ClientQuotas
    cluster_id: str
    node_id: int
    purgatory: Purgatory
    logs: PartitionLogs
    long_work: LongWork
    fetch_sessions: FetchSessionCache


def handle_fetch(parts: Parts, context: RequestContext, request: FetchBody) -> Reply:
    if follows_metadata_log(parts.node_id, context, request):
        return fetch_metadata_log(parts, context, request)
    try:
        operation = _begin(parts, context, request)
    except ApiError as error:
        body = encode_fetch_response(context.api_version, error.code.value, NO_SESSION, ())
        return EncodedBody(body)
    return operation.start()


def _begin(parts: Parts, context: RequestContext, request: FetchBody) -> FetchOperation:
    """The operation of a request; raises `ApiError` if its session is unknown or has another epoch."""
    sessions = parts.fetch_sessions
    by_id = context.api_version >= TOPIC_ID_VERSION
    if request.session_epoch not in _FULL_FETCH_EPOCHS:
        now_ms = parts.clock.monotonic_ms()
        session = sessions.find(request.session_id, request.session_epoch, by_id=by_id)
        if sessions.advance(session, request.topics, request.forgotten_topics, now_ms):
            return FetchOperation(parts, context, request, session)
    elif request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    return FetchOperation(parts, context, request, None)
