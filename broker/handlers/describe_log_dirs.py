"""DescribeLogDirs (key 35, versions 1 to 5; KIP-113, KIP-827, KIP-1066): sizes of partitions and of the disk.

Null asks for all partitions; partitions that do not exist are left out. A size is the sum of the segments,
whether the log is open or not. There is one directory and no replica that moves or lags, so `is_future_key`
is false and `offset_lag` 0. A directory that cannot be read is KAFKA_STORAGE_ERROR. A full disk is as well,
with its sizes; `barnabas healthcheck` relies on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v5.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i32, i64, milliseconds
from barnabas.runtime.logging import get_logger
from barnabas.storage.directory.directory_usage import partition_sizes
from barnabas.storage.filesystem import DiskSpace
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.network.handler import RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.storage.directory.log_directory import LogDirectory

log = get_logger("describe_log_dirs")

_UNKNOWN_BYTES = -1


class Parts(NamedTuple):
    log_directory: LogDirectory
    metadata: Controller


async def handle_describe_log_dirs(
    parts: Parts, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(
        throttle_time=milliseconds(0),
        error_code=ErrorCode.none,
        results=(await _describe(parts.log_directory, list(_existing(parts.metadata.image, request))),),
    )


def _existing(image: MetadataImage, request: DescribeLogDirsRequest) -> Iterator[TopicPartition]:
    topics = image.topics_by_name
    if request.topics is None:
        for topic in topics.values():
            yield from (TopicPartition(topic.name, partition.index) for partition in topic.partitions)
        return
    asked = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}
    for key in sorted(asked):
        if image.partition(key.topic, key.partition) is not None:
            yield key


async def _describe(directory: LogDirectory, partitions: list[TopicPartition]) -> DescribeLogDirsResult:
    filesystem = directory.filesystem
    try:
        space = await filesystem.run(filesystem.disk_space, directory.path)
        sizes = await partition_sizes(directory, partitions)
    except OSError as error:
        log.warning("data directory cannot be read", reason=str(error))
        unknown = DiskSpace(_UNKNOWN_BYTES, _UNKNOWN_BYTES)
        return _result(directory.path, ErrorCode.kafka_storage_error, {}, unknown)
    error_code = ErrorCode.kafka_storage_error if directory.full_disk.is_full else ErrorCode.none
    return _result(directory.path, error_code, {key: sizes.get(key, 0) for key in partitions}, space)


def _result(
    path: str, error_code: ErrorCode, sizes: Mapping[TopicPartition, int], space: DiskSpace
) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for key, size_bytes in sizes.items():
        partition = DescribeLogDirsPartition(
            partition_index=i32(key.partition),
            partition_size=i64(size_bytes),
            offset_lag=i64(0),
            is_future_key=False,
        )
        topics.setdefault(key.topic, []).append(partition)
    return DescribeLogDirsResult(
        error_code=error_code,
        log_dir=str(Path(path).absolute()),
        topics=tuple(
            DescribeLogDirsTopic(name=TopicName(name), partitions=tuple(partitions))
            for name, partitions in topics.items()
        ),
        total_bytes=i64(space.total_bytes),
        usable_bytes=i64(space.usable_bytes),
        is_cordoned=False,
    )
