"""ShareAcknowledge (key 79, versions 1 and 2; KIP-932, KIP-1222): acknowledges records without a fetch.

The request advances the epoch of the share session as ShareFetch does, and may name partitions that are not
in the session. Epoch -1 ends the session; the records that the member still holds are released after the
response, as in Kafka. Version 1 has no renewal. The decoder of requests is Barnabas's own. A request that a
client repeats after a lost connection gets its first answer again (`share.fetch.kept_answers`).
`transactional_acknowledgements` handles acknowledgements that join a transaction, an extension.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from barnabas.broker.config.group_config import GroupConfigs
from barnabas.broker.handlers.common.share_request import (
    checked_key,
    find_first_answer,
    finish,
    lock_duration_ms,
    take_over,
)
from barnabas.broker.handlers.common.transactional_acknowledgements import acknowledge_in_transaction
from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.coordinator.metadata.controller import Controller
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.encode.share_acknowledge import (
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeTopicResult,
    encode_share_acknowledge_response,
)
from barnabas.protocol.errors import ApiError
from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import Completion
from barnabas.runtime.response_budget import EncodedBody
from barnabas.share.fetch.kept_answers import KeptAnswers
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.sessions.acknowledgements import Acknowledgements, Results
from barnabas.share.sessions.session import ShareSession
from barnabas.share.sessions.session_cache import ShareSessionCache

_API: Final = "share_acknowledge"


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    group_configs: GroupConfigs
    share_sessions: ShareSessionCache
    kept_answers: KeptAnswers
    share_partitions: SharePartitions
    transactions: TransactionStateTopic
    acknowledgements: Acknowledgements
    end_share_session: Callable[[ShareSession], None]


def handle_share_acknowledge(parts: Parts, context: RequestContext, request: ShareAcknowledgeBody) -> Reply:
    version = context.api_version
    try:
        key = checked_key(parts.metadata.image, request)
        session = parts.share_sessions.advance(key, request.share_session_epoch)
    except ApiError as error:
        first = find_first_answer(parts.kept_answers, parts.share_sessions, parts.clock, request, _API, error)
        if first is not None:
            take_over(parts.share_sessions, first.session, context.connection_id)
            return _answer(parts.group_configs, version, first.session, first.results)
        return EncodedBody(encode_share_acknowledge_response(version, error.code.value, error.message, 0, ()))
    if request.transaction is None:
        acknowledged = parts.acknowledgements.take(
            session,
            request.topics,
            parts.group_configs.of(session.key.group_id).limits,
            context.started_ms,
            version=version,
            is_renew_ack=request.is_renew_ack,
        )
    else:
        acknowledged = acknowledge_in_transaction(parts, context, session, request, request.transaction)
    finish(parts.kept_answers, parts.end_share_session, session, request, _API, acknowledged)
    return _answer(parts.group_configs, version, session, acknowledged)


def _answer(
    configs: GroupConfigs, version: int, session: ShareSession, acknowledged: Completion[Results]
) -> Reply:
    if acknowledged.done:
        return _encode(configs, version, session, acknowledged.result())
    return acknowledged.then(partial(_encode, configs, version, session))


def _encode(configs: GroupConfigs, version: int, session: ShareSession, results: Results) -> EncodedBody:
    topics: dict[int, ShareAcknowledgeTopicResult] = {}
    for partition, (error_code, message) in results.items():
        row = ShareAcknowledgePartitionResult(partition.key.partition, error_code, message)
        topic = topics.get(partition.place[0])
        if topic is None:
            topics[partition.place[0]] = ShareAcknowledgeTopicResult(partition.key.topic_id, [row])
        else:
            topic.partitions.append(row)
    lock_ms = lock_duration_ms(configs, session)
    return EncodedBody(encode_share_acknowledge_response(version, 0, None, lock_ms, topics.values()))
