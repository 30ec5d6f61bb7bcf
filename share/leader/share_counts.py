"""The counts of share-partition leaders, under the names of Kafka's ShareGroupMetrics, SharePartitionMetrics
and BrokerTopicMetrics; `share_metrics` publishes them.

Counts of a share-partition or a group live as long as it has a leader in memory, so there are never more of
them than leaders; a leader that is loaded again starts at 0. Counts of a topic live as long as the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from barnabas.protocol.delivery_state import Cause, RecordState, StateRange
from barnabas.runtime.metrics import MS_BOUNDS, PERCENT_BOUNDS, RECORD_COUNT_BOUNDS, Counter, Histogram
from barnabas.share.partition.acknowledgement import AcknowledgeType

RecordCount = Callable[[int, int], int]
"""The number of records in a range of offsets, both ends inclusive."""


class TopicCounts:
    """Requests that named a topic; with several topics, a request counts once for each."""

    __slots__ = ("acknowledgements", "failed_acknowledgements", "failed_fetches", "fetches")

    def __init__(self) -> None:
        self.fetches = Counter()
        self.failed_fetches = Counter()
        self.acknowledgements = Counter()
        self.failed_acknowledgements = Counter()


class GroupCounts:
    """Fetches of one group that waited for records, or could have."""

    __slots__ = ("acquire_ms", "fetched_percent", "leader_count")

    def __init__(self) -> None:
        self.leader_count = 0
        self.fetched_percent = Histogram(PERCENT_BOUNDS)
        """The percentage of requested partitions with records to acquire."""
        self.acquire_ms = Histogram(MS_BOUNDS)
        """From the request to the moment when records were acquired, or the wait was over."""


class PartitionCounts:
    """The counts of one share-partition's leader."""

    __slots__ = (
        "_fetch_ended_ms",
        "acquisition_lock_timeouts",
        "archived_records",
        "delivery_limit_records",
        "expired_records",
        "fetch_ms",
        "fetch_percent",
        "in_flight_batch_records",
        "invalid_delay_headers",
        "invalid_priorities",
        "overtaking_records",
        "redelivered_records",
        "undelivered_bytes",
    )

    def __init__(self) -> None:
        self._fetch_ended_ms: int | None = None
        self.acquisition_lock_timeouts = 0
        """Records whose lock has expired."""
        self.delivery_limit_records = 0
        """Records that were archived because they reached the delivery limit."""
        self.archived_records = 0
        """Records that became final without being accepted."""
        self.redelivered_records = 0
        """Deliveries of records that were delivered before; a record counts once for each."""
        self.expired_records = 0
        """Records that were archived because of `share.record.ttl.ms`."""
        self.undelivered_bytes = 0
        """Bytes of records that went out in batches with delivered ones, see `delivered_batches`."""
        self.overtaking_records = 0
        """Records that were delivered before an earlier available one, because of their priority."""
        self.invalid_delay_headers = 0
        """Records that were delivered without the delay in their header, because it is none."""
        self.invalid_priorities = 0
        """Records whose priority counts as 0 because the value of their header is not a digit."""
        self.in_flight_batch_records = Histogram(RECORD_COUNT_BOUNDS)
        """The number of records in each batch when it came in flight."""
        self.fetch_ms = Histogram(MS_BOUNDS)
        """The time for which each fetch had the share-partition for itself."""
        self.fetch_percent = Histogram(PERCENT_BOUNDS)
        """The percentage of that time in the time since the end of the previous fetch."""

    def delivered(
        self,
        acquired: Iterable[tuple[int, int, int]],
        overtaking_count: int,
        began_ms: int,
        ended_ms: int,
    ) -> None:
        """A fetch has acquired these records, as (first offset, last offset, delivery count), some of them
        before earlier ones. It has had the share-partition from and to these times (monotonic).
        """
        self.overtaking_records += overtaking_count
        for first_offset, last_offset, delivery_count in acquired:
            if delivery_count > 1:
                self.redelivered_records += last_offset - first_offset + 1
        took_ms = ended_ms - began_ms
        idle_ms = 0 if self._fetch_ended_ms is None else began_ms - self._fetch_ended_ms
        self._fetch_ended_ms = ended_ms
        self.fetch_ms.observe(took_ms)
        if not took_ms + idle_ms:
            self.fetch_percent.observe(100)
        elif took_ms:
            self.fetch_percent.observe(100 * took_ms // (took_ms + idle_ms))
        else:  # As in Kafka, less than a millisecond counts as one.
            self.fetch_percent.observe(100 // idle_ms)

    def note_archived(self, changes: Iterable[StateRange], record_count: RecordCount) -> None:
        """These changes are recorded; gaps are no records."""
        for base_offset, last_offset, state, _, cause, *_ in changes:
            if state is RecordState.ARCHIVED and cause is not Cause.GAP:
                self.archived_records += record_count(base_offset, last_offset)

    def note_expired(self, changes: Iterable[StateRange], record_count: RecordCount) -> None:
        """These changes are in force."""
        for change in changes:
            if change.cause is Cause.EXPIRED:
                self.expired_records += record_count(change.base_offset, change.last_offset)


class ShareCounts:
    """All counts of one broker. `has_topic` tells whether a topic exists."""

    def __init__(self, has_topic: Callable[[UUID], bool]) -> None:
        self._has_topic = has_topic
        self.acknowledged = {acknowledge_type.value: Counter() for acknowledge_type in AcknowledgeType}
        """Records by acknowledge type; gaps are counted, and not published, as in Kafka."""
        self.all_topics = TopicCounts()
        self.by_topic: dict[int, TopicCounts] = {}
        """By the topic's id as a number."""
        self.by_group: dict[str, GroupCounts] = {}
        self.load_ms = Histogram(MS_BOUNDS)
        """The time that states of share-partitions took to load."""
        self.write_ms = Histogram(MS_BOUNDS)
        """The time it took to record a leader's decision."""
        self.expired_fetches = Counter()
        """Fetches whose wait ended by its deadline."""

    def leader_began(self, group_id: str) -> None:
        self.by_group.setdefault(group_id, GroupCounts()).leader_count += 1

    def leader_ended(self, group_id: str) -> None:
        counts = self.by_group[group_id]
        counts.leader_count -= 1
        if not counts.leader_count:
            del self.by_group[group_id]

    def forget_topic(self, topic_id: UUID) -> None:
        self.by_topic.pop(topic_id.int, None)

    def of_topics(self, topic_ids: Iterable[UUID]) -> list[TopicCounts]:
        """The counts that a request with these topics adds to. Kafka counts it once for each topic that
        exists, and the same number of times for all topics together.
        """
        counts: list[TopicCounts] = []
        for topic_id in topic_ids:
            of_topic = self.by_topic.get(topic_id.int) or self._begin_topic(topic_id)
            if of_topic is not None:
                counts += (self.all_topics, of_topic)
        return counts

    def _begin_topic(self, topic_id: UUID) -> TopicCounts | None:
        if not self._has_topic(topic_id):
            return None
        counts = self.by_topic[topic_id.int] = TopicCounts()
        return counts
