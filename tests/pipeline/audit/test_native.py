"""The native decoder gives the same result as its pure twin, for any bytes."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.pipeline.audit import control_columns, control_walk
from barnabas.pipeline.audit.control_columns import ControlColumns
from barnabas.pipeline.audit.control_walk import ENTRY_HEAD, BadBatch, Found
from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    encode_checkpoint,
    encode_delta,
)
from barnabas.protocol.delivery_state import Cause, LetterPlace, RecordState, StateRange
from barnabas.protocol.record_batch import build_batch
from barnabas.storage.format.cleaned_mark import encode_mark

native = pytest.importorskip("barnabas.pipeline.audit._native", reason="built without a compiler")

INT64S = st.integers(-(2**63), 2**63 - 1)
INT32S = st.integers(-(2**31), 2**31 - 1)
_COUNTS, _MEMBERS = st.integers(-(2**15), 2**15 - 1), st.none() | st.sampled_from(["anna", "bert", "ça"])
LETTERS = st.builds(LetterPlace, st.sampled_from(Cause), st.uuids(), INT32S, INT64S)
RANGES = st.builds(
    StateRange,
    INT64S,
    INT64S,
    st.sampled_from([RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED]),
    _COUNTS,
    st.sampled_from(Cause),
    _MEMBERS,
    st.none(),
) | st.builds(
    StateRange,
    INT64S,
    INT64S,
    st.just(RecordState.ARCHIVING),
    _COUNTS,
    st.sampled_from(Cause),
    _MEMBERS,
    LETTERS,
)
DELTAS = st.builds(
    ShareDelta,
    st.sampled_from(["group", "größe"]),
    INT64S,
    INT32S,
    INT64S,
    INT64S,
    st.lists(RANGES, max_size=4),
)
CHECKPOINT = ShareCheckpoint("group", 1, 1, 5, 0, 1, 0, 10, 0, [StateRange(0, 9, RecordState.AVAILABLE, 1)])


def batch_of(offset: int, record: ShareDelta | ShareCheckpoint) -> bytes:
    key, value = encode_delta(record) if isinstance(record, ShareDelta) else encode_checkpoint(record)
    return build_control_batch(offset, 3, 7, key, value)


LOGS = st.lists(
    st.builds(batch_of, INT64S, DELTAS)
    | st.just(batch_of(9, CHECKPOINT))
    | st.just(build_batch(4, [(b"key", b"value")] * 3, leader_epoch=1, timestamp_ms=9))
    | st.just(encode_mark(7, 11, 2))
    | st.just(build_control_batch(3, 1, 2, b"\x00\x00\x00\x01", bytes(6)))
    | st.just(bytes(70)),
    max_size=6,
).map(b"".join)


def walked(walk: Callable[[bytes, int, int, Found], int], data: bytes) -> object:
    found = Found()
    end: object
    try:
        end = walk(data, 0, len(data), found)
    except BadBatch as bad:
        end = (bad.position, bad.offset, bad.next_position, bad.reason)
    packs = {
        group: (pack.first_offset, pack.last_offset, pack.record_count, bytes(pack.payload))
        for group, pack in found.packs.items()
    }
    return end, packs, found.runs, found.mark_count


def filled(fill: Callable[[ControlColumns], None], payload: bytes) -> ControlColumns:
    columns = ControlColumns(payload)
    fill(columns)
    return columns


@given(LOGS)
def test_logs_are_walked_alike(data: bytes) -> None:
    assert walked(native.walk, data) == walked(control_walk.walk, data)


@settings(max_examples=150)
@given(LOGS, st.data())
def test_damaged_logs_are_walked_alike(data: bytes, draws: st.DataObject) -> None:
    damaged = bytearray(data)
    for _ in range(draws.draw(st.integers(1, 3))):
        if damaged:
            damaged[draws.draw(st.integers(0, len(damaged) - 1))] = draws.draw(st.integers(0, 255))
    damaged = damaged[: draws.draw(st.integers(0, len(damaged)))]
    assert walked(native.walk, bytes(damaged)) == walked(control_walk.walk, bytes(damaged))


def pack_of(values: list[bytes]) -> bytes:
    entries = (
        ENTRY_HEAD.pack(offset, 1, ControlType.SHARE_DELTA, len(value)) + value
        for offset, value in enumerate(values)
    )
    return b"".join(entries)


@given(st.lists(DELTAS, max_size=5))
def test_deltas_are_decoded_alike(deltas: list[ShareDelta]) -> None:
    payload = pack_of([encode_delta(delta)[1] for delta in deltas])
    assert filled(native.fill_columns, payload) == filled(control_columns.fill_columns, payload)


@settings(max_examples=150)
@given(st.lists(DELTAS, min_size=1, max_size=3), st.data())
def test_damaged_deltas_are_decoded_alike(deltas: list[ShareDelta], draws: st.DataObject) -> None:
    values = [bytearray(encode_delta(delta)[1]) for delta in deltas]
    for value in values:
        position = draws.draw(st.integers(0, len(value) - 1))
        value[position] = draws.draw(st.integers(0, 255))
        del value[draws.draw(st.integers(len(value) // 2, len(value))) :]
    payload = pack_of([bytes(value) for value in values])
    assert filled(native.fill_columns, payload) == filled(control_columns.fill_columns, payload)


@given(st.lists(st.binary(max_size=80), max_size=4))
def test_any_values_are_decoded_alike(values: list[bytes]) -> None:
    payload = pack_of([b"\x00\x01\x01\x00\x00" + value for value in values])
    assert filled(native.fill_columns, payload) == filled(control_columns.fill_columns, payload)


def test_tagged_fields_are_skipped_alike() -> None:
    value = encode_delta(ShareDelta("group", 1, 1, 5, 0, [StateRange(0, 1, RecordState.ACKNOWLEDGED, 1)]))[1]
    tagged = value[:-2] + b"\x01\x05\x02ab" + b"\x01\x00\x01z"
    columns = filled(native.fill_columns, pack_of([tagged]))
    assert columns == filled(control_columns.fill_columns, pack_of([tagged]))
    assert columns.last_offsets == array("q", [1])
