"""That the times of produced records lie within what their topic takes (message.timestamp.before.max.ms and
message.timestamp.after.max.ms, KIP-937).

A batch's header tells its latest time, so that records are looked at only to say which of them are wrong, or
if the past is bounded, which it isn't by default.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from barnabas.protocol.batch_body import CHECKED_BYTES_MAX, batch_body
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import BatchHeader, ProducedBatch
from barnabas.protocol.record_keys import RECORD_ERRORS_MAX, RecordsRejected
from barnabas.protocol.record_walk import RECORDS_PER_STEP, record_spans
from barnabas.protocol.varint import Buffer, RecordFormatError

_NO_TIMESTAMP = -1


class TimeBounds(NamedTuple):
    """The earliest and the latest time that a record may have, both inclusive, in wall ms; an `earliest_ms`
    of None is no bound.
    """

    earliest_ms: int | None
    latest_ms: int


def check_times(
    records: Buffer, batches: Sequence[ProducedBatch], bounds: TimeBounds
) -> Generator[None, None, None]:
    """Raises RecordsRejected (INVALID_TIMESTAMP) for times out of bounds, ApiError for records that cannot be
    read; in steps.

    `batches` are those that `validate_produced` found in `records`. A record without a time passes.
    """
    for position, header in batches:
        if bounds.earliest_ms is None and header.max_timestamp_ms <= bounds.latest_ms:
            continue
        batch = memoryview(records)[position : position + header.size_bytes]
        try:
            wrong = yield from _out_of_bounds(batch, header, bounds)
        except RecordFormatError as error:
            raise ApiError(ErrorCode.invalid_record, f"The records cannot be read: {error}") from error
        if wrong:
            raise RecordsRejected(
                "One or more records have been rejected due to invalid timestamp",
                wrong,
                ErrorCode.invalid_timestamp,
            )
        if header.max_timestamp_ms > bounds.latest_ms:
            raise ApiError(
                ErrorCode.invalid_timestamp,
                f"The timestamp {header.max_timestamp_ms} is later than {bounds.latest_ms}, the latest.",
            )


def _out_of_bounds(
    batch: Buffer, header: BatchHeader, bounds: TimeBounds
) -> Generator[None, None, list[tuple[int, str]]]:
    """The first ones, with what is wrong about them."""
    wrong: list[tuple[int, str]] = []
    earliest_ms, latest_ms = bounds
    body = batch_body(batch, header, decompressed_bytes_max=CHECKED_BYTES_MAX)
    for index, span in enumerate(record_spans(body, header.record_count)):
        time_ms = header.base_timestamp_ms + span.timestamp_delta_ms
        is_early = earliest_ms is not None and time_ms < earliest_ms
        if (is_early or time_ms > latest_ms) and time_ms != _NO_TIMESTAMP:
            allowed = f"[{'any' if earliest_ms is None else earliest_ms}, {latest_ms}]"
            offset = header.base_offset + span.offset_delta
            message = f"Timestamp {time_ms} of message with offset {offset} is out of range."
            wrong.append((index, f"{message} The timestamp should be within {allowed}"))
            if len(wrong) == RECORD_ERRORS_MAX:
                break
        if not index % RECORDS_PER_STEP:
            yield
    return wrong
