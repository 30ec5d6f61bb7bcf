"""The classic groups' way in: members' requests, administration, timers.

Every method runs on the loop's thread and answers at once, or through a `Completion`: where a record
must be appended first, or other members are waited for. Times passed in are monotonic; there are no timers
here: ask `next_deadline_ms()`, call `expire(now_ms)`. A partition must be loaded before anything is asked of
its groups; `Groups` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from barnabas.coordinator.classic.description import GROUP_TYPE, DescribedGroup, describe_group
from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.interfaces import ConsumerGroups
from barnabas.coordinator.classic.membership import JoinReply, Membership, SyncReply
from barnabas.coordinator.classic.offsets import ClassicOffsetRules
from barnabas.coordinator.classic.protocol_change import ProtocolChange
from barnabas.coordinator.classic.record_factory import deleted_group, new_group
from barnabas.coordinator.classic.registry import ClassicRegistry
from barnabas.coordinator.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    Moment,
    SyncRequest,
    SyncResult,
    has_too_long_names,
)
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.classic.timers import ClassicTimers, Timer, TimerKind
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.record_names import checked_group_id, is_too_long
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.runtimes import GroupRuntimes
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.retries import retry_if_refused
from barnabas.coordinator.replay.steps import Operation, Write
from barnabas.protocol.classic_group_records import ClassicGroupRecord
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion

TIMER_RETRY_MS = 500
"""Pause before what a timer asks for, and could not be done, is tried again."""

_Result = TypeVar("_Result")


class ClassicCoordinator:
    """All classic groups of this broker."""

    def __init__(
        self,
        *,
        runtimes: GroupRuntimes,
        settings: ClassicSettings,
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        consumer_groups: ConsumerGroups,
        other_group_type: Callable[[str], str | None],
        on_deadline: Callable[[], None],
    ) -> None:
        """`other_group_type` answers the type of a group of that id that is no classic one, or None;
        `on_deadline` is called when `next_deadline_ms` may have moved.
        """
        self._runtimes = runtimes
        self._settings = settings
        self._wall_ms = wall_ms
        self._on_deadline = on_deadline
        self._timers = ClassicTimers()
        self._registry = ClassicRegistry(max_groups=settings.max_groups, other_group_type=other_group_type)
        self._membership = Membership(self._timers, settings, new_uuid)
        self._consumer_groups = consumer_groups
        self.protocol_change = ProtocolChange(self._registry, self._timers, self._membership.rebalance)
        """What the consumer groups' coordinator asks."""
        self.offset_rules = ClassicOffsetRules(self._registry, self._membership.rebalance)
        """What the offsets' coordinator asks."""

    # Loading, and what operations have written

    def load(self, record: ClassicGroupRecord) -> None:
        """Take over a record of a log that is being loaded."""
        self._registry.load(record)

    def note_written(self, record: ClassicGroupRecord) -> None:
        """A record of an operation has been appended."""
        self._registry.note_written(record)

    def ensure_group(self, group_id: str, committed_at_ms: int) -> None:
        """Offsets have been committed, at this time of day: without a group they make a simple one."""
        self._registry.ensure_group(group_id, committed_at_ms)

    def begin(self, partition: int, now_ms: int) -> None:
        """A partition's records were all loaded: its members' sessions begin now."""
        for group in self._registry:
            if group.id_hash % self._runtimes.partition_count == partition:
                for member in group.members.values():
                    self._membership.rebalance.expect_heartbeat(group, member, now_ms)

    def forget(self, partition: int) -> None:
        """Forget a partition's groups; who waits is told to look for the coordinator again."""
        for group in self._registry.drop_partition(partition, self._runtimes.partition_count):
            self.protocol_change.end_waits(group, ErrorCode.not_coordinator)

    def drop_simple(self, group_id: str) -> None:
        """A group that nobody joined gives way to one of another type."""
        self._registry.drop_simple(group_id)

    # Members

    def join(self, request: JoinRequest, *, now_ms: int) -> JoinReply:
        """JoinGroup, after authorization. Its errors are in the result."""
        reply = JoinReply()
        session_ms = request.session_timeout_ms
        if not request.group_id or is_too_long(request.group_id):
            reply.complete(JoinResult(ErrorCode.invalid_group_id, request.member_id))
        elif has_too_long_names(request):
            reply.complete(JoinResult(ErrorCode.invalid_request, request.member_id))
        elif not (
            self._settings.session_timeout_ms_min <= session_ms <= self._settings.session_timeout_ms_max
        ):
            reply.complete(JoinResult(ErrorCode.invalid_session_timeout, request.member_id))
        else:
            self._submit(
                request.group_id,
                lambda: self._join(request, reply, self._moment(now_ms)),
                reply,
                lambda code: JoinResult(code, request.member_id),
            )
        return reply

    def _join(self, request: JoinRequest, reply: JoinReply, moment: Moment) -> Steps[None]:
        group = self._registry.get(request.group_id)
        if group is None and self._consumer_groups.has_members(request.group_id):
            yield from self._consumer_groups.join(request, reply, moment)
            return
        if group is None:
            is_empty = self._consumer_groups.exists(request.group_id)
            if self._registry.is_of_another_type(request.group_id) and not is_empty:
                raise ApiError(ErrorCode.inconsistent_group_protocol, "The group is of another type.")
            if request.member_id != UNKNOWN_MEMBER_ID:
                raise ApiError(ErrorCode.unknown_member_id, "There is no such group.")
            group = yield from self._new_group(request.group_id, moment)
        yield from self._membership.join(group, request, reply, moment)

    def _new_group(self, group_id: str, moment: Moment) -> Steps[ClassicGroup]:
        group = self._registry.new(group_id, moment.wall_ms, refusal=ErrorCode.group_max_size_reached)
        try:
            # A consumer group that is empty gives way.
            yield Write([*self._consumer_groups.tombstones(group_id), new_group(group)])
        except ApiError:
            self._registry.drop(group_id)
            raise
        return group

    def sync(self, request: SyncRequest, *, now_ms: int) -> SyncReply:
        """SyncGroup, after authorization. Its errors are in the result."""
        reply = SyncReply()
        if not request.group_id:
            reply.complete(SyncResult(ErrorCode.invalid_group_id))
        else:
            self._submit(
                request.group_id,
                lambda: self._sync(request, reply, self._moment(now_ms)),
                reply,
                SyncResult,
            )
        return reply

    def _sync(self, request: SyncRequest, reply: SyncReply, moment: Moment) -> Steps[None]:
        if self._consumer_groups.has_members(request.group_id):
            self._consumer_groups.sync(request, reply, moment)
            return
        yield from self._membership.sync(self._members_group(request.group_id), request, reply, moment)

    def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation_id: int, *, now_ms: int
    ) -> ErrorCode:
        """Heartbeat's code: none also while groups are loaded, so that members don't leave over it."""
        if not group_id:
            return ErrorCode.invalid_group_id
        if not self._runtimes.of_group(group_id).loaded:
            return ErrorCode.none
        moment = self._moment(now_ms)
        try:
            if self._consumer_groups.exists(group_id):
                code = self._consumer_groups.heartbeat(group_id, identity, generation_id, moment)
                self._on_deadline()
                return code
            group = self._members_group(group_id)
            return self._membership.heartbeat(group, identity, generation_id, moment)
        except ApiError as error:
            return error.code

    def leave(
        self, group_id: str, identities: Sequence[MemberIdentity], *, now_ms: int
    ) -> Completion[list[LeftMember]]:
        """LeaveGroup; each member has an outcome of its own, UNKNOWN_MEMBER_ID if there is no such group."""

        def operation() -> Steps[list[LeftMember]]:
            group = self._registry.get(checked_group_id(group_id))
            if self._consumer_groups.exists(group_id):
                moment = self._moment(now_ms)
                return (yield from self._consumer_groups.leave(group_id, identities, moment))
            if group is None:
                return [LeftMember(identity, ErrorCode.unknown_member_id) for identity in identities]
            return (yield from self._membership.leave(group, identities, self._moment(now_ms)))

        return self._run(group_id, operation)

    # Administration

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups of one group: INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND."""
        self._runtimes.check_loaded(checked_group_id(group_id))
        return describe_group(self._registry.existing(group_id))

    def list_groups(self) -> list[ListedGroup]:
        """All classic groups, for ListGroups."""
        return [
            ListedGroup(group.group_id, group.protocol_type or "", group.state.value, GROUP_TYPE)
            for group in self._registry
        ]

    def type_of(self, group_id: str) -> str | None:
        """What classic groups' type is called, if there is one of that id."""
        return None if self._registry.get(group_id) is None else GROUP_TYPE

    def tombstones(self, group_id: str) -> list[ClassicGroupRecord]:
        """What removes a group without members: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        group = self._registry.existing(group_id)
        if group.state is not ClassicGroupState.EMPTY:
            raise ApiError(ErrorCode.non_empty_group, f"Group {group_id} has members.")
        return [deleted_group(group_id)]

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if there is nothing to wait for."""
        return self._timers.deadlines.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """Do what timers ask for."""
        for timer in self._timers.deadlines.expire(now_ms):
            self._run_timer(timer, now_ms)

    def _run_timer(self, timer: Timer, now_ms: int) -> None:
        def operation() -> Steps[None]:
            group = self._registry.get(timer.group_id)
            # Begun anew while this waited for its turn: it has not run out after all.
            has_run_out = timer not in self._timers.deadlines
            if group is not None and has_run_out:
                yield from self._timer_steps(timer, group, self._moment(now_ms))

        reply = self._run(timer.group_id, operation)
        retry_at_ms = now_ms + TIMER_RETRY_MS
        retry_if_refused(reply, self._timers.deadlines, timer, retry_at_ms, self._on_deadline)

    def _timer_steps(self, timer: Timer, group: ClassicGroup, moment: Moment) -> Steps[None]:
        match timer.kind:
            case TimerKind.SESSION:
                return self._membership.session_ended(group, timer.member_id, moment)
            case TimerKind.JOIN:
                return self._membership.rebalance.joining_timed_out(group, moment)
            case TimerKind.SYNC:
                return self._membership.rebalance.syncing_timed_out(group, moment)

    # Operations

    def _submit(
        self,
        group_id: str,
        operation: Operation[AnyGroupRecord, None],
        reply: Completion[_Result],
        refuse: Callable[[ErrorCode], _Result],
    ) -> None:
        """Run an operation that completes `reply` itself, now or one day; if it fails, `refuse` does."""

        def on_done(done: Completion[None]) -> None:
            if reply.done:
                return
            try:
                done.result()
            except ApiError as error:
                reply.complete(refuse(error.code))
            except Exception as error:
                reply.fail(error)

        self._run(group_id, operation).when_done(on_done)

    def _run(self, group_id: str, operation: Operation[AnyGroupRecord, _Result]) -> Completion[_Result]:
        reply = self._runtimes.of_group(group_id).submit(operation)
        reply.when_done(lambda _: self._on_deadline())
        return reply

    def _members_group(self, group_id: str) -> ClassicGroup:
        group = self._registry.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Group {group_id} not found.")
        return group

    def _moment(self, now_ms: int) -> Moment:
        return Moment(now_ms, self._wall_ms())
