"""The recognition of share state among control batches."""

import pytest

from barnabas.protocol.control_record import VALUE_VERSION
from barnabas.protocol.record_batch import CONTROL_FLAG, build_batch, read_header
from barnabas.protocol.varint import NewerVersion, RecordFormatError
from barnabas.storage.segments.control_batch import ControlBatch
from barnabas.storage.share.share_state import (
    decode_share_record,
    may_be_share_state,
    read_control_batch,
    read_group_id,
)
from tests.storage.log_building import checkpoint_batch, delta_batch, newer_checkpoint_batch, produced

MARKER_KEY = b"\x00\x00\x00\x01"


@pytest.mark.parametrize(
    "control",
    [
        delta_batch(5, 2),
        delta_batch(5, 2, ""),
        delta_batch(5, 2, "grüße" * 60),
        checkpoint_batch(7, 2),
        checkpoint_batch(7, 2, "x" * 300, deleted=True),
    ],
)
def test_appended_state_is_read_back(control: ControlBatch) -> None:
    header = read_header(control.data)
    assert may_be_share_state(header)
    assert read_control_batch(memoryview(control.data), header) == control
    offset, record = decode_share_record(control.data)
    assert offset == header.base_offset
    assert read_group_id(control.data) == record.group_id


def test_data_and_markers_are_not_share_state() -> None:
    marker = build_batch(
        0, [(MARKER_KEY, b"\x00" * 6)], leader_epoch=0, timestamp_ms=0, attributes=CONTROL_FLAG, producer_id=4
    )
    assert not may_be_share_state(read_header(produced()))
    assert not may_be_share_state(read_header(marker))


def test_control_batch_of_another_type_is_not_share_state() -> None:
    batch = build_batch(0, [(MARKER_KEY, b"")], leader_epoch=0, timestamp_ms=0, attributes=CONTROL_FLAG)
    assert read_control_batch(memoryview(batch), read_header(batch)) is None


def test_share_state_of_another_version_is_refused() -> None:
    batch = newer_checkpoint_batch(0, 0).data
    complaint = f"has version {VALUE_VERSION + 1}, and this broker understands version {VALUE_VERSION}"
    with pytest.raises(NewerVersion, match=complaint):
        read_control_batch(memoryview(batch), read_header(batch))
    with pytest.raises(NewerVersion, match=complaint):
        read_group_id(batch)


def test_group_id_that_is_not_utf_8_is_refused() -> None:
    rotten = checkpoint_batch(7, 2, "group").data.replace(b"group", b"gr\xffup")
    with pytest.raises(RecordFormatError, match="at 7 names no group"):
        read_group_id(rotten)
