"""The decision on a ShareGroupHeartbeat (KIP-932, "Heartbeat"; API 76): checks, group epoch, target, member
epoch, answer.

Pure: a decision is records and an answer, and changes no state. It follows Apache Kafka 4.3.1 with one
exception: partitions without share state get it within the heartbeat (`initialisation.py`), and the decision
counts them as initialised. So the first join of a new group raises the group epoch once, from 1 to 2,
computes the target for epoch 2 with all partitions, and answers epoch 2 with them. Kafka answers epoch 2 with
no partition, then epoch 3 with all a second later. Everything after that, such as batching by
share.assignment.interval.ms, is as in Kafka.

The edge checks authorization, and whether share groups are enabled.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT, Assignment
from barnabas.coordinator.assignor.load import Backlogs
from barnabas.coordinator.group.last_assignment import NEVER_ASSIGNED, assignment_is_due
from barnabas.coordinator.group.metadata_hash import metadata_hash
from barnabas.coordinator.group.record_names import is_too_long
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.coordinator.share_group.initialisation import NewPartition, after_initialisation, without_topics
from barnabas.coordinator.share_group.record_factory import (
    current_member_assignment,
    group_metadata,
    member_metadata,
    member_tombstones,
    state_partition_metadata,
    target_assignment,
    target_assignment_metadata,
)
from barnabas.coordinator.share_group.share_group import (
    LEAVE_EPOCH,
    ShareGroup,
    ShareGroupMember,
    StatePartitions,
    TopicPartitionSet,
    subscriber_counts_after,
)
from barnabas.coordinator.share_group.target_assignment import assigned_within_subscription, compute_target
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.share_group_records import ShareGroupRecord
from barnabas.runtime.moment import Moment

JOIN_EPOCH = 0
MEMBER_ID_LENGTH_MAX = 36
"""In characters: the length of a UUID in text."""


class HeartbeatRequest(NamedTuple):
    """A heartbeat as the wire has it, with the client's id and host; None for a field that the member left
    unchanged.
    """

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: Sequence[str] | None
    client_id: str
    client_host: str


class HeartbeatResult(NamedTuple):
    """The answer; an assignment of None means that the member keeps its last one."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None


class HeartbeatDecision(NamedTuple):
    """The records to write, in order, and the answer after that."""

    records: list[ShareGroupRecord]
    result: HeartbeatResult
    group_epoch: int
    """The group's epoch after the replay of the records; it is the state epoch of new share state."""


