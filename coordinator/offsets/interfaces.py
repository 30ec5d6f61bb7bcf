"""What committed offsets need of the groups that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.offsets.requests import CommitRequest


class OffsetRules(Protocol):
    """What one type of group says of its offsets; refusals are raised as ApiError.

    Those of classic groups are asked, too, where there is no group: a commit makes a simple one.
    """

    def group_ids(self) -> Iterable[str]:
        """Those of all groups of the type."""
        ...

    def exists(self, group_id: str) -> bool: ...

    def check_commit(self, request: CommitRequest, *, in_transaction: bool) -> None:
        """Whether these offsets may be committed now."""
        ...

    def heard_from(self, group_id: str, member_id: str, now_ms: int) -> None:
        """A member, or nobody, commits outside of transactions."""
        ...

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Whether this member, or nobody, may read offsets."""
        ...

    def check_deletion(self, group_id: str) -> None:
        """Whether offsets of topics that aren't read may be deleted."""
        ...

    def is_read(self, group_id: str, topic_name: str) -> bool:
        """Whether members read the topic, so that its offsets may not be deleted."""
        ...

    def retained_since_ms(self, group_id: str, topic_name: str) -> int | None:
        """From when on, by the time of day, the retention of what the group has committed for a topic counts;
        NO_TIMESTAMP if it does from each commit, None while it doesn't end."""
        ...

    def unused_tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        """What removes a group with nobody in it, once its last offset has gone; nothing if it stays."""
        ...
