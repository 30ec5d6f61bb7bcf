"""The consumer groups' way in: heartbeats, administration, timers (KIP-848).

Every method runs on the loop's thread and answers at once or, where a record must be appended first, through
a `Completion`. Times passed in are monotonic; there are no timers here: ask `next_deadline_ms()`, call
`expire(now_ms)`. A partition must be loaded before anything is asked of its groups; `Groups` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar
from uuid import UUID

from barnabas.coordinator.classic.requests import Moment
from barnabas.coordinator.consumer.classic_members import ClassicMembers
from barnabas.coordinator.consumer.classic_requests import ClassicRequests
from barnabas.coordinator.consumer.description import (
    GROUP_TYPE,
    PROTOCOL_TYPE,
    DescribedGroup,
    describe_group,
)
from barnabas.coordinator.consumer.heartbeat import HeartbeatRequest, HeartbeatResult, validate_heartbeat
from barnabas.coordinator.consumer.interfaces import ClassicGroups, TopicDirectory
from barnabas.coordinator.consumer.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coordinator.consumer.membership import Membership
from barnabas.coordinator.consumer.offsets import ConsumerOffsetRules
from barnabas.coordinator.consumer.regex_resolution import resolution_records, resolve
from barnabas.coordinator.consumer.registry import ConsumerRegistry
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.consumer.timers import ConsumerTimers, Timer
from barnabas.coordinator.group.configs import GroupConfigs
from barnabas.coordinator.group.description import ListedGroup
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.group.runtimes import GroupRuntimes
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.retries import retry_if_refused
from barnabas.coordinator.replay.steps import Operation, Write
from barnabas.protocol.consumer_group_records import ConsumerGroupRecord
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.completion import Completion

TIMER_RETRY_MS = 500
"""Pause before a member whose removal could not be written is tried again, as in Kafka."""

_Result = TypeVar("_Result")


class ConsumerCoordinator:
    """All consumer groups of this broker."""

    def __init__(
        self,
        *,
        runtimes: GroupRuntimes,
        catalog: TopicDirectory,
        classic_groups: ClassicGroups,
        configs: GroupConfigs,
        settings: ConsumerSettings,
        wall_ms: Callable[[], int],
        new_uuid: Callable[[], UUID],
        other_group_type: Callable[[str], str | None],
        on_deadline: Callable[[], None],
    ) -> None:
        """`other_group_type` answers the type of a group of that id that is no consumer group, or None;
        `on_deadline` is called when `next_deadline_ms` may have moved.
        """
        self._runtimes = runtimes
        self._catalog = catalog
        self._settings = settings
        self._wall_ms = wall_ms
        self._on_deadline = on_deadline
        self._registry = ConsumerRegistry(max_groups=settings.max_groups, other_group_type=other_group_type)
        self._timers = ConsumerTimers(configs)
        self._membership = Membership(
            self._registry, self._timers, catalog, classic_groups, configs, settings, new_uuid
        )
        self._membership.on_regexes_due = self._resolve_regexes
        members = ClassicMembers(self._membership, self._timers, classic_groups, catalog, settings)
        self.classic_requests = ClassicRequests(self._registry, members)
        """What the classic coordinator passes on."""
        self.offset_rules = ConsumerOffsetRules(self._registry)
        """What the offsets' coordinator asks."""

    # Loading

    def replay(self, record: ConsumerGroupRecord) -> None:
        """Take over a record of a consumer group, from a log that is being loaded or was just written."""
        self._registry.replay(record)

    def begin(self, partition: int, now_ms: int) -> None:
        """A partition's records were all replayed: its members are waited for from now on."""
        for group in self._registry:
            if group.id_hash % self._runtimes.partition_count == partition:
                for member in group.members.values():
                    self._timers.expect_heartbeat(group.group_id, member, now_ms)
                    self._timers.expect_revocation(group.group_id, member, now_ms)

    def forget(self, partition: int) -> None:
        """Forget a partition's groups; its records may be replayed anew."""
        for group in self._registry.drop_partition(partition, self._runtimes.partition_count):
            for member_id in group.members:
                self._timers.forget(group.group_id, member_id)

    # Members

    def heartbeat(self, request: HeartbeatRequest, *, now_ms: int) -> Completion[HeartbeatResult]:
        """ConsumerGroupHeartbeat, after authorization.

        INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, GROUP_ID_NOT_FOUND,
        GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
        UNRELEASED_INSTANCE_ID, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        try:
            validate_heartbeat(request, self._settings.assignors)
        except ApiError as error:
            return Completion.failed(error)
        leaves = request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)
        steps = self._membership.leave if leaves else self._membership.heartbeat
        return self._run(request.group_id, lambda: steps(request, self._moment(now_ms)))

    # Topics

    def on_metadata_changed(self, topic_names: Iterable[str], *, has_new: bool) -> None:
        """Topics of these names were created, deleted or grew, and the catalog says so: groups look at their
        next heartbeat. Regular expressions may match those that are new."""
        if has_new:
            self._membership.topics_came_at = self._catalog.version()
        group_ids = {one for name in topic_names for one in self._registry.groups_of_topic(name)}
        for group_id in group_ids:
            self._registry.existing(group_id).soft.topic_changes += 1

    def _resolve_regexes(self, group_id: str, regexes: Collection[str]) -> None:
        """In an operation of its own, behind the one that found it due."""

        def operation() -> Steps[None]:
            group = self._registry.get(group_id)
            if group is None:
                return
            group.soft.is_resolving = False
            resolved = resolve(regexes, self._catalog, self._wall_ms())
            # The topics are looked at now, so that the epoch takes account of them.
            changes = group.soft.topic_changes
            records = resolution_records(group, resolved, self._catalog)
            if records:
                yield Write(records)
                group.soft.topic_changes_seen = changes

        def on_done(reply: Completion[None]) -> None:
            group = self._registry.get(group_id)
            if group is not None:
                # Also if it could not be queued: the next heartbeat finds it due again.
                group.soft.is_resolving = False
            assert reply.done

        self._run(group_id, operation).when_done(on_done)

    # Administration

    def describe(self, group_id: str) -> DescribedGroup:
        """ConsumerGroupDescribe of one group: INVALID_GROUP_ID (empty id), COORDINATOR_LOAD_IN_PROGRESS,
        GROUP_ID_NOT_FOUND."""
        if not group_id:
            raise ApiError(ErrorCode.invalid_group_id)
        self._runtimes.check_loaded(group_id)
        group = self._registry.existing(group_id)
        return describe_group(group, self._catalog, self._settings.assignors[0])

    def list_groups(self) -> list[ListedGroup]:
        """All consumer groups, for ListGroups."""
        return [
            ListedGroup(group.group_id, PROTOCOL_TYPE, group.state.value, GROUP_TYPE)
            for group in self._registry
        ]

    def type_of(self, group_id: str) -> str | None:
        """What consumer groups' type is called, if there is one of that id."""
        return None if self._registry.get(group_id) is None else GROUP_TYPE

    def tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        """What removes a group without members: NON_EMPTY_GROUP."""
        return self.classic_requests.tombstones(group_id)

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`; None if there is nothing to wait for."""
        return self._timers.deadlines.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """Remove the members that are late."""
        for timer in self._timers.deadlines.expire(now_ms):
            self._run_timer(timer, now_ms)

    def _run_timer(self, timer: Timer, now_ms: int) -> None:
        def operation() -> Steps[None]:
            # Begun anew while this waited for its turn: it has not run out after all.
            if timer not in self._timers.deadlines:
                yield from self._membership.timed_out(timer, self._moment(now_ms))

        reply = self._run(timer.group_id, operation)
        retry_at_ms = now_ms + TIMER_RETRY_MS
        retry_if_refused(reply, self._timers.deadlines, timer, retry_at_ms, self._on_deadline)

    # Operations

    def _run(self, group_id: str, operation: Operation[AnyGroupRecord, _Result]) -> Completion[_Result]:
        reply = self._runtimes.of_group(group_id).submit(operation)
        reply.when_done(lambda _: self._on_deadline())
        return reply

    def _moment(self, now_ms: int) -> Moment:
        return Moment(now_ms, self._wall_ms())
