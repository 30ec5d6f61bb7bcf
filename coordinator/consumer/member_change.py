"""The decision when a member of a consumer group joins or changes: its records, the group's epoch, the
target, the member's next step (KIP-848).

Members of both protocols use it. A decision changes no state; its records are replayed once they are
appended.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import partial
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.handover import Handover
from barnabas.coordinator.consumer.interfaces import TopicDirectory
from barnabas.coordinator.consumer.member import ConsumerMember
from barnabas.coordinator.consumer.reconciliation import Owned, Surroundings, Target, reconcile
from barnabas.coordinator.consumer.record_factory import (
    current_member_assignment,
    group_metadata,
    member_metadata,
    regular_expression_tombstone,
    target_assignment_member,
    target_assignment_metadata,
)
from barnabas.coordinator.consumer.regular_expression import RegexError, RegularExpression
from barnabas.coordinator.consumer.settings import REGEX_REFRESH_PAUSE_MS, ConsumerSettings
from barnabas.coordinator.consumer.sharing import NO_SHARES, Reading
from barnabas.coordinator.consumer.target_assignment import changes_assignor, compute_target
from barnabas.coordinator.group.last_assignment import assignment_is_due
from barnabas.coordinator.group.metadata_hash import metadata_hash
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.runtime.moment import Moment


class RegexChange(Enum):
    """How the member's regular expression changes."""

    NONE = "none"
    UNRESOLVED = "unresolved"
    """A new expression that is not resolved yet."""
    RESOLVED = "resolved"
    """Another expression that is resolved, or none any more."""


class Circumstances(NamedTuple):
    """The inputs of a change besides its group and its member."""

    catalog: TopicDirectory
    handover: Handover
    settings: ConsumerSettings
    assignment_interval_ms: int
    topics_came_at: int
    """The version of the catalog at which the last topic was created."""
    moment: Moment


