"""`barnabas groups`: lists groups of all types, describes them with members and lag, and deletes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barnabas.cli.printing import Printer, Row
from barnabas.cli.target import NotFoundError, RefusedError, Target
from barnabas.client.admin.connection import AdminConnection
from barnabas.client.admin.group_positions import GroupPosition, fetch_group_positions
from barnabas.client.admin.groups import (
    SHARE,
    GroupDescription,
    ListedGroup,
    delete_group,
    describe_group,
    list_groups,
)
from barnabas.client.admin.topics import describe_topics
from barnabas.client.topic_partition import TopicPartition, indexes_by_topic
from barnabas.protocol.nearest_name import nearest_name

_LIST_COLUMNS: Final = {"group": "GROUP", "group_type": "TYPE", "state": "STATE"}
_LAG_COLUMNS: Final = {**_LIST_COLUMNS, "member_count": "MEMBERS", "lag": "LAG"}
_UNREAD_COLUMNS: Final = {"not_begun_count": "NOT BEGUN"}
_MEMBER_COLUMNS: Final = {
    "member_id": "MEMBER",
    "client_id": "CLIENT",
    "client_host": "HOST",
    "epoch": "EPOCH",
    "assigned": "PARTITIONS",
}
_POSITION_COLUMNS: Final = {
    "topic": "TOPIC",
    "partition": "PARTITION",
    "offset": "OFFSET",
    "end_offset": "END",
    "lag": "LAG",
    "read_by": "READ BY",
}


async def list_all(target: Target, printer: Printer, group_types: Sequence[str], *, with_lag: bool) -> None:
    """Print the groups of these types, or all. Their members and lag take some requests for each group.

    The lag leaves out partitions in which a group has no position; their number is `not_begun_count`.
    Raises `ConsumerError`.
    """
    async with target.administer() as admin:
        groups = [group for group in await list_groups(admin) if not group_types or group.type in group_types]
        if with_lag:
            counts = {topic.name: len(topic.partitions) for topic in await describe_topics(admin)}
            rows = [await _lag_row(admin, group, counts) for group in groups]
            is_partial = any(row["not_begun_count"] for row in rows)
            printer.table(rows, {**_LAG_COLUMNS, **_UNREAD_COLUMNS} if is_partial else _LAG_COLUMNS)
        else:
            printer.table([_group_row(group) for group in groups], _LIST_COLUMNS)


async def describe(target: Target, printer: Printer, group_ids: Sequence[str]) -> None:
    """Print each group with its members, offsets and lag. Raises `ConsumerError` and `NotFoundError`."""
    async with target.administer() as admin:
        for number, listed in enumerate(await find_groups(admin, group_ids)):
            if number:
                printer.text()
            group = await describe_group(admin, listed)
            positions = await fetch_group_positions(admin, group.group_id, group.type)
            _print_group(printer, group, positions)


async def delete(target: Target, printer: Printer, group_ids: Sequence[str]) -> None:
    """Delete the groups with their offsets. Raises `ConsumerError`, `NotFoundError` and `RefusedError`."""
    async with target.administer() as admin:
        for listed in await find_groups(admin, group_ids):
            refuse_members(await describe_group(admin, listed), "deleted")
            await delete_group(admin, listed.group_id)
            printer.result(
                {"type": "deleted", "group": listed.group_id, "group_type": listed.type},
                f"{listed.group_id}: deleted",
            )


async def find_groups(admin: AdminConnection, group_ids: Sequence[str]) -> list[ListedGroup]:
    """The groups with these ids. Raises `NotFoundError`, which names a similar group."""
    known = {group.group_id: group for group in await list_groups(admin)}
    for group_id in group_ids:
        if group_id not in known:
            nearest = nearest_name(group_id, known)
            hint = f"; is {nearest} meant?" if nearest else ""
            raise NotFoundError(f"There is no group {group_id}{hint}")
    return [known[group_id] for group_id in group_ids]


def refuse_members(group: GroupDescription, change: str) -> None:
    """Raises `RefusedError` if the group is not empty, because the broker would refuse the change."""
    count = len(group.members)
    if count:
        members = "a member" if count == 1 else f"{count} members"
        raise RefusedError(
            f"The group {group.group_id} has {members}, so it cannot be {change}: close its consumers first"
        )


def _group_row(listed: ListedGroup) -> Row:
    return {
        "type": "group",
        "group": listed.group_id,
        "group_type": listed.type,
        "state": listed.state.lower(),
    }


async def _lag_row(admin: AdminConnection, listed: ListedGroup, partition_counts: Mapping[str, int]) -> Row:
    """`partition_counts` has the partitions of each topic."""
    group = await describe_group(admin, listed)
    positions = await fetch_group_positions(admin, listed.group_id, listed.type)
    return {
        **_group_row(listed),
        "member_count": len(group.members),
        "lag": _sum(position.lag for position in positions.values()),
        "not_begun_count": _not_begun_count(group, positions, partition_counts),
    }


def _not_begun_count(
    group: GroupDescription,
    positions: Mapping[TopicPartition, GroupPosition],
    partition_counts: Mapping[str, int],
) -> int:
    """The partitions of the group's topics whose lag is unknown."""
    assigned = [partition for member in group.members for partition in member.assignment]
    topics = {partition.topic for partition in (*positions, *assigned)}
    known = [partition for partition, position in positions.items() if position.lag is not None]
    return sum(partition_counts.get(topic, 0) for topic in topics) - len(known)


def _sum(lags: Iterable[int | None]) -> int | None:
    """The sum of the known lags; None without any."""
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def _print_group(
    printer: Printer, group: GroupDescription, positions: dict[TopicPartition, GroupPosition]
) -> None:
    lag = _sum(position.lag for position in positions.values())
    if printer.as_json:
        printer.row(
            {
                "type": "group",
                "group": group.group_id,
                "group_type": group.type,
                "state": group.state.lower(),
                "epoch": group.epoch,
                "assignor": group.assignor,
                "member_count": len(group.members),
                "lag": lag,
            }
        )
    else:
        epoch = "" if group.epoch is None else f", epoch {group.epoch}"
        assignor = f", assignor {group.assignor}" if group.assignor else ""
        printer.text(f"{group.group_id}  ({group.type} group, {group.state.lower()}{epoch}{assignor})")
    if group.members:
        printer.table([_member_row(group, number) for number in range(len(group.members))], _MEMBER_COLUMNS)
    rows = _position_rows(group, positions)
    if rows:
        if group.members:
            printer.text()
        offset = "START" if group.type == SHARE else "OFFSET"
        printer.table(rows, {**_POSITION_COLUMNS, "offset": offset})


def _member_row(group: GroupDescription, number: int) -> Row:
    member = group.members[number]
    indexes = indexes_by_topic(member.assignment)
    return {
        "type": "member",
        "group": group.group_id,
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "epoch": member.epoch,
        "assigned": " ".join(f"{topic}:{','.join(map(str, ones))}" for topic, ones in indexes.items())
        or None,
        "assignment": [partition._asdict() for partition in member.assignment],
    }


def _position_rows(group: GroupDescription, positions: dict[TopicPartition, GroupPosition]) -> list[Row]:
    readers: dict[TopicPartition, list[str]] = {}
    for member in group.members:
        for partition in member.assignment:
            readers.setdefault(partition, []).append(member.member_id)
    unread = GroupPosition(None, None, None)
    return [
        {
            "type": "position",
            "group": group.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            **positions.get(partition, unread)._asdict(),
            "members": readers.get(partition, []),
            "read_by": " ".join(readers.get(partition, [])) or None,
        }
        for partition in sorted({*positions, *readers})
    ]
