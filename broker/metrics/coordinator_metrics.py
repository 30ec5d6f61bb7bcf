"""The metrics of the coordinators, with the names of Kafka's metrics (docs/metrics.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from barnabas.broker.internal_topics.internal_topic import InternalTopic
from barnabas.broker.internal_topics.share_state_topic import ShareStateTopic
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.replay.topic_operations import OperationCounts
from barnabas.runtime.metrics import Metrics
from barnabas.share.leader.share_counts import ShareCounts

_GROUPS = "kafka_server_group_coordinator_metrics_"
_SHARE_STATES = "kafka_server_share_coordinator_metrics_"
_PROTOCOLS = ("classic", "consumer", "share")
_STATES = {
    "consumer": ("empty", "assigning", "reconciling", "stable", "dead"),
    "share": ("empty", "stable", "dead"),
}

_Values = Iterator[tuple[dict[str, str], float]]


def publish_groups(metrics: Metrics, groups: Groups, topic: InternalTopic) -> None:
    """The metrics of groups and of `topic`, which is `__consumer_offsets`."""
    metrics.family(_GROUPS + "group_count", lambda: _group_counts(groups))
    metrics.family(_GROUPS + "consumer_group_count", lambda: _state_counts(groups, "consumer"))
    metrics.family(_GROUPS + "share_group_count", lambda: _state_counts(groups, "share"))
    metrics.gauge(_GROUPS + "share_group_rebalance_total", lambda: groups.share.rebalance_count)
    metrics.gauge("barnabas_waiting_commits", lambda: groups.offsets.waiting_count)
    _publish_operations(metrics, _GROUPS, topic, groups.operations)


def publish_share_states(metrics: Metrics, counts: ShareCounts, share_state: ShareStateTopic | None) -> None:
    """The metrics of recorded decisions in either store, and of `__share_group_state` if it exists."""
    metrics.gauge(_SHARE_STATES + "write_total", lambda: counts.write_ms.count)
    metrics.histograms(_SHARE_STATES + "write_latency", lambda: [({}, counts.write_ms)])
    if share_state is not None:
        metrics.family(_SHARE_STATES + "last_pruned_offset", lambda: _pruned_offsets(share_state))
        _publish_operations(metrics, _SHARE_STATES, share_state.topic, share_state.coordinator.operations)


def _publish_operations(
    metrics: Metrics, prefix: str, topic: InternalTopic, operations: OperationCounts
) -> None:
    metrics.family(prefix + "num_partitions", lambda: _partition_states(operations))
    metrics.gauge(prefix + "event_queue_size", lambda: operations.queued_count)
    metrics.histograms(prefix + "batch_flush_time_ms", lambda: [({}, topic.append_ms)])
    metrics.histograms(prefix + "partition_load_time", lambda: [({}, topic.load_ms)])


def _group_counts(groups: Groups) -> _Values:
    counts = Counter(group.group_type for group in groups.list_groups())
    for protocol in _PROTOCOLS:
        yield {"protocol": protocol}, counts[protocol]


def _state_counts(groups: Groups, group_type: str) -> _Values:
    counts = Counter(group.state.lower() for group in groups.list_groups(types_filter=[group_type]))
    for state in _STATES[group_type]:
        yield {"state": state}, counts[state]


def _pruned_offsets(share_state: ShareStateTopic) -> _Values:
    for partition, offset in share_state.coordinator.pruned_offsets.items():
        yield {"topic": share_state.topic.name, "partition": str(partition)}, offset


def _partition_states(operations: OperationCounts) -> _Values:
    """No partition is ever `failed`: one that cannot be loaded is tried again until it can."""
    yield {"state": "active"}, operations.loaded_count
    yield {"state": "loading"}, operations.partition_count - operations.loaded_count
    yield {"state": "failed"}, 0
