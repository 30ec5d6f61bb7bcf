"""The walkers' results for well-formed and malformed records; each test runs with both walkers."""

from __future__ import annotations

from types import ModuleType

import pytest

from barnabas.protocol.record_walk import (
    NO_TIMESTAMP,
    RECORD_ERRORS_MAX,
    RECORDS_PER_STEP,
    RecordRules,
    RecordsCheck,
    RejectedRecord,
    _python,
    check_in_steps,
    faults,
)
from barnabas.protocol.varint import zigzag_varint
from tests.protocol.record_walk.walkers import (
    NO_RULES,
    NOW_MS,
    STRICT,
    WALKER_NAMES,
    WALKERS,
    framed,
    record,
    spans_of,
)

both = pytest.mark.parametrize("walker", WALKERS, ids=WALKER_NAMES)

MAX = zigzag_varint(2**31 - 1)
HEAD = b"\0\0\0"
"""Attributes and both deltas."""

MALFORMED: dict[str, tuple[bytes, int, int, int]] = {
    "no records": (b"", 1, faults.RECORD_MISSING, 0),
    "a record less": (record() + record(1), 3, faults.RECORD_MISSING, 2),
    "a record more": (record() + record(1), 1, faults.BYTES_BEHIND_BATCH, 1),
    "a byte more": (record() + b"\0", 1, faults.BYTES_BEHIND_BATCH, 1),
    "all bits": (b"\xff" * 20, 1, faults.INTEGER_TOO_LONG, 0),
    "zeros": (bytes(20), 1, faults.FIELD_CUT, 0),
    "a length of 0": (b"\0" + record(), 1, faults.FIELD_CUT, 0),
    "a negative length": (zigzag_varint(-3) + record(), 1, faults.FIELD_CUT, 0),
    "a length beyond the body": (MAX + record(), 1, faults.FIELD_CUT, 0),
    "a length of 33 bits": (bytes([record()[0] | 0x80]) + b"\x80\x80\x80\x10" + record()[1:], 1, 2, 0),
    "a length that is too short": (bytes([record()[0] - 2]) + record()[1:], 1, faults.FIELD_CUT, 0),
    "a length that is too long": (bytes([record()[0] + 2]) + record()[1:] + b"\0", 1, 5, 0),
    "a huge key": (framed(HEAD + MAX + b"\1\0"), 1, faults.FIELD_CUT, 0),
    "a huge value": (framed(HEAD + b"\1" + MAX + b"\0"), 1, faults.FIELD_CUT, 0),
    "no header count": (framed(HEAD + b"\1\1"), 1, faults.FIELD_CUT, 0),
    "a negative header count": (framed(HEAD + b"\1\1\1"), 1, faults.FIELD_CUT, 0),
    "more headers than bytes": (framed(HEAD + b"\1\1\x0a"), 1, faults.FIELD_CUT, 0),
    "a header without a name": (record() + record(1, headers=b"\2\1\1"), 2, faults.HEADER_WITHOUT_NAME, 1),
    "a header without a value": (record(headers=b"\2\2n"), 1, faults.FIELD_CUT, 0),
    "bytes after the headers": (record(headers=b"\0x"), 1, faults.BYTES_BEHIND, 0),
    "an offset twice": (record() + record(), 2, faults.OFFSET_ASTRAY, 1),
    "an offset left out": (record() + record(2), 2, faults.OFFSET_ASTRAY, 1),
    "a first offset above 0": (record(5), 1, faults.OFFSET_ASTRAY, 0),
    "a negative offset": (record(-1), 1, faults.OFFSET_ASTRAY, 0),
    "a time of 65 bits": (framed(b"\0" + b"\x80" * 9 + b"\2\0\1\1\0"), 1, faults.INTEGER_TOO_LONG, 0),
    "a time of 11 bytes": (framed(b"\0" + b"\x80" * 10 + b"\0\0\1\1\0"), 1, faults.INTEGER_TOO_LONG, 0),
}
"""By name: the body of a batch, the number of records that it states, the fault, and the faulty record's
index."""

HARMLESS: dict[str, bytes] = {
    "nulls": record(key=None, value=None),
    "a negative key length": framed(HEAD + zigzag_varint(-7) + b"\1\0"),
    "a negative value length": framed(HEAD + b"\1" + zigzag_varint(-5) + b"\0"),
    "a header with an empty name and no value": record(headers=b"\2\0\1"),
    "a header whose name isn't UTF-8": record(headers=b"\2\2\xff\1"),
    "attributes": framed(b"\7\0\0\1\1\0"),
    "a length in more bytes than it needs": bytes([record()[0] | 0x80]) + b"\x80\x80\x80\0" + record()[1:],
    "a time in more bytes than it needs": framed(b"\0" + b"\x80" * 9 + b"\0\0\1\1\0"),
}
"""Oddities that Apache Kafka also accepts, and that its clients read."""


@both
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_record_is_found(walker: ModuleType, name: str) -> None:
    body, record_count, fault, index = MALFORMED[name]
    found = walker.check_records(body, record_count, NOW_MS, NO_RULES)
    assert (found.fault, found.record_index) == (fault, index)


