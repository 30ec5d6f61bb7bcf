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

from barnabas.broker.handlers.common.share_request import ShareRequest, lock_duration_ms
from barnabas.broker.handlers.common.transactional_acknowledgements import acknowledge_in_transaction
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.errors import ApiError
from barnabas.runtime.response_budget import EncodedBody
from barnabas.share.fetch.kept_answers import KeptAnswer
from barnabas.share.leader.acknowledgements import Results
from barnabas.share.sessions.session import ShareSession

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


def handle_share_acknowledge(broker: Broker, context: RequestContext, request: ShareAcknowledgeBody) -> Reply:
    share_request = ShareRequest(broker, context, request, "share_acknowledge")
    version = context.api_version
    try:
        share_request.check_caller()
        found = broker.share_sessions.acknowledge(share_request.key, request.share_session_epoch)
    except ApiError as error:
        first_answer = share_request.find_first_answer(error)
        if first_answer is not None:
            share_request.take_over(first_answer.session)
            return _answer(broker, version, first_answer)
        return EncodedBody(encode_share_acknowledge_response(version, error.code.value, error.message, 0, ()))
    if request.transaction is None:
        acknowledged = share_request.acknowledge(request.topics, found.session.lock_duration_ms)
    else:
        acknowledged = acknowledge_in_transaction(broker, share_request, request.transaction, request.topics)
    return _answer(broker, version, share_request.finish(found, acknowledged))


def _answer(broker: Broker, version: int, answer: KeptAnswer) -> Reply:
    session, acknowledged = answer.session, answer.results
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
