"""The share-partition that a request names, over Kafka's protocol or HTTP, the member that holds records of
it, and an administrator's change of its records.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from barnabas.coordinator.metadata.share_version import require_share_groups
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.record_inspection import RecordAction
from barnabas.runtime.logging import get_logger

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import MetadataImage
    from barnabas.coordinator.share_group.coordinator import ShareGroupCoordinator
    from barnabas.runtime.clock import Clock
    from barnabas.share.fetch.fetch_source import FetchSource
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader
    from barnabas.share.partition.inspection import InspectedRange

_NO_ID = UUID(int=0)


async def find_share_partition(
    image: MetadataImage,
    groups: ShareGroupCoordinator,
    fetch_source: FetchSource,
    group_id: str,
    topic_id: UUID | None,
    partition_index: int,
) -> SharePartitionLeader:
    """The leader of a partition that the group reads.

    Raises StorageError, and ApiError: UNSUPPORTED_VERSION (share groups are disabled), INVALID_GROUP_ID,
    GROUP_ID_NOT_FOUND, COORDINATOR_LOAD_IN_PROGRESS, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
    RESOURCE_NOT_FOUND (the group does not read the partition), or an error of its state.
    """
    require_share_groups(image)
    groups.check_exists(group_id)
    key = SharePartitionKey(group_id, topic_id or _NO_ID, partition_index)
    topic = fetch_source.find_topic(key.topic_id_partition)
    initialised = groups.initialised_partitions(group_id).get(key.topic_id)
    if initialised is None or partition_index not in initialised.partitions:
        message = f"The share group {group_id} does not read {topic.name}-{partition_index}."
        raise ApiError(ErrorCode.resource_not_found, message)
    return await fetch_source.load_leader(key)


async def change_records(
    leader: SharePartitionLeader,
    action: RecordAction,
    first_offset: int,
    last_offset: int,
    *,
    subject: str,
    caller: str,
    **client: str | None,
) -> int:
    """An administrator's change of a range of records, both ends inclusive, with a line in the broker's log.

    The line has this `subject`, names the `caller`, such as "an administrator", and has the fields in
    `client`. The change is in force immediately; the call returns the number of records when it is recorded.
    Raises ApiError, changing nothing, and StorageError: then the change may still be recorded with the next.
    """
    recorded = leader.administer(action, first_offset, last_offset)
    record_count = leader.core.record_count(first_offset, last_offset)
    get_logger(subject).info(
        f"{caller} changes records of a share group",
        action=action.name.lower(),
        group=leader.group_id,
        partition=leader.log.topic_partition.directory_name,
        first_offset=first_offset,
        last_offset=last_offset,
        **client,
    )
    await recorded
    return record_count


class HeldLock(NamedTuple):
    """The lock of a range, and its holder. Times are wall-clock times in ms."""

    member_id: str
    client_id: str | None
    """None, with the host, if the holder is no member of the group: share sessions do not check that."""
    client_host: str | None
    acquired_ms: int
    lock_deadline_ms: int
    lock_remaining_ms: int
    """From now to the deadline, and 0 behind it."""


def held_lock(
    groups: ShareGroupCoordinator, clock: Clock, leader: SharePartitionLeader, inspected: InspectedRange
) -> HeldLock | None:
    """The lock of the range; None if no member holds it."""
    if inspected.owner is None:
        return None
    member = groups.member(leader.group_id, inspected.owner)
    now_ms, wall_ms = clock.monotonic_ms(), clock.wall_ms()
    deadline_ms = max(inspected.lock_deadline_ms, now_ms)
    wall_of = partial(leader.core.wall_ms, ahead_ms=wall_ms - now_ms)
    return HeldLock(
        inspected.owner,
        None if member is None else member.client_id,
        None if member is None else member.client_host,
        acquired_ms=wall_of(inspected.acquired_ms),
        lock_deadline_ms=wall_of(deadline_ms),
        lock_remaining_ms=deadline_ms - now_ms,
    )
