"""Produce in transactions: the partitions of a request, and the errors of those that are not in the
transaction.

`transactional_writes` adds the partitions to the transaction, and verifies that they are in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.produce.preparation import ProducedPartition, ProducedTopic
from barnabas.broker.produce.transactional_writes import (
    ClientAbility,
    TransactionalWrites,
    verifies_partitions,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.record_batch import BatchHeader, iterate_headers
from barnabas.protocol.varint import RecordFormatError

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator

_KNOWS_ABORTABLE_FROM, _ADDS_PARTITIONS_FROM = 11, 12

_PASSING = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
"""Errors that end by themselves, but that a producer does not retry in a Produce response."""


def writes_of_produce(
    coordinator: TransactionCoordinator, config: EffectiveConfig, version: int, transactional_id: str
) -> TransactionalWrites:
    """The writes of a request in this version."""
    return TransactionalWrites(
        coordinator,
        transactional_id,
        ClientAbility(version >= _ADDS_PARTITIONS_FROM, version >= _KNOWS_ABORTABLE_FROM),
        verifies=verifies_partitions(config),
    )


async def add_produced_partitions(writes: TransactionalWrites, topics: Iterable[ProducedTopic]) -> None:
    """Add the request's partitions to the transaction, if the client leaves that to the broker.

    Raises ApiError INVALID_PRODUCER_ID_MAPPING if there are several producers.
    """
    written = list(_transactional_partitions(topics))
    producers = {producer for producer, _ in written}
    if len(producers) > 1:
        message = "Transactional records contained more than one producer ID"
        raise ApiError(ErrorCode.invalid_producer_id_mapping, message)
    if producers:
        await writes.add(producers.pop(), [partition for _, partition in written])


def check_produced(writes: TransactionalWrites, header: BatchHeader, partition: TopicNamePartition) -> None:
    """Raises the ApiError for a transactional batch whose partition is not in the transaction now.

    An error that may end by itself becomes NOT_ENOUGH_REPLICAS, which producers retry without looking for a
    new leader.
    """
    if header.producer_id < 0:
        raise ApiError(ErrorCode.invalid_record, "The batch of a transaction names no producer.")
    try:
        writes.check(ProducerIdentity(header.producer_id, header.producer_epoch), partition)
    except ApiError as error:
        if not _passes(error.code, writes.ability):
            raise
        message = f"Unable to verify the partition has been added to the transaction: {error}"
        raise ApiError(ErrorCode.not_enough_replicas, message) from error


def _passes(code: ErrorCode, ability: ClientAbility) -> bool:
    # A client that leaves adding to the broker expects CONCURRENT_TRANSACTIONS while its last one completes.
    return code in _PASSING or (code is ErrorCode.concurrent_transactions and not ability.leaves_adding)


def _transactional_partitions(
    topics: Iterable[ProducedTopic],
) -> Iterator[tuple[ProducerIdentity, TopicNamePartition]]:
    """The producer and the partition of each transactional batch, read from its header. Invalid headers are
    skipped; later checks refuse them.
    """
    for _, _, found, partitions in topics:
        if found is None or found.is_internal:
            continue
        for partition in partitions:
            header = _first_header(partition)
            is_there = 0 <= partition.index < len(found.partitions)
            if header is not None and header.is_transactional and header.producer_id >= 0 and is_there:
                producer = ProducerIdentity(header.producer_id, header.producer_epoch)
                yield producer, TopicNamePartition(found.name, partition.index)


def _first_header(partition: ProducedPartition) -> BatchHeader | None:
    try:
        return next((header for _, header in iterate_headers(partition.records or b"")), None)
    except RecordFormatError:
        return None
