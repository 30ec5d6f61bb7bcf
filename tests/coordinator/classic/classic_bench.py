"""Classic groups on a simulated log; the test moves the time, and members have short methods."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

from barnabas.coordinator.classic.coordinator import ClassicCoordinator
from barnabas.coordinator.classic.group import ClassicGroupState
from barnabas.coordinator.classic.membership import JoinReply, SyncReply
from barnabas.coordinator.classic.requests import (
    JoinRequest,
    JoinResult,
    LeftMember,
    SyncRequest,
)
from barnabas.coordinator.classic.settings import ClassicSettings
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.groups import Groups, GroupsSettings
from barnabas.coordinator.offsets.coordinator import OffsetCoordinator
from barnabas.coordinator.offsets.requests import CommitRequest, OffsetToCommit
from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.coordinator.replay.interfaces import Stored
from barnabas.coordinator.share_group.settings import ShareGroupSettings
from barnabas.protocol.classic_group_records import NO_TOPIC_ID
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.completion import Completion
from tests.coordinator.adjustable_configs import AdjustableConfigs
from tests.coordinator.alarm import Alarm
from tests.coordinator.group.partition_count import GROUP_PARTITION_COUNT
from tests.coordinator.share_group.simulated_coordinator import (
    SimulatedCatalog,
    SimulatedLoads,
    SimulatedShareState,
)
from tests.coordinator.simulated_log import SimulatedLog, take_all

GROUP = "billing"
TOPIC = "invoices"
FIRST_WALL_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
NO_MEMBER = MemberIdentity("", None)


def subscription(*topics: str) -> bytes:
    """A consumer's metadata that names topics."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1)


PROTOCOLS = {"range": subscription(TOPIC)}


@dataclass(frozen=True)
class Joined:
    """A member that has joined a generation."""

    member_id: str
    generation_id: int
    instance_id: str | None = None

    @property
    def identity(self) -> MemberIdentity:
        return MemberIdentity(self.member_id, self.instance_id)


