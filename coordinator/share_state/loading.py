"""Selects the records to replay of a partition of `__share_group_state`: for each share-partition its newest
snapshot, and the updates after it.

Older records are recognised by their keys and never decoded. After a crash they are most of a busy
partition's records. Pure.
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
    """The records in force among those that were added, oldest first."""

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

        Tombstones are included, because the newest record may be one.
        """
        for record in sorted(record for records in self._by_identity.values() for record in records):
            assert record.key is not None
            decoded = decode_share_state_record(record.key, record.value)
            assert decoded is not None
            yield decoded, record.offset
