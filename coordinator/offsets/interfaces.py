"""The rules that a type of group has for its committed offsets."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Protocol
from uuid import UUID

from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.offsets.requests import CommitRequest


class Retained(Enum):
    """How long offsets are kept for which the retention counts from no common moment."""

    FOREVER = "forever"
    SINCE_COMMIT = "since commit"
    """The retention of each offset counts from its commit."""


class OffsetConfigs(Protocol):
    """The configuration of each group (resource type GROUP). It may change at any time, so it is read at
    every use.
    """

    def commits_in_order(self, group_id: str) -> bool:
        """Whether `individual.commit.order` is `partition`."""
        ...


class OffsetRules(Protocol):
    """The rules of one type of group; refusals are raised as ApiError.

    The rules of classic groups also apply to ids without a group: a commit creates a simple one.
    """

    def group_ids(self) -> Iterable[str]:
        """The ids of all groups of the type."""
        ...

    def exists(self, group_id: str) -> bool: ...

    def check_commit(self, request: CommitRequest, *, in_transaction: bool) -> None:
        """Whether these offsets may be committed now."""
        ...

    def check_wait(self, request: CommitRequest) -> None:
        """Whether a commit may wait for others."""
        ...

    def heard_from(self, group_id: str, member_id: str, now_ms: int) -> None:
        """A member, or a client that is no member, commits outside of transactions."""
        ...

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Whether this member, or a client that is no member, may read offsets."""
        ...

    def is_owner(self, group_id: str, member_id: str, topic_id: UUID, partition: int) -> bool:
        """Whether the member has the partition, or a share of it, and has not given it up."""
        ...

    def check_deletion(self, group_id: str) -> None:
        """Whether offsets of topics that members do not read may be deleted."""
        ...

    def is_read(self, group_id: str, topic_name: str) -> bool:
        """Whether members read the topic, so that its offsets may not be deleted."""
        ...

    def retained_since_ms(self, group_id: str, topic_name: str) -> int | Retained:
        """The time (monotonic) from which the retention of the group's offsets of a topic counts."""
        ...

    def unused_tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        """The records that delete a group without members, once its last offset is gone; empty if the group
        stays.
        """
        ...
