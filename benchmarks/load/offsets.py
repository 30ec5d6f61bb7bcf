"""The starting positions and commits of members in classic and KIP-848 groups, in versions with topic ids."""

from collections.abc import Collection, Mapping

from barnabas.protocol.errors import ErrorCode
from benchmarks.load.context import Topic, check
from benchmarks.load.wire import Connection

_LATEST = -1
_NO_MEMBER_EPOCH = _NO_REPLICA = -1
_NOT_NOW = (
    ErrorCode.none,
    ErrorCode.rebalance_in_progress,
    ErrorCode.illegal_generation,
    ErrorCode.stale_member_epoch,
)
"""Acceptable results of a commit: during a rebalance it may fail, and the next one counts."""


async def commit(
    coordinator: Connection,
    group: str,
    topic: Topic,
    member: tuple[str, int],
    positions: Mapping[int, int],
) -> None:
    """Commit positions as a member: its id, and its generation or epoch."""
    partitions = [
        {"partition_index": index, "committed_offset": offset, "committed_leader_epoch": -1}
        | {"committed_metadata": ""}
        for index, offset in positions.items()
    ]
    response = await coordinator.ask(
        "offset_commit",
        10,
        group_id=group,
        member_id=member[0],
        generation_id_or_member_epoch=member[1],
        group_instance_id=None,
        topics=[{"topic_id": topic.topic_id, "partitions": partitions}],
    )
    for partition in response.topics[0].partitions:
        if partition.error_code not in _NOT_NOW:
            check(partition.error_code, "offset_commit")


async def starting_positions(
    coordinator: Connection,
    leader: Connection,
    group: str,
    topic: Topic,
    indexes: Collection[int],
    member: tuple[str | None, int] = (None, _NO_MEMBER_EPOCH),
) -> dict[int, int]:
    """The committed offsets, or the end offsets if there are none.

    KIP-848 members pass their id and epoch.
    """
    wanted = {"topic_id": topic.topic_id, "partition_indexes": sorted(indexes)}
    of_group = {"group_id": group, "member_id": member[0], "member_epoch": member[1], "topics": [wanted]}
    response = await coordinator.ask("offset_fetch", 10, groups=[of_group], require_stable=True)
    (fetched,) = response.groups
    check(fetched.error_code, "offset_fetch")
    positions = {each.partition_index: each.committed_offset for each in fetched.topics[0].partitions}
    ends = await _ends(leader, topic, [index for index, offset in positions.items() if offset < 0])
    return positions | ends


async def _ends(leader: Connection, topic: Topic, indexes: list[int]) -> dict[int, int]:
    if not indexes:
        return {}
    partitions = [
        {"partition_index": index, "current_leader_epoch": -1, "timestamp": _LATEST} for index in indexes
    ]
    response = await leader.ask(
        "list_offsets",
        11,
        replica_id=_NO_REPLICA,
        topics=[{"name": topic.name, "partitions": partitions}],
        timeout=30_000,
    )
    for partition in response.topics[0].partitions:
        check(partition.error_code, "list_offsets")
    return {each.partition_index: each.offset for each in response.topics[0].partitions}
