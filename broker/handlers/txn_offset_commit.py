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

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.produce.transactional_writes import (
    ClientAbility,
    TransactionalWrites,
    verifies_partitions,
)
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.partition_hash import partition_of_group
from barnabas.coordinator.metadata.topic_names import GROUP_STATE_TOPIC
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit, TransactionalCommit
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
    from barnabas.broker.network.dispatch import RequestContext
    from barnabas.coordinator.metadata.image import MetadataImage

_KNOWS_LOADING_FROM, _KNOWS_ABORTABLE_FROM, _ADDS_FROM = 2, 4, 5

_Place = tuple[int, int]
"""The positions of topic and partition in the request."""


class _Resolved(NamedTuple):
    """What can be committed of a request, and what is wrong with the rest."""

    offsets: dict[_Place, OffsetToCommit]
    refused: dict[_Place, ErrorCode]


async def handle_txn_offset_commit(
    broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    resolved = _resolve(broker.metadata.image, request)
    if not resolved.offsets:
        return _response(request, resolved.refused)
    try:
        check = await _begin(broker, context.api_version, request)
        # Anew: a topic may be gone by now, and its offsets forgotten without these.
        resolved = _resolve(broker.metadata.image, request)
        commit = _commit_request(request, list(resolved.offsets.values()))
        transactional = TransactionalCommit(commit, _producer(request), check)
        codes = await broker.groups.offsets.commit_in_transaction(transactional)
    except ApiError as error:
        code = error.code
        if code is ErrorCode.coordinator_load_in_progress and context.api_version < _KNOWS_LOADING_FROM:
            code = ErrorCode.coordinator_not_available
        codes = [code] * len(resolved.offsets)
    return _response(request, {**resolved.refused, **dict(zip(resolved.offsets, codes, strict=True))})


def _resolve(image: MetadataImage, request: TxnOffsetCommitRequest) -> _Resolved:
    resolved = _Resolved({}, {})
    for topic_position, asked in enumerate(request.topics):
        topic = image.topics_by_name.get(asked.name)
        for position, one in enumerate(asked.partitions):
            if topic is None or not 0 <= one.partition_index < len(topic.partitions):
                resolved.refused[topic_position, position] = ErrorCode.unknown_topic_or_partition
                continue
            resolved.offsets[topic_position, position] = OffsetToCommit(
                asked.name,
                topic.topic_id,
                one.partition_index,
                one.committed_offset,
                one.committed_leader_epoch,
                one.committed_metadata or "",
            )
    return resolved


def _producer(request: TxnOffsetCommitRequest) -> ProducerIdentity:
    return ProducerIdentity(request.producer_id, request.producer_epoch)


def _commit_request(request: TxnOffsetCommitRequest, offsets: list[OffsetToCommit]) -> CommitRequest:
    return CommitRequest(
        request.group_id,
        MemberIdentity(request.member_id, request.group_instance_id),
        request.generation_id,
        offsets,
        tells_not_found=False,
    )


async def _begin(broker: Broker, version: int, request: TxnOffsetCommitRequest) -> Callable[[], None]:
    """The group's partition of the offsets takes part in the transaction; answers what has to be checked
    right before the commit.
    """
    if not request.group_id:
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty.")
    partition = TopicNamePartition(GROUP_STATE_TOPIC, partition_of_group(request.group_id))
    writes = TransactionalWrites(
        broker.transactions.coordinator,
        request.transactional_id,
        ClientAbility(version >= _ADDS_FROM, version >= _KNOWS_ABORTABLE_FROM),
        verifies=verifies_partitions(broker),
    )
    await writes.add(_producer(request), [partition])
    return partial(writes.check, _producer(request), partition)


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
