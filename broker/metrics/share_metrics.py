"""Publishes the counts of share groups as metrics, with Kafka's names (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.runtime.metrics import Counter, Histogram, Labelled, Metrics
from barnabas.share.fetch.share_fetch_operation import ShareFetchOperation
from barnabas.share.leader.share_counts import GroupCounts, PartitionCounts, ShareCounts, TopicCounts
from barnabas.share.partition.acknowledgement import AcknowledgeType

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.runtime.purgatory import Purgatory
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader
    from barnabas.share.leader.share_partitions import SharePartitions
    from barnabas.share.sessions.session_cache import ShareSessionCache

_GROUPS = "kafka_server_sharegroupmetrics_"
_PARTITIONS = "kafka_server_sharepartitionmetrics_"
_SESSIONS = "kafka_server_sharesessioncache_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_PURGATORY = "kafka_server_delayedoperationpurgatory_"


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
    for one in AcknowledgeType:
        if one is not AcknowledgeType.GAP:
            read = _reader(counts.acknowledged[one])
            metrics.gauge(_GROUPS + "recordacknowledgements_total", read, ackType=one.name.capitalize())
    metrics.histograms(_GROUPS + "partitionloadtimems", lambda: [({}, counts.load_ms)])

    def of_groups(read: Callable[[GroupCounts], Histogram]) -> Callable[[], Labelled[Histogram]]:
        return lambda: [({"group": group_id}, read(one)) for group_id, one in counts.by_group.items()]

    metrics.histograms(
        _GROUPS + "requesttopicpartitionsfetchratio", of_groups(lambda one: one.fetched_percent)
    )
    metrics.histograms(_GROUPS + "topicpartitionsacquiretimems", of_groups(lambda one: one.acquire_ms))


def _reader(counter: Counter) -> Callable[[], float]:
    return lambda: counter.value


def _publish_partitions(metrics: Metrics, partitions: SharePartitions) -> None:
    """The metrics of the share-partitions with a leader in memory."""

    def of_leaders(read: Callable[[SharePartitionLeader], float]) -> Callable[[], Labelled[float]]:
        return lambda: [(_labels(one), read(one)) for one in partitions]

    def of_counts(read: Callable[[PartitionCounts], Histogram]) -> Callable[[], Labelled[Histogram]]:
        return lambda: [(_labels(one), read(one.counts)) for one in partitions]

    metrics.family(_PARTITIONS + "inflightmessagecount", of_leaders(lambda one: one.core.in_flight_count))
    metrics.family(_PARTITIONS + "inflightbatchcount", of_leaders(lambda one: one.core.in_flight_batch_count))
    metrics.family(
        _PARTITIONS + "acquisitionlocktimeout_total",
        of_leaders(lambda one: one.counts.acquisition_lock_timeouts),
    )
    metrics.family(
        "barnabas_share_delivery_limit_records_total",
        of_leaders(lambda one: one.counts.delivery_limit_records),
    )
    metrics.histograms(
        _PARTITIONS + "inflightbatchmessagecount", of_counts(lambda one: one.in_flight_batch_records)
    )
    metrics.histograms(_PARTITIONS + "fetchlocktimems", of_counts(lambda one: one.fetch_ms))
    metrics.histograms(_PARTITIONS + "fetchlockratio", of_counts(lambda one: one.fetch_percent))


def _labels(leader: SharePartitionLeader) -> dict[str, str]:
    topic, partition = leader.log.topic_partition
    return {"group": leader.group_id, "topic": topic, "partition": str(partition)}


def _publish_topics(metrics: Metrics, counts: ShareCounts, image: MetadataImage) -> None:
    """Each metric without a label for all topics together, and by topic."""

    def of_topics(read: Callable[[TopicCounts], Counter]) -> Iterator[tuple[dict[str, str], float]]:
        yield {}, read(counts.all_topics).value
        for topic_id, one in counts.by_topic.items():
            yield {"topic": _topic_name(topic_id)}, read(one).value

    def _topic_name(topic_id: UUID) -> str:
        return image.topics_by_id[topic_id].name

    names: dict[str, Callable[[TopicCounts], Counter]] = {
        "totalsharefetchrequests_total": lambda one: one.fetches,
        "failedsharefetchrequests_total": lambda one: one.failed_fetches,
        "totalshareacknowledgementrequests_total": lambda one: one.acknowledgements,
        "failedshareacknowledgementrequests_total": lambda one: one.failed_acknowledgements,
    }
    for name, read in names.items():
        metrics.family(_TOPICS + name, partial(of_topics, read))


def _publish_waits(metrics: Metrics, counts: ShareCounts, purgatory: Purgatory) -> None:
    expired = "kafka_server_delayedsharefetchmetrics_expires_total"
    metrics.gauge(expired, lambda: counts.expired_fetches.value)

    def waiting() -> int:
        return purgatory.count_of(ShareFetchOperation)

    def watched() -> int:
        return purgatory.watch_count_of(ShareFetchOperation)

    metrics.gauge(_PURGATORY + "numdelayedoperations", waiting, delayedOperation="ShareFetch")
    metrics.gauge(_PURGATORY + "purgatorysize", watched, delayedOperation="ShareFetch")
