"""The keys and priorities of the records in a share group's reads, for groups with `share.order=key`, with
`share.priority.header`, or with both.

Each batch is looked at once, when its records come in flight. A batch that inflates beyond a bound, or has
very many records, is not. In the order of keys it is delivered alone, so that its order needs no keys.
Without that order its records have priority 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.batch_body import bounded_body
from barnabas.protocol.batch_keys import NO_KEYS
from barnabas.protocol.record_batch import BatchHeader, read_header
from barnabas.protocol.record_facts import RecordFacts, record_facts
from barnabas.protocol.record_keys import IS_NATIVE, NO_KEY, KeyHashes, key_hashes
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.share.leader.unreadable_batches import UnreadableBatch
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.priorities import PRIORITY_MAX
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan

HASHED_BYTES_MAX: Final = 4 * 1024 * 1024
"""A compressed batch that inflates to more is delivered alone."""
HASHED_RECORDS_MAX: Final = 50_000 if IS_NATIVE else 2_000
"""A batch with more records is delivered alone: hashing these takes 10 ms, and their keys up to 10 MB."""

_PRIORITY_OF: Final[dict[bytes | None, int]] = {
    None: 0,
    **{b"%d" % priority: priority for priority in range(PRIORITY_MAX + 1)},
}


class InvalidPriority(NamedTuple):
    """A record whose header has a value that is not a digit."""

    offset: int
    value: bytes


class FoundKeys(NamedTuple):
    """The keys of batches, and the faults in them."""

    keys: list[BatchKeys]
    malformed: list[UnreadableBatch]
    """Batches that turned out to be malformed; they have no keys."""
    invalid: list[InvalidPriority]
    """Records from `keys_until` on with an invalid priority."""


def keys_of_batches(
    read: Sequence[BatchSlice],
    keys_until: int,
    unreadable: Sequence[UnreadableBatch],
    limits: ShareLimits,
) -> FoundKeys:
    """The keys and the priorities, as the group's limits ask for them, of the batches that were read and end
    at or behind `keys_until`. `unreadable` are known to be malformed; they have no keys.

    An earlier batch is included if it lacks records: compaction may have removed them since it was looked at.
    """
    found = FoundKeys([], [], [])
    gone = {batch.base_offset for batch in unreadable}
    for data, span in _spans(read):
        header = read_header(data, span.start)
        has_gaps = header.record_count <= span.last_offset - span.base_offset
        if span.last_offset < keys_until and not has_gaps:
            continue
        facts = _NO_FACTS
        if span.base_offset not in gone and not header.is_control:
            try:
                facts = _facts(data[span.start : span.end], header, limits)
            except RecordFormatError as error:
                reason = str(error).rstrip(".")
                found.malformed.append(UnreadableBatch(span.base_offset, span.last_offset, reason))
        keys, priorities, invalid = facts
        if invalid:
            at_offsets = (InvalidPriority(span.base_offset + delta, value) for delta, value in invalid)
            found.invalid.extend(priority for priority in at_offsets if priority.offset >= keys_until)
        found.keys.append(BatchKeys(span.base_offset, span.last_offset, keys, priorities))
    return found


_Facts = tuple[KeyHashes | None, bytes, Sequence[tuple[int, bytes]]]
"""The keys and priorities of one batch, and (offset delta, value) of its invalid priorities."""

_NO_FACTS: Final[_Facts] = (NO_KEYS, b"", ())


def _facts(batch: Buffer, header: BatchHeader, limits: ShareLimits) -> _Facts:
    """Raises RecordFormatError for a malformed record."""
    body = bounded_body(batch, header, records_max=HASHED_RECORDS_MAX, inflated_bytes_max=HASHED_BYTES_MAX)
    if body is None:
        return None if limits.key_run_max else _without_keys_if_complete(header), b"", ()
    keys = key_hashes(body, header.record_count) if limits.key_run_max else None
    if not limits.priority.header_name:
        return keys, b"", ()
    found = record_facts(body, header.record_count, limits.priority.header_name.encode())
    if keys is None:
        keys = KeyHashes(found.offset_deltas, [NO_KEY] * header.record_count)
    return _with_priorities(keys, found)


def _with_priorities(keys: KeyHashes, found: RecordFacts) -> _Facts:
    priorities = list(map(_PRIORITY_OF.get, found.header_values))
    invalid: list[tuple[int, bytes]] = []
    if None in priorities:
        invalid = [
            (delta, value)
            for delta, value in zip(found.offset_deltas, found.header_values, strict=True)
            if value is not None and value not in _PRIORITY_OF
        ]
    if not any(priorities):
        return keys, b"", invalid
    return keys, bytes(priority or 0 for priority in priorities), invalid


def _without_keys_if_complete(header: BatchHeader) -> KeyHashes | None:
    """A record without a key for each offset of a batch that was not read; None if some are missing."""
    offset_count = header.last_offset_delta + 1
    if header.record_count != offset_count or offset_count > HASHED_RECORDS_MAX:
        return None
    return KeyHashes(list(range(offset_count)), [NO_KEY] * offset_count)


def _spans(read: Sequence[BatchSlice]) -> Iterator[tuple[memoryview, BatchSpan]]:
    for slice_ in read:
        for span in slice_.batches:
            yield slice_.data, span
