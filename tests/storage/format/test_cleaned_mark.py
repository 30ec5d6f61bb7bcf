"""The marks that replace cleaned share state (docs/decisions/0006)."""

from __future__ import annotations

import pytest

from barnabas.protocol.record_batch import HEADER_BYTES, build_batch, is_checksum_valid, read_header
from barnabas.protocol.records import iterate_records
from barnabas.storage.format.cleaned_mark import MARK_OFFSETS_MAX, encode_mark, is_mark, split_run
from barnabas.storage.format.share_index import CLEANED
from barnabas.storage.share.share_state import may_be_share_state, read_control_batch
from tests.storage.log_building import delta_batch


def test_a_mark_is_an_empty_control_batch_over_its_offsets() -> None:
    mark = encode_mark(100, 163, 7)
    header = read_header(mark)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (100, 163, 7)
    assert (header.record_count, header.producer_id, header.max_timestamp_ms) == (0, -1, -1)
    assert header.is_control
    assert is_mark(header)
    assert len(mark) == header.size_bytes == HEADER_BYTES
    assert is_checksum_valid(mark, 0, header)
    assert list(iterate_records(mark)) == []


def test_the_share_index_knows_it_by_its_kind() -> None:
    mark = encode_mark(100, 163, 7)
    header = read_header(mark)
    assert may_be_share_state(header)
    control = read_control_batch(memoryview(mark), header)
    assert control is not None
    assert (control.kind, control.last_offset_delta, control.group_id) == (CLEANED, 63, "")


def test_share_state_and_data_are_not_marks() -> None:
    assert not is_mark(read_header(delta_batch(5, 0).data))
    assert not is_mark(read_header(build_batch(0, [(None, b"v")], leader_epoch=0, timestamp_ms=0)))


@pytest.mark.parametrize(
    ("last_offset", "marks"),
    [
        (10, [(10, 10)]),
        (10 + MARK_OFFSETS_MAX - 1, [(10, MARK_OFFSETS_MAX + 9)]),
        (10 + MARK_OFFSETS_MAX, [(10, MARK_OFFSETS_MAX + 9), (MARK_OFFSETS_MAX + 10, MARK_OFFSETS_MAX + 10)]),
    ],
)
def test_a_long_run_takes_several_marks(last_offset: int, marks: list[tuple[int, int]]) -> None:
    assert list(split_run(10, last_offset)) == marks
