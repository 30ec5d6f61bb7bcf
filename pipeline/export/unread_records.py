"""Records of the target that groups would skip: those in front of a restore that appends.

A restore puts a group at its place among the restored records, and so behind all records that the topic had
before. If the group has not finished those in the target, it would never get them. So the group must finish
them first: its own position in the target must have passed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import EARLIEST, Topic, Topics
from barnabas.client.errors import GroupNotFoundError
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.committed_offsets import read_committed
from barnabas.pipeline.export.manifest import Manifest
from barnabas.pipeline.export.requests import with_retries
from barnabas.pipeline.export.restore_state import RestoredTopic
from barnabas.pipeline.export.share_groups import read_positions
from barnabas.pipeline.reading import PartitionRanges, read_records
from barnabas.pipeline.servers import Servers
from barnabas.protocol.identity import TopicIdPartition

_ONE_COLUMN: Final = ("offset",)

_Place = tuple[str, int]
"""Topic and partition."""


class UnreadOffsets(NamedTuple):
    """Offsets of the target that a group would skip; they may have no records."""

    group_id: str
    topic: str
    partition: TopicIdPartition
    first_offset: int
    last_offset: int
    """Inclusive."""


async def find_unread(
    cluster: Cluster, manifest: Manifest, topics: Iterable[RestoredTopic]
) -> list[UnreadOffsets]:
    """The offsets in front of the restore that its groups have not passed in the target.

    Raises `BrokerError` and `BrokerUnavailableError`.
    """
    begins = {
        (topic.name, partition): begin
        for topic in topics
        if topic.topic_id is not None
        for partition, begin in enumerate(topic.begin_offsets)
        if begin > 0
    }
    moved = {group: places & begins.keys() for group, places in _moved(manifest)}
    names = {topic for places in moved.values() for topic, _ in places}
    if not names:
        return []
    with closing(Topics(cluster)) as asked:
        found = {topic.name: topic for topic in await asked.find(sorted(names))}
        starts = await _starts(asked, found.values())
    share_groups = {group.group_id for group in manifest.share_groups}
    unread: list[UnreadOffsets] = []
    for group_id, places in moved.items():
        passed = await _passed(cluster, group_id, found, is_share=group_id in share_groups) if places else {}
        for topic, index in sorted(places):
            partition = TopicIdPartition(found[topic].topic_id, index)
            first = max(starts[partition], passed.get((topic, index), 0))
            if first < begins[topic, index]:
                unread.append(UnreadOffsets(group_id, topic, partition, first, begins[topic, index] - 1))
    return unread


def refuse_unread(servers: Servers, unread: Iterable[UnreadOffsets]) -> None:
    """Raises `PipelineError` if any of the offsets has a record, and the client's errors."""
    for offsets in unread:
        if _has_record(servers, offsets):
            raise PipelineError(
                f"The group {offsets.group_id} would skip records of "
                f"{offsets.topic}-{offsets.partition.partition} that the target has already, from offset "
                f"{offsets.first_offset} to {offsets.last_offset}. Let consumers of the group read them in "
                "the target, and close them; then try again. Or leave the group out of the export (--groups)."
            )


def _has_record(servers: Servers, offsets: UnreadOffsets) -> bool:
    """Control batches and markers have offsets, and no records."""
    wanted = PartitionRanges(
        offsets.topic, offsets.partition, ((offsets.first_offset, offsets.last_offset, 0),)
    )
    with closing(read_records(servers, [wanted], _ONE_COLUMN)) as batches:
        return any(batch.num_rows for batch in batches)


def _moved(manifest: Manifest) -> Iterator[tuple[str, set[_Place]]]:
    """Each group, with the partitions in which it gets a position."""
    for group in manifest.share_groups:
        yield group.group_id, {(position.topic, position.partition) for position in group.positions}
    for ordinary in manifest.consumer_groups:
        yield ordinary.group_id, {(committed.topic, committed.partition) for committed in ordinary.offsets}


async def _starts(asked: Topics, topics: Iterable[Topic]) -> dict[TopicIdPartition, int]:
    partitions = [partition for topic in topics for partition in topic.partitions]
    return {
        partition: offset or 0 for partition, offset in (await asked.offsets(partitions, EARLIEST)).items()
    }


async def _passed(
    cluster: Cluster, group_id: str, topics: Mapping[str, Topic], *, is_share: bool
) -> dict[_Place, int]:
    """The offsets that the group has reached in the target; empty for a group that is not there."""
    if not is_share:
        committed = await with_retries(lambda: read_committed(cluster, group_id, topics.values()))
        return {(position.topic, position.partition): position.offset for position in committed}
    names: dict[UUID, str] = {topic.topic_id: topic.name for topic in topics.values()}
    try:
        positions = await read_positions(cluster, group_id, names)
    except GroupNotFoundError:
        return {}
    return {(position.topic, position.partition): position.start_offset for position in positions}
