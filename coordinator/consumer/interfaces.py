"""The needs of consumer groups: the topics by name, and the classic groups."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.runtime.moment import Moment


class TopicDirectory(TopicCatalog, Protocol):
    """The topics, with a version."""

    def topic_names(self) -> Collection[str]:
        """All names; may be read at any time."""
        ...

    def version(self) -> int:
        """The offset of this state in the metadata log."""
        ...


class PendingCommits(Protocol):
    """The individual commits in open transactions."""

    def pending_committers(
        self, group_id: str, topic_name: str, topic_id: UUID, partition: int
    ) -> Collection[str]:
        """The ids of the members with such a commit for the partition."""
        ...


class ClassicGroups(Protocol):
    """The classic groups; a group may change from one type to the other."""

    def find(self, group_id: str) -> ClassicGroup | None:
        """The group, if there is one."""
        ...

    def release(self, group: ClassicGroup) -> None:
        """The group is no longer a classic one: members that wait get REBALANCE_IN_PROGRESS."""
        ...

    def adopt(self, decided: ClassicGroup, moment: Moment, *, rebalance: bool) -> Steps[None]:
        """The records of this group were replayed: begin its members' sessions, and a rebalance if asked."""
        ...
