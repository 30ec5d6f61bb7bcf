"""The look at the times of records in a read: delays, headers, expiry, the gate, and its bounds."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.delivery_state import Cause, Due
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.record_keys import KeyHashes
from barnabas.protocol.records import Record, encode_records
from barnabas.share.leader import batch_keys
from barnabas.share.leader.timed_reads import (
    Gate,
    TimedRead,
    batches_before,
    keys_before,
    look_at_times,
)
from barnabas.share.partition.arrival import TimedPart
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import RecordTiming
from barnabas.share.partition.waits import DUE_STEP_MS, WAIT_MS_MAX
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan
from tests.pipeline.decoding.batches import COMMIT, marker

NOW_MS = 1_000_000
TTL_MS = 10_000
EXPIRED = Cause.EXPIRED


class One(NamedTuple):
    """A record: its timestamp relative to now, and the value of its header."""

    age_ms: int = 0
    delay: bytes | None = None
    offset_delta: int = 1
    """To the record before."""


def batch_of(base_offset: int, *ones: One, codec: Compression = Compression.NONE) -> bytes:
    records: list[Record] = []
    offset = base_offset - 1
    for one in ones:
        offset += one.offset_delta
        headers = () if one.delay is None else (("due", one.delay),)
        records.append(Record(offset, NOW_MS - one.age_ms, None, b"v", headers))
    return encode_records(records, compression=codec)


def read_of(*batches: tuple[int, int, bytes]) -> list[BatchSlice]:
    """(base offset, last offset, bytes) of each batch, as one slice."""
    spans: list[BatchSpan] = []
    data = b""
    for base_offset, last_offset, batch in batches:
        spans.append(BatchSpan(base_offset, last_offset, len(data), len(data) + len(batch)))
        data += batch
    return [BatchSlice(spans, memoryview(data))]


def look(
    read: list[BatchSlice],
    *,
    delay_ms: int = 0,
    header: bytes | None = b"due",
    ttl_ms: int = 0,
    room: int = 100,
    first_new_offset: int = 0,
    passed_over: dict[int, Cause] | None = None,
) -> TimedRead:
    return look_at_times(
        read,
        RecordTiming(delay_ms, header, 100, ttl_ms),
        first_new_offset=first_new_offset,
        delayed_room=room,
        passed_over=passed_over or {},
        wall_ms=NOW_MS,
    )


def look_at(*ones: One, **values: int) -> TimedRead:
    """A look at one batch from offset 0 on."""
    last_offset = sum(one.offset_delta for one in ones) - 1
    return look(read_of((0, last_offset, batch_of(0, *ones))), **values)  # type: ignore[arg-type]


def test_records_of_the_present_have_no_fate() -> None:
    found = look_at(One(), One(5), ttl_ms=TTL_MS)
    assert (found.parts, found.gate, found.earliest_ms) == ([], None, NOW_MS - 5)


def test_neighbours_with_one_due_time_are_one_part() -> None:
    found = look_at(One(delay=b"95"), One(delay=b"99"), One(delay=b"0"), One(delay=b"101"))
    assert found.parts == [
        TimedPart(0, 1, Due(NOW_MS + 100)),
        TimedPart(3, 3, Due(NOW_MS + 110)),
    ]
    assert found.parts[0].fate == Due(-(-(NOW_MS + 95) // DUE_STEP_MS) * DUE_STEP_MS)


@pytest.mark.parametrize(
    "value", [b"", b"-1", b"1.0", b" 5", b"\xd9\xa3", b"%d" % (WAIT_MS_MAX + 1), b"9" * 99]
)
def test_a_value_that_is_no_delay_is_counted(value: bytes) -> None:
    found = look_at(One(delay=value))
    assert (found.parts, found.invalid_headers) == ([], 1)


def test_the_longest_delay_is_allowed() -> None:
    assert look_at(One(delay=b"%d" % WAIT_MS_MAX)).parts == [TimedPart(0, 0, Due(NOW_MS + WAIT_MS_MAX))]


def test_a_timestamp_in_the_far_future_is_bounded() -> None:
    found = look_at(One(-(10**12), b"5"))
    assert found.parts == [TimedPart(0, 0, Due(NOW_MS + WAIT_MS_MAX))]
    found = look_at(One(-(10**12)), delay_ms=5)
    assert found.gate == Gate(0, NOW_MS + WAIT_MS_MAX, 5)


def test_the_gate_closes_at_the_first_record_that_is_not_due() -> None:
    read = read_of((0, 2, batch_of(0, One(100), One(40), One(100))), (3, 3, batch_of(3, One(100))))
    found = look(read, delay_ms=100)
    assert found.gate == Gate(1, NOW_MS + 60, 100)
    batches = [BatchSpan(0, 2, 0, 9), BatchSpan(3, 3, 9, 12)]
    assert [batch[:2] for batch in batches_before(batches, Gate(1, NOW_MS + 60, 100))] == [(0, 0)]


def test_the_header_takes_the_place_of_the_delay_of_the_group() -> None:
    found = look_at(One(0, b"0"), One(0, b"500"), One(0, b"no delay"), delay_ms=100)
    assert found.parts == [TimedPart(1, 1, Due(NOW_MS + 500))]
    assert found.gate == Gate(2, NOW_MS + 100, 100)


def test_the_gate_closes_if_no_room_is_left_for_delayed_records() -> None:
    found = look_at(One(), One(0, b"500"), One(0, b"600"), One(), room=1)
    assert found.parts == [TimedPart(1, 1, Due(NOW_MS + 500))]
    assert found.gate == Gate(2, None, 0)


def test_expired_records_are_found_in_any_order() -> None:
    found = look_at(One(TTL_MS), One(TTL_MS - 1), One(TTL_MS + 5), One(), ttl_ms=TTL_MS)
    assert found.parts == [TimedPart(0, 0, EXPIRED), TimedPart(2, 2, EXPIRED)]
    assert found.earliest_ms == NOW_MS - TTL_MS + 1


def test_an_old_batch_expires_as_a_whole_without_a_look_inside() -> None:
    batch = bytearray(batch_of(0, One(TTL_MS), One(TTL_MS)))
    batch[-3:] = b"\xff\xff\xff"
    assert look(read_of((0, 1, bytes(batch))), ttl_ms=TTL_MS).parts == [TimedPart(0, 1, EXPIRED)]


def test_expiry_counts_more_than_a_delay() -> None:
    assert look_at(One(TTL_MS, b"99999999"), ttl_ms=TTL_MS).parts == [TimedPart(0, 0, EXPIRED)]
    found = look_at(One(TTL_MS), One(), ttl_ms=TTL_MS, delay_ms=2 * TTL_MS)
    assert (found.parts, found.gate) == ([TimedPart(0, 0, EXPIRED)], Gate(1, NOW_MS + 2 * TTL_MS, 2 * TTL_MS))


def test_records_in_flight_can_expire_and_are_not_delayed_again() -> None:
    read = read_of((0, 3, batch_of(0, One(0, b"500"), One(TTL_MS), One(0, b"500"), One(0, b"500"))))
    found = look(read, ttl_ms=TTL_MS, first_new_offset=3)
    assert found.parts == [TimedPart(1, 1, EXPIRED), TimedPart(3, 3, Due(NOW_MS + 500))]


def test_offsets_without_a_record_go_with_the_next_record_and_the_last_ones_with_the_last() -> None:
    ones = One(TTL_MS), One(TTL_MS, None, 3), One(0, b"500", 2)
    found = look(read_of((0, 9, batch_of(0, *ones))), ttl_ms=TTL_MS)
    assert found.parts == [TimedPart(0, 3, EXPIRED), TimedPart(4, 9, Due(NOW_MS + 500))]


def test_batches_without_data_for_a_member_are_archived() -> None:
    read = read_of(
        (0, 0, marker(0, 1, COMMIT)), (1, 1, batch_of(1, One(0, b"500"))), (2, 2, batch_of(2, One()))
    )
    found = look(read, passed_over={1: Cause.TRANSACTION_ABORTED, 2: Cause.GAP})
    assert found.parts == [
        TimedPart(0, 0, Cause.GAP),
        TimedPart(1, 1, Cause.TRANSACTION_ABORTED),
        TimedPart(2, 2, Cause.GAP),
    ]


def test_a_record_without_a_timestamp_is_due_and_never_expires() -> None:
    batch = encode_records([Record(0, -1, None, b"v", (("due", b"500"),))])
    found = look(read_of((0, 0, batch)), ttl_ms=1, delay_ms=100)
    assert (found.parts, found.gate, found.earliest_ms) == ([], None, None)


def test_a_batch_beyond_the_bounds_is_judged_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_RECORDS_MAX", 2)
    ones = One(TTL_MS), One(0, b"500"), One(50)
    found = look_at(*ones, ttl_ms=TTL_MS)
    assert (found.parts, found.unread_headers) == ([], 3)
    assert look_at(*ones, delay_ms=100).gate == Gate(0, NOW_MS + 100, 100)


def test_a_malformed_batch_is_left_to_others() -> None:
    batch = bytearray(batch_of(0, One(), One(), codec=Compression.GZIP))
    batch[70:] = bytes(len(batch) - 70)
    assert look(read_of((0, 1, bytes(batch))), ttl_ms=TTL_MS).parts == []


def test_keys_end_at_the_gate() -> None:
    first = BatchKeys(0, 3, KeyHashes([0, 2, 3], [7, 8, 9]), b"\x01\x02\x03")
    keys = [first, BatchKeys(4, 5, KeyHashes([0, 1], [7, 7]))]
    assert keys_before(keys, Gate(3, None, 0)) == [BatchKeys(0, 2, KeyHashes([0, 2], [7, 8]), b"\x01\x02")]
    assert keys_before(keys, Gate(4, None, 0)) == keys[:1]


ages = st.integers(-50, 2 * TTL_MS)
delays = st.none() | st.sampled_from([b"0", b"30", b"20000", b"x"])


@given(
    st.lists(st.builds(One, ages, delays, st.integers(1, 3)), min_size=1, max_size=8),
    st.integers(0, 8),
    st.sampled_from([0, 40]),
    st.sampled_from([0, TTL_MS]),
    st.integers(0, 3),
)
def test_a_look_agrees_with_one_record_at_a_time(
    ones: list[One], first_new_offset: int, delay_ms: int, ttl_ms: int, room: int
) -> None:
    """The slow way: each record by itself, with the offsets before it."""
    ones[0] = ones[0]._replace(offset_delta=1)
    room_left = room
    fates: dict[int, Due | Cause] = {}
    gate_offset: int | None = None
    first = 0
    for one in ones:
        last = first + one.offset_delta - 1
        own = int(one.delay) if one.delay is not None and one.delay.isdigit() else None
        wait_ms = delay_ms if own is None else own
        due_ms = NOW_MS - one.age_ms + wait_ms if wait_ms else NOW_MS
        is_new = last >= first_new_offset
        fate: Due | Cause | None = None
        if ttl_ms and one.age_ms >= ttl_ms:
            fate = EXPIRED
        elif is_new and own is not None and due_ms > NOW_MS and room_left:
            room_left -= 1
            fate = Due(-(-due_ms // DUE_STEP_MS) * DUE_STEP_MS)
        elif is_new and due_ms > NOW_MS:
            gate_offset = max(first, first_new_offset)
            break
        for offset in range(max(first, first_new_offset) if isinstance(fate, Due) else first, last + 1):
            if fate is not None:
                fates[offset] = fate
        first = last + 1
    last_offset = sum(one.offset_delta for one in ones) - 1
    found = look(
        read_of((0, last_offset, batch_of(0, *ones))),
        delay_ms=delay_ms,
        ttl_ms=ttl_ms,
        room=room,
        first_new_offset=first_new_offset,
    )
    assert {
        offset: part.fate for part in found.parts for offset in range(part.first_offset, part.last_offset + 1)
    } == fates
    assert (None if found.gate is None else found.gate.offset) == gate_offset
