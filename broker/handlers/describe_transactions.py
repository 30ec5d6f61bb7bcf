"""DescribeTransactions (key 65, version 0; KIP-664): the state of transactional ids, each with its own error.

The response has its own encoder, because kio rejects the start time -1 of an id without a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest

from barnabas.protocol.encode.describe_transactions import (
    TransactionResult,
    encode_describe_transactions_response,
)
from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import by_topic
from barnabas.runtime.response_budget import EncodedBody
from barnabas.runtime.turns import Turns, in_turns, some_at_a_time

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
    from barnabas.runtime.long_work import LongWork


_STEPS_PER_ID = 3
"""The steps of a turn for one id."""


class Parts(NamedTuple):
    long_work: LongWork
    transactions: TransactionStateTopic


def handle_describe_transactions(
    parts: Parts, context: RequestContext, request: DescribeTransactionsRequest
) -> Reply:
    return in_turns(_describe_all(parts, request.transactional_ids))


async def _describe_all(parts: Parts, transactional_ids: Sequence[str]) -> EncodedBody:
    turns, results = Turns(), list[TransactionResult]()
    for some in some_at_a_time(transactional_ids):
        results += [_describe(parts.transactions.coordinator, transactional_id) for transactional_id in some]
        await turns.took(_STEPS_PER_ID * len(some))
    return EncodedBody(
        [await parts.long_work.run_if(turns.passed, encode_describe_transactions_response, results)]
    )


def _describe(coordinator: TransactionCoordinator, transactional_id: str) -> TransactionResult:
    try:
        found = coordinator.describe(transactional_id)
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
