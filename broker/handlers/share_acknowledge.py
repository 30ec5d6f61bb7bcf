"""ShareAcknowledge (key 79, versions 1 and 2; KIP-932, KIP-1222): acknowledges records without a fetch.

The request advances the epoch of the share session as ShareFetch does, and may name partitions that are not
in the session. Epoch -1 ends the session; the records that the member still holds are released after the
response, as in Kafka. Version 1 has no renewal. The decoder of requests is Barnabas's own. A request that a
client repeats after a lost connection gets its first answer again (`share.fetch.kept_answers`).
`transactional_acknowledgements` handles acknowledgements that join a transaction, an extension.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.broker.handlers.share_fetch import check_caller, find_first_answer, lock_duration_ms
from barnabas.broker.handlers.transactional_acknowledgements import acknowledge_in_transaction
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.errors import ApiError
from barnabas.runtime.completion import Completion
from barnabas.runtime.response_budget import EncodedBody
from barnabas.share.fetch.kept_answers import KeptAnswer
from barnabas.share.leader.acknowledgements import Results, acknowledge_all
from barnabas.share.sessions.session import ShareSession, ShareSessionKey

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


def handle_share_acknowledge(broker: Broker, context: RequestContext, request: ShareAcknowledgeBody) -> Reply:
    key = ShareSessionKey(request.group_id or "", request.member_id or "")
    epoch = request.share_session_epoch
    content = "share_acknowledge", request.encoded_topics, request.is_renew_ack
    try:
        require_share_groups(broker.metadata.image)
        check_caller(request.group_id, request.member_id)
        found = broker.share_sessions.acknowledge(key, epoch)
    except ApiError as error:
        first_answer = find_first_answer(broker, key, epoch, content, error)
        if first_answer is not None:
            return _repeat(broker, context, first_answer)
        body = encode_share_acknowledge_response(context.api_version, error.code.value, error.message, 0, ())
        return EncodedBody(body)
    if request.transaction is None:
        acknowledged = acknowledge_all(
            broker.share_partitions,
            broker.fetch_source.why_not_led,
            key.group_id,
            key.member_id,
            request.topics,
            version=context.api_version,
            is_renew_ack=request.is_renew_ack,
            lock_duration_ms=found.session.lock_duration_ms,
        )
    else:
        acknowledged = acknowledge_in_transaction(
            broker, request.transaction, request, version=context.api_version
        )
    if found.session.repeats_requests:
        broker.kept_answers.keep(KeptAnswer(found.session, epoch, content, acknowledged))
    if found.is_final:
        # The session ends even if the client has disconnected by then.
        acknowledged.when_done(lambda _: broker.end_share_session(found.session))
    return _answer(broker, context.api_version, found.session, acknowledged)


def _repeat(broker: Broker, context: RequestContext, first_answer: KeptAnswer) -> Reply:
    """The first answer again. If its session still lives, the session belongs to this connection now."""
    session = first_answer.session
    if broker.share_sessions.get(session.key) is session:
        broker.share_sessions.move(session, context.connection_id)
    return _answer(broker, context.api_version, session, first_answer.results)


def _answer(broker: Broker, version: int, session: ShareSession, acknowledged: Completion[Results]) -> Reply:
    if acknowledged.done:
        return _encode(broker, version, session, acknowledged.result())
    return acknowledged.then(partial(_encode, broker, version, session))


def _encode(broker: Broker, version: int, session: ShareSession, results: Results) -> EncodedBody:
    by_topic: dict[UUID, list[ShareAcknowledgePartitionResult]] = {}
    for partition, (error_code, message) in results.items():
        result = ShareAcknowledgePartitionResult(partition.partition, error_code, message)
        by_topic.setdefault(partition.topic_id, []).append(result)
    topics = [ShareAcknowledgeTopicResult(topic_id, results) for topic_id, results in by_topic.items()]
    lock_ms = lock_duration_ms(broker, session)
    return EncodedBody(encode_share_acknowledge_response(version, 0, None, lock_ms, topics))
