"""Groups of all types: list them, describe their members, delete them (KIP-848, KIP-932, KIP-1099)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import DescribedGroup as DescribedConsumerGroup
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_groups.v6.response import DescribedGroupMember
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_describe.v1.response import DescribedGroup as DescribedShareGroup

from barnabas.client.admin.connection import AdminConnection, check_code
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.client.admin_apis import (
    CONSUMER_GROUP_DESCRIBE,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    SHARE_GROUP_DESCRIBE,
)
from barnabas.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import GroupId
from barnabas.protocol.varint import RecordFormatError

SHARE: Final = "share"
CONSUMER: Final = "consumer"
CLASSIC: Final = "classic"
"""The types of groups, as ListGroups names them in small letters."""


class ListedGroup(NamedTuple):
    """A group in the list of its broker."""

    group_id: str
    type: str
    """`SHARE`, `CONSUMER`, `CLASSIC`, or another type of Apache Kafka."""
    state: str
    """Kafka's name, such as `Stable` or `Empty`."""


class GroupMember(NamedTuple):
    """A member and the partitions that it reads, sorted."""

    member_id: str
    client_id: str
    client_host: str
    epoch: int | None
    """None in a classic group."""
    assignment: Sequence[TopicPartition]


class GroupDescription(NamedTuple):
    """A group and its members, sorted by member id."""

    group_id: str
    type: str
    state: str
    epoch: int | None
    """None for a classic group."""
    assignor: str
    members: Sequence[GroupMember]


async def list_groups(connection: AdminConnection) -> list[ListedGroup]:
    """The groups of all brokers, sorted by id. Raises `BrokerError` and `BrokerUnavailableError`."""
    responses = await connection.with_retries(
        lambda: connection.ask_all(LIST_GROUPS, ListGroupsRequest(states_filter=(), types_filter=()))
    )
    found: list[ListedGroup] = []
    for response in responses:
        check_code(response.error_code, "the list of groups")
        found += [
            ListedGroup(group.group_id, group.group_type.lower(), group.group_state)
            for group in response.groups
        ]
    return sorted(found)


async def find_group(connection: AdminConnection, group_id: str) -> ListedGroup | None:
    """The group; None if there is none. Raises the errors of `list_groups`."""
    return next((group for group in await list_groups(connection) if group.group_id == group_id), None)


async def describe_group(connection: AdminConnection, group: ListedGroup) -> GroupDescription:
    """The members of a listed group. Raises `BrokerError` and `BrokerUnavailableError`."""
    describe = {SHARE: _describe_share, CONSUMER: _describe_consumer}.get(group.type, _describe_classic)
    return await describe(connection, group)


async def delete_group(connection: AdminConnection, group_id: str) -> None:
    """Delete a group without members, with its offsets.

    Raises `BrokerError`, such as NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND.
    """
    request = DeleteGroupsRequest(groups_names=(GroupId(group_id),))
    await connection.coordinators.ask(
        group_id, DELETE_GROUPS, request, lambda response: _first_error(response.results)
    )


async def _describe_share(connection: AdminConnection, group: ListedGroup) -> GroupDescription:
    request = ShareGroupDescribeRequest(
        group_ids=(GroupId(group.group_id),), include_authorized_operations=False
    )
    response = await connection.coordinators.ask(
        group.group_id, SHARE_GROUP_DESCRIBE, request, lambda response: _first_error(response.groups)
    )
    (described,) = response.groups
    return _description(group, described)


async def _describe_consumer(connection: AdminConnection, group: ListedGroup) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(
        group_ids=(GroupId(group.group_id),), include_authorized_operations=False
    )
    response = await connection.coordinators.ask(
        group.group_id, CONSUMER_GROUP_DESCRIBE, request, lambda response: _first_error(response.groups)
    )
    (described,) = response.groups
    return _description(group, described)


async def _describe_classic(connection: AdminConnection, group: ListedGroup) -> GroupDescription:
    request = DescribeGroupsRequest(groups=(GroupId(group.group_id),), include_authorized_operations=False)
    response = await connection.coordinators.ask(
        group.group_id, DESCRIBE_GROUPS, request, lambda response: _first_error(response.groups)
    )
    (described,) = response.groups
    is_consumer = described.protocol_type == PROTOCOL_TYPE
    members = [
        GroupMember(
            member.member_id,
            member.client_id,
            member.client_host,
            None,
            _classic_assignment(member) if is_consumer else [],
        )
        for member in described.members
    ]
    return GroupDescription(
        group.group_id, group.type, described.group_state, None, described.protocol_data, sorted(members)
    )


class _Result(Protocol):
    @property
    def error_code(self) -> ErrorCode: ...


def _description(
    group: ListedGroup, described: DescribedShareGroup | DescribedConsumerGroup
) -> GroupDescription:
    members = [
        GroupMember(
            member.member_id,
            member.client_id,
            member.client_host,
            member.member_epoch,
            sorted(
                TopicPartition(topic.topic_name, index)
                for topic in member.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for member in described.members
    ]
    return GroupDescription(
        group.group_id,
        group.type,
        described.group_state,
        described.group_epoch,
        described.assignor_name,
        sorted(members),
    )


def _classic_assignment(member: DescribedGroupMember) -> list[TopicPartition]:
    """The partitions that the group's leader gave to the member; none while the group rebalances."""
    try:
        assignment = decode_assignment(member.member_assignment)
    except RecordFormatError:
        return []
    return sorted(
        TopicPartition(assigned.topic, index)
        for assigned in assignment.assigned_partitions
        for index in assigned.partitions
    )


def _first_error(results: Iterable[_Result]) -> ErrorCode:
    return next(
        (result.error_code for result in results if result.error_code is not ErrorCode.none), ErrorCode.none
    )
