"""Acknowledges the records of share consumers in a producer's transaction, over the consumers' sessions."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client.errors import MisuseError
from barnabas.client.produce.transactions import Writer
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.record import ClaimedRecord, Holder
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.identity import ProducerIdentity

_TYPES = frozenset({AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT})


def check(records: Iterable[ClaimedRecord], acknowledge_type: AcknowledgeType) -> None:
    """Raises `MisuseError` for a type or for records that cannot be part of a transaction."""
    if acknowledge_type not in _TYPES:
        raise MisuseError("A transaction can accept, release or reject records, and nothing else.")
    if any(record.holder.is_implicit for record in records):
        raise MisuseError("In implicit mode the next poll accepts the records: no transaction can.")


async def settle(records: Iterable[ClaimedRecord], acknowledge_type: AcknowledgeType, writer: Writer) -> None:
    """Returns once the brokers have recorded that the acknowledgements wait for the transaction.

    Raises `AcknowledgeError` for the first refused record: then only an abort is possible.
    """
    assert writer.transactional_id is not None, "only a transactional producer has transactions"
    transaction = AcknowledgingTransaction(
        writer.transactional_id, ProducerIdentity(writer.producer_id, writer.producer_epoch)
    )
    by_holder: dict[int, tuple[Holder, list[ClaimedRecord]]] = {}
    for record in records:
        by_holder.setdefault(id(record.holder), (record.holder, []))[1].append(record)
    for holder, of_holder in by_holder.values():
        await holder.settle_in_transaction(of_holder, acknowledge_type, transaction)
