"""The acknowledgements of one request, partition by partition (KIP-932, KIP-1222), for ShareFetch and
ShareAcknowledge alike.

Each partition's batches take effect together or not at all, at once or when they have been recorded; its
result is known then. Partitions don't wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckTopic
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.share.leader.share_counts import ShareCounts
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.partition.acknowledgement import validate_acknowledgement_batches
from barnabas.storage.errors import StorageError
from barnabas.storage.segments.append import Append

SUCCESS = (ErrorCode.none.value, None)


class Acknowledgements:
    """Results by partition, as (error code, message); complete once `pending_count` is 0."""

    __slots__ = ("_on_complete", "pending_count", "results")

    def __init__(self) -> None:
        self.results: dict[TopicIdPartition, tuple[int, str | None]] = {}
        self.pending_count = 0
        self._on_complete: list[Callable[[], None]] = []

    def when_complete(self, callback: Callable[[], None]) -> None:
        """Call `callback` once every result is known: at once if that is so."""
        if self.pending_count:
            self._on_complete.append(callback)
        else:
            callback()

    def add(self, partition: TopicIdPartition, outcome: Append | Exception | None) -> None:
        """Note how a partition took its acknowledgements; None if nothing had to be recorded."""
        if outcome is None:
            self.results[partition] = SUCCESS
        elif isinstance(outcome, Exception):
            self.results[partition] = error_result(outcome)
        elif outcome.done:
            self.results[partition] = SUCCESS if outcome.error is None else error_result(outcome.error)
        else:
            self.pending_count += 1
            outcome.add_done_callback(lambda ticket: self._settle(partition, ticket))

    def _settle(self, partition: TopicIdPartition, ticket: Append) -> None:
        self.add(partition, ticket)
        self.pending_count -= 1
        if not self.pending_count:
            for callback in self._on_complete:
                callback()


def error_result(error: Exception) -> tuple[int, str | None]:
    """What a response says of an error, as (code, message)."""
    if isinstance(error, ApiError):
        return error.code.value, error.message
    if isinstance(error, StorageError):
        return error.code.value, str(error)
    raise error


def has_acknowledgements(topics: Iterable[AckTopic]) -> bool:
    """Whether a request acknowledges anything."""
    return any(partition.acknowledgement_batches for topic in topics for partition in topic.partitions)


def acknowledge(
    share_partitions: SharePartitions,
    why_not_led: Callable[[TopicIdPartition], ApiError | StorageError],
    group_id: str,
    member_id: str,
    topics: Iterable[AckTopic],
    *,
    version: int,
    is_renew_ack: bool,
) -> Acknowledgements:
    """Acknowledge all that `topics` name with batches. `why_not_led` is the answer for a partition without a
    leader.
    """
    acknowledgements = Acknowledgements()
    topic_ids: set[UUID] = set()
    for topic_id, partitions in topics:
        for index, batches in partitions:
            if not batches:
                continue
            topic_ids.add(topic_id)
            outcome: Append | Exception | None
            try:
                leader = share_partitions.get(SharePartitionKey(group_id, topic_id, index))
                if leader is None:
                    raise why_not_led(TopicIdPartition(topic_id, index))
                validate_acknowledgement_batches(batches, version=version, is_renew_ack=is_renew_ack)
                outcome = leader.acknowledge(member_id, batches)
            except (ApiError, StorageError) as error:
                outcome = error
            acknowledgements.add(TopicIdPartition(topic_id, index), outcome)
    if topic_ids:
        for one in share_partitions.counts.of_topics(topic_ids):
            one.acknowledgements.add()
        acknowledgements.when_complete(partial(_count_failed, share_partitions.counts, acknowledgements))
    return acknowledgements


def _count_failed(counts: ShareCounts, acknowledgements: Acknowledgements) -> None:
    """Count the request, which was counted once already, again for each topic in which it failed."""
    failed = {one.topic_id for one, (code, _) in acknowledgements.results.items() if code}
    for one in counts.of_topics(failed):
        one.failed_acknowledgements.add()
