"""The keys of the records in a batch, as far as they are known at a bounded price. Pure."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.batch_body import bounded_body
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.record_keys import KeyHashes, key_hashes
from barnabas.protocol.varint import Buffer

NO_KEYS: Final = KeyHashes([], [])


def keys_of_batch(
    batch: Buffer, header: BatchHeader, *, records_max: int, inflated_bytes_max: int
) -> KeyHashes | None:
    """The hashes of a whole batch; none for control records, which have no keys.

    None if the batch has more records than `records_max`, or if it is compressed and inflates to more than
    `inflated_bytes_max`. Raises RecordFormatError for a malformed record.
    """
    if header.is_control:
        return NO_KEYS
    body = bounded_body(batch, header, records_max=records_max, inflated_bytes_max=inflated_bytes_max)
    return None if body is None else key_hashes(body, header.record_count)
