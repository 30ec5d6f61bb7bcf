"""What consumer groups need from outside: the topics by name, and the classic groups beside them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.requests import Moment
from barnabas.coordinator.group.steps import Steps
from barnabas.coordinator.replay.interfaces import TopicCatalog


class TopicDirectory(TopicCatalog, Protocol):
    """The topics, and when the last one came."""

    def topic_names(self) -> Collection[str]:
        """All names, at any time."""
        ...

    def version(self) -> int:
        """The offset in the metadata log as of which this is."""
        ...


class ClassicGroups(Protocol):
    """The classic groups, one of which a consumer group may come from, or become."""

    def find(self, group_id: str) -> ClassicGroup | None:
        """The group, if there is one."""
        ...

    def release(self, group: ClassicGroup) -> None:
        """The group is none of the classic ones any more: who waits is told to join again."""
        ...

    def adopt(self, group: ClassicGroup, moment: Moment, *, rebalance: bool) -> Steps[None]:
        """Keep a group that has just been written, with its members' sessions; let them join if they must."""
        ...
