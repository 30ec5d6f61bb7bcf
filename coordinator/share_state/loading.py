"""What has to be replayed of a partition of `__share_group_state`: for each share-partition its newest
snapshot, and the updates behind it.

What a later snapshot stands for is told by the keys alone and never decoded, which after a crash is most of
what a busy partition holds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.coordinator.replay.interfaces import Stored, StoredMarker, StoredRecord
from barnabas.protocol.share_state_records import (
    ShareStateRecord,
    decode_share_state_record,
    share_state_kind,
)


class RecordsInForce:
    """What is in force among all that a log holds, which is added oldest first."""

    def __init__(self) -> None:
        self._by_identity: dict[bytes, list[StoredRecord]] = {}

    def add(self, stored: Stored) -> None:
        """RecordFormatError if its key is malformed."""
        if isinstance(stored, StoredMarker):
            return
        kind = None if stored.key is None else share_state_kind(stored.key)
        if kind is None:
            return
        is_update, identity = kind
        if is_update:
            self._by_identity.setdefault(identity, []).append(stored)
        else:
            self._by_identity[identity] = [stored]

    def decoded(self) -> Iterator[tuple[ShareStateRecord, int]]:
        """(record, offset), oldest first; RecordFormatError if one is malformed.

        Tombstones are among them: the last one may be the newest record.
        """
        for record in sorted(record for records in self._by_identity.values() for record in records):
            assert record.key is not None
            decoded = decode_share_state_record(record.key, record.value)
            assert decoded is not None
            yield decoded, record.offset
