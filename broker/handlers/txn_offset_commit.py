"""TxnOffsetCommit (key 28, versions 0 to 5; KIP-98, KIP-447, KIP-890): what a group has consumed, written
down in a producer's transaction. It counts when that is committed.

- From version 3 on the group's member is named, so that one that was replaced is refused.
- From version 5 on the group's partition of the offsets takes part in the transaction by this; before, it has
  to have been added by AddOffsetsToTxn.
- A producer that was fenced is told INVALID_PRODUCER_EPOCH, as with Produce.
- Before version 2 a group that is being loaded is COORDINATOR_NOT_AVAILABLE: older clients stumble over the
  other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.transactional_writes import ClientAbility, TransactionalWrites, verifies_partitions
from barnabas.coordinator.classic.offsets import CommitRequest, OffsetToCommit, TransactionalCommit
from barnabas.coordinator.classic.requests import MemberIdentity
from barnabas.coordinator.group.partition_hash import partition_of_group
from barnabas.coordinator.metadata.topic_names import GROUP_STATE_TOPIC
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.primitive import i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.dispatch import RequestContext

_KNOWS_LOADING_FROM, _KNOWS_ABORTABLE_FROM, _ADDS_FROM = 2, 4, 5

_Place = tuple[int, int]
"""The positions of topic and partition in the request."""


async def handle_txn_offset_commit(
    broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    offsets: dict[_Place, OffsetToCommit] = {}
    outcomes: dict[_Place, ErrorCode] = {}
    for topic_position, asked in enumerate(request.topics):
        topic = broker.metadata.image.topics_by_name.get(asked.name)
        partition_count = 0 if topic is None else len(topic.partitions)
        for position, one in enumerate(asked.partitions):
            if not 0 <= one.partition_index < partition_count:
                outcomes[topic_position, position] = ErrorCode.unknown_topic_or_partition
                continue
            offsets[topic_position, position] = OffsetToCommit(
                asked.name,
                NO_TOPIC_ID,
                one.partition_index,
                one.committed_offset,
                one.committed_leader_epoch,
                one.committed_metadata or "",
            )
    if offsets:
        commit = _commit_request(request, list(offsets.values()))
        codes = await _commit(broker, context, request, commit)
        outcomes.update(zip(offsets, codes, strict=True))
    return _response(request, outcomes)


def _commit_request(request: TxnOffsetCommitRequest, offsets: list[OffsetToCommit]) -> CommitRequest:
    return CommitRequest(
        request.group_id,
        MemberIdentity(request.member_id, request.group_instance_id),
        request.generation_id,
        offsets,
        tells_not_found=False,
    )


async def _commit(
    broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest, commit: CommitRequest
) -> list[ErrorCode]:
    version = context.api_version
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    try:
        if not request.group_id:
            raise ApiError(ErrorCode.invalid_group_id, "The group id is empty.")
        partition = TopicNamePartition(GROUP_STATE_TOPIC, partition_of_group(request.group_id))
        writes = TransactionalWrites(
            broker.transactions.coordinator,
            request.transactional_id,
            ClientAbility(version >= _ADDS_FROM, version >= _KNOWS_ABORTABLE_FROM),
            verifies=verifies_partitions(broker),
        )
        await writes.add(producer, [partition])
        check = partial(writes.check, producer, partition)
        transactional = TransactionalCommit(commit, producer, check)
        return await broker.groups.classic.commit_in_transaction(transactional)
    except ApiError as error:
        code = error.code
        if code is ErrorCode.coordinator_load_in_progress and version < _KNOWS_LOADING_FROM:
            code = ErrorCode.coordinator_not_available
        return [code] * len(commit.offsets)


def _response(
    request: TxnOffsetCommitRequest, outcomes: Mapping[_Place, ErrorCode]
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time=milliseconds(0),
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=i32(one.partition_index),
                        error_code=outcomes[topic_position, position],
                    )
                    for position, one in enumerate(topic.partitions)
                ),
            )
            for topic_position, topic in enumerate(request.topics)
        ),
    )
