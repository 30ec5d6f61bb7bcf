"""The module in Python, for installations without the native one: the same facts and faults."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.record_facts.shapes import RecordFacts
from barnabas.protocol.record_walk import faults
from barnabas.protocol.record_walk.cursor import BytesCursor, RecordCursor, RecordFaultError
from barnabas.protocol.record_walk.shapes import unreadable
from barnabas.protocol.varint import Buffer

IS_NATIVE: Final = False


def record_facts(body: Buffer, record_count: int, header_name: bytes | None) -> RecordFacts:
    """The facts of all records of a batch's uncompressed body. RecordFormatError for a malformed record.

    Headers are read only if `header_name` is given. Kafka allows several headers of one name; the last one
    counts, as in `Headers.lastHeader`.
    """
    data = memoryview(body).cast("B")
    cursor = BytesCursor(data, 0, len(data))
    found = RecordFacts([], [], [])
    for index in range(record_count):
        try:
            record = RecordCursor(cursor)
            value = None if header_name is None else _last_header(record, header_name)
        except RecordFaultError as error:
            raise unreadable(index, record_count, error.fault) from None
        found.offset_deltas.append(record.offset_delta)
        found.timestamp_deltas_ms.append(record.timestamp_delta_ms)
        found.header_values.append(value)
    if cursor.left:
        raise unreadable(record_count, record_count, faults.BYTES_BEHIND_BATCH)
    return found


def _last_header(record: RecordCursor, wanted: bytes) -> bytes | None:
    record.skip()  # the key
    record.skip()  # the value
    last = None
    for name, value in record.headers():
        if name == wanted:
            last = value
    return last