@both
@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_oddity_is_accepted(walker: ModuleType, name: str) -> None:
    assert walker.check_records(HARMLESS[name], 1, NOW_MS, NO_RULES) == RecordsCheck(0, 1, NOW_MS, 0, ())


@both
def test_the_latest_time_is_returned(walker: ModuleType) -> None:
    body = record(0, -9) + record(1, 7) + record(2, 3)
    assert walker.check_records(body, 3, NOW_MS, NO_RULES).max_timestamp_ms == NOW_MS + 7
    assert walker.check_records(record(), 1, -5, NO_RULES).max_timestamp_ms == NO_TIMESTAMP


@both
def test_records_that_break_a_rule_are_named_with_their_times(walker: ModuleType) -> None:
    body = record(0, key=None) + record(1, -6) + record(2, 5) + record(3, 6) + record(4, 6, key=None)
    found = walker.check_records(body, 5, NOW_MS, STRICT)
    assert (found.fault, found.rejected_count) == (0, 4)
    assert found.rejected == (
        RejectedRecord(0, faults.KEY_MISSING, NOW_MS),
        RejectedRecord(1, faults.TIME_OUT_OF_RANGE, NOW_MS - 6),
        RejectedRecord(3, faults.TIME_OUT_OF_RANGE, NOW_MS + 6),
        RejectedRecord(4, faults.KEY_MISSING, NOW_MS + 6),
    )


@both
def test_only_the_first_rejected_records_are_named(walker: ModuleType) -> None:
    count = RECORD_ERRORS_MAX + 7
    body = b"".join(record(index, key=None) for index in range(count))
    found = walker.check_records(body, count, NOW_MS, STRICT)
    assert found.rejected_count == count
    assert [rejected.record_index for rejected in found.rejected] == list(range(RECORD_ERRORS_MAX))


@both
def test_a_malformed_record_hides_rejected_ones(walker: ModuleType) -> None:
    found = walker.check_records(record(key=None) + b"\0", 2, NOW_MS, STRICT)
    assert found == RecordsCheck(faults.FIELD_CUT, 1, NOW_MS, 0, ())


@both
def test_a_record_without_a_time_passes(walker: ModuleType) -> None:
    assert walker.check_records(record(), 1, NO_TIMESTAMP, STRICT).rejected_count == 0


@both
@pytest.mark.parametrize(
    ("base_ms", "delta_ms", "told_ms"),
    [
        (2**63 - 1, 1, -(2**63)),
        (-(2**63), -1, 2**63 - 1),
        (2**63 - 1, 2**63 - 1, -2),
        (2**63 - 1, -(2**63), -1),
        (-(2**63), 0, -(2**63)),
    ],
)
def test_a_time_beyond_64_bits_is_out_of_range(
    walker: ModuleType, base_ms: int, delta_ms: int, told_ms: int
) -> None:
    rules = STRICT._replace(times=(-(2**62), 2**62))
    found = walker.check_records(record(0, delta_ms), 1, base_ms, rules)
    expected = () if told_ms == -1 else (RejectedRecord(0, faults.TIME_OUT_OF_RANGE, told_ms),)
    assert found.rejected == expected


@both
def test_times_may_be_left_unchecked(walker: ModuleType) -> None:
    assert walker.check_records(record(0, 1), 1, 2**63 - 1, NO_RULES).rejected_count == 0


@both
def test_the_size_of_a_record_is_bounded_without_its_length(walker: ModuleType) -> None:
    body = record(value=bytes(300))
    size = len(body) - 2
    for bytes_max, fault in ((size, 0), (size - 1, faults.RECORD_TOO_LARGE)):
        rules = RecordRules(keys_required=False, times=None, record_bytes_max=bytes_max)
        assert walker.check_records(body, 1, NOW_MS, rules).fault == fault


@both
def test_an_unreadable_record_has_its_own_fault_at_any_size(walker: ModuleType) -> None:
    too_long_integer = b"\xfe" + b"\xff" * 8 + b"\1"
    content = b"\0\0" + too_long_integer + b"\0\6\0\0\0\6"
    rules = NO_RULES._replace(record_bytes_max=len(content) - 1)
    body = bytes([2 * len(content)]) + content
    assert walker.check_records(body, 1, NOW_MS, rules).fault == faults.INTEGER_TOO_LONG


@both
def test_spans_have_the_positions_of_value_and_headers(walker: ModuleType) -> None:
    body = record(value=b"value", headers=b"\2\2n\1") + record(1, value=None)
    (first, second), error = spans_of(walker, body, 2)
    assert error is None
    assert (body[first.value_start : first.headers], body[first.headers : first.end]) == (
        b"value",
        b"\2\2n\1",
    )
    assert (second.has_value, body[second.headers : second.end]) == (False, b"\0")


def test_the_walker_in_python_pauses() -> None:
    count = 3 * RECORDS_PER_STEP
    body = b"".join(record(index) for index in range(count))
    steps = _python.check_in_steps(body, count, NOW_MS, NO_RULES)
    assert len(list(steps)) == 3


def test_the_native_walker_does_not_pause() -> None:
    body = b"".join(record(index) for index in range(3 * RECORDS_PER_STEP))
    assert list(check_in_steps(body, 3 * RECORDS_PER_STEP, NOW_MS, NO_RULES)) == []
