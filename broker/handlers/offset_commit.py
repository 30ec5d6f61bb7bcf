"""OffsetCommit (key 8, versions 2 to 10; KIP-211, KIP-320, KIP-848): commits the offsets of a group.

`ByName` is versions 2 to 9, `ById` is version 10. A partition that does not exist has an error of its own; an
error of the group is the error of every other partition. The retention time of versions 2 to 4 is ignored:
the broker's own applies to all.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from kio.schema.offset_commit.v9.request import OffsetCommitRequest as OffsetCommitRequestByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponse as OffsetCommitResponseByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponsePartition as CommittedPartitionByName
from kio.schema.offset_commit.v9.response import OffsetCommitResponseTopic as CommittedTopicByName

from barnabas.broker.handlers.common.offsets_to_commit import Place, partition_results, resolve_offsets
from barnabas.broker.network.handler import Reply, RequestContext
from barnabas.broker.network.replies import respond_when_done
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.offsets.requests import CommitRequest
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.offset_commit_v10 import OffsetCommitRequest as OffsetCommitRequestById
from barnabas.protocol.extended.offset_commit_v10 import OffsetCommitResponse as OffsetCommitResponseById
from barnabas.protocol.extended.offset_commit_v10 import (
    OffsetCommitResponsePartition as CommittedPartitionById,
)
from barnabas.protocol.extended.offset_commit_v10 import OffsetCommitResponseTopic as CommittedTopicById
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.clock import Clock

_BY_ID_FROM = 10
_GROUP_ID_NOT_FOUND_FROM = 9

_Request = OffsetCommitRequestByName | OffsetCommitRequestById
_Response = OffsetCommitResponseByName | OffsetCommitResponseById


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    groups: Groups


def handle_offset_commit(parts: Parts, context: RequestContext, request: _Request) -> Reply:
    by_id = context.api_version >= _BY_ID_FROM
    respond = partial(_respond_by_id if by_id else _respond_by_name, request)
    resolved = resolve_offsets(parts.metadata.image, request.topics, by_id=by_id)
    if resolved.refused and not resolved.offsets:
        return respond(resolved.refused)
    commit = CommitRequest(
        request.group_id,
        MemberIdentity(request.member_id, request.group_instance_id),
        request.generation_id_or_member_epoch,
        list(resolved.offsets.values()),
        tells_not_found=context.api_version >= _GROUP_ID_NOT_FOUND_FROM,
    )
    return respond_when_done(
        parts.groups.offsets.commit(commit, now_ms=parts.clock.monotonic_ms()),
        lambda codes: respond(resolved.with_codes(codes)),
        lambda error: respond(resolved.with_error(error.code)),
    )


def _respond_by_name(request: _Request, codes: Mapping[Place, ErrorCode]) -> _Response:
    topics = cast("OffsetCommitRequestByName", request).topics
    results = partition_results(topics, codes, CommittedPartitionByName)
    return OffsetCommitResponseByName(
        throttle_time=milliseconds(0),
        topics=tuple(
            CommittedTopicByName(name=topic.name, partitions=partitions)
            for topic, partitions in zip(topics, results, strict=True)
        ),
    )


def _respond_by_id(request: _Request, codes: Mapping[Place, ErrorCode]) -> _Response:
    topics = cast("OffsetCommitRequestById", request).topics
    results = partition_results(topics, codes, CommittedPartitionById)
    return OffsetCommitResponseById(
        throttle_time=milliseconds(0),
        topics=tuple(
            CommittedTopicById(topic_id=topic.topic_id, partitions=partitions)
            for topic, partitions in zip(topics, results, strict=True)
        ),
    )
