"""That records produced to a compacted topic have keys (Kafka's LogValidator): without one nothing is the
latest of anything.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from barnabas.protocol.batch_body import CHECKED_BYTES_MAX, batch_body
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import BatchHeader, ProducedBatch
from barnabas.protocol.record_walk import RECORDS_PER_STEP, record_spans
from barnabas.protocol.varint import Buffer, RecordFormatError

RECORD_ERRORS_MAX = 100
"""So many of the records at fault are named in the answer."""
_NO_KEY = "A compacted topic takes no record without a key."


class RecordsRejected(ApiError):  # noqa: N818  named as the condition
    """Some records of a batch aren't taken, and so none of it is."""

    def __init__(
        self,
        message: str,
        record_errors: Sequence[tuple[int, str]],
        code: ErrorCode = ErrorCode.invalid_record,
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
        """(index in the batch, why) of the first ones, for Produce from version 8 on (KIP-467)."""


def check_keys(records: Buffer, batches: Sequence[ProducedBatch]) -> Generator[None, None, None]:
    """Raises RecordsRejected for a record without a key, ApiError for records that cannot be read; in steps.

    `batches` are those that `validate_produced` found in `records`.
    """
    for position, header in batches:
        batch = memoryview(records)[position : position + header.size_bytes]
        try:
            keyless_count, first = yield from _keyless(batch, header)
        except RecordFormatError as error:
            raise ApiError(ErrorCode.invalid_record, f"The records cannot be read: {error}") from error
        if keyless_count:
            raise RecordsRejected(
                f"{keyless_count} of {header.record_count} records have no key.",
                [(index, _NO_KEY) for index in first],
            )


def _keyless(batch: Buffer, header: BatchHeader) -> Generator[None, None, tuple[int, list[int]]]:
    """How many there are, and which are the first ones."""
    count, first = 0, list[int]()
    body = batch_body(batch, header, decompressed_bytes_max=CHECKED_BYTES_MAX)
    for index, span in enumerate(record_spans(body, header.record_count)):
        if span.key is None:
            count += 1
            if count <= RECORD_ERRORS_MAX:
                first.append(index)
        if not index % RECORDS_PER_STEP:
            yield
    return count, first
