"""`/api/v1/groups`: the groups of all types with their members."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from barnabas.broker.http.api.pages import Page, PageQuery, next_keys
from barnabas.broker.http.routes import Call, Operation, with_query, without_parameters
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.logging import get_logger
from barnabas.share.sweep.shared_partitions import share_partitions_of

if TYPE_CHECKING:
    from barnabas.broker.node.broker import Broker
    from barnabas.coordinator.group.description import DescribedTopic, ListedGroup

log = get_logger("http")

GroupType = Literal["share", "consumer", "classic"]

_TAG = "groups"
_PATH = "/api/v1/groups"
_GROUP = f"{_PATH}/{{group}}"
ENTRIES_PER_TURN: Final = 100
"""The groups whose lags are added up in one turn of the loop."""


class GroupQuery(PageQuery, forbid_unknown_fields=True):
    """A page of groups of these types and states; without any, of all."""

    type: tuple[GroupType, ...] = ()
    state: tuple[str, ...] = ()


class GroupEntry(Struct, kw_only=True):
    """A group; `type` and `state` are those of Kafka's ListGroups, in small letters."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    member_count: int
    lag: int | None
    """Of a share group: the sum of the lags that the broker has in memory, as for the metrics; null without
    any. Null for groups of the other types.
    """


class GroupPage(Page, kw_only=True):
    """Groups in the order of their ids. Groups that are still being loaded are left out."""

    groups: Sequence[GroupEntry]


class AssignedTopic(Struct, kw_only=True):
    """The partitions of a topic that a member has."""

    topic: str
    partitions: Sequence[int]


class MemberEntry(Struct, kw_only=True):
    """A member of a group. `assignment` is null for a classic group, whose assignments only its members can
    read.
    """

    member_id: str
    client_id: str
    client_host: str
    assignment: Sequence[AssignedTopic] | None


class MemberPage(Page, kw_only=True):
    """Members in the order of their ids."""

    members: Sequence[MemberEntry]


class GroupRoutes:
    """The operations on groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def operations(self) -> Sequence[Operation]:
        return (
            Operation(
                path=_PATH,
                handler=with_query(GroupQuery, self._list),
                name="listGroups",
                summary="All groups",
                tag=_TAG,
                answer=GroupPage,
            ),
            Operation(
                path=_GROUP,
                handler=without_parameters(self._show),
                name="getGroup",
                summary="One group",
                tag=_TAG,
                answer=GroupEntry,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
            Operation(
                path=f"{_GROUP}/members",
                handler=with_query(PageQuery, self._members),
                name="listMembers",
                summary="The members of a group with their partitions",
                tag=_TAG,
                answer=MemberPage,
                failures=(HTTPStatus.NOT_FOUND,),
            ),
            Operation(
                method="DELETE",
                path=_GROUP,
                handler=without_parameters(self._delete),
                name="deleteGroup",
                summary="Delete a group without members, with its offsets or share state",
                tag=_TAG,
                status=HTTPStatus.NO_CONTENT,
                failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
            ),
        )

    async def _list(self, call: Call, query: GroupQuery) -> GroupPage:
        listed = self._broker.groups.list_groups(query.state, query.type)
        groups = {group.group_id: group for group in listed}
        ids, has_more = next_keys(groups, query.cursor or None, query.limit)
        entries: list[GroupEntry] = []
        for group_id in ids:
            entries.append(self._entry(groups[group_id]))
            if not len(entries) % ENTRIES_PER_TURN:
                await asyncio.sleep(0)
        return GroupPage(groups=entries, next_cursor=ids[-1] if has_more else None)

    async def _show(self, call: Call) -> GroupEntry:
        return self._entry(self._find(call.path["group"]))

    async def _members(self, call: Call, query: PageQuery) -> MemberPage:
        group = self._find(call.path["group"])
        members = {member.member_id: member for member in self._members_of(group)}
        ids, has_more = next_keys(members, query.cursor or None, query.limit)
        return MemberPage(
            members=[members[member_id] for member_id in ids], next_cursor=ids[-1] if has_more else None
        )

    async def _delete(self, call: Call) -> None:
        group_id = call.path["group"]
        await self._broker.groups.delete_group(group_id)
        log.info("a client of HTTP deletes a group", group=group_id, client=call.client)

    def _find(self, group_id: str) -> ListedGroup:
        self._broker.groups.operations.check_loaded(group_id)
        for group in self._broker.groups.list_groups():
            if group.group_id == group_id:
                return group
        raise ApiError(ErrorCode.group_id_not_found, f"There is no group {group_id}.")

    def _entry(self, group: ListedGroup) -> GroupEntry:
        group_type = group.group_type.lower()
        return GroupEntry(
            group_id=group.group_id,
            type=group_type,
            state=group.state.lower(),
            protocol_type=group.protocol_type,
            member_count=group.member_count,
            lag=self._known_lag(group.group_id) if group_type == "share" else None,
        )

    def _known_lag(self, group_id: str) -> int | None:
        """The sum over the partitions whose lag is known; None without any. Loads nothing."""
        keys = share_partitions_of(self._broker.groups.share, group_id)
        lags = [lag for key in keys if (lag := self._broker.share_partitions.known_lag(key)) is not None]
        return sum(lags) if lags else None

    def _members_of(self, group: ListedGroup) -> Iterator[MemberEntry]:
        groups = self._broker.groups
        if group.group_type.lower() == "share":
            for member in groups.share.describe(group.group_id).members:
                yield _member(member.member_id, member.client_id, member.client_host, member.assignment)
        elif group.group_type.lower() == "consumer":
            for consumer in groups.consumer.describe(group.group_id).members:
                yield _member(
                    consumer.member_id, consumer.client_id, consumer.client_host, consumer.assignment
                )
        else:
            for classic in groups.classic.describe(group.group_id).members:
                yield _member(classic.member_id, classic.client_id, classic.client_host, None)


def _member(
    member_id: str, client_id: str, client_host: str, assignment: Iterable[DescribedTopic] | None
) -> MemberEntry:
    topics = (
        None
        if assignment is None
        else [AssignedTopic(topic=topic.topic_name, partitions=topic.partitions) for topic in assignment]
    )
    return MemberEntry(member_id=member_id, client_id=client_id, client_host=client_host, assignment=topics)
