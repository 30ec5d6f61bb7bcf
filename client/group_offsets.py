"""A group's committed offsets, with their metadata."""

from __future__ import annotations

from typing import NamedTuple

from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup
from kio.schema.offset_fetch.v9.response import OffsetFetchResponse

from barnabas.client.coordinators import Coordinators
from barnabas.protocol.client.admin_apis import OFFSET_FETCH
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import GroupId


class CommittedOffset(NamedTuple):
    """A committed offset of a group, with the metadata that was committed beside it."""

    offset: int
    metadata: str


async def fetch_group_offsets(
    coordinators: Coordinators, group_id: str
) -> dict[tuple[str, int], CommittedOffset]:
    """By topic and partition, all committed offsets of the group; empty if the group does not exist.

    Waits for transactions that are about to commit offsets. Raises `BrokerError`, and
    `BrokerUnavailableError` for a temporary error that lasts too long.
    """
    group = OffsetFetchRequestGroup(group_id=GroupId(group_id), topics=None)
    request = OffsetFetchRequest(groups=(group,), require_stable=True)
    response = await coordinators.ask(group_id, OFFSET_FETCH, request, _error)
    return {
        (topic.name, one.partition_index): CommittedOffset(one.committed_offset, one.metadata or "")
        for group in response.groups
        for topic in group.topics
        for one in topic.partitions
        if one.committed_offset >= 0
    }


def _error(response: OffsetFetchResponse) -> ErrorCode:
    for group in response.groups:
        if group.error_code is not ErrorCode.none:
            return group.error_code
        for topic in group.topics:
            for one in topic.partitions:
                if one.error_code is not ErrorCode.none:
                    return one.error_code
    return ErrorCode.none
