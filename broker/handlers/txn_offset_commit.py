"""TxnOffsetCommit (key 28, versions 0 to 6; KIP-98, KIP-447, KIP-890, KIP-1319): commits in a transaction.

The offsets of a group become committed when the producer's transaction commits.

- From version 3 on the request names the group's member, so a member that was replaced gets an error.
- From version 5 on this request adds the group's offsets partition to the transaction. Before,
  AddOffsetsToTxn must have added it.
- `ByName` is versions 0 to 5. `ById` is version 6, with the errors of consumer groups: GROUP_ID_NOT_FOUND and
  STALE_MEMBER_EPOCH where older versions have ILLEGAL_GENERATION.
- A fenced producer gets INVALID_PRODUCER_EPOCH, as from Produce.
- Ranges of offsets, an extension, wait for the stable offset in groups with the setting
  `individual.commit.order=partition`.
- Up to version 1 a group that is being loaded is COORDINATOR_NOT_AVAILABLE, because older clients cannot
  handle COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.handlers.common.interruptible_commit import InterruptibleCommit
from barnabas.broker.handlers.common.offsets_to_commit import Place, partition_results, resolve_offsets
from barnabas.broker.produce.transactional_writes import (
    ClientAbility,
    TransactionalWrites,
    verifies_partitions,
)
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit, TransactionalCommit
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.txn_offset_commit_v5 import (
    TxnOffsetCommitRequest as TxnOffsetCommitRequestByName,
)
from barnabas.protocol.extended.txn_offset_commit_v5 import (
    TxnOffsetCommitResponse as TxnOffsetCommitResponseByName,
)
from barnabas.protocol.extended.txn_offset_commit_v5 import TxnOffsetCommitResponsePartition
from barnabas.protocol.extended.txn_offset_commit_v5 import (
    TxnOffsetCommitResponseTopic as TxnCommittedTopicByName,
)
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.protocol.newer.txn_offset_commit_v6 import TxnOffsetCommitRequest as TxnOffsetCommitRequestById
from barnabas.protocol.newer.txn_offset_commit_v6 import (
    TxnOffsetCommitResponse as TxnOffsetCommitResponseById,
)
from barnabas.protocol.newer.txn_offset_commit_v6 import TxnOffsetCommitResponseTopic as TxnCommittedTopicById
from barnabas.protocol.primitive import milliseconds
from barnabas.runtime.completion import Completion

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.broker.internal_topics.internal_topics import InternalTopics
    from barnabas.broker.internal_topics.transaction_state_topic import TransactionStateTopic
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.transaction.coordinator import TransactionCoordinator
    from barnabas.runtime.clock import Clock

_KNOWS_LOADING_FROM, _KNOWS_ABORTABLE_FROM, _ADDS_FROM, _BY_ID_FROM = 2, 4, 5, 6

_ABORTING_SHARE = 10
"""The part of `transaction.timeout.ms` that a commit in order leaves for the abort: one in this number."""

_Request = TxnOffsetCommitRequestByName | TxnOffsetCommitRequestById
_Response = TxnOffsetCommitResponseByName | TxnOffsetCommitResponseById


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    effective_config: EffectiveConfig
    internal_topics: InternalTopics
    groups: Groups
    transactions: TransactionStateTopic


def handle_txn_offset_commit(parts: Parts, context: RequestContext, request: _Request) -> Reply:
    if not _is_individual(request):
        return _handle(parts, context, request, parts.groups.offsets.commit_in_transaction)
    reply: InterruptibleCommit[_Response] = InterruptibleCommit(parts.groups.offsets)
    reply.begin(_handle(parts, context, request, reply.enter))
    return reply


def _is_individual(request: _Request) -> bool:
    return any(partition.ranges is not None for topic in request.topics for partition in topic.partitions)


async def _handle(
    parts: Parts,
    context: RequestContext,
    request: _Request,
    commit_in_transaction: Callable[[TransactionalCommit], Completion[list[ErrorCode]]],
) -> _Response:
    by_id = context.api_version >= _BY_ID_FROM
    resolved = resolve_offsets(parts.metadata.image, request.topics, by_id=by_id)
    if not resolved.offsets:
        return _response(request, resolved.refused)
    try:
        check = await _begin(parts, context.api_version, request)
        # Again, because a topic may have been deleted during the wait, and its committed offsets with it.
        resolved = resolve_offsets(parts.metadata.image, request.topics, by_id=by_id)
        commit = _commit_request(context.api_version, request, list(resolved.offsets.values()))
        wait_until_ms = _wait_until_ms(
            parts.transactions.coordinator, parts.clock.monotonic_ms(), request.producer_id
        )
        codes = await commit_in_transaction(
            TransactionalCommit(commit, _producer(request), check, wait_until_ms)
        )
    except ApiError as error:
        code = error.code
        if code is ErrorCode.coordinator_load_in_progress and context.api_version < _KNOWS_LOADING_FROM:
            code = ErrorCode.coordinator_not_available
        return _response(request, resolved.with_error(code))
    return _response(request, resolved.with_codes(codes))


def _wait_until_ms(coordinator: TransactionCoordinator, now_ms: int, producer_id: int) -> int:
    """The end of the wait in a group that commits in order: early enough for the client to abort the
    transaction before it times out.
    """
    transaction = coordinator.of_producer(producer_id)
    if transaction is None:
        return now_ms
    reserve_ms = transaction.timeout_ms // _ABORTING_SHARE
    return max(coordinator.times_out_at_ms(transaction) - reserve_ms, now_ms)


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


async def _begin(parts: Parts, version: int, request: _Request) -> Callable[[], None]:
    """Adds the group's offsets partition to the transaction; returns the check to make right before the
    commit.
    """
    if not request.group_id:
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty.")
    # The topic must exist first, because the transaction stores the number of the group's partition.
    await parts.internal_topics.ensure(OFFSETS_TOPIC)
    partition = TopicNamePartition(OFFSETS_TOPIC, parts.groups.partition_of(request.group_id))
    writes = TransactionalWrites(
        parts.transactions.coordinator,
        request.transactional_id,
        ClientAbility(version >= _ADDS_FROM, version >= _KNOWS_ABORTABLE_FROM),
        verifies=verifies_partitions(parts.effective_config),
    )
    await writes.add(_producer(request), [partition])
    return partial(writes.check, _producer(request), partition)


def _response(request: _Request, codes: Mapping[Place, ErrorCode]) -> _Response:
    results = partition_results(request.topics, codes, TxnOffsetCommitResponsePartition)
    if isinstance(request, TxnOffsetCommitRequestById):
        by_id = zip(request.topics, results, strict=True)
        return TxnOffsetCommitResponseById(
            throttle_time=milliseconds(0),
            topics=tuple(
                TxnCommittedTopicById(topic_id=topic.topic_id, partitions=partitions)
                for topic, partitions in by_id
            ),
        )
    by_name = zip(request.topics, results, strict=True)
    return TxnOffsetCommitResponseByName(
        throttle_time=milliseconds(0),
        topics=tuple(
            TxnCommittedTopicByName(name=topic.name, partitions=partitions) for topic, partitions in by_name
        ),
    )
