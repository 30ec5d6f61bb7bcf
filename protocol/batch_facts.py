"""The facts of the records in a batch, as far as they are known at a bounded price. Pure."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.batch_body import bounded_body
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.record_facts import RecordFacts, record_facts
from barnabas.protocol.varint import Buffer

NO_FACTS: Final = RecordFacts([], [], [])


def facts_of_batch(
    batch: Buffer,
    header: BatchHeader,
    header_name: bytes | None,
    *,
    records_max: int,
    inflated_bytes_max: int,
) -> RecordFacts | None:
    """The facts of a whole batch; none for control records, which no application reads.

    In a batch with the time of its append (LogAppendTime), each record has the batch's largest timestamp.
    None if the batch has more records than `records_max`, or if it is compressed and inflates to more than
    `inflated_bytes_max`. Raises RecordFormatError for a malformed record.
    """
    if header.is_control:
        return NO_FACTS
    body = bounded_body(batch, header, records_max=records_max, inflated_bytes_max=inflated_bytes_max)
    if body is None:
        return None
    found = record_facts(body, header.record_count, header_name)
    if header.log_append_time:
        append_delta_ms = header.max_timestamp_ms - header.base_timestamp_ms
        return found._replace(timestamp_deltas_ms=[append_delta_ms] * len(found.offset_deltas))
    return found
