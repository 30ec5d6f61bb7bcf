"""Generated logs, intact and damaged: both decoders, and those of other projects, give the same records."""

from __future__ import annotations

from typing import Any, cast

from aiokafka.record.memory_records import MemoryRecords  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.decoding import DECODED_COLUMNS, _native
from barnabas.protocol.record_batch import CRC_START, iterate_headers
from barnabas.protocol.records import iterate_records
from tests.pipeline.decoding.batches import body_of, damages, logs, resealed
from tests.pipeline.decoding.decoders import compare_decoders, rows

RECORD_COLUMNS = ("offset", "timestamp", "timestampType", "key", "value", "headers")
columns = st.permutations(DECODED_COLUMNS).flatmap(
    lambda names: st.integers(0, len(names)).map(lambda count: names[:count])
)
offsets = st.one_of(st.integers(0, 400), st.integers(2**40, 2**40 + 400))


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments for `add`."""
    drawn: dict[str, Any] = {}
    if draw(st.booleans()):
        ends = sorted(draw(st.lists(offsets, max_size=10, unique=True)))
        drawn["ranges"] = [
            (*pair, draw(st.integers(0, 5))) for pair in zip(ends[::2], ends[1::2], strict=False)
        ]
    if draw(st.booleans()):
        drawn["timestamps"] = tuple(sorted(draw(st.tuples(st.integers(-1, 2**41), st.integers(-1, 2**41)))))
    return drawn


@st.composite
def aborted_transactions(draw: st.DrawFn) -> list[tuple[int, int]] | None:
    return draw(st.none() | st.lists(st.tuples(st.integers(1, 3), offsets), max_size=5))


@given(logs(), columns, options(), aborted_transactions(), st.integers(1, 400))
def test_both_decoders_take_the_same(
    log: list[bytes], names: list[str], drawn: dict[str, Any], aborted: Any, taken_bytes_max: int
) -> None:
    found = compare_decoders(
        b"".join(log), names, aborted=aborted, bounds={"taken_bytes_max": taken_bytes_max}, **drawn
    )
    assert found.error is None


@given(logs())
def test_the_records_equal_those_of_the_protocols_reader(log: list[bytes]) -> None:
    data = b"".join(log)
    expected = [
        (
            record.offset,
            record.timestamp_ms * 1000,
            int(header.log_append_time),
            record.key,
            record.value,
            [{"key": name, "value": value} for name, value in record.headers],
        )
        for position, header in iterate_headers(data)
        if not header.is_control
        for record in iterate_records(data, position)
    ]
    assert rows(_native.RecordDecoder, data, *RECORD_COLUMNS) == expected


@given(logs(kinds=("records", "marker", "share")))
def test_the_records_equal_those_of_aiokafka(log: list[bytes]) -> None:
    data = b"".join(log)
    assert rows(_native.RecordDecoder, data, *RECORD_COLUMNS) == seen_by_aiokafka(data)


def seen_by_aiokafka(data: bytes) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    batches = cast("Any", MemoryRecords(data))
    while batches.has_next():
        batch = batches.next_batch()
        if batch.is_control_batch:
            continue
        found.extend(
            (
                record.offset,
                record.timestamp * 1000,
                record.timestamp_type,
                record.key,
                record.value,
                [{"key": name, "value": value} for name, value in record.headers],
            )
            for record in batch
        )
    return found


@given(logs(), st.data())
def test_a_flipped_bit_under_the_checksum_is_found(log: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(log) - 1))
    start = sum(map(len, log[:index]))
    position = data.draw(st.integers(CRC_START, len(log[index]) - 1))
    found = compare_decoders(
        flipped(b"".join(log), start + position, data.draw(st.integers(0, 7))), DECODED_COLUMNS
    )
    assert found.error is not None
    assert found.error[1] == start
    assert "checksum" in found.error[2]
    assert found.columns == compare_decoders(b"".join(log[:index])).columns


@given(logs(), st.data())
def test_a_flipped_bit_anywhere_makes_the_same_of_both(log: list[bytes], data: st.DataObject) -> None:
    joined = b"".join(log)
    position = data.draw(st.integers(0, len(joined) - 1))
    compare_decoders(flipped(joined, position, data.draw(st.integers(0, 7))))


@given(logs(kinds=("records",)), columns, options(), st.data())
def test_damage_that_the_checksum_covers_up_makes_the_same_of_both(
    log: list[bytes], names: list[str], drawn: dict[str, Any], data: st.DataObject
) -> None:
    damaged = [resealed(batch, data.draw(damages(body_of(batch)))) for batch in log]
    compare_decoders(b"".join(damaged), names, **drawn)


@given(st.binary(max_size=200))
def test_any_bytes_make_the_same_of_both(data: bytes) -> None:
    compare_decoders(data)


def flipped(data: bytes, position: int, bit: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]
