"""The acknowledgements of one request, partition by partition (KIP-932, KIP-1222), for ShareFetch and
ShareAcknowledge alike.

Each partition's batches take effect together or not at all, immediately or when they have been recorded; its
result is known then. Partitions don't wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckBatch, AckTopic
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.identity import TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.runtime.logging import get_logger
from barnabas.share.leader.share_counts import ShareCounts
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.partition.acknowledgement import validate_acknowledgement_batches
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.sessions.session import SessionPartition, ShareSession, named_partitions
from barnabas.storage.errors import StorageError

log = get_logger("share")

AckResult = tuple[int, str | None]
"""The result of a partition's acknowledgements: (error code, message)."""

SUCCESS: AckResult = (ErrorCode.none.value, None)


Acknowledge = Callable[
    [SharePartitionLeader, str, Sequence[AckBatch], Sequence[ReleaseDelay]], Completion[None]
]
"""Acknowledges a member's validated batches with one leader. Raises ApiError, changing nothing."""

Results = dict[SessionPartition, AckResult]
"""The result of each partition that the request acknowledges."""


class Acknowledgements:
    """Takes the acknowledgements of all requests."""

    def __init__(
        self,
        share_partitions: SharePartitions,
        leadership_error: Callable[[TopicIdPartition], ApiError | StorageError],
    ) -> None:
        """`leadership_error` is the error of a partition without a leader."""
        self._share_partitions = share_partitions
        self._leadership_error = leadership_error

    def take(
        self,
        session: ShareSession,
        topics: Iterable[AckTopic],
        limits: ShareLimits,
        now_ms: int,
        *,
        version: int,
        is_renew_ack: bool,
        by: Acknowledge | None = None,
    ) -> Completion[Results]:
        """The results of all batches in `topics`, which may name partitions outside of the session.

        `limits` are the group's. `by` takes the place of `SharePartitionLeader.acknowledge`.
        """
        if session.lock_duration_ms is not None:
            limits = limits._replace(lock_duration_ms=session.lock_duration_ms)
        results: Results = {}
        has_failed = False
        pending: list[tuple[SessionPartition, Completion[None]]] = []
        named, member_id = session.by_place, session.key.member_id
        for topic_id, partitions in topics:
            for index, batches, delays in partitions:
                if not batches:
                    continue
                partition = named.get((topic_id.int, index))
                if partition is None:
                    named = named | named_partitions(session.key.group_id, topics, named)
                    partition = named[topic_id.int, index]
                try:
                    leader = partition.leader
                    if leader is None or leader.closed:
                        leader = self._find_leader(partition)
                    leader.used = True
                    validate_acknowledgement_batches(batches, version=version, is_renew_ack=is_renew_ack)
                    if by is None:
                        recorded = leader.acknowledge(member_id, batches, limits, now_ms, delays)
                    else:
                        recorded = by(leader, member_id, batches, delays)
                except (ApiError, StorageError) as error:
                    results[partition] = error_result(error)
                    has_failed = True
                    continue
                results[partition] = SUCCESS
                if recorded.error is not None:
                    results[partition] = error_result(recorded.error)
                    has_failed = True
                elif not recorded.done:
                    pending.append((partition, recorded))
        if not results:
            return Completion.of(results)
        counts = self._share_partitions.counts
        topic_ids: Collection[UUID] = [next(iter(results)).key.topic_id]
        if len(results) > 1:
            topic_ids = {partition.key.topic_id for partition in results}
        for topic_counts in counts.of_topics(topic_ids):
            topic_counts.acknowledgements.value += 1
        if pending:
            return _PendingResults(counts, results, pending)
        if has_failed:
            _count_failed(counts, results)
        return Completion.of(results)

    def _find_leader(self, partition: SessionPartition) -> SharePartitionLeader:
        leader = self._share_partitions.get(partition.key)
        if leader is None:
            raise self._leadership_error(partition.partition)
        if leader.core.is_initialised:  # else a fetch still has to find its start
            partition.leader = leader
        return leader


class _PendingResults(Completion[Results]):
    """The results of a request whose pending acknowledgements are still being recorded.

    One object with one listener: with `log.flush=always` each acknowledgement passes here.
    """

    __slots__ = ("_counts", "_open_count", "_pending", "_results")

    def __init__(
        self,
        counts: ShareCounts,
        results: Results,
        pending: Sequence[tuple[SessionPartition, Completion[None]]],
    ) -> None:
        super().__init__()
        self._counts = counts
        self._results = results
        self._pending = pending
        self._open_count = len(pending)
        for _, recorded in pending:
            recorded.when_done(self._one_recorded)

    def _one_recorded(self, _: Completion[None]) -> None:
        self._open_count -= 1
        if self._open_count:
            return
        for partition, recorded in self._pending:
            if recorded.error is not None:
                self._results[partition] = error_result(recorded.error)
        _count_failed(self._counts, self._results)
        self.complete(self._results)


def error_result(error: Exception) -> AckResult:
    """An error as a response names it: (code, message)."""
    if isinstance(error, ApiError):
        return error.code.value, error.message
    if isinstance(error, StorageError):
        return error.code.value, str(error)
    log.error("an acknowledgement met a defect of the broker", exc_info=error)
    return ErrorCode.unknown_server_error.value, None


def has_acknowledgements(topics: Iterable[AckTopic]) -> bool:
    """Whether a request acknowledges anything."""
    return any(partition.acknowledgement_batches for topic in topics for partition in topic.partitions)


def _count_failed(counts: ShareCounts, results: Results) -> None:
    """Count the request, which was counted once already, again for each topic in which it failed."""
    failed = {partition.key.topic_id for partition, (error_code, _) in results.items() if error_code}
    for topic_counts in counts.of_topics(failed):
        topic_counts.failed_acknowledgements.add()
