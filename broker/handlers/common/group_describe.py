"""The common parts of ConsumerGroupDescribe, ShareGroupDescribe and DescribeGroups.

Each group has its own error. Every operation on a group is authorized, because there are no ACLs (KIP-430).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordinator.group.description import DescribedGroup, DescribedTopic, MemberT
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import GroupId, TopicName, i32

if TYPE_CHECKING:
    from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
    from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest

ResultT = TypeVar("ResultT")

_ALL_OPERATIONS = i32(1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11)
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS."""

_NOT_ASKED_FOR = i32(-(2**31))


def authorized_operations(*, asked_for: bool) -> i32:
    """The bits of the operations."""
    return _ALL_OPERATIONS if asked_for else _NOT_ASKED_FOR


def describe_each(
    request: ConsumerGroupDescribeRequest | ShareGroupDescribeRequest,
    require: Callable[[], None],
    describe: Callable[[str], DescribedGroup[MemberT]],
    result: Callable[..., ResultT],
    member: Callable[[MemberT], object],
) -> tuple[ResultT, ...]:
    """One `result` for each group; `require` and `describe` raise `ApiError`."""
    operations = authorized_operations(asked_for=request.include_authorized_operations)
    results: list[ResultT] = []
    for group_id in request.group_ids:
        try:
            require()
            group = describe(group_id)
        except ApiError as error:
            results.append(_failed(group_id, error, result))
        else:
            results.append(_described(group, operations, result, member))
    return tuple(results)


def _failed(group_id: str, error: ApiError, result: Callable[..., ResultT]) -> ResultT:
    return result(
        error_code=error.code,
        error_message=error.message,
        group_id=GroupId(group_id),
        group_state="",
        group_epoch=i32(0),
        assignment_epoch=i32(0),
        assignor_name="",
        members=(),
        authorized_operations=_NOT_ASKED_FOR,
    )


def _described(
    group: DescribedGroup[MemberT],
    operations: i32,
    result: Callable[..., ResultT],
    member: Callable[[MemberT], object],
) -> ResultT:
    return result(
        error_code=ErrorCode.none,
        group_id=GroupId(group.group_id),
        group_state=group.state,
        group_epoch=i32(group.group_epoch),
        assignment_epoch=i32(group.assignment_epoch),
        assignor_name=group.assignor_name,
        members=tuple(map(member, group.members)),
        authorized_operations=operations,
    )


def topic_partitions(topics: Iterable[DescribedTopic], result: Callable[..., ResultT]) -> tuple[ResultT, ...]:
    """The topics of an assignment."""
    return tuple(
        result(
            topic_id=topic.topic_id,
            topic_name=TopicName(topic.topic_name),
            partitions=tuple(map(i32, topic.partitions)),
        )
        for topic in topics
    )
