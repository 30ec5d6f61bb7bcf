"""TxnOffsetCommit (key 28, versions 0 to 6; KIP-98, KIP-447, KIP-890, KIP-1319): the offsets that a group has
consumed, recorded in a producer's transaction. They count when the transaction is committed.

- From version 3 on the group's member is named, so that one that was replaced is refused.
- From version 5 on the group's partition of the offsets takes part in the transaction by this; before, it has
  to have been added by AddOffsetsToTxn.
- Version 6 names topics by id, and has the errors of consumer groups: GROUP_ID_NOT_FOUND and
  STALE_MEMBER_EPOCH where older versions have ILLEGAL_GENERATION.
- A producer that was fenced is told INVALID_PRODUCER_EPOCH, as with Produce.
- Before version 2 a group that is being loaded is COORDINATOR_NOT_AVAILABLE: older clients stumble over the
  other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest as TxnOffsetCommitRequestByName
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestTopic as TxnTopicToCommitByName
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponse as TxnOffsetCommitResponseByName
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponsePartition
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponseTopic as TxnCommittedTopicByName

from barnabas.broker.produce.transactional_writes import (
    ClientAbility,
    TransactionalWrites,
    verifies_partitions,
)
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.metadata.topic_names import GROUP_STATE_TOPIC
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit, TransactionalCommit
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.newer.txn_offset_commit_v6 import TxnOffsetCommitRequest as TxnOffsetCommitRequestById
from barnabas.protocol.newer.txn_offset_commit_v6 import TxnOffsetCommitRequestTopic as TxnTopicToCommitById
from barnabas.protocol.newer.txn_offset_commit_v6 import (
    TxnOffsetCommitResponse as TxnOffsetCommitResponseById,
)
from barnabas.protocol.newer.txn_offset_commit_v6 import TxnOffsetCommitResponseTopic as TxnCommittedTopicById
from barnabas.protocol.primitive import i32, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import RequestContext
    from barnabas.broker.node.broker import Broker
    from barnabas.coordinator.metadata.image import MetadataImage, Topic

_KNOWS_LOADING_FROM, _KNOWS_ABORTABLE_FROM, _ADDS_FROM, _BY_ID_FROM = 2, 4, 5, 6
_NO_ID = UUID(int=0)

_Request = TxnOffsetCommitRequestByName | TxnOffsetCommitRequestById
_Response = TxnOffsetCommitResponseByName | TxnOffsetCommitResponseById
_AskedTopic = TxnTopicToCommitByName | TxnTopicToCommitById

_Place = tuple[int, int]
"""The positions of topic and partition in the request."""


class _Resolved(NamedTuple):
    """What can be committed of a request, and what is wrong with the rest."""

    offsets: dict[_Place, OffsetToCommit]
    refused: dict[_Place, ErrorCode]


async def handle_txn_offset_commit(broker: Broker, context: RequestContext, request: _Request) -> _Response:
    resolved = _resolve(broker.metadata.image, request)
    if not resolved.offsets:
        return _response(request, resolved.refused)
    try:
        check = await _begin(broker, context.api_version, request)
        # Anew: a topic may be gone by now, and its offsets forgotten without these.
        resolved = _resolve(broker.metadata.image, request)
        commit = _commit_request(context.api_version, request, list(resolved.offsets.values()))
        transactional = TransactionalCommit(commit, _producer(request), check)
        codes = await broker.groups.offsets.commit_in_transaction(transactional)
    except ApiError as error:
        code = error.code
        if code is ErrorCode.coordinator_load_in_progress and context.api_version < _KNOWS_LOADING_FROM:
            code = ErrorCode.coordinator_not_available
        codes = [code] * len(resolved.offsets)
    return _response(request, {**resolved.refused, **dict(zip(resolved.offsets, codes, strict=True))})


def _resolve(image: MetadataImage, request: _Request) -> _Resolved:
    resolved = _Resolved({}, {})
    asked_topics: Sequence[_AskedTopic] = request.topics
    for topic_position, asked in enumerate(asked_topics):
        topic, unknown = _look_up(image, asked)
        for position, one in enumerate(asked.partitions):
            place = topic_position, position
            if topic is None:
                resolved.refused[place] = unknown
            elif not 0 <= one.partition_index < len(topic.partitions):
                resolved.refused[place] = ErrorCode.unknown_topic_or_partition
            else:
                resolved.offsets[place] = OffsetToCommit(
                    topic.name,
                    topic.topic_id,
                    one.partition_index,
                    one.committed_offset,
                    one.committed_leader_epoch,
                    one.committed_metadata or "",
                )
    return resolved


def _look_up(image: MetadataImage, asked: _AskedTopic) -> tuple[Topic | None, ErrorCode]:
    """The topic, and the error if there is none."""
    if isinstance(asked, TxnTopicToCommitById):
        return image.topics_by_id.get(asked.topic_id or _NO_ID), ErrorCode.unknown_topic_id
    return image.topics_by_name.get(asked.name), ErrorCode.unknown_topic_or_partition


def _producer(request: _Request) -> ProducerIdentity:
    return ProducerIdentity(request.producer_id, request.producer_epoch)


def _commit_request(version: int, request: _Request, offsets: list[OffsetToCommit]) -> CommitRequest:
    return CommitRequest(
        request.group_id,
        MemberIdentity(request.member_id, request.group_instance_id),
        request.generation_id,
        offsets,
        tells_not_found=version >= _BY_ID_FROM,
    )


async def _begin(broker: Broker, version: int, request: _Request) -> Callable[[], None]:
    """The group's partition of the offsets takes part in the transaction; answers what has to be checked
    right before the commit.
    """
    if not request.group_id:
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty.")
    # First: the transaction remembers the partition by its number.
    await broker.internal_topics.ensure(GROUP_STATE_TOPIC)
    partition = TopicNamePartition(GROUP_STATE_TOPIC, broker.groups.partition_of(request.group_id))
    writes = TransactionalWrites(
        broker.transactions.coordinator,
        request.transactional_id,
        ClientAbility(version >= _ADDS_FROM, version >= _KNOWS_ABORTABLE_FROM),
        verifies=verifies_partitions(broker.effective_config),
    )
    await writes.add(_producer(request), [partition])
    return partial(writes.check, _producer(request), partition)


def _response(request: _Request, outcomes: Mapping[_Place, ErrorCode]) -> _Response:
    asked_topics: Sequence[_AskedTopic] = request.topics
    partitions = [
        tuple(
            TxnOffsetCommitResponsePartition(
                partition_index=i32(one.partition_index), error_code=outcomes[topic_position, position]
            )
            for position, one in enumerate(topic.partitions)
        )
        for topic_position, topic in enumerate(asked_topics)
    ]
    if isinstance(request, TxnOffsetCommitRequestById):
        by_id = zip(request.topics, partitions, strict=True)
        return TxnOffsetCommitResponseById(
            throttle_time=milliseconds(0),
            topics=tuple(
                TxnCommittedTopicById(topic_id=one.topic_id, partitions=each) for one, each in by_id
            ),
        )
    by_name = zip(request.topics, partitions, strict=True)
    return TxnOffsetCommitResponseByName(
        throttle_time=milliseconds(0),
        topics=tuple(TxnCommittedTopicByName(name=one.name, partitions=each) for one, each in by_name),
    )
