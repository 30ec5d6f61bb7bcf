"""Publishes the counts of the storage layer as metrics."""

from collections.abc import Callable, Iterator

from barnabas.runtime.metrics import Labelled, Metrics
from barnabas.storage.directory.cleaner import LogCleaner
from barnabas.storage.directory.log_directory import LogDirectory
from barnabas.storage.filesystem import DiskSpace
from barnabas.storage.log.partition_log import PartitionLog

FLUSH_MS = "kafka_log_logflushstats_logflushrateandtimems"
OFFLINE_LOGS = "kafka_server_replicamanager_offlinereplicacount"


def publish_storage(metrics: Metrics, log_directory: LogDirectory) -> None:
    """Publishes all metrics of the storage layer."""
    metrics.histograms(FLUSH_MS, lambda: [({}, log_directory.flush_ms)])
    publish_disk(metrics, log_directory)
    publish_corrupt_batches(metrics, log_directory)
    publish_cleaner(metrics, log_directory.cleaner)
    publish_share_offsets(metrics, log_directory)


def publish_disk(metrics: Metrics, log_directory: LogDirectory) -> None:
    """`barnabas_disk_size_bytes` and `barnabas_disk_free_bytes` of the file system of the data directory,
    `barnabas_disk_full` (1 while writes are refused for lack of room), and the number of offline logs.
    """
    metrics.family(
        "barnabas_disk_size_bytes", lambda: _disk_space(log_directory, lambda space: space.total_bytes)
    )
    metrics.family(
        "barnabas_disk_free_bytes", lambda: _disk_space(log_directory, lambda space: space.usable_bytes)
    )
    metrics.gauge("barnabas_disk_full", lambda: int(log_directory.full_disk.is_full))
    metrics.gauge(OFFLINE_LOGS, lambda: len(log_directory.offline_logs))


def publish_corrupt_batches(metrics: Metrics, log_directory: LogDirectory) -> None:
    """`barnabas_corrupt_batches`: the number of damaged batches that reads found in the open logs."""
    metrics.gauge(
        "barnabas_corrupt_batches", lambda: sum(log.corrupt_batch_count for log in log_directory.logs)
    )


def publish_cleaner(metrics: Metrics, cleaner: LogCleaner) -> None:
    """`barnabas_cleaner_runs_total` (logs cleaned), `barnabas_cleaner_cleaned_bytes_total` (bytes removed)
    and `barnabas_cleaner_uncleanable_partitions` (damaged logs, which the cleaner does not change).
    """
    metrics.gauge("barnabas_cleaner_runs_total", lambda: cleaner.run_count)
    metrics.gauge("barnabas_cleaner_cleaned_bytes_total", lambda: cleaner.cleaned_bytes)
    metrics.gauge("barnabas_cleaner_uncleanable_partitions", lambda: cleaner.uncleanable_count)


def publish_share_offsets(metrics: Metrics, log_directory: LogDirectory) -> None:
    """The offsets of open logs with share state: `barnabas_earliest_share_offset` by topic and partition
    (ESO; share state below it may be cleaned), and `barnabas_share_checkpoint_offset` also by group (SCO).
    """
    metrics.family("barnabas_earliest_share_offset", lambda: _earliest_share_offsets(log_directory))
    metrics.family("barnabas_share_checkpoint_offset", lambda: _share_checkpoint_offsets(log_directory))


def _disk_space(log_directory: LogDirectory, read: Callable[[DiskSpace], int]) -> Labelled[float]:
    """One value, or none if the file system fails.

    The system answers from its memory, so it is asked on the loop's thread (decision 4).
    """
    try:
        space = log_directory.filesystem.disk_space(log_directory.path)
    except OSError:
        return []
    return [({}, read(space))]


def _earliest_share_offsets(log_directory: LogDirectory) -> Labelled[float]:
    return [(_labels(log), log.share_records.earliest_offset) for log in _with_share_state(log_directory)]


def _share_checkpoint_offsets(log_directory: LogDirectory) -> Labelled[float]:
    return [
        (_labels(log) | {"group": group_id}, offset)
        for log in _with_share_state(log_directory)
        for group_id, offset in log.share_records.checkpoint_offsets.items()
    ]


def _with_share_state(log_directory: LogDirectory) -> Iterator[PartitionLog]:
    return (log for log in log_directory.logs if log.share_records.checkpoint_offsets)


def _labels(log: PartitionLog) -> dict[str, str]:
    topic, partition = log.topic_partition
    return {"topic": topic, "partition": str(partition)}
