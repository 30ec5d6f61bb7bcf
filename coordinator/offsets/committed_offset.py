"""One offset that a group has committed, and for what."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.classic_group_records import NO_TIMESTAMP, NO_TOPIC_ID


class OffsetKey(NamedTuple):
    """What an offset is committed for."""

    group_id: str
    topic_name: str
    partition: int


class CommittedOffset(NamedTuple):
    """A committed offset; times are of the day, `expires_at_ms` -1 where retention decides."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int = NO_TIMESTAMP
    topic_id: UUID = NO_TOPIC_ID
    log_offset: int = -1
    """Where its record stands in the log: of two for one key the later one counts, also if it belongs to a
    transaction that ended after the other was committed."""

    def is_for(self, topic_id: UUID) -> bool:
        """Whether it belongs to this topic, as far as either id is known."""
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id
