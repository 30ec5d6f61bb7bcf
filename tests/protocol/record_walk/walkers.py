"""Both walkers, and a comparison of all their results for one body."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from barnabas.protocol.record_batch import encode_record
from barnabas.protocol.record_walk import RecordRules, RecordsCheck, RecordSpan, _native, _python
from barnabas.protocol.varint import RecordFormatError, zigzag_varint

WALKERS: Final[list[ModuleType]] = [_python, _native]
WALKER_NAMES: Final = ["python", "native"]
NOW_MS: Final = 1_700_000_000_000
NO_RULES: Final = RecordRules(keys_required=False, times=None, record_bytes_max=2**31 - 1)
STRICT: Final = RecordRules(keys_required=True, times=(NOW_MS - 5, NOW_MS + 5), record_bytes_max=200)

Spans = tuple[list[RecordSpan], str | None]


def record(
    offset_delta: int = 0,
    timestamp_delta_ms: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: bytes = b"\0",
) -> bytes:
    return encode_record(offset_delta, timestamp_delta_ms, key, value, headers)


def framed(content: bytes) -> bytes:
    """Any content with its length in front."""
    return zigzag_varint(len(content)) + content


def spans_of(walker: ModuleType, body: bytes, record_count: int) -> Spans:
    """The spans before an error, and the error."""
    spans: list[RecordSpan] = []
    try:
        spans.extend(walker.record_spans(body, record_count))
    except RecordFormatError as error:
        return spans, str(error)
    return spans, None


def compare_walkers(
    body: bytes, record_count: int, rules: RecordRules = NO_RULES, base_timestamp_ms: int = NOW_MS
) -> RecordsCheck:
    """The result of both walkers, after asserting that they are equal."""
    python, native = (
        walker.check_records(body, record_count, base_timestamp_ms, rules) for walker in WALKERS
    )
    assert native == python
    spans, _ = spans_of(_native, body, record_count)
    assert spans_of(_python, body, record_count) == spans_of(_native, body, record_count)
    if not python.fault:
        assert len(spans) == max(record_count, 0)
    return RecordsCheck(*python)
