"""What reaches consumer groups by the APIs of classic ones: their members of the classic protocol, and the
offsets that they have committed, which are kept with those of classic groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.coordinator.classic.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.classic.committed_offsets import CommittedOffsets
from barnabas.coordinator.classic.membership import JoinReply, SyncReply
from barnabas.coordinator.classic.offsets import CommitRequest, expired_offsets, is_kept_long_enough
from barnabas.coordinator.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    MemberIdentity,
    Moment,
    SyncRequest,
)
from barnabas.coordinator.consumer import offsets as consumer_offsets
from barnabas.coordinator.consumer.classic_members import ClassicMembers
from barnabas.coordinator.consumer.record_factory import group_tombstones
from barnabas.coordinator.consumer.registry import ConsumerRegistry
from barnabas.coordinator.group.runtimes import AnyGroupRecord
from barnabas.coordinator.group.steps import Steps
from barnabas.protocol.errors import ApiError, ErrorCode


class ClassicRequests:
    """The `ConsumerGroups` of the classic coordinator."""

    def __init__(self, registry: ConsumerRegistry, members: ClassicMembers) -> None:
        self._registry = registry
        self._members = members

    def group_ids(self) -> Iterable[str]:
        return [group.group_id for group in self._registry]

    def exists(self, group_id: str) -> bool:
        return self._registry.get(group_id) is not None

    def has_members(self, group_id: str) -> bool:
        group = self._registry.get(group_id)
        return group is not None and bool(group.members)

    def tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        group = self._registry.get(group_id)
        if group is None:
            return []
        if group.members:
            raise ApiError(ErrorCode.non_empty_group, f"Group {group_id} has members.")
        return [*group_tombstones(group, ())]

    # Members of the classic protocol

    def join(self, request: JoinRequest, reply: JoinReply, moment: Moment) -> Steps[None]:
        try:
            yield from self._members.join(self._registry.existing(request.group_id), request, reply, moment)
        except ApiError as error:
            # Kafka names no member in these refusals.
            reply.complete(JoinResult(error.code, UNKNOWN_MEMBER_ID))

    def sync(self, request: SyncRequest, reply: SyncReply, moment: Moment) -> None:
        self._members.sync(self._registry.existing(request.group_id), request, reply, moment)

    def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation_id: int, moment: Moment
    ) -> ErrorCode:
        return self._members.heartbeat(self._registry.existing(group_id), identity, generation_id, moment)

    def leave(
        self, group_id: str, identities: Sequence[MemberIdentity], moment: Moment
    ) -> Steps[list[LeftMember]]:
        return (yield from self._members.leave(self._registry.existing(group_id), identities, moment))

    # Offsets

    def check_commit(self, request: CommitRequest, *, in_transaction: bool) -> None:
        """See `offsets.check_commit`. A producer may name no member, and any epoch that is wrong is an
        ILLEGAL_GENERATION to it."""
        names_nobody = not request.identity.member_id and request.identity.group_instance_id is None
        if in_transaction and names_nobody and request.generation_id < 0:
            return
        try:
            consumer_offsets.check_commit(
                self._registry.existing(request.group_id),
                request.identity,
                request.generation_id,
                ((one.topic_id, one.partition) for one in request.offsets),
                knows_epochs=in_transaction or request.tells_not_found,
            )
        except ApiError as error:
            if in_transaction and error.code is ErrorCode.stale_member_epoch:
                raise ApiError(ErrorCode.illegal_generation, error.message) from None
            raise

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        consumer_offsets.check_fetch(self._registry.existing(group_id), member_id, member_epoch)

    def is_subscribed_to(self, group_id: str, topic_name: str) -> bool:
        return self._registry.existing(group_id).is_subscribed_to(topic_name)

    def expiry_records(
        self, group_id: str, offsets: CommittedOffsets, wall_ms: int, retention_ms: int
    ) -> list[AnyGroupRecord]:
        group = self._registry.existing(group_id)
        topics = group.subscriptions.topics()

        def is_expired(key: OffsetKey, committed: CommittedOffset) -> bool:
            since_ms = committed.committed_at_ms
            is_over = is_kept_long_enough(committed, since_ms, wall_ms, retention_ms)
            return is_over and key.topic_name not in topics

        records, is_all = expired_offsets(group_id, offsets, is_expired)
        goes = is_all and not group.members
        return [*records, *(group_tombstones(group, ()) if goes else ())]