class Bench:
    """The groups with their surroundings. Monotonic time begins at 0."""

    def __init__(
        self,
        settings: ClassicSettings | None = None,
        *,
        loaded: bool = True,
        consumer_settings: ConsumerSettings | None = None,
        offset_settings: OffsetSettings | None = None,
        assignment_interval_ms: int = 1_000,
        commits_in_order: bool = False,
    ) -> None:
        self.settings = settings or ClassicSettings()
        self.consumer_settings = consumer_settings or ConsumerSettings()
        self.offset_settings = offset_settings or OffsetSettings()
        self._consumer_configs = AdjustableConfigs(
            assignment_interval=assignment_interval_ms,
            ordered_groups=frozenset({GROUP} if commits_in_order else ()),
        )
        self.log = SimulatedLog()
        self.catalog = SimulatedCatalog()
        self.now_ms = 0
        self.wall_shift_ms = 0
        """How far the wall clock was set forward since the start."""
        self._alarm = Alarm()
        self._ids = count(1)
        self.groups = self._new_groups()
        if loaded:
            self._load(self.groups)

    @property
    def classic(self) -> ClassicCoordinator:
        return self.groups.classic

    @property
    def offsets(self) -> OffsetCoordinator:
        return self.groups.offsets

    @property
    def wall_ms(self) -> int:
        return FIRST_WALL_MS + self.now_ms + self.wall_shift_ms

    def restart(self, cleaned: Callable[[list[Stored]], list[Stored]] = list) -> None:
        """Continue with a coordinator loaded from the log, or from the rest of it after cleaning."""
        self.groups = self._new_groups()
        self._load(self.groups, cleaned)

    def reload(self) -> None:
        """The log was reopened."""
        for partition in range(GROUP_PARTITION_COUNT):
            self.groups.unload(partition)
        self._load(self.groups)

    def advance(self, elapsed_ms: int) -> None:
        """Let time pass; timers run out when they are due."""
        until_ms = self.now_ms + elapsed_ms
        while (due_ms := self._alarm.armed_ms) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._alarm.ring(self.groups, self.now_ms)
        self.now_ms = until_ms

    def start_join(
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] = PROTOCOLS,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
    ) -> JoinReply:
        """Send a JoinGroup."""
        request = JoinRequest(
            group_id,
            member_id,
            instance_id,
            "client",
            "/127.0.0.1",
            session_ms,
            rebalance_ms,
            protocol_type,
            protocols,
            requires_known_member_id=version >= 4,
            can_skip_assignment=version >= 9,
        )
        return self.classic.join(request, now_ms=self.now_ms)

    def new_member_id(self, **options: Any) -> str:
        """Ask for a member id, as version 4 and newer do."""
        result = self.start_join(**options).result()
        assert result.error_code is ErrorCode.member_id_required
        return result.member_id

    def start_sync(
        self, member: Joined, assignments: Mapping[str, bytes] | None = None, **changed: Any
    ) -> SyncReply:
        """Send a SyncGroup; the leader's has assignments."""
        request = SyncRequest(
            GROUP,
            member.member_id,
            member.instance_id,
            member.generation_id,
            None,
            None,
            assignments or {},
        )
        return self.classic.sync(request._replace(**changed), now_ms=self.now_ms)

    def heartbeat(self, member: Joined) -> ErrorCode:
        return self.classic.heartbeat(GROUP, member.identity, member.generation_id, now_ms=self.now_ms)

    def leave(self, *identities: MemberIdentity) -> list[LeftMember]:
        return self.classic.leave(GROUP, identities, now_ms=self.now_ms).result()

    def start_commit(
        self,
        offset: int = 5,
        *,
        member: MemberIdentity = NO_MEMBER,
        generation_id: int = -1,
        group_id: str = GROUP,
        topic: str = TOPIC,
        topic_id: UUID = NO_TOPIC_ID,
        metadata: str = "",
        partitions: Sequence[int] = (0,),
    ) -> Completion[list[ErrorCode]]:
        offsets = [OffsetToCommit(topic, topic_id, one, offset, 3, metadata) for one in partitions]
        request = CommitRequest(group_id, member, generation_id, offsets, tells_not_found=True)
        return self.offsets.commit(request, now_ms=self.now_ms)

    def committed(self, topic: str = TOPIC, partition: int = 0, group_id: str = GROUP) -> int | None:
        """The offset, or None."""
        (found,) = self.offsets.fetch(group_id, {topic: [partition]})
        return None if found.committed is None else found.committed.offset

    # Whole stories.

    def stable(self, member_count: int = 1, **options: Any) -> list[Joined]:
        """A stable group of this number of dynamic members, the leader first; each is assigned its own id."""
        member_ids = [self.new_member_id() for _ in range(member_count)]
        replies = [self.start_join(member_id, **options) for member_id in member_ids]
        self.advance(member_count * self.settings.initial_rebalance_delay_ms)
        return self.settle(replies)

    def settle(self, replies: Sequence[JoinReply], instance_ids: Sequence[str | None] = ()) -> list[Joined]:
        """All members that joined sync, the leader last; returns them, the leader first."""
        results = [reply.result() for reply in replies]
        names = [*instance_ids, *[None] * (len(results) - len(instance_ids))]
        joined = [
            Joined(result.member_id, result.generation_id, name)
            for result, name in zip(results, names, strict=True)
        ]
        leader = next(one for one in joined if one.member_id == results[0].leader)
        followers = [one for one in joined if one is not leader]
        waiting = [self.start_sync(one) for one in followers]
        assert not any(reply.done for reply in waiting)
        waiting.append(self.start_sync(leader, {one.member_id: one.member_id.encode() for one in joined}))
        assert [reply.result().error_code for reply in waiting] == [ErrorCode.none] * len(waiting)
        assert self.state() is ClassicGroupState.STABLE
        return [leader, *followers]

    def state(self, group_id: str = GROUP) -> ClassicGroupState:
        return ClassicGroupState(self.classic.describe(group_id).state)

    def join_code(self, reply: Completion[JoinResult]) -> ErrorCode:
        return reply.result().error_code

    def _new_groups(self) -> Groups:
        return Groups(
            partition_count=GROUP_PARTITION_COUNT,
            log=self.log,
            catalog=self.catalog,
            share_state=SimulatedShareState(),
            partition_loads=SimulatedLoads(),
            settings=GroupsSettings(
                share=ShareGroupSettings(),
                share_configs=AdjustableConfigs(),
                consumer=self.consumer_settings,
                consumer_configs=self._consumer_configs,
                classic=self.settings,
                offsets=self.offset_settings,
                offset_configs=self._consumer_configs,
            ),
            now_ms=lambda: self.now_ms,
            wall_ms=lambda: self.wall_ms,
            new_uuid=lambda: UUID(int=next(self._ids)),
            on_deadline=lambda: self._alarm.deadline_moved(self.groups),
        )

    def _load(self, groups: Groups, cleaned: Callable[[list[Stored]], list[Stored]] = list) -> None:
        for partition in range(GROUP_PARTITION_COUNT):
            take_all(groups.load(partition, cleaned(self.log.stored(partition))))
        self._alarm.deadline_moved(groups)
