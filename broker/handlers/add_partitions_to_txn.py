"""AddPartitionsToTxn (key 24, versions 0 to 5; KIP-98, KIP-890): adds partitions to a transaction.

- All partitions are added, or none. If one does not exist (UNKNOWN_TOPIC_OR_PARTITION), the others get
  OPERATION_NOT_ATTEMPTED.
- Clients use versions up to 3, with one transaction in a request. `Batch` is versions 4 and 5, which brokers
  use: several transactions, and a request may only verify that partitions are part of one, which is
  TRANSACTION_ABORTABLE if they are not.
- Up to version 1 a fenced producer gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest
from kio.schema.add_partitions_to_txn.v3.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest as AddPartitionsToTxnRequestBatch,
)
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnPartitionResult as PartitionResultOfBatch,
)
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnResponse as AddPartitionsToTxnResponseBatch,
)
from kio.schema.add_partitions_to_txn.v5.response import AddPartitionsToTxnResult
from kio.schema.add_partitions_to_txn.v5.response import AddPartitionsToTxnTopicResult as TopicResultOfBatch

from barnabas.broker.handlers.common.fencing import fenced_code
from barnabas.coordinator.transaction.transaction import EPOCH_RAISED_FROM
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.primitive import TopicName, TransactionalId, i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage

_KNOWS_FENCED_FROM, _BATCH_FROM = 2, 4

ResultT = TypeVar("ResultT")

_Outcomes = Mapping[TopicNamePartition, ErrorCode]


class Parts(NamedTuple):
    metadata: Controller
    transactions: TransactionStateTopic


class _Wish(NamedTuple):
    """The partitions to add to one transaction."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: list[TopicNamePartition]
    verify_only: bool = False
    client_version: int = 0


async def handle_add_partitions_to_txn(
    parts: Parts,
    context: RequestContext,
    request: AddPartitionsToTxnRequest | AddPartitionsToTxnRequestBatch,
) -> AddPartitionsToTxnResponse | AddPartitionsToTxnResponseBatch:
    if context.api_version >= _BATCH_FROM:
        return await _answer_batch(parts, context, cast("AddPartitionsToTxnRequestBatch", request))
    single = cast("AddPartitionsToTxnRequest", request)
    wish = _Wish(
        single.v3_and_below_transactional_id,
        ProducerIdentity(single.v3_and_below_producer_id, single.v3_and_below_producer_epoch),
        _partitions(single.v3_and_below_topics),
    )
    outcomes = await _fulfil(parts, context, wish)
    return AddPartitionsToTxnResponse(
        throttle_time=milliseconds(0),
        results_by_topic_v3_and_below=_topic_results(
            outcomes, AddPartitionsToTxnTopicResult, AddPartitionsToTxnPartitionResult
        ),
    )


async def _answer_batch(
    parts: Parts, context: RequestContext, request: AddPartitionsToTxnRequestBatch
) -> AddPartitionsToTxnResponseBatch:
    results: list[AddPartitionsToTxnResult] = []
    for transaction in request.transactions:
        wish = _Wish(
            transaction.transactional_id,
            ProducerIdentity(transaction.producer_id, transaction.producer_epoch),
            _partitions(transaction.topics),
            transaction.verify_only,
            EPOCH_RAISED_FROM,
        )
        results.append(_result(wish.transactional_id, await _fulfil(parts, context, wish)))
    return AddPartitionsToTxnResponseBatch(
        throttle_time=milliseconds(0), error_code=ErrorCode.none, results_by_transaction=tuple(results)
    )


async def _fulfil(parts: Parts, context: RequestContext, wish: _Wish) -> _Outcomes:
    unknown = [partition for partition in wish.partitions if not _exists(parts.metadata.image, partition)]
    if unknown:
        refused = dict.fromkeys(wish.partitions, ErrorCode.operation_not_attempted)
        return {**refused, **dict.fromkeys(unknown, ErrorCode.unknown_topic_or_partition)}
    coordinator = parts.transactions.coordinator
    try:
        if wish.verify_only:
            taking_part = {
                partition: coordinator.takes_part(wish.transactional_id, wish.producer, partition)
                for partition in wish.partitions
            }
            return {
                partition: ErrorCode.none if takes_part else ErrorCode.transaction_abortable
                for partition, takes_part in taking_part.items()
            }
        await coordinator.add_participants(
            wish.transactional_id, wish.producer, wish.partitions, client_version=wish.client_version
        )
    except ApiError as error:
        code = fenced_code(error.code, context, known_from=_KNOWS_FENCED_FROM)
        return dict.fromkeys(wish.partitions, code)
    return dict.fromkeys(wish.partitions, ErrorCode.none)


def _exists(image: MetadataImage, partition: TopicNamePartition) -> bool:
    topic = image.topics_by_name.get(partition.topic)
    return topic is not None and 0 <= partition.partition < len(topic.partitions)


def _partitions(topics: Iterable[Any]) -> list[TopicNamePartition]:
    return [TopicNamePartition(topic.name, index) for topic in topics for index in topic.partitions]


def _topic_results(
    outcomes: _Outcomes, topic_result: Callable[..., ResultT], partition_result: Callable[..., object]
) -> tuple[ResultT, ...]:
    topics: dict[str, list[object]] = {}
    for partition, code in outcomes.items():
        result = partition_result(partition_index=i32(partition.partition), partition_error_code=code)
        topics.setdefault(partition.topic, []).append(result)
    return tuple(
        topic_result(name=TopicName(name), results_by_partition=tuple(results))
        for name, results in topics.items()
    )


def _result(transactional_id: str, outcomes: _Outcomes) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=TransactionalId(transactional_id),
        topic_results=_topic_results(outcomes, TopicResultOfBatch, PartitionResultOfBatch),
    )