class MemberChange:
    """One change. Call `note` first, then `decide_epoch`, `decide_target` and `step`; `records` are in that
    order.
    """

    def __init__(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
        around: Circumstances,
        *,
        replaced: ConsumerMember | None = None,
    ) -> None:
        """`before` is the member as it was. If it joins, that is a new member without subscription, or one
        that takes the place of `replaced`.
        """
        self.records: list[AnyGroupRecord] = []
        self.member = after
        self.group_epoch = group.group_epoch
        self.regexes_due: frozenset[str] = frozenset()
        """The regular expressions to resolve once this is written."""
        self.names_changed = after.subscribed_topic_names != before.subscribed_topic_names
        self.regex_change = RegexChange.NONE
        self.topic_changes_seen = group.soft.topic_changes_seen
        """How many changes of topics the group's epoch accounts for."""
        self._group = group
        self._before = before
        self._around = around
        self._replaced = replaced
        self._replaced_id = None if replaced is None else replaced.member_id
        subscriptions = group.subscriptions.changed(before, after)
        self._regexes_after = subscriptions.regexes
        self._subscriptions = subscriptions.without_unused()

    @property
    def sharing_changed(self) -> bool:
        """Whether the member has begun or ceased to commit offsets individually."""
        return self.member.individual_commit != self._before.individual_commit

    @property
    def subscription_changed(self) -> bool:
        return self.names_changed or self.regex_change is not RegexChange.NONE

    # The member's request

    def note(self) -> None:
        """Write the member's metadata if it has changed. INVALID_REGULAR_EXPRESSION."""
        if self.member != self._before:
            self.records.append(member_metadata(self._group.group_id, self.member))
        must_resolve = self._note_regex()
        if must_resolve or self._group.subscriptions.regexes:
            self._decide_resolving(must_resolve=must_resolve)

    def _note_regex(self) -> bool:
        """Returns whether the member has a regular expression that no other member has."""
        old, new = self._before.subscribed_topic_regex, self.member.subscribed_topic_regex
        if old == new:
            return False
        self.regex_change = RegexChange.UNRESOLVED
        if old and old not in self._regexes_after:
            self.records.append(regular_expression_tombstone(self._group.group_id, old))
        known = self._group.subscriptions
        if new and new not in known.regexes:
            _check_regex(new)
            return True
        if not new or new in known.resolved:
            self.regex_change = RegexChange.RESOLVED
        return False

    def _decide_resolving(self, *, must_resolve: bool) -> None:
        """Resolve all expressions together, so that the group gets one new assignment."""
        resolved = self._group.subscriptions.resolved
        last = next(iter(resolved.values()), None)
        since_last_ms = None if last is None else self._around.moment.now_ms - last.resolved_at.now_ms
        if self._group.soft.is_resolving:
            return
        if since_last_ms is not None and since_last_ms <= REGEX_REFRESH_PAUSE_MS:
            return
        if (
            must_resolve
            or last is None
            or len(self._regexes_after) != len(resolved)
            or last.version < self._around.topics_came_at
            or since_last_ms is None
            or since_last_ms > self._around.settings.regex_refresh_interval_ms
        ):
            self.regexes_due = frozenset(self._regexes_after)

    # The group

    def changes_assignor(self) -> bool:
        """Whether the assignor with the most votes is now another one."""
        if self.member.server_assignor == self._before.server_assignor:
            return False
        default = self._around.settings.assignors[0]
        return changes_assignor(self._group, self.member, self._replaced_id, default)

    def decide_epoch(self, *, bump: bool) -> None:
        """The group epoch, raised by one at most; also if topics that members read have changed."""
        soft = self._group.soft
        if not bump and soft.topic_changes_seen == soft.topic_changes:
            return
        self.topic_changes_seen = soft.topic_changes
        topics_hash = metadata_hash(self._subscriptions.topics(), self._around.catalog)
        if bump or topics_hash != self._group.metadata_hash:
            self.group_epoch += 1
            self.records.append(group_metadata(self._group.group_id, self.group_epoch, topics_hash))

    def decide_target(self) -> Target:
        """The target to reach: a new one for all members if one is due, or else the last one."""
        group = self._group
        is_due = assignment_is_due(
            group.assigned_at_ms, self._around.assignment_interval_ms, self._around.moment.now_ms
        )
        if group.assignment_epoch >= self.group_epoch or not is_due:
            return self.last_target()
        return self._new_target()

    def last_target(self) -> Target:
        predecessor = self.member if self._replaced is None else self._replaced
        assignment = self._group.target.get(predecessor.member_id, EMPTY_ASSIGNMENT)
        shares = self._group.target_shares.get(predecessor.member_id, NO_SHARES)
        return Target(self._group.assignment_epoch, assignment, shares)

    def _new_target(self) -> Target:
        group, member_id = self._group, self.member.member_id
        targets = compute_target(
            group,
            self.member,
            self._replaced_id,
            Reading(*self.last_target()[1:]),
            self._subscriptions,
            self._around.settings.assignors[0],
            self._around.catalog,
        )
        self.records.extend(
            target_assignment_member(group.group_id, other_id, *reading)
            for other_id, reading in targets.items()
            if reading.assignment != group.target.get(other_id)
            or reading.shares != group.target_shares.get(other_id, NO_SHARES)
        )
        self.records.append(
            target_assignment_metadata(group.group_id, self.group_epoch, self._around.moment.wall_ms)
        )
        return Target(self.group_epoch, *targets[member_id])

    # The member's next step

    def step(self, target: Target, owned: Owned | None) -> None:
        """Lead the member towards its target, given the partitions that it owns. FENCED_MEMBER_EPOCH."""
        around = Surroundings(
            self._topic_ids(self._subscriptions.topics_of(self.member)),
            self.subscription_changed,
            owned,
            partial(self._around.handover.is_taken, self._group),
        )
        stepped = reconcile(self.member, target, around)
        if stepped != self.member:
            self.records.append(current_member_assignment(self._group.group_id, stepped))
        self.member = stepped

    def _topic_ids(self, names: Iterable[str]) -> frozenset[UUID]:
        catalog = self._around.catalog
        shapes = (catalog.topic_by_name(name) for name in names)
        return frozenset(shape.topic_id for shape in shapes if shape is not None)


def _check_regex(regex: str) -> None:
    try:
        RegularExpression(regex)
    except RegexError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        raise ApiError(ErrorCode.invalid_regular_expression, message) from None
