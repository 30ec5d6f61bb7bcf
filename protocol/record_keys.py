"""That records produced to a compacted topic have keys (Kafka's LogValidator): without one nothing is the
latest of anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import ProducedBatch
from barnabas.protocol.record_spans import batch_body, record_spans
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


def check_keys(records: Buffer, batches: Sequence[ProducedBatch]) -> None:
    """Raises RecordsRejected for a record without a key, ApiError for records that cannot be read.

    `batches` are those that `validate_produced` found in `records`.
    """
    for position, header in batches:
        batch = memoryview(records)[position : position + header.size_bytes]
        try:
            spans = record_spans(batch_body(batch, header), header.record_count)
            keyless = [index for index, span in enumerate(spans) if span.key is None]
        except RecordFormatError as error:
            raise ApiError(ErrorCode.invalid_record, f"The records cannot be read: {error}") from error
        if keyless:
            raise RecordsRejected(
                f"{len(keyless)} of {header.record_count} records have no key.",
                [(index, _NO_KEY) for index in keyless[:RECORD_ERRORS_MAX]],
            )
