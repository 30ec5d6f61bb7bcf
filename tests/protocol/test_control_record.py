"""Share state as control records: the bytes, the worked table of the draft, and the refused records."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from aiokafka.record.default_records import DefaultRecordBatch  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.control_record import (
    VALUE_VERSION,
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    build_control_batch,
    control_key,
    decode_control_record,
    encode_checkpoint,
    encode_delta,
    read_control_type,
)
from barnabas.protocol.delivery_state import (
    Cause,
    LetterPlace,
    PendingAcknowledgement,
    RecordState,
    StateRange,
    decode_condition,
    encode_condition,
)
from barnabas.protocol.record_batch import (
    CONTROL_FLAG,
    HEADER_BYTES,
    build_batch,
    is_checksum_valid,
    read_header,
)
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError

AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
MEMBER = "k4Rj8WQXQ2mPzLr0v1bYtA"
DELTA = ShareDelta(
    "G1", 7, 3, 1_700_000_000_000, 130, (StateRange(100, 109, ACKNOWLEDGED, 1, Cause.ACCEPT, "m"),)
)
CHECKPOINT = ShareCheckpoint(
    group_id="G1",
    group_incarnation=7,
    checkpoint_epoch=3,
    decided_at_ms=1_700_000_000_000,
    state_epoch=4,
    leader_epoch=5,
    start_offset=110,
    end_offset=120,
    delivery_complete_count=6,
    states=(
        StateRange(110, 110, AVAILABLE, 1, Cause.RELEASE, "m"),
        StateRange(111, 118, AVAILABLE, 0),
        StateRange(119, 119, ARCHIVED, 5, Cause.DELIVERY_LIMIT, "m"),
    ),
)

pending = st.builds(
    PendingAcknowledgement,
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**15), 2**15 - 1),
    st.integers(0, 3),
    st.text(max_size=40),
)
letters = st.builds(
    LetterPlace,
    st.sampled_from(Cause),
    st.uuids(),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
)
ranges = st.builds(
    StateRange,
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
    st.integers(0, 2**15 - 1),
    st.sampled_from(Cause),
    st.none() | st.text(max_size=30),
    st.none() | letters,
) | st.builds(
    StateRange,
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**63 - 1),
    st.just(AVAILABLE),
    st.integers(0, 2**15 - 1),
    st.sampled_from(Cause),
    st.none() | st.text(max_size=30),
    pending,
)


def test_a_delta_has_the_documented_bytes() -> None:
    key, value = encode_delta(DELTA)
    assert key.hex() == "00000006"
    assert value.hex(" ", -1) == bytes.fromhex(
        "0001 010000"  # version, guard
        "03 4731"  # group_id
        "0000000000000007 00000003 0000018bcfe56800"  # group_incarnation, checkpoint_epoch, decided_at_ms
        "0000000000000082"  # back_offset
        "02 02 6d"  # members
        "02 0000000000000064 000000000000006d 02 0001 01 0000 00"  # states
        "00"
    ).hex(" ", -1)


def test_only_a_record_with_a_condition_has_version_2() -> None:
    letter = LetterPlace(Cause.REJECT, UUID(int=0xABCD), 3, 500)
    state = StateRange(100, 109, RecordState.ARCHIVING, 1, Cause.REJECT, "m", letter)
    _, value = encode_delta(DELTA._replace(states=(state,)))
    assert value.hex(" ", -1) == bytes.fromhex(
        "0002 010000"
        "03 4731"
        "0000000000000007 00000003 0000018bcfe56800"
        "0000000000000082"
        "02 02 6d"
        "02 0000000000000064 000000000000006d 03 0001 03 0000"
        "01 00 1e 01 0000000000000000000000000000abcd 00000003 00000000000001f4 03"  # one tag: the condition
        "00"
    ).hex(" ", -1)
    _, plain = encode_delta(DELTA)
    assert plain.startswith(bytes.fromhex("0001 010000"))


def test_a_pending_acknowledgement_has_the_documented_bytes() -> None:
    condition = PendingAcknowledgement(500, 7, 1, "m")
    assert encode_condition(condition) == bytes.fromhex("03 00000000000001f4 0007 01 6d")
    state = StateRange(100, 109, AVAILABLE, 1, Cause.NONE, "m", condition)
    delta = DELTA._replace(states=(state,))
    assert decode_control_record(*encode_delta(delta)) == delta


@pytest.mark.parametrize(
    ("at", "put"),
    [pytest.param(11, b"\x04", id="an unknown type"), pytest.param(12, b"\xff", id="no valid member")],
)
def test_a_malformed_pending_acknowledgement_is_refused(at: int, put: bytes) -> None:
    data = encode_condition(PendingAcknowledgement(500, 7, 1, "m"))
    with pytest.raises(RecordFormatError, match="pending acknowledgement"):
        decode_condition(data[:at] + put + data[at + 1 :])


def test_only_an_available_record_has_a_pending_acknowledgement() -> None:
    condition = PendingAcknowledgement(500, 7, 1, "m")
    key, value = encode_delta(
        DELTA._replace(states=(StateRange(100, 109, AVAILABLE, 1, condition=condition),))
    )
    start = value.index((109).to_bytes(8, "big")) + 8
    assert value[start] == AVAILABLE
    with pytest.raises(RecordFormatError, match="state 2"):
        decode_control_record(key, value[:start] + b"\x02" + value[start + 1 :])


def test_a_condition_of_a_newer_broker_is_refused() -> None:
    letter = LetterPlace(Cause.REJECT, UUID(int=0xABCD), 3, 500)
    state = StateRange(100, 109, RecordState.ARCHIVING, 1, Cause.REJECT, "m", letter)
    key, value = encode_delta(DELTA._replace(states=(state,)))
    start = value.index(encode_condition(letter))
    with pytest.raises(RecordFormatError, match="unknown condition"):
        decode_control_record(key, value[:start] + b"\x63" + value[start + 1 :])


def test_a_checkpoint_has_the_documented_bytes() -> None:
    key, value = encode_checkpoint(CHECKPOINT)
    assert key.hex() == "00000005"
    assert value.hex(" ", -1) == bytes.fromhex(
        "0001 010000"
        "03 4731"
        "0000000000000007 00000003 0000018bcfe56800"
        "00 00000004 00000005 000000000000006e 0000000000000078 00000006"
        "02 02 6d"
        "04"
        "000000000000006e 000000000000006e 00 0001 02 0000 00"
        "000000000000006f 0000000000000076 00 0000 00 ffff 00"
        "0000000000000077 0000000000000077 04 0005 07 0000 00"
        "00"
    ).hex(" ", -1)


# The control records of the draft's worked example, by offset: one group, ten records fetched at a time.
WORKED_TABLE: dict[int, ShareCheckpoint | ShareDelta] = {
    130: ShareCheckpoint("G1", 1, 1, 0, 0, 0, 110, 110, 0),
    131: ShareDelta("G1", 1, 1, 0, 130, (StateRange(100, 109, ACKNOWLEDGED, 1),)),
    132: ShareDelta("G1", 1, 1, 0, 131, (StateRange(110, 110, AVAILABLE, 1),)),
    133: ShareDelta(
        "G1", 1, 1, 0, 132, (StateRange(111, 118, AVAILABLE, 0), StateRange(119, 119, ACKNOWLEDGED, 1))
    ),
    134: ShareDelta("G1", 1, 1, 0, 133, (StateRange(111, 112, AVAILABLE, 1),)),
    135: ShareDelta("G1", 1, 1, 0, 134, (StateRange(113, 118, ACKNOWLEDGED, 1),)),
    136: ShareDelta("G1", 1, 1, 0, 135, (StateRange(110, 110, ACKNOWLEDGED, 2),)),
    137: ShareDelta("G1", 1, 1, 0, 136, (StateRange(111, 112, ACKNOWLEDGED, 2),)),
}


@pytest.mark.parametrize("offset", WORKED_TABLE)
def test_each_record_of_the_worked_example_survives_its_control_batch(offset: int) -> None:
    record = WORKED_TABLE[offset]
    key, value = encode_delta(record) if isinstance(record, ShareDelta) else encode_checkpoint(record)
    (stored,) = iterate_records(build_control_batch(offset, 3, 1_700_000_000_000, key, value))
    assert stored.offset == offset
    assert decode_control_record(stored.key, stored.value) == record


def test_the_deltas_of_the_worked_example_chain_back_to_their_checkpoint() -> None:
    offset = 137
    while isinstance(record := WORKED_TABLE[offset], ShareDelta):
        assert record.checkpoint_epoch == 1
        offset = record.back_offset
    assert offset == 130


def test_an_alternative_checkpoint_ends_the_worked_example() -> None:
    checkpoint = ShareCheckpoint("G1", 1, 2, 0, 0, 0, 120, 120, 0)
    assert decode_control_record(*encode_checkpoint(checkpoint)) == checkpoint


@given(st.text(max_size=249), st.integers(0, 2**31 - 1), st.lists(ranges, max_size=6).map(tuple))
def test_every_delta_survives_encoding_and_decoding(
    group_id: str, checkpoint_epoch: int, states: tuple[StateRange, ...]
) -> None:
    delta = ShareDelta(group_id, 7, checkpoint_epoch, 1_700_000_000_000, -1, states)
    assert decode_control_record(*encode_delta(delta)) == delta


@given(st.booleans(), st.integers(-1, 2**63 - 1), st.lists(ranges, max_size=6).map(tuple))
def test_every_checkpoint_survives_encoding_and_decoding(
    deleted: bool, start_offset: int, states: tuple[StateRange, ...]
) -> None:
    checkpoint = CHECKPOINT._replace(deleted=deleted, start_offset=start_offset, states=states)
    assert decode_control_record(*encode_checkpoint(checkpoint)) == checkpoint


def test_a_member_id_is_stored_once() -> None:
    states = [StateRange(offset, offset, ACKNOWLEDGED, 1, Cause.ACCEPT, MEMBER) for offset in range(0, 20, 2)]
    _, value = encode_delta(DELTA._replace(states=states))
    assert value.count(MEMBER.encode()) == 1


def test_one_range_needs_at_most_140_bytes_besides_the_batch_header() -> None:
    states = (StateRange(10**12, 10**12 + 9, ACKNOWLEDGED, 1, Cause.ACCEPT, MEMBER),)
    batch = build_control_batch(10**12, 3, 1_700_000_000_000, *encode_delta(DELTA._replace(states=states)))
    assert len(batch) - HEADER_BYTES <= 140


def test_an_acquired_range_is_never_written() -> None:
    acquired = StateRange(100, 109, RecordState.ACQUIRED, 1)
    with pytest.raises(AssertionError):
        encode_delta(DELTA._replace(states=(acquired,)))
    with pytest.raises(AssertionError):
        encode_checkpoint(CHECKPOINT._replace(states=(*CHECKPOINT.states, acquired)))


@pytest.mark.parametrize("control_type", [ControlType.ABORT, ControlType.COMMIT, 2, 3, 4, 7])
def test_other_control_records_hold_no_share_state(control_type: int) -> None:
    assert decode_control_record(control_key(control_type), b"\x00\x00\x00\x00\x00\x00") is None


def test_the_type_of_a_newer_key_version_is_read() -> None:
    assert read_control_type(bytes.fromhex("0001 0006 ff")) == ControlType.SHARE_DELTA


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x06"])
def test_a_malformed_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(RecordFormatError, match="key"):
        decode_control_record(key, b"")


@pytest.mark.parametrize("record", [encode_delta(DELTA), encode_checkpoint(CHECKPOINT)])
def test_a_value_that_is_cut_short_or_too_long_is_refused(record: tuple[bytes, bytes]) -> None:
    key, value = record
    for size_bytes in range(len(value)):
        with pytest.raises(RecordFormatError):
            decode_control_record(key, value[:size_bytes])
    with pytest.raises(RecordFormatError, match="after its end"):
        decode_control_record(key, value + b"\x00")
    with pytest.raises(RecordFormatError, match="no value"):
        decode_control_record(key, None)


@pytest.mark.parametrize(
    ("position", "data", "complaint"),
    [
        (
            0,
            (VALUE_VERSION + 1).to_bytes(2, "big"),
            f"has version {VALUE_VERSION + 1}, and this broker understands version {VALUE_VERSION}",
        ),
        (0, b"\x00\x00", "not with a version from 1 to"),
        (2, b"\x00", "not with a version from 1 to"),
        (6, b"\xff", "can't decode"),
        (56, b"\x01", "the state 1"),
        (56, b"\x03", "the state 3"),
        (59, b"\x0b", "cause 11"),
        (60, b"\x00\x01", "member 1 of 1"),
        (60, b"\xff\xfe", "member -2 of 1"),
    ],
)
def test_an_invalid_value_is_refused(position: int, data: bytes, complaint: str) -> None:
    key, value = encode_delta(DELTA)
    changed = value[:position] + data + value[position + len(data) :]
    with pytest.raises(RecordFormatError, match=complaint):
        decode_control_record(key, changed)


def test_unknown_tagged_fields_are_skipped() -> None:
    key, value = encode_delta(DELTA)
    tagged = bytes.fromhex("02 05 01 aa 900e 02 bbcc")  # two fields: tag 5 of one byte, tag 1808 of two
    state_end = len(value) - 2
    assert value[state_end:] == b"\x00\x00"
    assert decode_control_record(key, value[:state_end] + tagged + tagged) == DELTA


def test_kafkas_dump_tool_reads_an_empty_record() -> None:
    for _, value in (encode_delta(DELTA), encode_checkpoint(CHECKPOINT)):
        version, kraft_version, tag_count = struct.unpack_from(">hhB", value)  # KRaftVersionRecord
        assert (version, kraft_version, tag_count) == (1, 256, 0)
        version, voters, tag_count = struct.unpack_from(">hBB", value)  # VotersRecord, no voters
        assert (version, voters, tag_count) == (1, 1, 0)


@pytest.mark.parametrize("value", [b"", b"v", b"v" * 200, b"v" * 70_000])
def test_a_control_batch_has_the_bytes_of_the_general_builder(value: bytes) -> None:
    key = control_key(ControlType.SHARE_DELTA)
    batch = build_control_batch(131, 4, 1_700_000_000_000, key, value)
    assert batch == build_batch(
        131, [(key, value)], leader_epoch=4, timestamp_ms=1_700_000_000_000, attributes=CONTROL_FLAG
    )


def test_aiokafka_reads_a_control_batch() -> None:
    batch = build_control_batch(131, 4, 1_700_000_000_000, *encode_delta(DELTA))
    header = read_header(batch)
    assert header.is_control
    assert not header.is_transactional
    assert (header.producer_id, header.record_count, header.last_offset) == (-1, 1, 131)
    assert is_checksum_valid(batch, 0, header)
    theirs = DefaultRecordBatch(bytearray(batch))
    assert theirs.validate_crc()
    assert theirs.is_control_batch
