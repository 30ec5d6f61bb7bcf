"""DescribeTransactions (key 65, version 0; KIP-664): how transactional ids stand, each with an error of its
own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.network.dispatch import EncodedBody
from barnabas.protocol.encode.describe_transactions import (
    TransactionResult,
    encode_describe_transactions_response,
)
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import by_topic
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.dispatch import Reply, RequestContext


def handle_describe_transactions(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> Reply:
    results = [_describe(broker, one) for one in request.transactional_ids]
    return EncodedBody([encode_describe_transactions_response(results)])


def _describe(broker: Broker, transactional_id: str) -> TransactionResult:
    try:
        found = broker.transactions.coordinator.describe(transactional_id)
    except ApiError as error:
        return TransactionResult(transactional_id, error.code.value)
    return TransactionResult(
        transactional_id,
        state=found.state,
        timeout_ms=found.timeout_ms,
        started_at_ms=found.started_at_ms,
        producer_id=found.producer.producer_id,
        producer_epoch=found.producer.producer_epoch,
        topics=by_topic(found.partitions),
    )
