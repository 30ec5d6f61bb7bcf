"""Requests of DescribeShareRecords and AlterShareRecords, and the answers as plain values."""

from __future__ import annotations

from typing import Any, NamedTuple

from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_inspection import DescribedState, RecordAction, Wait
from tests.conformance.harness import Lab
from tests.conformance.share_member import GROUP

PASSED, NEW = DescribedState.PASSED, DescribedState.NEW
AVAILABLE, ACQUIRED = DescribedState.AVAILABLE, DescribedState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = DescribedState.ACKNOWLEDGED, DescribedState.ARCHIVED


class Described(NamedTuple):
    """One range: its offsets, both inclusive, its state and its delivery count."""

    first_offset: int
    last_offset: int
    state: DescribedState
    delivery_count: int


class Page(NamedTuple):
    """The answer of DescribeShareRecords; `response` has all of it."""

    response: Any

    @property
    def ranges(self) -> list[Described]:
        return [
            Described(one.first_offset, one.last_offset, DescribedState(one.state), one.delivery_count)
            for one in self.response.ranges
        ]

    @property
    def waits(self) -> dict[int, Wait]:
        """By first offset, the reasons of the ranges that wait."""
        return {one.first_offset: Wait(one.wait) for one in self.response.ranges if one.wait}

    @property
    def holders(self) -> dict[int, tuple[str, int]]:
        """By first offset, the member and the rest of its lock."""
        return {
            one.first_offset: (one.holder.member_id, one.holder.lock_remaining_ms)
            for one in self.response.ranges
            if one.holder is not None
        }

    @property
    def causes(self) -> dict[int, tuple[Cause, str | None]]:
        """By first offset, the cause and the member of each known change."""
        return {
            one.first_offset: (Cause(one.last_change.cause), one.last_change.member_id)
            for one in self.response.ranges
            if one.last_change is not None and one.last_change.cause
        }


async def describe(
    lab: Lab, partition: TopicIdPartition, first_offset: int = -1, *, group_id: str = GROUP, **values: Any
) -> Page:
    """A page without an error."""
    response = await ask_to_describe(lab, partition, first_offset, group_id=group_id, **values)
    assert response.error_code is ErrorCode.none, response
    return Page(response)


async def ask_to_describe(
    lab: Lab, partition: TopicIdPartition, first_offset: int = -1, *, group_id: str = GROUP, **values: Any
) -> Any:
    asked = {"max_ranges": 100, "include_last_changes": True, **values}
    return await lab.admin.ask(
        "describe_share_records",
        group_id=group_id,
        topic_id=partition.topic_id,
        partition_index=partition.partition,
        first_offset=first_offset,
        **asked,
    )


async def alter(
    lab: Lab,
    partition: TopicIdPartition,
    action: RecordAction | int,
    first_offset: int,
    last_offset: int,
    *,
    group_id: str = GROUP,
) -> Any:
    """The response of AlterShareRecords."""
    return await lab.admin.ask(
        "alter_share_records",
        group_id=group_id,
        topic_id=partition.topic_id,
        partition_index=partition.partition,
        action=action,
        first_offset=first_offset,
        last_offset=last_offset,
    )
