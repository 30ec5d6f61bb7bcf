"""Acknowledgements of a share group that join a producer's transaction, over the protocol."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.client.share_requests import encode_share_acknowledge_request
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Client
from tests.conformance.share_member import ShareMember, acknowledged
from tests.conformance.transacting import OK, Transacting

_VERSION = 2


def start(
    client: Client, member: ShareMember, producer: Transacting, first: int, last: int, *types: int
) -> Any:
    """Send an acknowledgement of records in the member's first partition, which joins the transaction."""
    partition = member.partitions[0]
    batches = [AckBatch(first, last, bytes(types))]
    topic = AckTopic(partition.topic_id, [AckPartition(partition.partition, batches)])
    transaction = AcknowledgingTransaction(producer.transactional_id, producer.producer)
    body = ShareAcknowledgeBody(
        member.group_id, member.member_id, member.epoch, False, [topic], transaction=transaction
    )
    member.epoch += 1
    return client.send_body("share_acknowledge", _VERSION, encode_share_acknowledge_request(_VERSION, body))


async def acknowledge(
    client: Client, member: ShareMember, producer: Transacting, first: int, last: int, *types: int
) -> ErrorCode:
    """The result of such an acknowledgement."""
    answer = acknowledged(await client.answered(start(client, member, producer, first, last, *types)))
    assert answer.error == 0, answer
    (error,) = answer.errors
    return ErrorCode(error)


async def initialised(client: Client, *, version: int = 2, transactional_id: str = "payments") -> Transacting:
    """A producer without a transaction."""
    producer = Transacting(client, version=version, transactional_id=transactional_id)
    assert await producer.init() is OK
    return producer
