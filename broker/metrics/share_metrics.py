"""Publishes the counts of share groups as metrics, with Kafka's names (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from barnabas.runtime.metrics import Counter, Histogram, Labelled, Labels, Metrics
from barnabas.share.fetch.share_fetch_operation import ShareFetchOperation
from barnabas.share.leader.oldest_records import OldestRecords
from barnabas.share.leader.share_counts import GroupCounts, ShareCounts, TopicCounts
from barnabas.share.partition.acknowledgement import AcknowledgeType

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.runtime.purgatory import Purgatory
    from barnabas.share.dead_letters.dead_letters import DeadLetters
    from barnabas.share.dead_letters.letter_counts import GroupLetterCounts
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader
    from barnabas.share.leader.share_partitions import SharePartitions
    from barnabas.share.sessions.session_cache import ShareSessionCache
    from barnabas.storage.log.partition_log import PartitionLog

_GROUPS = "kafka_server_sharegroupmetrics_"
_PARTITIONS = "kafka_server_sharepartitionmetrics_"
_SESSIONS = "kafka_server_sharesessioncache_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_PURGATORY = "kafka_server_delayedoperationpurgatory_"

_Measured = TypeVar("_Measured", float, Histogram)


def publish_share(
    metrics: Metrics,
    partitions: SharePartitions,
    sessions: ShareSessionCache,
    purgatory: Purgatory,
    image: MetadataImage,
) -> None:
    """Publishes all metrics of share groups; `image` has the topics' names."""
    _publish_groups(metrics, partitions.counts)
    _publish_partitions(metrics, partitions)
    _publish_topics(metrics, partitions.counts, image)
    metrics.gauge(_SESSIONS + "sharesessionscount", lambda: len(sessions))
    metrics.gauge(_SESSIONS + "sharepartitionscount", lambda: sessions.partition_count)
    metrics.gauge(_SESSIONS + "sharesessionevictions_total", lambda: sessions.eviction_count)
    _publish_waits(metrics, partitions.counts, purgatory)


def _publish_groups(metrics: Metrics, counts: ShareCounts) -> None:
    for kind in AcknowledgeType:
        if kind is not AcknowledgeType.GAP:
            read = partial(_value, counts.acknowledged[kind])
            metrics.gauge(_GROUPS + "recordacknowledgements_total", read, ackType=kind.name.capitalize())
    metrics.histograms(_GROUPS + "partitionloadtimems", lambda: [({}, counts.load_ms)])
    histograms: dict[str, Callable[[GroupCounts], Histogram]] = {
        "requesttopicpartitionsfetchratio": lambda group: group.fetched_percent,
        "topicpartitionsacquiretimems": lambda group: group.acquire_ms,
    }
    for name, of_group in histograms.items():
        metrics.histograms(_GROUPS + name, partial(_by_group, counts, of_group))


def _value(counter: Counter) -> float:
    return counter.value


def _by_group(counts: ShareCounts, read: Callable[[GroupCounts], Histogram]) -> Labelled[Histogram]:
    for group_id, group in counts.by_group.items():
        yield {"group": group_id}, read(group)


def _publish_partitions(metrics: Metrics, partitions: SharePartitions) -> None:
    """The metrics of the share-partitions: most are of those with a leader in memory."""
    values: dict[str, Callable[[SharePartitionLeader], float]] = {
        _PARTITIONS + "inflightmessagecount": lambda leader: leader.core.in_flight_count,
        _PARTITIONS + "inflightbatchcount": lambda leader: leader.core.in_flight_batch_count,
        _PARTITIONS + "acquisitionlocktimeout_total": lambda leader: leader.counts.acquisition_lock_timeouts,
        "barnabas_share_delivery_limit_records_total": lambda leader: leader.counts.delivery_limit_records,
        "barnabas_share_overtaking_records_total": lambda leader: leader.counts.overtaking_records,
        "barnabas_share_invalid_priorities_total": lambda leader: leader.counts.invalid_priorities,
        "barnabas_share_undelivered_bytes_total": lambda leader: leader.counts.undelivered_bytes,
        "barnabas_share_waiting_records": lambda leader: leader.core.waiting_count,
        "barnabas_share_pending_records": lambda leader: leader.core.pending_count,
        "barnabas_share_archived_records_total": lambda leader: leader.counts.archived_records,
        "barnabas_share_redelivered_records_total": lambda leader: leader.counts.redelivered_records,
        "barnabas_share_locked_records": _locked_records,
        "barnabas_share_oldest_lock_age_ms": partial(_oldest_lock_age_ms, partitions),
        "barnabas_share_delayed_records": lambda leader: leader.core.delayed_count,
        "barnabas_share_expired_records_total": lambda leader: leader.counts.expired_records,
        "barnabas_share_invalid_delay_headers_total": lambda leader: leader.counts.invalid_delay_headers,
    }
    for name, value in values.items():
        metrics.family(name, partial(_by_partition, partitions, value))
    metrics.family("barnabas_share_lag_records", partial(_lags, partitions))
    oldest_records = OldestRecords(partitions.clock, partitions.backlogs)
    metrics.family("barnabas_share_oldest_record_age_ms", partial(_oldest_record_ages_ms, oldest_records))
    histograms: dict[str, Callable[[SharePartitionLeader], Histogram]] = {
        "inflightbatchmessagecount": lambda leader: leader.counts.in_flight_batch_records,
        "fetchlocktimems": lambda leader: leader.counts.fetch_ms,
        "fetchlockratio": lambda leader: leader.counts.fetch_percent,
    }
    for name, histogram in histograms.items():
        metrics.histograms(_PARTITIONS + name, partial(_by_partition, partitions, histogram))
    stalled = partial(_where_any, partitions, lambda leader: leader.is_full_of_delayed)
    metrics.family("barnabas_share_delayed_stalled", stalled)


