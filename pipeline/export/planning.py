"""Plans an export before any record is read: topics, offsets, groups.

It reads the groups' positions first and the ends of the partitions last, so that no group is beyond the
exported records. Consumers that go on meanwhile lose nothing: records that they accept after that are
delivered again in the target of a restore. Stop them first for an exact copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import metadata_request
from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topic, Topics
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.export.committed_offsets import read_committed
from barnabas.pipeline.export.directory import slice_path
from barnabas.pipeline.export.log_records import check_cluster
from barnabas.pipeline.export.log_state import read_positions_in_logs
from barnabas.pipeline.export.manifest import (
    Choices,
    ConsumerGroup,
    ExportedPartition,
    ExportedSlice,
    ExportedTopic,
    Manifest,
    ShareGroup,
)
from barnabas.pipeline.export.requests import with_retries
from barnabas.pipeline.export.settings import Kind, read_settings
from barnabas.pipeline.export.share_groups import ORDINARY, SHARE, list_groups, read_positions
from barnabas.pipeline.servers import Servers
from barnabas.protocol.client.consumer_apis import METADATA

SLICE_OFFSETS: Final = 500_000
"""Offsets in a slice, which one task reads and one file holds."""


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """The arguments of an export."""

    servers: Servers
    topics: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    """Groups to export; None for all with a position in the topics."""
    data_directories: tuple[str, ...] = ()
    """Data directories of the broker, for state that it does not report to clients."""
    from_logs: bool = False
    """Whether records are read from the data directories, which all executors must see."""
    isolation: Isolation = Isolation.READ_COMMITTED
    slice_offsets: int = SLICE_OFFSETS

    @property
    def choices(self) -> Choices:
        """The options for the manifest."""
        groups = None if self.groups is None else tuple(sorted(self.groups))
        return Choices(self.isolation.name.lower(), self.slice_offsets, groups)


async def plan_export(request: ExportRequest) -> Manifest:
    """The plan: no slice has a count yet. Raises `OptionError`, `PipelineError` and the client's errors."""
    cluster = request.servers.cluster()
    topics = Topics(cluster)
    try:
        metadata = await with_retries(lambda: cluster.ask(METADATA, metadata_request(())))
        check_cluster(request.data_directories, metadata.cluster_id or "")
        found = await topics.find(request.topics)
        settings = await read_settings(cluster, Kind.TOPIC, request.topics)
        share_groups = await _share_groups(cluster, request, found)
        consumer_groups = await _consumer_groups(cluster, request, found)
        found_groups = {group.group_id for group in share_groups} | {
            group.group_id for group in consumer_groups
        }
        _check_groups(request, found_groups)
        exported = [await _topic(topics, topic, settings[topic.name], request) for topic in found]
    finally:
        topics.close()
        cluster.close()
    return Manifest(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        cluster_id=metadata.cluster_id or "",
        is_complete=False,
        choices=request.choices,
        topics=tuple(exported),
        share_groups=tuple(share_groups),
        consumer_groups=tuple(consumer_groups),
        left_out=tuple(_inexact(share_groups)),
    )


async def _topic(
    topics: Topics, topic: Topic, settings: Mapping[str, str], request: ExportRequest
) -> ExportedTopic:
    starts = await topics.offsets(topic.partitions, EARLIEST)
    ends = await topics.offsets(topic.partitions, LATEST, request.isolation)
    partitions = [
        _partition(
            topic.name,
            partition.partition,
            starts[partition] or 0,
            ends[partition] or 0,
            request.slice_offsets,
        )
        for partition in topic.partitions
    ]
    return ExportedTopic(topic.name, str(topic.topic_id), dict(settings), tuple(partitions))


def _partition(
    topic: str, partition: int, start_offset: int, end_offset: int, slice_offsets: int
) -> ExportedPartition:
    slices: list[ExportedSlice] = []
    for first in range(start_offset, end_offset, slice_offsets):
        end = min(first + slice_offsets, end_offset)
        slices.append(ExportedSlice(slice_path(topic, partition, first, end), first, end))
    return ExportedPartition(partition, start_offset, max(start_offset, end_offset), tuple(slices))


async def _share_groups(
    cluster: Cluster, request: ExportRequest, topics: Sequence[Topic]
) -> list[ShareGroup]:
    names = {topic.topic_id: topic.name for topic in topics}
    group_ids = _wanted(await list_groups(cluster, SHARE), request)
    positions = {group_id: await read_positions(cluster, group_id, names) for group_id in group_ids}
    if request.data_directories:
        in_logs = read_positions_in_logs(request.data_directories, request.topics)
        positions = {
            group_id: [
                in_logs.get((group_id, position.topic, position.partition), position) for position in of_group
            ]
            for group_id, of_group in positions.items()
        }
    concerned = [group_id for group_id, of_group in positions.items() if of_group]
    settings = await read_settings(cluster, Kind.GROUP, concerned)
    return [ShareGroup(group_id, settings[group_id], tuple(positions[group_id])) for group_id in concerned]


async def _consumer_groups(
    cluster: Cluster, request: ExportRequest, topics: Sequence[Topic]
) -> list[ConsumerGroup]:
    found: list[ConsumerGroup] = []
    for group_id in _wanted(await list_groups(cluster, ORDINARY), request):
        offsets = await read_committed(cluster, group_id, topics)
        if offsets:
            found.append(ConsumerGroup(group_id, tuple(offsets)))
    return found


def _wanted(group_ids: Sequence[str], request: ExportRequest) -> list[str]:
    return [group_id for group_id in group_ids if request.groups is None or group_id in request.groups]


def _check_groups(request: ExportRequest, found: Collection[str]) -> None:
    for group_id in request.groups or ():
        if group_id not in found:
            raise OptionError("--groups", f"there is no group {group_id!r} with a position in these topics")


def _inexact(groups: Sequence[ShareGroup]) -> list[str]:
    """A sentence about each group with only its start offsets."""
    return [
        f"Only the start offsets of group {group.group_id} are known: records above them that it accepted "
        "are delivered again after a restore. The broker's data directory has the exact state (--data-dir)."
        for group in groups
        if any(position.in_flight is None for position in group.positions)
    ]
