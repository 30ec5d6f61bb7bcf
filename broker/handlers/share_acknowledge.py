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

from barnabas.broker.handlers.common.share_request import (
    check_caller,
    find_first_answer,
    finish,
    lock_duration_ms,
    session_key,
    take_over,
)
from barnabas.broker.handlers.common.transactional_acknowledgements import acknowledge_in_transaction
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.errors import ApiError
from barnabas.runtime.completion import Completion
from barnabas.runtime.response_budget import EncodedBody
from barnabas.share.sessions.acknowledgements import Results
from barnabas.share.sessions.session import ShareSession

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker


_API = "share_acknowledge"


def handle_share_acknowledge(broker: Broker, context: RequestContext, request: ShareAcknowledgeBody) -> Reply:
    version = context.api_version
    try:
        check_caller(broker, request)
        session = broker.share_sessions.advance(session_key(request), request.share_session_epoch)
    except ApiError as error:
        first = find_first_answer(broker, request, _API, error)
        if first is not None:
            take_over(broker, first.session, context.connection_id)
            return _answer(broker, version, first.session, first.results)
        return EncodedBody(encode_share_acknowledge_response(version, error.code.value, error.message, 0, ()))
    if request.transaction is None:
        acknowledged = broker.acknowledgements.take(
            session,
            request.topics,
            broker.group_configs.of(session.key.group_id).limits,
            context.started_ms,
            version=version,
            is_renew_ack=request.is_renew_ack,
        )
    else:
        acknowledged = acknowledge_in_transaction(broker, context, session, request, request.transaction)
    finish(broker, session, request, _API, acknowledged)
    return _answer(broker, version, session, acknowledged)


def _answer(broker: Broker, version: int, session: ShareSession, acknowledged: Completion[Results]) -> Reply:
    if acknowledged.done:
        return _encode(broker, version, session, acknowledged.result())
    return acknowledged.then(partial(_encode, broker, version, session))


def _encode(broker: Broker, version: int, session: ShareSession, results: Results) -> EncodedBody:
    topics: dict[int, ShareAcknowledgeTopicResult] = {}
    for partition, (error_code, message) in results.items():
        row = ShareAcknowledgePartitionResult(partition.key.partition, error_code, message)
        topic = topics.get(partition.place[0])
        if topic is None:
            topics[partition.place[0]] = ShareAcknowledgeTopicResult(partition.key.topic_id, [row])
        else:
            topic.partitions.append(row)
    lock_ms = lock_duration_ms(broker, session)
    return EncodedBody(encode_share_acknowledge_response(version, 0, None, lock_ms, topics.values()))
