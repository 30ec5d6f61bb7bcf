"""AddOffsetsToTxn (key 25, versions 0 to 4; KIP-98): adds the committed offsets of a group to a transaction.

Clients send it before transaction.version 2 only; since then TxnOffsetCommit does the same. Up to version 1 a
fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_offsets_to_txn.v4.response import AddOffsetsToTxnResponse

from barnabas.broker.handlers.common.fencing import fenced_code
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.internal_topics import InternalTopics
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import RequestContext
    from barnabas.coordinator.groups import Groups

_KNOWS_FENCED_FROM = 2


class Parts(NamedTuple):
    internal_topics: InternalTopics
    groups: Groups
    transactions: TransactionStateTopic


async def handle_add_offsets_to_txn(
    parts: Parts, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    try:
        # The topic must exist first, because the transaction stores the number of the group's partition.
        await parts.internal_topics.ensure(OFFSETS_TOPIC)
        partition = TopicNamePartition(OFFSETS_TOPIC, parts.groups.partition_of(request.group_id))
        await parts.transactions.coordinator.add_participants(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            [partition],
            client_version=0,
        )
    except ApiError as error:
        return _response(fenced_code(error.code, context, known_from=_KNOWS_FENCED_FROM))
    return _response(ErrorCode.none)


def _response(error_code: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(throttle_time=milliseconds(0), error_code=error_code)
