"""The errors for the refused records of a produced batch (LogValidator of Apache Kafka).

`record_walk` walks over the records; `record_batch.validate_produced` has checked the batch's header before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.record_walk import RecordRules, RecordsCheck, RejectedRecord, faults

_NO_KEY: Final = "A compacted topic accepts no record without a key."
_WRONG_TIMES: Final = "One or more records have been rejected due to invalid timestamp"


class RecordsRejected(ApiError):  # noqa: N818  named as the condition
    """Some records of a batch are refused, and so is the whole batch."""

    def __init__(
        self,
        message: str,
        record_errors: Sequence[tuple[int, str]],
        code: ErrorCode = ErrorCode.invalid_record,
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
        """(index in the batch, reason) of the first refused records, for Produce from version 8 on
        (KIP-467)."""


def refuse_records(header: BatchHeader, check: RecordsCheck, rules: RecordRules) -> None:
    """Raises RecordsRejected if the check found a malformed record, or a record that breaks the rules."""
    if check.is_sound:
        return
    if check.fault:
        raise _malformed(header, check)
    errors = [(record.record_index, _reason(header, record, rules)) for record in check.rejected]
    if any(record.fault == faults.TIME_OUT_OF_RANGE for record in check.rejected):
        raise RecordsRejected(_WRONG_TIMES, errors, ErrorCode.invalid_timestamp)
    raise RecordsRejected(f"{check.rejected_count} of {header.record_count} records have no key.", errors)


def described(header: BatchHeader) -> str:
    """A description of the batch, for the beginning of a sentence."""
    batch = f"The batch of {header.record_count} records"
    if header.producer_id < 0:
        return batch
    return f"{batch} from producer {header.producer_id} with sequence {header.base_sequence}"


def _malformed(header: BatchHeader, check: RecordsCheck) -> RecordsRejected:
    if check.fault == faults.BYTES_BEHIND_BATCH:
        return RecordsRejected(f"{described(header)} has bytes after its last record.", ())
    fault = faults.RECORD_FAULTS[check.fault]
    message = f"{described(header)} is malformed: its record {check.record_index} {fault}."
    return RecordsRejected(message, [(check.record_index, f"The record {fault}.")])


def _reason(header: BatchHeader, rejected: RejectedRecord, rules: RecordRules) -> str:
    if rejected.fault == faults.KEY_MISSING:
        return _NO_KEY
    assert rules.times is not None, "only checked times are out of range"
    earliest_ms, latest_ms = rules.times
    offset = header.base_offset + rejected.record_index
    message = f"Timestamp {rejected.timestamp_ms} of message with offset {offset} is out of range."
    return f"{message} The timestamp should be within [{earliest_ms}, {latest_ms}]"
