"""ShareAcknowledge (key 79, versions 1 and 2; KIP-932, KIP-1222): acknowledges records without a fetch.

The request advances the epoch of the share session as ShareFetch does, and may name partitions that are not
in the session. Epoch -1 ends the session; the records that the member still holds are released after the
response, as in Kafka. Version 1 has no renewal. The decoder of requests is Barnabas's own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.broker.handlers.share_fetch import check_caller
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.errors import ApiError
from barnabas.runtime.response_budget import EncodedBody
from barnabas.share.leader.acknowledgements import Results, acknowledge
from barnabas.share.sessions.session import ShareSessionKey

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


def handle_share_acknowledge(broker: Broker, context: RequestContext, request: ShareAcknowledgeBody) -> Reply:
    group_id, member_id = request.group_id or "", request.member_id or ""
    try:
        require_share_groups(broker.metadata.image)
        check_caller(request.group_id, request.member_id)
        found = broker.share_sessions.acknowledge(
            ShareSessionKey(group_id, member_id), request.share_session_epoch
        )
    except ApiError as error:
        body = encode_share_acknowledge_response(context.api_version, error.code.value, error.message, 0, ())
        return EncodedBody(body)
    acknowledged = acknowledge(
        broker.share_partitions,
        broker.fetch_source.why_not_led,
        group_id,
        member_id,
        request.topics,
        version=context.api_version,
        is_renew_ack=request.is_renew_ack,
    )
    if found.is_final:
        # The session ends even if the client has disconnected by then.
        acknowledged.when_done(lambda _: broker.end_share_session(found.session))
    if acknowledged.done:
        return _encode(broker, context.api_version, group_id, acknowledged.result())
    return acknowledged.then(partial(_encode, broker, context.api_version, group_id))


def _encode(broker: Broker, version: int, group_id: str, results: Results) -> EncodedBody:
    by_topic: dict[UUID, list[ShareAcknowledgePartitionResult]] = {}
    for partition, (error_code, message) in results.items():
        result = ShareAcknowledgePartitionResult(partition.partition, error_code, message)
        by_topic.setdefault(partition.topic_id, []).append(result)
    topics = [ShareAcknowledgeTopicResult(topic_id, results) for topic_id, results in by_topic.items()]
    lock_duration_ms = broker.group_configs.limits_of(group_id).lock_duration_ms
    return EncodedBody(encode_share_acknowledge_response(version, 0, None, lock_duration_ms, topics))
