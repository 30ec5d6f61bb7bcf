"""The classic groups' way in: members' requests, committed offsets, administration, timers.

Every method runs on the loop's thread and answers at once, or through a `CoordinatorReply`: where a record
must be appended first, or other members are waited for. Times passed in are monotonic; there are no timers
here: ask `next_deadline_ms()`, call `expire(now_ms)`. A partition must be loaded before anything is asked of
its groups; `Groups` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import TypeVar
from uuid import UUID

from barnabas.coordinator.classic import offsets
from barnabas.coordinator.classic.description import GROUP_TYPE, DescribedGroup, describe_group
from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.interfaces import ConsumerGroups
from barnabas.coordinator.classic.membership import JoinReply, Membership, SyncReply
from barnabas.coordinator.classic.protocol_change import ProtocolChange
from barnabas.coordinator.classic.record_factory import ClassicRecord, deleted_offset, new_group
from barnabas.coordinator.classic.registry import ClassicRegistry
from barnabas.coordinator.classic.requests import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    JoinRequest,
    JoinResult,
    LeftMember,
    MemberIdentity,
    Moment,
    SyncRequest,
    SyncResult,
    has_too_long_names,
)
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.classic.timers import ClassicTimers, Timer, TimerKind
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.partition_hash import GROUP_PARTITION_COUNT
from barnabas.coordinator.group.record_names import is_too_long
from barnabas.coordinator.group.runtimes import AnyGroupRecord, GroupRuntimes
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.reply import CoordinatorReply
from barnabas.coordinator.runtime.retries import retry_if_refused
from barnabas.coordinator.runtime.steps import Operation, Write
from barnabas.protocol.errors import ApiError, ErrorCode

TIMER_RETRY_MS = 500
"""Pause before what a timer asks for, and could not be done, is tried again."""
WRITE_RECORDS_MAX = 1_000
"""Records of one append that nobody waits for: what would be more is written in several."""

_Result = TypeVar("_Result")


class ClassicCoordinator:
    """All classic groups of this broker, and the offsets that are committed."""

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
        self._offsets_check_ms: int | None = None
        """When offsets are looked at next, monotonic."""

    # Loading

    def load(self, record: ClassicRecord, log_offset: int) -> None:
        """Take over a record of a log that is being loaded."""
        self._registry.load(record, log_offset)

    def note_written(self, record: ClassicRecord, log_offset: int) -> None:
        """A record of an operation has been appended."""
        self._registry.note_written(record, log_offset)

    def note_pending(
        self, log_partition: int, record: ClassicRecord, log_offset: int, producer_id: int
    ) -> None:
        """A record of a producer's transaction has been appended, or is loaded."""
        self._registry.note_pending(log_partition, producer_id, record, log_offset)

    def note_marker(self, log_partition: int, producer_id: int, *, commit: bool) -> None:
        """The end of a producer's transaction has been appended, or is loaded."""
        self._registry.offsets.end_transaction(log_partition, producer_id, commit=commit)

    def begin(self, partition: int, now_ms: int) -> None:
        """A partition's records were all loaded: its members' sessions begin now."""
        moment = self._moment(now_ms)
        for group in self._registry:
            if group.log_partition == partition:
                for member in group.members.values():
                    self._membership.rebalance.expect_heartbeat(group, member, moment)
        if self._offsets_check_ms is None:
            self._offsets_check_ms = now_ms + self._settings.offsets_retention_check_interval_ms

    def forget(self, partition: int) -> None:
        """Forget a partition's groups and offsets; who waits is told to look for the coordinator again."""
        for group in self._registry.drop_partition(partition):
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
    ) -> CoordinatorReply[list[LeftMember]]:
        """LeaveGroup; each member has an outcome of its own, UNKNOWN_MEMBER_ID if there is no such group."""

        def operation() -> Steps[list[LeftMember]]:
            group = self._registry.get(_named(group_id))
            if self._consumer_groups.exists(group_id):
                moment = self._moment(now_ms)
                return (yield from self._consumer_groups.leave(group_id, identities, moment))
            if group is None:
                return [LeftMember(identity, ErrorCode.unknown_member_id) for identity in identities]
            return (yield from self._membership.leave(group, identities, self._moment(now_ms)))

        return self._run(group_id, operation)

    # Offsets

    def commit(self, request: offsets.CommitRequest, *, now_ms: int) -> CoordinatorReply[list[ErrorCode]]:
        """OffsetCommit: the outcome of each offset, in the request's order.

        INVALID_GROUP_ID, GROUP_ID_NOT_FOUND or ILLEGAL_GENERATION for a group that isn't there; see
        `offsets.check_commit` for the rest.
        """

        def operation() -> Steps[list[ErrorCode]]:
            group = self._committing_group(request, in_transaction=False)
            if group is not None:
                offsets.check_commit(group, request.identity, request.generation_id)
                member = group.members.get(request.identity.member_id)
                if member is not None:
                    self._membership.rebalance.expect_heartbeat(group, member, self._moment(now_ms))
            records, codes = offsets.commit_records(
                request, self._wall_ms(), self._settings.offset_metadata_bytes_max
            )
            if records:
                yield Write(records)
            return codes

        return self._run(request.group_id, operation)

    def _committing_group(
        self, request: offsets.CommitRequest, *, in_transaction: bool
    ) -> ClassicGroup | None:
        """The group; None if it will be made by what is committed, or is a consumer group, which is asked."""
        group = self._registry.get(_named(request.group_id))
        if group is not None:
            return group
        if self._consumer_groups.exists(request.group_id):
            metadata_bytes_max = self._settings.offset_metadata_bytes_max
            stored = [one for one in request.offsets if offsets.has_room(one, metadata_bytes_max)]
            asked = request._replace(offsets=stored)
            self._consumer_groups.check_commit(asked, in_transaction=in_transaction)
            return None
        if request.generation_id < 0 and not self._registry.is_of_another_type(request.group_id):
            self._registry.check_room(ErrorCode.coordinator_not_available)
            return None
        if request.tells_not_found:
            self._registry.existing(request.group_id)
        raise ApiError(ErrorCode.illegal_generation, f"Group {request.group_id} not found.")

    def commit_in_transaction(self, commit: offsets.TransactionalCommit) -> CoordinatorReply[list[ErrorCode]]:
        """TxnOffsetCommit: the outcome of each offset, in the request's order; it counts once the producer's
        transaction is committed.

        INVALID_GROUP_ID or ILLEGAL_GENERATION for a group that isn't there; see
        `offsets.check_transactional_commit` for the rest, INVALID_PRODUCER_EPOCH.
        """
        request = commit.request

        def operation() -> Steps[list[ErrorCode]]:
            # Only now, and with nothing between it and the append: the end comes through here, too.
            commit.check_transaction()
            group = self._committing_group(request, in_transaction=True)
            if group is not None:
                offsets.check_transactional_commit(group, request.identity, request.generation_id)
            records, codes = offsets.commit_records(
                request, self._wall_ms(), self._settings.offset_metadata_bytes_max
            )
            if records:
                yield Write(records, commit.producer)
            return codes

        return self._run(request.group_id, operation)

    def fetch_offsets(
        self,
        group_id: str,
        wanted: Mapping[str, Sequence[int]] | None,
        *,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = NO_GENERATION,
    ) -> list[offsets.FetchedOffset]:
        """OffsetFetch of one group, all there is for None; with `require_stable` no offset for which another
        one may be committed by a transaction that hasn't ended.

        INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS. A group that isn't there has committed nothing.
        Members of consumer groups name themselves and their epoch: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
        """
        self._check_loaded(_named(group_id))
        if self._consumer_groups.exists(group_id):
            self._consumer_groups.check_fetch(group_id, member_id, member_epoch)
        found = offsets.fetched_offsets(
            self._registry.offsets, group_id, wanted, require_stable=require_stable
        )
        return list(found)

    def delete_offsets(
        self, group_id: str, keys: Sequence[tuple[str, int]]
    ) -> CoordinatorReply[list[ErrorCode]]:
        """OffsetDelete of (topic name, partition) pairs: the outcome of each.

        INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """

        def operation() -> Steps[list[ErrorCode]]:
            is_read = self._readers(_named(group_id))
            records, codes = offsets.deletion_records(group_id, self._registry.offsets, keys, is_read)
            if records:
                yield Write(records)
            return codes

        return self._run(group_id, operation)

    def _readers(self, group_id: str) -> Callable[[str], bool]:
        """Which topics, by name, have readers in a group whose offsets are to be deleted."""
        if self._consumer_groups.exists(group_id):
            return partial(self._consumer_groups.is_subscribed_to, group_id)
        group = self._registry.existing(group_id)
        offsets.check_deletion(group)
        return lambda name: group.state is not ClassicGroupState.EMPTY and group.is_subscribed_to(name)

    # Administration

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups of one group: INVALID_GROUP_ID, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND."""
        self._check_loaded(_named(group_id))
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

    def deleting(self, group_id: str) -> Steps[None]:
        """The steps of DeleteGroups of one group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        if self._consumer_groups.exists(group_id):
            tombstones = self._consumer_groups.tombstones(group_id)
            keys = self._registry.offsets.all_keys_of_group(group_id)
            yield Write([*map(deleted_offset, keys), *tombstones])
            return
        group = self._registry.existing(group_id)
        yield Write(offsets.group_deletion_records(group, self._registry.offsets))

    def topics_with_offsets(self) -> set[tuple[str, UUID]]:
        """The names and ids (zero where it isn't known) of all topics for which anything is committed."""
        return self._registry.offsets.topics()

    def forget_topics(self, topics: Mapping[str, Set[UUID]]) -> None:
        """Topics (by name, their ids) are gone: so is what was committed for exactly these. Nobody waits for
        it.
        """
        for partition in range(GROUP_PARTITION_COUNT):
            self._runtimes.of_partition(partition).submit(self._forgetting_topics(partition, topics))

    def _forgetting_topics(
        self, partition: int, topics: Mapping[str, Set[UUID]]
    ) -> Operation[AnyGroupRecord, None]:
        def operation() -> Steps[None]:
            # Only now: what is being committed belongs to it.
            keys = self._registry.offsets.keys_of_topics(partition, topics)
            yield from _write_in_pieces([deleted_offset(key) for key in keys])

        return operation

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if there is nothing to wait for."""
        deadlines_ms = (self._timers.deadlines.next_deadline_ms(), self._offsets_check_ms)
        return min((one for one in deadlines_ms if one is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Do what timers ask for, and drop offsets that have been kept long enough."""
        for timer in self._timers.deadlines.expire(now_ms):
            self._run_timer(timer, now_ms)
        if self._offsets_check_ms is not None and self._offsets_check_ms <= now_ms:
            self._offsets_check_ms = now_ms + self._settings.offsets_retention_check_interval_ms
            group_ids = [group.group_id for group in self._registry]
            for group_id in (*group_ids, *self._consumer_groups.group_ids()):
                self._run(group_id, self._expiring_offsets(group_id))

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

    def _expiring_offsets(self, group_id: str) -> Operation[AnyGroupRecord, None]:
        def operation() -> Steps[None]:
            group = self._registry.get(group_id)
            times = (self._wall_ms(), self._settings.offsets_retention_ms)
            if group is not None:
                yield from _write_in_pieces(offsets.expiry_records(group, self._registry.offsets, *times))
            elif self._consumer_groups.exists(group_id):
                kept = self._registry.offsets
                yield from _write_in_pieces(self._consumer_groups.expiry_records(group_id, kept, *times))

        return operation

    # Operations

    def _submit(
        self,
        group_id: str,
        operation: Operation[AnyGroupRecord, None],
        reply: CoordinatorReply[_Result],
        refuse: Callable[[ErrorCode], _Result],
    ) -> None:
        """Run an operation that completes `reply` itself, now or one day; if it fails, `refuse` does."""

        def on_done(done: CoordinatorReply[None]) -> None:
            if reply.done:
                return
            try:
                done.result()
            except ApiError as error:
                reply.complete(refuse(error.code))
            except Exception as error:
                reply.fail(error)

        self._run(group_id, operation).add_done_callback(on_done)

    def _run(self, group_id: str, operation: Operation[AnyGroupRecord, _Result]) -> CoordinatorReply[_Result]:
        reply = self._runtimes.of_group(group_id).submit(operation)
        reply.add_done_callback(lambda _: self._on_deadline())
        return reply

    def _members_group(self, group_id: str) -> ClassicGroup:
        group = self._registry.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.unknown_member_id, f"Group {group_id} not found.")
        return group

    def _check_loaded(self, group_id: str) -> None:
        if not self._runtimes.of_group(group_id).loaded:
            raise ApiError(ErrorCode.coordinator_load_in_progress, "The groups are being loaded.")

    def _moment(self, now_ms: int) -> Moment:
        return Moment(now_ms, self._wall_ms())


def _write_in_pieces(records: Sequence[AnyGroupRecord]) -> Steps[None]:
    for start in range(0, len(records), WRITE_RECORDS_MAX):
        yield Write(records[start : start + WRITE_RECORDS_MAX])


def _named(group_id: str) -> str:
    if not group_id or is_too_long(group_id):
        raise ApiError(ErrorCode.invalid_group_id, "The group id is empty, or too long.")
    return group_id