def validate_heartbeat(request: HeartbeatRequest) -> None:
    """Refuse a request that is invalid for any group, with INVALID_REQUEST."""
    if not request.member_id or len(request.member_id) > MEMBER_ID_LENGTH_MAX:
        raise _invalid(f"The member id must have 1 to {MEMBER_ID_LENGTH_MAX} characters.")
    if not request.group_id or is_too_long(request.group_id):
        raise _invalid("The group id is empty, or too long to be stored.")
    if request.rack_id == "":
        raise _invalid("The rack id is empty.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise _invalid("A member that joins must name the topics to read.")
    if request.member_epoch < LEAVE_EPOCH:
        raise _invalid(f"There is no member epoch {request.member_epoch}.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)


def check_member(group: ShareGroup, request: HeartbeatRequest, max_size: int) -> ShareGroupMember:
    """The member that sends the heartbeat, a new one if it joins.

    GROUP_MAX_SIZE_REACHED if the group is full and has no such member (checked first, as in Kafka),
    UNKNOWN_MEMBER_ID, or FENCED_MEMBER_EPOCH if the epoch is none of 0, the member's, and the one before.
    """
    member = group.members.get(request.member_id)
    if member is None and len(group.members) >= max_size:
        message = f"Share group {group.group_id} has reached its {max_size} members."
        raise ApiError(ErrorCode.group_max_size_reached, message)
    if member is None:
        if request.member_epoch != JOIN_EPOCH:
            raise unknown_member(group.group_id, request.member_id)
        return ShareGroupMember(request.member_id)
    if request.member_epoch not in (JOIN_EPOCH, member.member_epoch, member.previous_member_epoch):
        message = (
            f"The member's epoch is {member.member_epoch}, not {request.member_epoch}: it must join again."
        )
        raise ApiError(ErrorCode.fenced_member_epoch, message)
    return member


def unknown_member(group_id: str, member_id: str) -> ApiError:
    return ApiError(ErrorCode.unknown_member_id, f"Share group {group_id} has no member {member_id}.")


def steady_member(group: ShareGroup, request: HeartbeatRequest) -> ShareGroupMember | None:
    """The member, if its heartbeat changes nothing and needs no check of topics or partitions; else None."""
    member = group.members.get(request.member_id)
    if (
        member is not None
        and group.soft.settled
        and request.member_epoch == member.member_epoch == group.assignment_epoch
        and request.subscribed_topic_names is None
        and (request.rack_id is None or request.rack_id == member.rack_id)
        and request.client_id == member.client_id
        and request.client_host == member.client_host
    ):
        return member
    return None


class HeartbeatDecider:
    """The decision on one heartbeat. Call `decide`; if the state of some partitions could not be created,
    call it again without them.
    """

    def __init__(
        self,
        group: ShareGroup,
        member: ShareGroupMember,
        request: HeartbeatRequest,
        catalog: TopicCatalog,
        *,
        backlogs: Callable[[], Backlogs | None],
        assignment_interval_ms: int,
        heartbeat_interval_ms: int,
        moment: Moment,
    ) -> None:
        """`member` is the result of `check_member`; the group may be new and in no registry. `backlogs`
        returns None for the assignor `simple`.
        """
        self._group = group
        self._member = member
        self._request = request
        self._catalog = catalog
        self._backlogs = backlogs
        self._assignment_interval_ms = assignment_interval_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._moment = moment
        self._updated = _updated_member(member, request)
        self.subscriber_counts: Mapping[str, int] = subscriber_counts_after(
            group.subscriber_counts,
            # A member that joins is not counted yet.
            member.subscribed_topic_names,
            self._updated.subscribed_topic_names,
        )
        """Topic name -> subscribed members, with this heartbeat's subscription."""

    def decide(self, made: Iterable[NewPartition], waiting: Iterable[NewPartition] = ()) -> HeartbeatDecision:
        """Decide, with the partitions `made` in this heartbeat counted as initialised. Those that failed or
        are held back are recorded as waiting.
        """
        records: list[ShareGroupRecord] = []
        state_partitions = after_initialisation(self._known_partitions(), made, waiting)
        initialised = state_partitions.initialised
        if self._updated != self._member:
            records.append(member_metadata(self._group.group_id, self._updated))
        group_epoch, bumped = self._decide_group_epoch(initialised, records)
        assignment_epoch, target = self._decide_target(group_epoch, initialised, records)
        reconciled = self._reconcile(assignment_epoch, target, refilter=bumped)
        if reconciled != self._updated:
            records.append(current_member_assignment(self._group.group_id, reconciled))
        if state_partitions != self._group.state_partitions:
            records.append(state_partition_metadata(self._group.group_id, state_partitions))
        return HeartbeatDecision(records, self._result(reconciled), group_epoch)

    def _known_partitions(self) -> StatePartitions:
        known = self._group.state_partitions
        if not self._group.soft.metadata_refresh_due:
            return known
        # A deleted topic may still be listed, after a failed write or a crash.
        topic_ids = {*known.initialised, *known.initialising, *known.deleting}
        gone = {topic_id for topic_id in topic_ids if self._catalog.topic_by_id(topic_id) is None}
        return without_topics(known, gone) if gone else known

    def _decide_group_epoch(
        self, initialised: Mapping[UUID, TopicPartitionSet], records: list[ShareGroupRecord]
    ) -> tuple[int, bool]:
        """The group epoch, and whether it was raised (by one)."""
        group = self._group
        bump = self._updated.subscribed_topic_names != self._member.subscribed_topic_names
        if not bump and group.assignment_epoch >= group.group_epoch:
            bump = self._target_misses(initialised)
        if not bump and not group.soft.metadata_refresh_due:
            return group.group_epoch, False
        topics_hash = metadata_hash(self.subscriber_counts, self._catalog)
        if not bump and topics_hash == group.metadata_hash:
            return group.group_epoch, False
        records.append(group_metadata(group, group.group_epoch + 1, topics_hash))
        return group.group_epoch + 1, True

    def _target_misses(self, initialised: Mapping[UUID, TopicPartitionSet]) -> bool:
        """Whether the initialised partitions of a subscribed topic differ from those in the target."""
        handed_out: dict[UUID, set[int]] = {}
        for assignment in self._group.target.values():
            for topic_id, partitions in assignment.items():
                handed_out.setdefault(topic_id, set()).update(partitions)
        for name in self.subscriber_counts:
            shape = self._catalog.topic_by_name(name)
            topic = initialised.get(shape.topic_id) if shape is not None else None
            if shape is None or topic is None:
                continue
            if handed_out.get(shape.topic_id, set()) != set(topic.partitions):
                return True
        return False

    def _decide_target(
        self, group_epoch: int, initialised: Mapping[UUID, TopicPartitionSet], records: list[ShareGroupRecord]
    ) -> tuple[int, Assignment]:
        """The assignment epoch and this member's target: new ones if due, else those of the last
        assignment."""
        group, member_id = self._group, self._updated.member_id
        is_due = assignment_is_due(group.assigned_at_ms, self._assignment_interval_ms, self._moment.now_ms)
        if group.assignment_epoch >= group_epoch or not is_due:
            return group.assignment_epoch, group.target.get(member_id, EMPTY_ASSIGNMENT)
        target = compute_target(
            group, self._updated, self.subscriber_counts, initialised, self._catalog, self._backlogs()
        )
        records.extend(target_assignment(group, target, group_epoch, self._moment.wall_ms))
        return group_epoch, target[member_id]

    def _reconcile(self, assignment_epoch: int, target: Assignment, *, refilter: bool) -> ShareGroupMember:
        """The member at the assignment's epoch. Nothing is revoked first, because partitions of a share group
        have no owner.
        """
        updated = self._updated
        if updated.member_epoch == assignment_epoch and not refilter:
            return updated
        assigned = assigned_within_subscription(target, updated.subscribed_topic_names, self._catalog)
        if updated.member_epoch == assignment_epoch:
            return updated._replace(assigned=assigned)
        return updated._replace(
            member_epoch=assignment_epoch, previous_member_epoch=updated.member_epoch, assigned=assigned
        )

    def _result(self, reconciled: ShareGroupMember) -> HeartbeatResult:
        full = self._request.member_epoch == JOIN_EPOCH or self._request.subscribed_topic_names is not None
        tell = full or reconciled.assigned != self._member.assigned
        return HeartbeatResult(
            reconciled.member_id,
            reconciled.member_epoch,
            self._heartbeat_interval_ms,
            reconciled.assigned if tell else None,
        )


def _updated_member(member: ShareGroupMember, request: HeartbeatRequest) -> ShareGroupMember:
    names: Collection[str] | None = request.subscribed_topic_names
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
    )


def decide_removal(group: ShareGroup, member_id: str, catalog: TopicCatalog) -> list[ShareGroupRecord]:
    """The records that remove a member that left or whose session ended.

    Without members there is nothing to assign, so the last member's removal also records the assignment of
    the new group epoch.
    """
    counts = subscriber_counts_after(
        group.subscriber_counts, group.members[member_id].subscribed_topic_names, frozenset()
    )
    group_epoch = group.group_epoch + 1
    bumped = group_metadata(group, group_epoch, metadata_hash(counts, catalog))
    records = [*member_tombstones(group.group_id, member_id), bumped]
    if len(group.members) == 1:
        records.append(target_assignment_metadata(group.group_id, group_epoch, NEVER_ASSIGNED))
    return records