def _lags(partitions: SharePartitions) -> Labelled[float]:
    for backlog in partitions.backlogs():
        yield _labels(backlog.group_id, backlog.log), backlog.lag


def _oldest_record_ages_ms(oldest_records: OldestRecords) -> Labelled[float]:
    for backlog, age_ms in oldest_records.ages_ms():
        yield _labels(backlog.group_id, backlog.log), age_ms


def _locked_records(leader: SharePartitionLeader) -> float:
    return sum(lock.record_count for lock in leader.core.held_locks())


def _oldest_lock_age_ms(partitions: SharePartitions, leader: SharePartitionLeader) -> float:
    """The time since the acquisition, which a renewal leaves; 0 without a lock."""
    now_ms = partitions.clock.monotonic_ms()
    return max((now_ms - lock.acquired_ms for lock in leader.core.held_locks()), default=0)


def _by_partition(
    partitions: SharePartitions, read: Callable[[SharePartitionLeader], _Measured]
) -> Labelled[_Measured]:
    for leader in partitions:
        yield _labels(leader.group_id, leader.log), read(leader)


def _labels(group_id: str, log: PartitionLog) -> Labels:
    topic, partition = log.topic_partition
    return {"group": group_id, "topic": topic, "partition": str(partition)}


def publish_dead_letters(metrics: Metrics, letters: DeadLetters, partitions: SharePartitions) -> None:
    """Publishes the metrics of dead letters, the first three with the names of KIP-1191."""
    values: dict[str, Callable[[GroupLetterCounts], float]] = {
        _GROUPS + "deadletterqueuerecordcount_total": lambda group: group.written,
        _GROUPS + "deadletterqueuetotalproducerequests_total": lambda group: group.appends,
        _GROUPS + "deadletterqueuefailedproducerequests_total": lambda group: group.failed_attempts,
        "barnabas_dead_letters_lost_total": lambda group: group.lost,
    }
    for name, value in values.items():
        metrics.family(name, partial(_by_letter_group, letters, value))
    metrics.family("barnabas_dead_letters_held", partial(_where_any, partitions, letters.held_count))
    metrics.family("barnabas_dead_letters_stalled", partial(_where_any, partitions, letters.is_stalled))


def _by_letter_group(letters: DeadLetters, read: Callable[[GroupLetterCounts], float]) -> Labelled[float]:
    for group_id, group in letters.counts.by_group.items():
        yield {"group": group_id}, read(group)


def _where_any(partitions: SharePartitions, read: Callable[[SharePartitionLeader], float]) -> Labelled[float]:
    """Only share-partitions with a value above 0."""
    for labels, value in _by_partition(partitions, read):
        if value:
            yield labels, float(value)


def _publish_topics(metrics: Metrics, counts: ShareCounts, image: MetadataImage) -> None:
    """Each metric without a label for all topics together, and by topic."""
    counters: dict[str, Callable[[TopicCounts], Counter]] = {
        "totalsharefetchrequests_total": lambda topic: topic.fetches,
        "failedsharefetchrequests_total": lambda topic: topic.failed_fetches,
        "totalshareacknowledgementrequests_total": lambda topic: topic.acknowledgements,
        "failedshareacknowledgementrequests_total": lambda topic: topic.failed_acknowledgements,
    }
    for name, read in counters.items():
        metrics.family(_TOPICS + name, partial(_by_topic, counts, image, read))


def _by_topic(
    counts: ShareCounts, image: MetadataImage, read: Callable[[TopicCounts], Counter]
) -> Labelled[float]:
    yield {}, read(counts.all_topics).value
    for topic_id, topic in counts.by_topic.items():
        yield {"topic": image.topics_by_id[UUID(int=topic_id)].name}, read(topic).value


def _publish_waits(metrics: Metrics, counts: ShareCounts, purgatory: Purgatory) -> None:
    expired = "kafka_server_delayedsharefetchmetrics_expires_total"
    metrics.gauge(expired, lambda: counts.expired_fetches.value)
    waiting = partial(purgatory.count_of, ShareFetchOperation)
    watched = partial(purgatory.watch_count_of, ShareFetchOperation)
    metrics.gauge(_PURGATORY + "numdelayedoperations", waiting, delayedOperation="ShareFetch")
    metrics.gauge(_PURGATORY + "purgatorysize", watched, delayedOperation="ShareFetch")
