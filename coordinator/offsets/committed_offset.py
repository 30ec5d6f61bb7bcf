"""One committed offset and its key."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.classic_group_records import NO_TIMESTAMP, NO_TOPIC_ID


class OffsetKey(NamedTuple):
    """The key of an offset."""

    group_id: str
    topic_name: str
    partition: int


class CommittedOffset(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    """Monotonic. Its record has the time of day."""
    expires_at_ms: int = NO_TIMESTAMP
    """A time of day that an older Kafka has recorded, at which this offset expires; -1 if the retention of
    the broker applies.
    """
    topic_id: UUID = NO_TOPIC_ID
    log_offset: int = -1
    """Its record's offset in the log. Of two for one key the later one is in force, also if it belongs to a
    transaction that ended after the commit of the other.
    """
    keeps_ranges: bool = False
    """Whether ranges beyond it that were committed individually stay committed."""

    def is_for(self, topic_id: UUID) -> bool:
        """Whether it belongs to this topic; an unknown id on either side matches."""
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id
