"""Consumer groups on a simulated log; the test moves the time, and members have short methods.

Built on the bench of classic groups, so that members of both protocols can meet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.classic.requests import JoinResult, SyncResult
from barnabas.coordinator.consumer.coordinator import ConsumerCoordinator
from barnabas.coordinator.consumer.description import DescribedMember
from barnabas.coordinator.consumer.heartbeat import HeartbeatRequest, HeartbeatResult
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.group.description import DescribedGroup
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.records import AnyGroupRecord, decode_record
from barnabas.protocol.consumer_protocol import decode_assignment
from barnabas.protocol.errors import ErrorCode
from barnabas.runtime.completion import Completion
from tests.coordinator.classic import classic_bench
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Joined

ASSIGNMENT_INTERVAL_MS = 1_000
SESSION_MS = 45_000
REBALANCE_MS = 60_000


class ConsumerBench(classic_bench.Bench):
    """The topic has six partitions; an assignment is due whenever something has changed."""

    def __init__(
        self,
        settings: ConsumerSettings | None = None,
        *,
        interval_ms: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(
            consumer_settings=settings or ConsumerSettings(),
            assignment_interval_ms=interval_ms,
            **options,
        )
        self.topic_id = self.create_topic(TOPIC, 6)

    @property
    def consumer(self) -> ConsumerCoordinator:
        return self.groups.consumer

    def create_topic(self, name: str, partition_count: int) -> UUID:
        topic_id = self.catalog.create(name, partition_count)
        self.groups.on_metadata_changed([name], has_new=True)
        return topic_id

    # Heartbeats

    def start_heartbeat(self, member_id: str, epoch: int, **changed: Any) -> Completion[HeartbeatResult]:
        request = HeartbeatRequest(
            group_id=GROUP,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=-1,
            subscribed_topic_names=None,
            subscribed_topic_regex=None,
            server_assignor=None,
            owned=None,
            client_id="client",
            client_host="/127.0.0.1",
            names_itself=True,
        )
        return self.consumer.heartbeat(request._replace(**changed), now_ms=self.now_ms)

    def join(self, member_id: str, *topics: str, **changed: Any) -> HeartbeatResult:
        values: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": topics or (TOPIC,),
            "owned": {},
        }
        return self.start_heartbeat(member_id, 0, **(values | changed)).result()

    def join_by_regex(self, member_id: str, regex: str) -> HeartbeatResult:
        return self.join(member_id, subscribed_topic_names=None, subscribed_topic_regex=regex)

    def beat(self, member_id: str, **changed: Any) -> HeartbeatResult:
        """A heartbeat at the member's epoch."""
        return self.start_heartbeat(member_id, self.member(member_id).member_epoch, **changed).result()

    def beat_with(self, member_id: str, owned: Mapping[UUID, Collection[int]]) -> HeartbeatResult:
        """A heartbeat that names the member's partitions."""
        return self.beat(member_id, owned=owned)

    def leave_group(self, member_id: str, epoch: int = -1, **changed: Any) -> HeartbeatResult:
        return self.start_heartbeat(member_id, epoch, **changed).result()

    def settle_members(self, *member_ids: str) -> None:
        """All members follow their answers until nothing changes any more."""
        for _ in range(4):
            for member_id in member_ids:
                self.beat_with(member_id, self.owned(member_id))

    # Questions

    def described(self) -> DescribedGroup[DescribedMember]:
        return self.consumer.describe(GROUP)

    def member(self, member_id: str) -> DescribedMember:
        return next(one for one in self.described().members if one.member_id == member_id)

    def owned(self, member_id: str) -> Assignment:
        """The member's partitions in the coordinator, without those that it is to give up."""
        target = {one.topic_id: set(one.partitions) for one in self.member(member_id).target_assignment}
        return {
            one.topic_id: tuple(sorted(target.get(one.topic_id, set()).intersection(one.partitions)))
            for one in self.member(member_id).assignment
        }

    def partitions(self, member_id: str) -> list[int]:
        """The partitions of the topic that the member has, or has not given up yet."""
        return [
            partition
            for one in self.member(member_id).assignment
            if one.topic_id == self.topic_id
            for partition in one.partitions
        ]

    def records(self) -> list[AnyGroupRecord]:
        """All that is in the log."""
        decoded = [decode_record(key, value) for batch in self.log.batches for key, value in batch.records]
        return [record for record in decoded if record is not None]

    # Members of the classic protocol

    def join_classic(self, member_id: str = "", **options: Any) -> JoinResult:
        return self.start_join(member_id or self.new_member_id(), **options).result()

    def sync_classic(self, member_id: str, generation_id: int) -> SyncResult:
        return self.start_sync(Joined(member_id, generation_id)).result()

    def beat_classic(self, member_id: str, generation_id: int) -> ErrorCode:
        return self.heartbeat(Joined(member_id, generation_id))

    def leave_classic(self, member_id: str) -> None:
        (left,) = self.leave(MemberIdentity(member_id, None))
        assert left.error_code is ErrorCode.none


def assigned_by_name(assignment: bytes) -> dict[str, Sequence[int]]:
    """The assignment as a member of the classic protocol decodes it."""
    return {one.topic: one.partitions for one in decode_assignment(assignment).assigned_partitions}
