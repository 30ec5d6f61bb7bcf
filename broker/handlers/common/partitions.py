"""Finds the partitions that a request names, and opens their logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.network.replies import settle
from barnabas.coordinator.metadata.image import MetadataImage, Partition, Topic
from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, Response
    from barnabas.coordinator.metadata.partition_logs import PartitionLogs
    from barnabas.storage.log.partition_log import PartitionLog


class LedPartition(NamedTuple):
    """A partition that this broker leads."""

    topic: Topic
    partition: Partition


def find_partition(image: MetadataImage, node_id: int, topic_name: str, index: int) -> LedPartition:
    """The partition of a topic, which this node leads; raises `ApiError`."""
    topic = image.topics_by_name.get(topic_name)
    if topic is None or not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.unknown_topic_or_partition)
    partition = topic.partitions[index]
    if partition.leader != node_id:
        raise ApiError(ErrorCode.not_leader_or_follower)
    return LedPartition(topic, partition)


def find_log(logs: PartitionLogs, led: LedPartition) -> PartitionLog:
    """The log of a partition, which `open_logs` has opened; raises `ApiError` if that failed."""
    log = logs.get(led.topic, led.partition.index)
    if log is None:
        raise ApiError(ErrorCode.kafka_storage_error)
    return log


def open_logs(
    image: MetadataImage, logs: PartitionLogs, names: Iterable[tuple[str, int]]
) -> Awaitable[None] | None:
    """An awaitable that opens the logs of the named partitions; None if they are open."""
    topics = image.topics_by_name
    return logs.open_all([(topics[name], index) for name, index in names if name in topics])


def answer_with_logs(
    image: MetadataImage,
    logs: PartitionLogs,
    names: Iterable[tuple[str, int]],
    answer: Callable[[], Reply],
) -> Reply:
    """Calls `answer` when the logs of the named partitions are open, which may be immediately.

    Partitions that do not exist or cannot be opened are skipped.
    """
    opening = open_logs(image, logs, names)
    return answer() if opening is None else _answer_when_open(opening, answer)


async def _answer_when_open(opening: Awaitable[None], answer: Callable[[], Reply]) -> Response:
    await opening
    return await settle(answer())
