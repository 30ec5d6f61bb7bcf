"""What has to be replayed of a partition of `__share_group_state`: for each share-partition its newest
snapshot, and the updates behind it.

What a later snapshot stands for is told by the keys alone and never decoded, which after a crash is most of
what a busy partition holds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.coordinator.runtime.interfaces import Stored, StoredMarker, StoredRecord
from barnabas.protocol.share_state_records import (
    ShareStateRecord,
    decode_share_state_record,
    share_state_kind,
)


def records_in_force(stored: Iterable[Stored]) -> Iterator[tuple[ShareStateRecord, int]]:
    """(record, offset) of what is in force among all that a log holds, oldest first.

    Tombstones are among them: the last one may be the newest record. RecordFormatError if one is malformed.
    """
    in_force: dict[bytes, list[StoredRecord]] = {}
    for record in stored:
        if isinstance(record, StoredMarker):
            continue
        kind = None if record.key is None else share_state_kind(record.key)
        if kind is None:
            continue
        is_update, identity = kind
        if is_update:
            in_force.setdefault(identity, []).append(record)
        else:
            in_force[identity] = [record]
    for record in sorted(record for records in in_force.values() for record in records):
        assert record.key is not None
        decoded = decode_share_state_record(record.key, record.value)
        assert decoded is not None
        yield decoded, record.offset
