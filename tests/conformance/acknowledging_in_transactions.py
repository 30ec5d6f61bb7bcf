"""Acknowledgements of a share group that join a producer's transaction, over the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap
from typing import Any, Protocol
from uuid import UUID

from barnabas.protocol.client.share_requests import encode_share_acknowledge_request
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import Client
from tests.conformance.share_member import AckBatches, ShareMember, acknowledged
from tests.conformance.transacting import OK, Transacting

_VERSION = 2


class BodySender(Protocol):
    """A connection to a broker: the conformance lab's, or the simulation's."""

    def send_body(self, api: str, version: int, body: bytes) -> Any: ...


def start_all(
    client: BodySender,
    member: ShareMember,
    transaction: AcknowledgingTransaction,
    acks: Mapping[TopicIdPartition, AckBatches],
) -> Any:
    """Send acknowledgements of several partitions that join a transaction."""
    by_topic: dict[UUID, list[AckPartition]] = {}
    for partition, batches in acks.items():
        of_topic = by_topic.setdefault(partition.topic_id, [])
        of_topic.append(AckPartition(partition.partition, list(map(_batch, batches))))
    return start_topics(client, member, transaction, list(starmap(AckTopic, by_topic.items())))


def start_topics(
    client: BodySender, member: ShareMember, transaction: AcknowledgingTransaction, topics: list[AckTopic]
) -> Any:
    """Send acknowledgements as they are in the request."""
    body = ShareAcknowledgeBody(
        member.group_id, member.member_id, member.epoch, False, topics, transaction=transaction
    )
    member.epoch += 1
    return client.send_body("share_acknowledge", _VERSION, encode_share_acknowledge_request(_VERSION, body))


def _batch(batch: tuple[int, ...]) -> AckBatch:
    first_offset, last_offset, *types = batch
    return AckBatch(first_offset, last_offset, bytes(types))


def start(
    client: Client, member: ShareMember, producer: Transacting, first: int, last: int, *types: int
) -> Any:
    """Send an acknowledgement of records in the member's first partition, which joins the transaction."""
    transaction = AcknowledgingTransaction(producer.transactional_id, producer.producer)
    return start_all(client, member, transaction, {member.partitions[0]: [(first, last, *types)]})


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
